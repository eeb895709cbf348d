"""The node: shared by all diskfile managers of one process.

``dss_conf`` in ``[DEFAULT]`` of object-server.conf names the node's
dss.conf; without it there is no HDD or remote tier, and classes still reach
the disk. The class table and the pressure files are read again when they
change, at most once a second; a file that cannot be used leaves the earlier
one in force.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import time
from typing import Any, Dict, List, Optional, Tuple

from swift_dss.core.classes import ClassTable
from swift_dss.core.config import NodeConf, shard_dir
from swift_dss.core.errors import BadConfig, DssError
from swift_dss.core.residency import Extent, Tier
from swift_dss.core.spans import ClassMap
from swift_dss.io import carriers
from swift_dss.io.capacity import Capacity
from swift_dss.io.place.groups import Placement
from swift_dss.io.pools import Pool
from swift_dss.io.probe import PageCache
from swift_dss.io.start.text import read_text
from swift_dss.io.sums.hashing import Hasher
from swift_dss.objserver.events import EventSender, Home
from swift_dss.objserver.recorder import Recorder
from swift_dss.strategy import placement
from swift_dss.wire import layout
from swift_dss.wire.node import pressure, shards
from swift_dss.wire.backlog import MAX_BACKLOG_MS
from swift_dss.wire.settings import classtable, nodeconf

_LOOK_SECONDS = 1.0
#: Pressure older than this says nothing: the daemon is not running.
_STALE_SECONDS = 120.0

_nodes: Dict[Tuple[str, str], Node] = {}


def node_for(conf: Dict[str, Any], logger: Any) -> Node:
    """The node that a server's or daemon's options name.

    :raises BadConfig: dss.conf cannot be read or used
    """
    path = conf.get('dss_conf', '')
    devices = conf.get('devices', '/srv/node')
    node = _nodes.get((path, devices))
    if node is None:
        node = Node(_read_conf(path, devices), logger)
        _nodes[(path, devices)] = node
    return node


def _read_conf(path: str, devices: str) -> NodeConf:
    if not path:
        return NodeConf(devices=devices)
    try:
        text = read_text(path)
    except BadConfig as err:
        raise BadConfig('dss_conf: %s' % err) from err
    parsed = nodeconf.parse(text, path, os.environ)
    # The server's own option counts: it is where its files are.
    return dataclasses.replace(parsed, devices=devices)


class Node(Home):
    """Carrier, pools, tiers and tables of one process."""

    def __init__(self, conf: NodeConf, logger: Any) -> None:
        self.conf = conf
        self.logger = logger
        choice = carriers.choose(conf.io.carrier)
        self.carrier = choice.carrier
        self.page_cache = PageCache()
        self.events = EventSender(self)
        self.recorder = Recorder(self)
        #: For uploads of more than one window.
        self.hasher = Hasher(lambda event: self.logger.increment(
            'dss.pool.md5.%s' % event))
        #: Objects that are being written in this process.
        self.uploads = 0
        self._pools: Dict[Tuple[Tier, str], Pool] = {}
        #: Of them, those that wait for a device's HDD.
        self._hdds: Dict[str, Pool] = {}
        self._capacities: Dict[str, Capacity] = {}
        self._placements: Dict[str, Placement] = {}
        self._table = _Watched(conf.class_table, classtable.parse,
                               ClassTable())
        self._pressures: Dict[str, _Watched] = {}
        self._shards = _Watched(
            os.path.join(conf.run_dir, shards.FILE),
            lambda text, _: shards.decode(text).devices, {}, False)
        _quiet_root_logger()
        self._say(choice.refused)

    def _say(self, refused: List[str]) -> None:
        self.logger.info(
            'dss: carrier %s%s; pools of a device: ssd %d, hdd %d threads, '
            'queue %d; capacity tier: %s', self.carrier.name,
            ' (%s)' % '; '.join(refused) if refused else '',
            self.conf.io.ssd_threads, self.conf.io.hdd_threads,
            self.conf.io.queue_depth,
            'configured' if self.conf.capacity else 'none')
        count(self.logger, 'dss.carrier.%s' % self.carrier.name)

    def pool(self, tier: Tier, device: str) -> Pool:
        """See :meth:`Home.pool`."""
        pool = self._pools.get((tier, device))
        if pool is None:
            threads, name = (
                (self.conf.io.hdd_threads, 'hdd') if tier is Tier.HDD
                else (self.conf.io.ssd_threads, 'ssd'))
            if tier is not Tier.HDD and self.is_block(device):
                # These threads also wait for the HDD.
                threads += self.conf.io.hdd_threads
            pool = Pool('%s-%s' % (name, device), threads,
                        self.conf.io.queue_depth, self.carrier.leave,
                        lambda event: self.logger.increment(
                            'dss.pool.%s.%s' % (name, event)))
            self._pools[(tier, device)] = pool
            if (tier is Tier.HDD) is not self.is_block(device):
                self._hdds[device] = pool
        return pool

    def backlog_ms(self, device: str) -> int:
        """For how long the device's HDD is busy, about
        (:meth:`Pool.backlog_seconds`). Under the kernel's cache, the pool of
        the SSD waits for the HDD too, and says it of both.
        """
        # Each answer says it, and few find a queue.
        pool = self._hdds.get(device)
        return 0 if pool is None or not pool.outstanding else min(
            MAX_BACKLOG_MS, int(1000 * pool.backlog_seconds()))

    def capacity(self, device: str) -> Capacity:
        """The HDD tier of a device; one that is not configured has none."""
        capacity = self._capacities.get(device)
        if capacity is None:
            capacity = Capacity(nodeconf.capacity_path(self.conf, device),
                                device)
            self._capacities[device] = capacity
        return capacity

    def placement(self, device: str) -> Optional[Placement]:
        """Where new files of a device begin; None if Swift decides."""
        if not self.conf.io.placement:
            return None
        placement = self._placements.get(device)
        if placement is None:
            # The journal of a device of engine block is on an SSD.
            placement = self._placements[device] = Placement(
                os.path.join(self.conf.devices, device),
                near_journal=not self.is_block(device))
        return placement

    @property
    def class_table(self) -> ClassTable:
        """The class table in force."""
        table: ClassTable = self._table.value(self.logger)
        return table

    def pressure(self, device: str) -> Optional[pressure.Pressure]:
        """The device as the tier daemon last saw it; None if it is old."""
        watched = self._pressures.get(device)
        if watched is None:
            path = os.path.join(self.conf.run_dir, 'state',
                                device + '.json')
            watched = _Watched(
                path, lambda text, _: pressure.decode(text.encode()), None)
            self._pressures[device] = watched
        latest: Optional[pressure.Pressure] = watched.value(self.logger)
        if latest is not None and time.time() - latest.at > _STALE_SECONDS:
            return None
        return latest

    def sockets(self, device: str) -> str:
        """See :meth:`Home.sockets`."""
        number = self._shards.value(self.logger).get(device)
        return self.conf.run_dir if number is None \
            else shard_dir(self.conf.run_dir, number)

    def has_hdd(self, device: str) -> bool:
        """May new bytes of this device go to a capacity file?"""
        return not self.is_block(device) and self.capacity(device).configured

    def plan(self, device: str, class_map: ClassMap,
             size: Optional[int]) -> List[Extent]:
        """Where the bytes of a new version go (``placement.plan``)."""
        if not self.has_hdd(device):
            return [Extent(0, size or 0, Tier.SSD)]
        return placement.plan(
            class_map, size, self.pressure(device), self.class_table,
            max(self.conf.tier.min_demote_bytes, 0))

    def plan_past_ssd(self, device: str, class_map: ClassMap,
                      size: Optional[int]) -> List[Extent]:
        """The same without its SSD (``placement.plan_past_ssd``)."""
        if not self.has_hdd(device):
            return []
        return placement.plan_past_ssd(
            class_map, size, self.pressure(device), self.class_table)

    def is_block(self, device: str) -> bool:
        """Does the kernel place the bytes of this device?"""
        return nodeconf.engine_of(self.conf, device) == 'block'

    def device_path(self, device: str) -> str:
        """See :meth:`Home.device_path`."""
        return os.path.join(self.conf.devices, device)

    def spool_dir(self, device: str) -> str:
        """Where events wait for a daemon that is down."""
        return layout.spool_dir(self.device_path(device))


class _Watched:
    """A parsed file that is read again when it changes.

    :param default: without a file
    :param keep: a file that goes leaves what it said in force
    """

    def __init__(self, path: str, parse: Any, default: Any,
                 keep: bool = True) -> None:
        self._path = path
        self._parse = parse
        self._default = self._value = default
        self._keep = keep
        self._stamp: Optional[Tuple[int, int, int]] = None
        self._next_look = 0.0

    def value(self, logger: Any) -> Any:
        now = time.monotonic()
        if now < self._next_look:
            return self._value
        self._next_look = now + _LOOK_SECONDS
        try:
            status = os.stat(self._path)
            stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
            if stamp == self._stamp:
                return self._value
            self._stamp = stamp
            self._value = self._parse(read_text(self._path), self._path)
        except FileNotFoundError:
            if not self._keep:
                self._value, self._stamp = self._default, None
        except (OSError, DssError) as err:
            logger.error('dss: %s stays as it was: %s', self._path, err)
            count(logger, 'dss.errors.reload')
        return self._value


def count(logger: Any, name: str) -> None:
    """Count, if the process counts at all: the relinker's logger does
    not, and it builds diskfile managers like any server."""
    increment = getattr(logger, 'increment', None)
    if increment is not None:
        increment(name)


def _quiet_root_logger() -> None:
    """Give the root logger a handler that does nothing.

    Swift calls it in pool threads (when a metadata write fails, say);
    without a handler the first call installs one that takes green locks
    there, and the worker hangs for good.
    """
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(logging.NullHandler())


