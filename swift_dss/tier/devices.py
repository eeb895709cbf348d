"""The devices of this node, as Swift mounts them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Dict, List, Set

from swift_dss.core.config import NodeConf
from swift_dss.core.errors import TierUnavailable
from swift_dss.core.version import VersionId
from swift_dss.io.capacity import Capacity
from swift_dss.io.quarantine import Quarantine
from swift_dss.io.switch import Place
from swift_dss.tier.policies import Policies
from swift_dss.wire import layout
from swift_dss.wire.settings.nodeconf import capacity_path, engine_of


@dataclass(frozen=True)
class Device:
    """One device: an SSD file system, and its capacity folder if any."""

    name: str
    path: str
    capacity: Capacity
    mount_check: bool
    engine: str = 'file'
    #: Swift's quarantine of the device.
    quarantine: Quarantine = field(
        init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, 'quarantine',
                           Quarantine(self.path, self.name))

    @property
    def is_block(self) -> bool:
        """Does the kernel move its bytes between SSD and HDD? Then its
        file system is as large as the HDD, and a capacity folder is only
        read: it may have bytes of a time before."""
        return self.engine == 'block'

    @property
    def has_hdd(self) -> bool:
        """May the daemon move bytes to a capacity folder of it?"""
        return self.capacity.configured and not self.is_block

    def require_mounted(self) -> None:
        """:raises TierUnavailable: the SSD is not there."""
        there = _is_mount(self.path) if self.mount_check \
            else os.path.isdir(self.path)
        if not there:
            raise TierUnavailable('%s is not mounted' % self.path)

    def place(self, version: VersionId, partition: str,
              content_length: int) -> Place:
        """Where the files of a version lie."""
        return Place(self.path, self.capacity, version, partition,
                     content_length)

    def partitions_of(self, version: VersionId) -> List[str]:
        """Partitions of this device that a version can lie in.

        The ring's power need not be known, and during a relink there are
        two: every partition whose number is the head of the hash will do.
        """
        datadir = layout.data_dir_name(version.policy)
        head = int(version.object_hash[:8], 16)
        partitions = []
        for power in range(33):
            name = str(head >> (32 - power))
            if name not in partitions and os.path.isdir(
                    os.path.join(self.path, datadir, name)):
                partitions.append(name)
        return partitions


def _is_mount(path: str) -> bool:
    """As os.path.ismount, which asks much more before it knows as much."""
    try:
        if os.lstat(path).st_dev != os.lstat(os.path.dirname(path)).st_dev:
            return True
    except OSError:
        return False
    return os.path.ismount(path)


def device_names(folder: str) -> List[str]:
    """Names of the devices in Swift's devices folder, mounted or not."""
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    return [name for name in names
            if os.path.isdir(os.path.join(folder, name))]


class Devices:
    """The devices folder, or a shard's part of it. Cheap; looks at the disk
    only in :meth:`discover`."""

    def __init__(self, conf: NodeConf) -> None:
        self._conf = conf
        #: Whose the versions on them are.
        self.policies = Policies(conf.swift_dir)
        #: Those that fail as a whole, by name; their keepers say so.
        self.failing: Set[str] = set()
        self._known: Dict[str, Device] = {}

    def discover(self) -> List[Device]:
        """Every device folder there is, mounted or not, by name."""
        return [self.get(name) for name in device_names(self._conf.devices)
                if self.is_mine(name)]

    def is_mine(self, name: str) -> bool:
        """False for a device of another shard of the node."""
        shard = self._conf.shard
        return shard is None or name in shard.devices

    def get(self, name: str) -> Device:
        """The device called ``name``.

        :raises TierUnavailable: it cannot be a device's name
        """
        if name not in self._known:
            if not name or '/' in name or name.startswith('.'):
                raise TierUnavailable('%r is no device' % name)
            self._known[name] = Device(
                name, os.path.join(self._conf.devices, name),
                Capacity(capacity_path(self._conf, name), name),
                self._conf.mount_check, engine_of(self._conf, name))
        return self._known[name]
