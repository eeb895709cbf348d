"""Instructions of requests inside the proxy, ours against stock.

As ``instructions.py`` counts them for an object server: by valgrind, outside
the kernel, for requests that a client in another process makes over one
connection. Two proxies are in the process that counts, each with the pipeline
of an all-in-one cluster and a cache of accounts and containers: ours, and
Swift's own without our filters. The stock one asks a stock object server, ours
asks ours; these and all others run outside of valgrind. Three copies.

    python test/bench/proxy_instructions.py
    python test/bench/proxy_instructions.py --only 'GET 4096' --json

A count is that of the least of several batches: each has the same requests,
and collections of garbage are in some.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import shutil
import socket
import sys
import tempfile
from dataclasses import replace
from typing import Any, Dict, Iterator, List, NamedTuple, TextIO

from instructions import counted, dumper, line, valgrind

from swift_dss.aio import run
from swift_dss.bench.cluster import bed
from swift_dss.bench.cluster.beside import BesideCluster
from swift_dss.bench.cluster.client import Client, Request
from swift_dss.wire import names

#: Of what is not counted.
_BEFORE = '-'
#: Requests of a batch.
_REQUESTS = 8
_PROXIES = ('stock-proxy-server', 'proxy-server')
_GIB = 1 << 30


class Side(NamedTuple):
    """Who stores the object.

    :param proxy: whom the client asks
    """

    proxy: str
    policy: str
    headers: Dict[str, str]


SIDES = {'stock': Side(_PROXIES[0], 'vanilla', {}),
         'unclassified': Side(_PROXIES[1], 'dss', {}),
         'classified': Side(_PROXIES[1], 'dss', {names.OBJECT_CLASS: '1'})}


class Case(NamedTuple):
    """A kind of request.

    :param span: of the bytes of a GET; '': all
    """

    method: str
    size: int
    span: str = ''

    @property
    def name(self) -> str:
        """As ``--only`` has it."""
        return ('%s %d %s' % self).rstrip()


CASES = [Case('GET', 4096), Case('HEAD', 4096), Case('GET', 65536),
         Case('GET', 1 << 20, '65536-131071'), Case('PUT', 4096),
         Case('PUT', 65536)]


def serve(root: str, etc: str, control: socket.socket) -> None:
    """Under valgrind: the proxies, and what writes the counts down.

    :param root: with a file of options for each proxy
    :param control: says the ports, and takes the names of counts
    """
    run.prepare(etc)
    run.log_to(os.path.join(root, 'log'))
    from swift.common import utils, wsgi
    utils.monkey_patch()
    import eventlet
    from eventlet.wsgi import server

    from swift_dss.proxy.objects import Objects
    # They ask now and then, whatever requests there are.
    Objects.start_workers = lambda objects: None  # type: ignore
    dump = dumper(root)
    ports = []
    for name in _PROXIES:
        listener = eventlet.listen(('127.0.0.1', 0))
        ports.append(listener.getsockname()[1])
        app = wsgi.loadapp(os.path.join(root, name + '.conf'),
                           {'log_name': 'proxy-server'})
        eventlet.spawn(server, listener, app, log_output=False,
                       protocol=wsgi.SwiftHttpProtocol,
                       capitalize_response_headers=False)
    talk: Any = eventlet.greenio.GreenSocket(control).makefile('rw')
    print(json.dumps(ports), file=talk, flush=True)
    for name in talk:
        if name.rstrip() == _BEFORE:
            gc.collect()
        dump(name.rstrip().encode())
        print(file=talk, flush=True)


class Counting:
    """The proxies that are counted.

    :param talk: of :func:`serve`
    """

    def __init__(self, own: bed.Bed, talk: TextIO) -> None:
        self._talk = talk
        ports = json.loads(talk.readline())
        self._clients = {
            name: Client(replace(own.target, port=port))
            for name, port in zip(_PROXIES, ports)}

    def dump(self, name: str) -> None:
        """What was counted since the last one has this name."""
        print(name, file=self._talk, flush=True)
        self._talk.readline()

    def make(self, side: str) -> None:
        """A container for the objects of a side."""
        told = SIDES[side]
        self._clients[told.proxy].make_container(_container(side),
                                                 told.policy)

    def ask(self, case: Case, side: str) -> None:
        """A batch of requests."""
        told = SIDES[side]
        for number in range(_REQUESTS):
            self._clients[told.proxy].must(_request(case, side, number))


def _container(side: str) -> str:
    # As long for every side, and of letters alone: Swift looks at each.
    return side.ljust(max(map(len, SIDES)), 'x')


def _request(case: Case, side: str, number: int) -> Request:
    path = '%s/%d-%d' % (_container(side), case.size, number)
    if case.method == 'PUT':
        return Request('PUT', path, size=case.size, headers=dict(
            SIDES[side].headers, **{'Content-Type': 'a/b'}),
            body=[os.urandom(case.size)])
    return Request(case.method, path, headers={
        'Range': 'bytes=' + case.span} if case.span else {})


def _count(counting: Counting, case: Case, batches: int) -> None:
    for side in SIDES:
        counting.ask(Case('PUT', case.size), side)
        counting.ask(case, side)
    for batch in range(batches):
        for side in SIDES:
            counting.dump(_BEFORE)
            counting.ask(case, side)
            counting.dump('%s|%s|%d' % (case.name, side, batch))


@contextlib.contextmanager
def _proxies(root: str, own: bed.Bed) -> Iterator[Counting]:
    """Count in ``root``."""
    etc = own.cluster.conf.path('etc')  # type: ignore[union-attr]
    for name in _PROXIES:
        path = os.path.join(root, name + '.conf')
        shutil.copy(os.path.join(etc, name + '.conf'), path)
        # In the time of a proxy that is not counted they would do less beside
        # a request, and get their answers sooner.
        bed.change(path, {'filter:dss': {
            'pressure_interval': '86400', 'lifecycle_interval': '0'},
            'app:proxy-server': dict.fromkeys((
                'conn_timeout', 'node_timeout', 'recoverable_node_timeout'),
                '600')})
    control, theirs = socket.socketpair()
    counts = valgrind(root, __file__, [etc, str(theirs.fileno())],
                      pass_fds=(theirs.fileno(),))
    theirs.close()
    try:
        yield Counting(own, control.makefile('rw'))
    finally:
        control.shutdown(socket.SHUT_RDWR)
        counts.wait()


def measure(cases: List[Case], batches: int) -> Dict[str, int]:
    """Instructions of batches."""
    with tempfile.TemporaryDirectory(prefix='dss-') as root:
        os.mkdir(os.path.join(root, 'counts'))
        with bed.own(
                lambda text: print(text, file=sys.stderr), bed.STILL,
                BesideCluster, root=os.path.join(root, 'c'),
                storage='folders', hdd_iops=0, ssd_budget_bytes=_GIB) as own:
            with _proxies(os.path.join(root, 'counts'), own) as counting:
                for side in SIDES:
                    counting.make(side)
                for case in cases:
                    _count(counting, case, batches)
        return counted(os.path.join(root, 'counts'))


def main() -> None:
    """See the module's text."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument('--only', default='', help='cases with this name')
    options.add_argument('--batches', type=int, default=5, metavar='N')
    options.add_argument('--json', action='store_true',
                         help='a line for each case')
    options.add_argument('--root', default='', help=argparse.SUPPRESS)
    options.add_argument('serving', nargs='*', help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.root:
        etc, control = args.serving
        serve(args.root, etc, socket.socket(fileno=int(control)))
        return
    cases = [case for case in CASES if args.only in case.name]
    sums = measure(cases, args.batches)
    for case in cases:
        told = {side: min(
            sums['%s|%s|%d' % (case.name, side, batch)]
            for batch in range(args.batches)) / _REQUESTS for side in SIDES}
        print(json.dumps({'case': case.name, **told}) if args.json
              else line(case.name, told), flush=True)


if __name__ == '__main__':
    main()
