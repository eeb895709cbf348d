"""S01: tenants send our trusted headers by every way in, in every spelling.

A spy stands in front of the account, container and object servers. Nothing
in these requests asks for a class, so any trusted header that arrives is a
forgery that got through. Run against two more proxies, it shows that the
harness can see: one without gatekeeper and without our filter (the wrong
twin: forgeries must arrive), one without gatekeeper but with our filter.

    python test/functional/spoof_matrix.py [--root DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import uuid
from typing import Callable, Dict, Iterator, List, NamedTuple, Tuple

from spoof_ways import ACCOUNT, Forgery, Ways
from support.edges import raw_http

from swift_dss.aio import layout, processes
from swift_dss.aio.cluster import Cluster
from swift_dss.core.errors import BadConfig
from swift_dss.core.limits import MAX_READER_CHARS
from swift_dss.wire import names

HERE = os.path.dirname(os.path.abspath(__file__))
CANARY = '29'

TRUSTED = (
    names.BACKEND_MAP, names.BACKEND_MAP + '-0', names.BACKEND_UNAVAILABLE,
    names.BACKEND_TIER, names.SYSMETA_MAP, names.SYSMETA_MAP + '-0',
    'X-Object-Sysmeta-Dss-Seal', names.TRANSIENT_MAP,
    names.TRANSIENT_MAP + '-0', names.CONTAINER_SYSMETA_CLASS,
    names.ACCOUNT_SYSMETA_CLASSES, names.BACKEND_READER,
    names.BACKEND_IF_LOCAL, names.RESTORED,
    names.CONTAINER_SYSMETA_LIFECYCLE + '-0')

_READER = re.compile('[0-9a-f]{%d}$' % MAX_READER_CHARS)
_TRUSTED_NAME = re.compile(
    r'^x-(backend|(account|container|object)-sysmeta|'
    r'object-transient-sysmeta)-dss')

SERVERS = ('object-server', 'container-server', 'account-server')


def spellings(name: str) -> Iterator[Tuple[str, Forgery]]:
    """(what it is, the header so spelled)."""
    def line(spelled: str, value: str = CANARY) -> Forgery:
        return Forgery(('%s: %s\r\n' % (spelled, value)).encode('utf-8'),
                       spelled, value)
    first, _, last = name.rpartition('-')
    yield 'plain', line(name)
    yield 'lower', line(name.lower())
    yield 'upper', line(name.upper())
    yield 'swapped case', line(name.swapcase())
    yield 'underscores', line(name.replace('-', '_'))
    yield 'one underscore', line('%s_%s' % (first, last))
    yield 'twice', Forgery(line(name).line * 2, name, CANARY)
    yield 'space before colon', line(name + ' ')
    yield 'tab before colon', line(name + '\t')
    yield 'space before name', line(' ' + name)
    yield 'folded value', Forgery(
        ('%s:\r\n %s\r\n' % (name, CANARY)).encode(), name, CANARY)
    yield 'folded into another', Forgery(
        ('X-Object-Meta-A: b\r\n %s: %s\r\n' % (name, CANARY)).encode(),
        name, CANARY)
    yield 'bare CR', Forgery(
        ('X-Object-Meta-A: b\r%s: %s\r\n' % (name, CANARY)).encode(),
        name, CANARY)
    yield 'bare LF', Forgery(
        ('X-Object-Meta-A: b\n%s: %s\r\n' % (name, CANARY)).encode(),
        name, CANARY)
    yield 'unicode hyphen', line(name.replace('-', '\u2010'))
    yield 'full-width', line(name.replace('X', '\uff38', 1))
    yield 'long s', line(name.replace('s', '\u017f'))
    yield 'quoted', line('"%s"' % name)
    yield 'percent', line(name.replace('-', '%2d'))
    yield 'value with line end', line(name, CANARY + '%0d%0a')


class Result(NamedTuple):
    """What one proxy let through.

    :param arrived: (way, header, spelling) and the spy's line
    :param served: combinations that were answered 2xx: a matrix that is
        refused as a whole shows nothing
    :param spied: requests that the spy saw
    """

    combinations: int
    arrived: List[Tuple[str, str, str, list]]
    served: int
    spied: int
    statuses: Dict[int, int]


class SpiedCluster:
    """A running cluster with spies, which ``close`` takes out again."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        conf = cluster.conf
        self.log = conf.path('run', 'spy.log')
        self._originals: Dict[str, str] = {}
        for name in SERVERS:
            path = os.path.join(conf.etc, name + '.conf')
            with open(path, encoding='utf-8') as source:
                text = self._originals[path] = source.read()
            text = re.sub(r'(?m)^(pipeline = .*)( %s)$' % name,
                          r'\1 dss_spy\2', text) \
                if re.search(r'(?m)^pipeline = \S+ ', text) else \
                text.replace('pipeline = ' + name, 'pipeline = dss_spy '
                             + name)
            text += ('\n[filter:dss_spy]\npaste.filter_factory = '
                     'dss_spy:filter_factory\nlog = %s\nserver = %s\n'
                     % (self.log, name))
            _write(path, text)
        self._restart({'PYTHONPATH': HERE})

    def close(self) -> None:
        """Put the servers and the account back as they were."""
        _url, token = self._cluster.connection(
            'admin', 'admin', 'admin').get_auth()
        # The wrong twin lets a forged list of classes into the account.
        raw_http.request(self._cluster.conf.proxy_port, 'POST',
                         '/v1/' + ACCOUNT, [('X-Auth-Token', token), (
                             names.ACCOUNT_CLASSES, '')])
        for path, text in self._originals.items():
            _write(path, text)
        processes.end(self._cluster.conf.root, ['bare-proxy',
                                                'blind-proxy'])
        self._restart({})

    def _restart(self, extra_env: Dict[str, str]) -> None:
        conf = self._cluster.conf
        processes.end(conf.root, list(SERVERS))
        for name in SERVERS:
            self._cluster.spawn(name, extra_env=extra_env)
        for port in (conf.object_port, conf.container_port,
                     conf.account_port):
            assert processes.wait(
                lambda port=port: processes.listening(port), 30.0), port

    def bare_proxy(self) -> int:
        """The wrong twin: neither gatekeeper nor our filter."""
        return self._proxy('bare-proxy', ('gatekeeper', 'dss'), {})

    def blind_proxy(self) -> int:
        """Our filter alone, behind a gatekeeper that keeps nothing."""
        return self._proxy('blind-proxy', (), {
            'gatekeeper': 'gatekeeper:filter_factory'})

    def _proxy(self, name: str, without: Tuple[str, ...],
              instead: Dict[str, str]) -> int:
        """Start one more proxy.

        :param without: filters left out of its pipeline
        :param instead: filters replaced, by name: their factory
        :returns: its port
        """
        conf = self._cluster.conf
        port = processes.free_base_port(1, first=conf.base_port + 100)
        with open(os.path.join(conf.etc, 'proxy-server.conf'),
                  encoding='utf-8') as source:
            text = source.read()
        for left_out in without:
            text = re.sub(r'(?m)^(pipeline = .*) %s ' % left_out, r'\1 ',
                          text)
        for replaced, factory in instead.items():
            text = re.sub(r'\[filter:%s\]\nuse = \S+' % replaced,
                          '[filter:%s]\npaste.filter_factory = %s'
                          % (replaced, factory), text)
        text = re.sub(r'(?m)^bind_port = \d+', 'bind_port = %d' % port, text)
        path = os.path.join(conf.etc, name + '.conf')
        _write(path, text)
        processes.spawn(conf.root, name,
                        os.path.join(conf.log, name + '.log'),
                        [os.path.join(HERE, 'bare_proxy.py'), conf.etc,
                         'proxy-server', path])
        assert processes.wait(lambda: processes.listening(port), 30.0), \
            processes.tail(os.path.join(conf.log, name + '.log'))
        return port


def everything(way: str, header: str, spelling: str) -> bool:
    """The whole matrix."""
    return True


def only_plain(way: str, header: str, spelling: str) -> bool:
    """Every way and header, in the one spelling that surely counts."""
    return spelling == 'plain'


def run(spied: SpiedCluster, port: int, token: str,
        chosen: Callable[[str, str, str], bool] = everything) -> Result:
    """Send the matrix to the proxy at ``port``.

    Other traffic may go on: only what concerns our own containers counts,
    and what carries the canary to the account.
    """
    tag = 'spoof-%s' % uuid.uuid4().hex[:8]
    ways = Ways(port, token, tag)
    ways.prepare()
    arrived: List[Tuple[str, str, str, list]] = []
    combinations = served = requests = 0
    statuses: Dict[int, int] = {}
    with open(spied.log, encoding='utf-8') as lines:
        lines.seek(0, os.SEEK_END)
        for way, send in ways.ways.items():
            for header in TRUSTED:
                for spelling, forged in spellings(header):
                    if not chosen(way, header, spelling):
                        continue
                    answer = send(forged)
                    combinations += 1
                    served += 200 <= answer.status < 300
                    statuses[answer.status] = \
                        statuses.get(answer.status, 0) + 1
                    for text in lines:
                        seen = json.loads(text)
                        requests += tag in seen[2]
                        if any(_is_trusted(name) and (
                                tag in seen[2] and not _is_own(name, value)
                                or value == CANARY)
                               for name, value in seen[3].items()):
                            arrived.append((way, header, spelling, seen))
    return Result(combinations, arrived, served, requests, statuses)


def _is_trusted(name: str) -> bool:
    return bool(_TRUSTED_NAME.match(
        name.strip().lower().replace('_', '-')))


def _is_own(name: str, value: str) -> bool:
    """What the filter says of each GET by itself: a word for its client,
    and that bytes which are there are wanted first."""
    if name.lower() == names.BACKEND_IF_LOCAL.lower():
        return value == '-' or value.startswith('bytes=')
    return name.lower() == names.BACKEND_READER.lower() and bool(
        _READER.match(value))


def _write(path: str, text: str) -> None:
    with open(path, 'w', encoding='utf-8') as out:
        out.write(text)


def main() -> int:
    """Print the figures; exit code 0 if nothing arrived and the wrong
    twin saw everything arrive."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--root', default=os.environ.get(
        'SWIFT_DSS_AIO_ROOT', layout.default_root()))
    cluster = Cluster.running(parser.parse_args().root)
    _url, token = cluster.connection().get_auth()
    spied = SpiedCluster(cluster)
    try:
        result = run(spied, cluster.conf.proxy_port, token)
        bare = run(spied, spied.bare_proxy(), token, only_plain)
        blind = run(spied, spied.blind_proxy(), token, only_plain)
    finally:
        spied.close()
    print('S01: %d combinations, %d arrived' % (
        result.combinations, len(result.arrived)))
    print('     %d were served (2xx), the spies saw %d requests; '
          'statuses %s' % (result.served, result.spied, ' '.join(
              '%d:%d' % item for item in sorted(result.statuses.items()))))
    print('     without gatekeeper, with our filter: %d combinations, '
          '%d arrived' % (blind.combinations, len(blind.arrived)))
    print('     wrong twin (neither): %d combinations, %d arrived, by '
          '%d of the ways' % (bare.combinations, len(bare.arrived),
                              len({arrival[0] for arrival in bare.arrived})))
    for arrival in (result.arrived + blind.arrived)[:20]:
        print('     ARRIVED: %s' % (arrival,))
    return int(bool(result.arrived or blind.arrived or not bare.arrived))


if __name__ == '__main__':
    try:
        sys.exit(main())
    except BadConfig as err:
        sys.exit(str(err))
