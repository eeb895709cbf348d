"""Which versions are this daemon's: by policy, and by shard.

The index remembers what was so at the last look, forgets the versions of
others, and asks for a walk over what has become ours.
"""

from __future__ import annotations

from typing import FrozenSet

from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadConfig
from swift_dss.io import steps
from swift_dss.io.start import syncing
from swift_dss.tier.devices import Devices
from swift_dss.tier.index.due import Due
from swift_dss.tier.index.index import Index
from swift_dss.tier.inforce import InForce
from swift_dss.tier.metrics import Metrics
from swift_dss.tier.policies import indexes_text, parse_indexes

#: Policies that were ours at the last look.
_POLICIES = 'policies'
#: Policies that were, and are not any more.
_LEFT = 'policies_left'
#: Devices that the shard had when it last looked; a node without shards
#: has none written down.
_DEVICES = 'devices'


class Ours:
    """See the module."""

    def __init__(self, in_force: InForce, devices: Devices, index: Index,
                 due: Due, metrics: Metrics) -> None:
        self._in_force = in_force
        self._devices = devices
        self._index = index
        self._due = due
        self._metrics = metrics
        self._logger = metrics.logger

    def left_policies(self) -> FrozenSet[int]:
        """Policies that were ours once and may have stubs still."""
        return parse_indexes(self._index.file.get_state(_LEFT))

    def check_replicator(self, conf: NodeConf) -> None:
        """:raises BadConfig: Swift would copy stubs by rsync"""
        if any(policy.is_replicated for policy
               in self._devices.policies.known.values()) and \
                not syncing.check_file(conf.object_conf):
            self._logger.warning(
                '%s is not there, so the daemon cannot check that the object '
                'replicator has sync_method = ssync, which stubs need: name '
                'the file in [dss] object_conf', conf.object_conf)

    def take_policies(self) -> None:
        """Know the versions of our policies, and of no other.

        :raises BadConfig: swift.conf cannot be read
        """
        policies = self._devices.policies
        text = self._index.file.get_state(_POLICIES, 'unknown')
        if text == indexes_text(policies.ours):
            return
        before = parse_indexes(text)
        dropped = self._index.leaving.keep_policies(policies.ours)
        for number in sorted((before | dropped) - policies.ours):
            self._logger.warning(
                '%s is not ours by %s: its files, its copies on the HDD and '
                'in S3 are left as they are', policies.named(number),
                policies.path)
        self._index.file.set_state(_LEFT, indexes_text(
            (before | dropped | self.left_policies()) - policies.ours))
        if text != 'unknown' and policies.ours - before:
            self._due.need_rebuild()
        self._index.file.set_state(_POLICIES, indexes_text(policies.ours))

    def take_devices(self) -> None:
        """Know the versions on devices of this shard, and on no others.
        What comes from another shard is read from the device."""
        shard = self._in_force.conf.shard
        before = self._index.file.get_state(_DEVICES)
        if shard is None and not before:
            return  # it never was a shard
        mine = set(shard.devices) if shard is not None else {
            device.name for device in self._devices.discover()}
        if shard is not None:
            gone = self._index.leaving.keep_devices(mine)
            if gone:
                self._logger.info('%s: another shard has them now',
                                  ', '.join(sorted(gone)))
        steps.reached('devices.left')
        if mine - set(before.split()):
            self._due.need_rebuild()
        steps.reached('devices.due')
        self._index.file.set_state(_DEVICES, ' '.join(sorted(mine))
                                   if shard is not None else '')
        steps.reached('devices.taken')

    def look(self) -> None:
        """An operator may change swift.conf and tell object servers only.
        """
        policies = self._devices.policies
        try:
            if not policies.is_changed():
                return
            policies.load()
        except BadConfig as err:
            self._metrics.count('tier.chore_errors')
            self._logger.error('%s; the earlier file stays in force', err)
            return
        self.take_policies()
