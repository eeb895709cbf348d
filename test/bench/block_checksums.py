"""CPU time of GETs with checksums of blocks, against those without.

One object server in one process, on a folder of the caller's (an XFS, for
figures that mean something), asked by another process over one connection.
Its option goes on and off between batches that read the same objects from
the page cache, A B A B; only the server's process is measured. The ratio is
that of the fastest quarter of the batches, as others may be at work here.
``noise`` is off against off.

    python test/bench/block_checksums.py --devices /mnt/xfs
"""

from __future__ import annotations

import eventlet

eventlet.monkey_patch()

import argparse  # noqa: E402
import dataclasses  # noqa: E402
import logging  # noqa: E402
import os  # noqa: E402
import socket  # noqa: E402
import statistics  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from typing import Any, Dict, List, Tuple  # noqa: E402

from eventlet import wsgi  # noqa: E402
from request_path import _LISTENER, prepare  # noqa: E402

_OBJECTS = 8
_CLIENT = """\
import http.client, os, socket, sys, time
control = socket.socket(fileno=int(sys.argv[1]))
server = http.client.HTTPConnection('127.0.0.1', int(sys.argv[2]))
for line in control.makefile():
    method, size, count, span = line.split()
    body = os.urandom(int(size)) if method == 'PUT' else None
    for number in range(int(count)):
        headers = {'X-Backend-Storage-Policy-Index': '0',
                   'X-Timestamp': '%.5f' % time.time()}
        if body:
            headers['Content-Type'] = 'a/b'
        if span != '-':
            headers['Range'] = 'bytes=' + span
        server.request(method, '/d1/0/a/c/%s-%d' % (size, number % 8), body,
                       headers)
        answer = server.getresponse()
        given = len(answer.read())
        assert answer.status < 300 and (given or body), answer.status
    control.sendall(b'.')
"""
#: What, size of the object, first and end of the range; None is a PUT.
_Case = Tuple[str, int, Any]
CASES: List[_Case] = [
    ('GET', 65536, (0, 65536)), ('GET', 1 << 20, (0, 1 << 20)),
    ('GET', 16 << 20, (0, 16 << 20)),
    ('range of 4 KiB', 1 << 20, (500000, 504096)),
    ('range of 64 KiB', 16 << 20, (1 << 20, (1 << 20) + 65536)),
    ('range of 64 KiB, unaligned', 16 << 20, (1000000, 1065536)),
    ('range of 1 MiB', 16 << 20, (1 << 20, 2 << 20)),
    ('range of 15 MiB', 16 << 20, (1 << 20, 16 << 20)),
    ('PUT', 65536, None), ('PUT', 1 << 20, None), ('PUT', 16 << 20, None)]


class Server:
    """The object server, and its option."""

    def __init__(self, devices: str, root: str) -> None:
        conf = dict(prepare(devices, root), log_level='ERROR')
        from swift_dss.objserver.server import DssObjectController
        from swift_dss.objserver.settings import node_for
        app = DssObjectController(conf)
        self._node = node_for(conf, app.logger)
        listener = eventlet.listen(('127.0.0.1', 0))
        eventlet.spawn(wsgi.server, listener, app, log_output=False)
        self._control, theirs = socket.socketpair()
        # A green socket's descriptor does not wait, and the client's must.
        os.set_blocking(theirs.fileno(), True)
        self._client = subprocess.Popen(
            [sys.executable, '-c', _CLIENT, str(theirs.fileno()),
             str(listener.getsockname()[1])], pass_fds=(theirs.fileno(),))
        theirs.close()

    def switch(self, checks: bool) -> None:
        """From the next request on."""
        self._node.conf = dataclasses.replace(
            self._node.conf, io=dataclasses.replace(
                self._node.conf.io, block_checksums=checks))

    def batch(self, case: _Case, count: int, checks: bool) -> float:
        """CPU microseconds a request, all threads of the process."""
        label, size, span = case
        self.switch(checks)
        started = time.process_time()
        self._control.sendall(('%s %d %d %s\n' % (
            'PUT' if span is None else 'GET', size, count,
            '-' if span in (None, (0, size)) else '%d-%d' % (
                span[0], span[1] - 1))).encode())
        if self._control.recv(1) != b'.':
            raise SystemExit('%s: the client has failed' % label)
        return (time.process_time() - started) / count * 1e6

    def close(self) -> None:
        """Let the client end."""
        self._control.close()
        self._client.wait()


def compare(server: Server, case: _Case, rounds: int) -> None:
    """Print one line."""
    label, size, span = case
    server.batch((label, size, None), _OBJECTS, True)
    moved = size if span is None else span[1] - span[0]
    count = max(2, min(50, (8 << 20) // moved)
                // (4 if span is None else 1))
    server.batch(case, count, True)
    times: Dict[str, List[float]] = {'off': [], 'on': [], 'noise': []}
    for turn in range(rounds):
        for side in list(times)[::-1 if turn % 2 else 1]:
            times[side].append(server.batch(case, count, side == 'on'))
    off, on, noise = (statistics.quantiles(times[side], n=4)[0]
                      for side in ('off', 'on', 'noise'))
    print('%-28s of %8d bytes: %8.0f us off, x%.3f on, noise x%.3f' % (
        label, size, off, on / off, noise / off), flush=True)


def main() -> None:
    """See the module's text."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument('--devices', required=True, metavar='FOLDER')
    options.add_argument('--rounds', type=int, default=40)
    options.add_argument('--only', default='', help='cases with this name')
    args = options.parse_args()
    logging.getLogger().addHandler(logging.NullHandler())
    with tempfile.TemporaryDirectory() as root:
        listener = subprocess.Popen(
            [sys.executable, '-c', _LISTENER,
             os.path.join(root, 'events.sock')], stdout=subprocess.PIPE)
        try:
            assert listener.stdout is not None
            listener.stdout.readline()
            server = Server(args.devices, root)
            try:
                for case in CASES:
                    if args.only in case[0]:
                        compare(server, case, args.rounds)
            finally:
                server.close()
        finally:
            listener.kill()
            listener.wait()


if __name__ == '__main__':
    main()
