"""A stock proxy and a stock object server beside ours, on the same devices.

A stock policy behind our servers is not stock Swift: our object server takes
less CPU time for what both do, and our filter looks at each request.
"""

from __future__ import annotations

import configparser
import os
import shutil
from dataclasses import replace
from typing import Any, Dict, List, Mapping

from swift_dss.aio import layout, processes, rings
from swift_dss.bench.cluster.bed import (
    Bed, BenchCluster, Options, change, remember)
from swift_dss.bench.cluster.client import BenchFailed

_START_SECONDS = 60.0
_POLICY = layout.POLICIES.index('vanilla')
_PREFIX = 'stock-'
_OURS = ('dss', 'dss_retry_after')


def add_server(cluster: BenchCluster, server: str, name: str, port: int,
               options: Options) -> None:
    """Start one more server of the cluster, and wait until it listens.

    :param server: whose options are its own, but for ``options``
    :param name: of its process, its log and its file of options
    :raises BenchFailed: it does not; the cluster is stopped
    """
    conf = cluster.conf
    path = conf.path('etc', name + '.conf')
    shutil.copy(conf.path('etc', server + '.conf'), path)
    change(path, {**options, 'DEFAULT': {'bind_port': str(port)}})
    processes.spawn(
        conf.root, name, os.path.join(conf.log, name + '.log'),
        ['-m', 'swift_dss.aio.run', conf.etc, server, path],
        cluster.cgroup_procs())
    if not processes.wait(lambda: processes.listening(port),
                          _START_SECONDS):
        cluster.stop()
        raise BenchFailed('%s does not answer on port %d' % (name, port))


class BesideCluster(BenchCluster):
    """Policy ``vanilla`` is served by Swift's own two servers; all proxies
    cache accounts and containers."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._object_port = processes.free_base_port(
            2, first=self.conf.base_port + layout.PORTS)
        #: Of the stock proxy.
        self.stock_port = self._object_port + 1

    def start(self, keep: bool = False) -> None:
        """See :meth:`Cluster.start`."""
        super().start(keep)
        add_server(self, 'object-server', _PREFIX + 'object-server',
                   self._object_port,
                   {'app:object-server': {'use': 'egg:swift#object'}})
        add_server(self, 'proxy-server', _PREFIX + 'proxy-server',
                   self.stock_port, self._without_ours())

    def _without_ours(self) -> Options:
        """Options that take our filters out of the proxy."""
        parser = configparser.RawConfigParser()
        parser.read(self.conf.path('etc', 'proxy-server.conf'))
        filters = parser.get('pipeline:main', 'pipeline').split()
        return {
            'pipeline:main': {'pipeline': ' '.join(
                name for name in filters if name not in _OURS)},
            'filter:s3api': {'paste.filter_factory': None,
                             'use': 'egg:swift#s3api'}}

    def _configure(self) -> None:
        super()._configure()
        conf = self.conf
        remember(conf.path('etc', 'proxy-server.conf'))
        rings.write(conf.etc, 'object-%d' % _POLICY, conf.replicas,
                    self._object_port, conf.device_names)


def stock_side(bed: Bed) -> Bed:
    """Where requests to stock Swift go: the same bed, unless its cluster has
    servers of Swift's own."""
    cluster = bed.cluster
    if not isinstance(cluster, BesideCluster):
        return bed
    return replace(
        bed, target=replace(bed.target, port=cluster.stock_port),
        pids=_as_front(bed.pids))


def _as_front(pids: Mapping[str, List[int]]) -> Dict[str, List[int]]:
    return {name: pids.get(_PREFIX + name, mine)
            for name, mine in pids.items()}
