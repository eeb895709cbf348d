"""The cluster that a benchmark runs on: its own, yours, or any by URL."""

from __future__ import annotations

import configparser
import contextlib
import os
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

from swift_dss.aio import layout, processes, storage
from swift_dss.aio.cluster import Cluster
from swift_dss.bench.cluster import client
from swift_dss.bench.cluster.client import Target
from swift_dss.core.errors import BadConfig

Say = Callable[[str], None]
#: Section and option -> value, or None to take it out.
Options = Mapping[str, Mapping[str, Optional[str]]]

#: The classes move nothing by themselves: neither cleaner nor gateway has
#: anything old enough to work on, so that only the request is measured.
STILL: Options = {
    'tier': {'clean_after_seconds': '86400'},
    'gateway': {'enabled': 'false'},
}


@dataclass(frozen=True)
class Bed:
    """Where requests go, and whose CPU time they cost.

    :param pids: server name -> its processes; empty where they are not
        on this machine
    :param cluster: the all-in-one cluster, if it is one
    """

    target: Target
    pids: Mapping[str, List[int]]
    cluster: Optional[Cluster] = None


class BenchCluster(Cluster):
    """An all-in-one cluster with other options in ``dss.conf``."""

    def __init__(self, conf: layout.AioConf, say: Say,
                 options: Options) -> None:
        super().__init__(conf, say)
        self._options = options

    def _configure(self) -> None:
        super()._configure()
        change(self.conf.path('etc', 'dss.conf'), self._options)


#: A filter of a proxy that caches.
MEMORY = {'paste.filter_factory': 'swift_dss.aio.memory:filter_factory'}


def change(path: str, options: Options) -> None:
    """Set options of an ini file that exists."""
    parser = configparser.RawConfigParser()
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    with open(path) as source:
        parser.read_file(source)
    for section, pairs in options.items():
        if section != 'DEFAULT' and not parser.has_section(section):
            parser.add_section(section)
        for name, value in pairs.items():
            if value is None:
                parser.remove_option(section, name)
            else:
                parser.set(section, name, value)
    with open(path, 'w') as out:
        parser.write(out)


def remember(proxy: str) -> None:
    """Have a proxy cache accounts and containers, as with memcached: without
    it, asking for them is half of a local read.

    :param proxy: path of its file of options
    """
    parser = configparser.RawConfigParser()
    parser.read(proxy)
    first, rest = parser.get('pipeline:main', 'pipeline').split(None, 1)
    change(proxy, {
        'pipeline:main': {'pipeline': '%s memory %s' % (first, rest)},
        'filter:memory': MEMORY})


@contextlib.contextmanager
def own(say: Say, options: Options, kind: Any = BenchCluster,
        **conf: Any) -> Iterator[Bed]:
    """A cluster that lives as long as the block.

    Its loop devices need root; without, folders take their place.

    :param conf: fields of ``AioConf`` that differ from its defaults
    """
    root = conf.setdefault('root', os.path.join(
        os.path.dirname(layout.default_root()), 'bench'))
    if processes.find(root):
        # Not started by us, so not ours to stop below.
        raise BadConfig('a benchmark runs already; if it does not, end '
                        'what it left: swift-dss aio stop --root %s' % root)
    why_not = storage.why_no_loops()
    if why_not:
        say('plain folders instead of devices: %s' % why_not)
    fields: Dict[str, Any] = {
        'background': False,
        'storage': 'folders' if why_not else 'loops',
        'base_port': processes.free_base_port(layout.PORTS, 18080)}
    fields.update(conf)
    cluster = kind(layout.AioConf(**fields), say, options)
    try:
        cluster.start()
        yield _bed(cluster)
    finally:
        cluster.stop()


def running(root: str) -> Bed:
    """The all-in-one cluster that runs in ``root``.

    :raises BadConfig: none does
    """
    return _bed(Cluster.running(root))


def by_url(auth_url: str, user: str, key: str) -> Bed:
    """Any cluster; its CPU time is not known."""
    return Bed(client.authenticate(auth_url, user, key), {})


def _bed(cluster: Cluster) -> Bed:
    conf = cluster.conf
    # Without a name, the proxy would be asked for its own address.
    target = client.authenticate(conf.auth_url, 'test:tester', 'testing')
    return Bed(replace(target, host='127.0.0.1', port=conf.proxy_port),
               processes.find(conf.root), cluster)
