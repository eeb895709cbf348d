"""Instructions of requests inside the object server, ours against stock.

The same figure on a busy machine as on an idle one: valgrind counts what the
process of an object server executes outside the kernel, for requests that a
client in another process makes over one connection. Stock objects are asked
of Swift's own controller. A daemon's socket is there, and a process that
empties it. Needs valgrind with its headers, and a C compiler.

    python test/bench/instructions.py --devices /mnt/xfs
    python test/bench/instructions.py --devices /mnt/xfs --only 'GET 65536'

Time in the kernel, caches and waits are not in it: ``strace -c`` and
``request_path.py`` show those.
"""

from __future__ import annotations

import argparse
import ctypes
import dataclasses
import gc
import json
import logging
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
from typing import Any, Dict, List, NamedTuple

_SOURCE = pathlib.Path(__file__).with_suffix('.c')
_CLIENT = """\
import http.client, os, socket, sys, time
control = socket.socket(fileno=int(sys.argv[1]))
server = http.client.HTTPConnection('127.0.0.1', int(sys.argv[2]))
for line in control.makefile():
    method, size, count, span, policy, class_map = line.split()
    body = os.urandom(int(size)) if method == 'PUT' else None
    for number in range(int(count)):
        headers = {'X-Backend-Storage-Policy-Index': policy,
                   'X-Timestamp': '%.5f' % time.time()}
        if body:
            headers['Content-Type'] = 'a/b'
            if class_map != '-':
                headers['X-Object-Sysmeta-Dss-Map'] = class_map
        if span != '-':
            headers['Range'] = 'bytes=' + span
        server.request(method, '/d1/0/a/c/%s-%s-%d' % (
            size, class_map, number % 8), body, headers)
        answer = server.getresponse()
        answer.read()
        assert answer.status < 300, answer.status
    control.sendall(b'.')
"""


class Side(NamedTuple):
    """Who stores the object."""

    policy: int
    class_map: str
    checks: bool


SIDES = {'stock': Side(1, '-', False), 'without checksums': Side(0, '-',
         False), 'with': Side(0, '-', True), 'classified': Side(0, '1', True)}


class Case(NamedTuple):
    """What is asked ``count`` times."""

    method: str
    size: int
    span: str
    count: int

    @property
    def name(self) -> str:
        """As ``--only`` has it."""
        return '%s %d%s' % (self.method, self.size,
                            '' if self.span == '-' else ' ' + self.span)


CASES = [Case('GET', 4096, '-', 30), Case('GET', 65536, '-', 30),
         Case('GET', 16 << 20, '1048576-1114111', 30),
         Case('GET', 1 << 20, '-', 10), Case('GET', 16 << 20, '-', 2),
         Case('PUT', 4096, '-', 30), Case('PUT', 65536, '-', 30),
         Case('PUT', 1 << 20, '-', 10), Case('PUT', 16 << 20, '-', 2)]


def _connected(app: Any) -> Any:
    """(a socket, a process) that takes orders and asks a server of ``app``."""
    import eventlet
    from eventlet import wsgi
    listener = eventlet.listen(('127.0.0.1', 0))
    eventlet.spawn(wsgi.server, listener, app, log_output=False)
    control, theirs = socket.socketpair()
    # A green socket's descriptor does not wait, and the client's must.
    os.set_blocking(theirs.fileno(), True)
    client = subprocess.Popen(
        [sys.executable, '-c', _CLIENT, str(theirs.fileno()),
         str(listener.getsockname()[1])], pass_fds=(theirs.fileno(),))
    theirs.close()
    return control, client


def serve(devices: str, root: str, only: str) -> None:
    """Under valgrind: the object server, and what asks it."""
    import eventlet
    eventlet.monkey_patch()
    from request_path import daemon, prepare

    dump = dumper(root)
    logging.getLogger().addHandler(logging.NullHandler())
    conf = dict(prepare(devices, root), log_level='ERROR')
    from swift.obj.server import ObjectController

    from swift_dss.objserver.server import DssObjectController
    from swift_dss.objserver.settings import node_for
    # By the number of a policy.
    apps = [DssObjectController(dict(conf)), ObjectController(dict(conf))]
    node = node_for(conf, apps[0].logger)
    asked = [_connected(app) for app in apps]

    def ask(case: Case, side: Side, count: int) -> None:
        control = asked[side.policy][0]
        control.sendall(('%s %d %d %s %d %s\n' % (
            case.method, case.size, count, case.span, side.policy,
            side.class_map)).encode())
        if control.recv(1) != b'.':
            raise SystemExit('%s: the client has failed' % case.name)

    def count(case: Case, name: str, side: Side) -> None:
        node.conf = dataclasses.replace(
            node.conf, io=dataclasses.replace(
                node.conf.io, block_checksums=side.checks))
        if case.method == 'GET':
            ask(case._replace(method='PUT', span='-'), side, 8)
        ask(case, side, case.count)
        gc.collect()
        dump(b'before')
        ask(case, side, case.count)
        dump(('%s|%s' % (case.name, name)).encode())

    with daemon(root):
        for case in CASES:
            for name, side in SIDES.items() if only in case.name else ():
                count(case, name, side)
    for control, client in asked:
        control.close()
        client.wait()


def counted(root: str) -> Dict[str, int]:
    """Instructions by the name of a dump."""
    sums: Dict[str, int] = {}
    for path in pathlib.Path(root).glob('out.*'):
        text = path.read_text(errors='replace')
        name = re.search(r'(?m)^desc: Trigger: Client Request: (.*)$', text)
        number = re.search(r'(?m)^summary: (\d+)$', text)
        if name and number:
            sums[name.group(1)] = int(number.group(1))
    return sums


def dumper(root: str) -> Any:
    """Under valgrind: what writes down the count since the last one, by a
    name in bytes."""
    return ctypes.PyDLL(os.path.join(root, 'dump.so')).dump


def valgrind(root: str, script: str, arguments: List[str],
             **options: Any) -> subprocess.Popen[bytes]:
    """Start a script that counts.

    :param root: an empty folder, where :func:`counted` finds its counts
    :param options: of ``Popen``
    """
    subprocess.run(['cc', '-shared', '-fPIC', '-o',
                    os.path.join(root, 'dump.so'), str(_SOURCE)], check=True)
    # Copies by "rep movs" would count an instruction for each byte.
    far = 'glibc.cpu.x86_rep_%s_threshold=1073741824'
    return subprocess.Popen(
        ['valgrind', '-q', '--tool=callgrind', '--instr-atstart=no',
         '--callgrind-out-file=%s' % os.path.join(root, 'out'),
         sys.executable, '-W', 'ignore', script, '--root', root]
        + arguments, stderr=subprocess.DEVNULL, **options,
        env=dict(os.environ, PYTHONHASHSEED='0', GLIBC_TUNABLES='%s:%s' % (
            far % 'movsb', far % 'stosb')))


def main() -> None:
    """See the module's text."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument('--devices', required=True, metavar='FOLDER')
    options.add_argument('--only', default='', help='cases with this name')
    options.add_argument('--json', action='store_true',
                         help='a line for each case')
    options.add_argument('--root', default='', help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.root:
        serve(args.devices, args.root, args.only)
        return
    with tempfile.TemporaryDirectory() as root:
        if valgrind(root, __file__, ['--devices', args.devices, '--only',
                                     args.only]).wait():
            raise SystemExit('the server has failed')
        sums: Any = counted(root)
    for case in CASES:
        if args.only in case.name:
            told = {side: sums['%s|%s' % (case.name, side)] / case.count
                    for side in SIDES}
            print(json.dumps({'case': case.name, **told}) if args.json
                  else line(case.name, told), flush=True)


def line(name: str, told: Dict[str, float]) -> str:
    """A case in words; the first side of it is stock."""
    stock, *ours = told.values()
    return '%-28s %9d thousand %s' % (name, stock / 1000, ' '.join(
        '%s x%.3f' % (side, mine / stock)
        for side, mine in zip(list(told)[1:], ours)))


if __name__ == '__main__':
    main()
