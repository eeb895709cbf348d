"""The tuner of a running daemon: fed by the ledger, obeyed by the index.

Shadow caches (:mod:`swift_dss.strategy.tuning`) play a sample of the events.
The order that they choose comes into force by
:meth:`~swift_dss.tier.inforce.InForce.choose`: the index then gives objects
their new places in the order of their last use, and moves no byte for it.
A choice, the lag that the guard compares with, for how long it keeps an order,
and the changes of the day outlive a restart.
"""

from __future__ import annotations

import threading
import time
import zlib
from typing import Any, Dict, List, Mapping, Optional, Sequence

from swift_dss.core.classes import ClassTable
from swift_dss.core.limits import CLASS_ID_MAX
from swift_dss.core.residency import Tier
from swift_dss.core.version import VersionId
from swift_dss.strategy.tuning.choices import candidates, configured
from swift_dss.strategy.tuning.shadows import ACCESS, REMOVE, WRITE, Penalty
from swift_dss.strategy.tuning.tuner import Earlier, Tuner
from swift_dss.tier.index.file import IndexFile
from swift_dss.tier.index.placing import (
    BYTES_PER_MICROSECOND, LOOK_MICROSECONDS)
from swift_dss.tier.index.rows import VersionRow
from swift_dss.tier.inforce import InForce
from swift_dss.tier.keep.keepers import Keepers
from swift_dss.tier.metrics import Metrics
from swift_dss.tier.tune.told import Told, why
from swift_dss.wire.control import Event

#: Times that the configured order is left in a day, at most.
CHANGES_A_DAY = 24
#: Another room by more than this needs other shadows.
_OTHER_ROOM = 0.1
_STATE = 'self_tuning'
#: Classes of one object have keys this far apart.
_CLASS_STRIDE = 0x9E3779B1


class Tuning:
    """Thread-safe. Does nothing while ``[tier] self_tuning`` is off.

    :param file: keeps the choice
    :param keepers: know the room
    """

    def __init__(self, in_force: InForce, file: IndexFile, keepers: Keepers,
                 metrics: Metrics) -> None:
        self._in_force = in_force
        self._file = file
        self._keepers = keepers
        self._metrics = metrics
        self._lock = threading.Lock()
        self._tuner: Optional[Tuner] = None
        #: That the tuner was made for.
        self._configured = in_force.configured
        self._room = 0
        self._told = Told.of(file.get_state(_STATE))
        self._saved = self._told.text()
        self._salts: Dict[str, int] = {}
        self._cpu_seconds = 0.0
        self._go_on()

    def look(self) -> None:
        """Have the tuner that configuration and room ask for, and keep what
        it chose. Cheap if nothing has changed; call it every few seconds.

        :raises IndexUnavailable, IndexDamaged: the choice is not kept
        """
        self.renew()
        with self._lock:
            if self._tuner is not None:
                self._told.held = self._tuner.chooser.held
            text = self._told.text()
        if text != self._saved:
            self._file.set_state(_STATE, text)
            self._saved = text

    def renew(self) -> None:
        """The first half of :meth:`look`; call it after each
        :meth:`InForce.take`, which brings the configured order back."""
        with self._lock:
            room = self._room_now()
            if not self._in_force.conf.tier.self_tuning:
                self._end()
            elif room and (
                    self._tuner is None
                    or self._configured is not self._in_force.configured
                    or abs(room - self._room) > _OTHER_ROOM * self._room):
                self._begin(room)

    def heard(self, reads: Mapping[VersionId, Sequence[Event]],
              class_ids: Mapping[VersionId, Sequence[int]],
              written: Sequence[VersionRow],
              gone: Sequence[VersionId]) -> None:
        """Events were applied.

        :param reads: by version, at least one each
        :param class_ids: of versions that the index knows
        :param gone: neither wanted nor there any more
        """
        if self._tuner is None:
            return
        with self._lock:
            if self._tuner is None:
                return
            began = time.thread_time()
            anew = {row.version.object_hash for row in written}
            for version in gone:
                if version.object_hash not in anew:
                    self._hear_gone(version)
            for row in written:
                for span in row.spans:
                    self._hear(row.version, span.class_id, span.total_bytes,
                               WRITE)
            for version, events in reads.items():
                known = class_ids.get(version, ())
                for class_id in known:
                    # Events do not say how much is of which class.
                    self._hear(version, class_id,
                               events[0].size // len(known), ACCESS,
                               events[0].tier_bits & 7 == Tier.SSD)
            self._cpu_seconds += time.thread_time() - began

    def status(self) -> List[Dict[str, Any]]:
        """Plain values, of this daemon or shard alone; empty where the tuner
        is off."""
        with self._lock:
            tuner = self._tuner
            if tuner is None:
                return []
            chooser, shard = tuner.chooser, self._in_force.conf.shard
            names, hits = tuner.names, tuner.hit_shares()
            lag = tuner.guard.lag()
            return [dict(
                self._told.status(),
                shard=None if shard is None else shard.number,
                configured=tuner.candidates[0].strategy,
                in_force=tuner.current.strategy,
                is_held=chooser.held > 0,
                batches=chooser.batches,
                saved=dict(zip(names, chooser.saved())),
                hits={name: share for name, (share, _) in zip(names, hits)},
                hit_bytes={name: share
                           for name, (_, share) in zip(names, hits)},
                lag=None if lag is None else lag.mean,
                lag_configured=None if tuner.guard.home is None
                else tuner.guard.home.mean,
                room_bytes=self._room, sample_share=tuner.shadows.share,
                objects=tuner.shadows.objects,
                cpu_seconds=self._cpu_seconds,
                daemon_cpu_seconds=time.process_time())]

    # -- inside ----------------------------------------------------------

    def _hear(self, version: VersionId, class_id: int, size: int, verb: int,
              is_hit: Optional[bool] = None) -> None:
        assert self._tuner is not None
        salt = self._salts.get(version.device)
        if salt is None:
            salt = self._salts[version.device] = zlib.crc32(
                version.device.encode('utf-8'))
        verdict = self._tuner.hear(
            int(version.object_hash[:15], 16) + salt
            + class_id * _CLASS_STRIDE, size, class_id, time.monotonic(),
            verb, is_hit)
        if verdict is not None:
            names = self._tuner.names
            self._told.changed(names[verdict.old], names[verdict.new],
                               why(verdict, names), time.time(),
                               self._tuner.guard.home)
            ago = time.time() - time.monotonic()
            self._told.left_at = [
                at + ago for at in self._tuner.chooser.left_at]
            self._in_force.choose(self._tuner.current)
            self._metrics.count('tier.order_changes')
            self._metrics.logger.info('self-tuning: %s', self._told.why)

    def _hear_gone(self, version: VersionId) -> None:
        for class_id in {0, *self._in_force.table.specs}:
            self._hear(version, class_id, 1, REMOVE)

    def _go_on(self) -> None:
        """Have the choice of an earlier life in force from the start: the
        index would forget all places in that order if another one came
        between. The room is not known yet."""
        conf, table = self._in_force.configured
        own = configured(conf.tier.eviction)
        if conf.tier.self_tuning and self._told.configured == own.strategy:
            for choice in candidates(own, table):
                if choice.strategy == self._told.in_force:
                    self._in_force.choose(choice)

    def _begin(self, room: int) -> None:
        conf, table = self._configured = self._in_force.configured
        own = configured(conf.tier.eviction)
        ago = time.time() - time.monotonic()
        earlier = Earlier(
            self._told.in_force, self._told.home, self._told.held,
            # By a clock that was set back they would be to come.
            tuple(min(at - ago, time.monotonic())
                  for at in self._told.left_at)) \
            if self._told.configured == own.strategy else Earlier()
        self._room = room
        self._tuner = Tuner(own, room, table, _penalty(table), CHANGES_A_DAY,
                            earlier)
        current = self._tuner.current
        self._told.began(own.strategy, current.strategy, time.time())
        self._in_force.choose(current)
        if current != own:
            self._metrics.logger.info(
                'self-tuning: goes on with %s instead of %s: %s',
                current.strategy, own.strategy, self._told.why)

    def _end(self) -> None:
        if self._tuner is not None:
            self._metrics.logger.info(
                'self-tuning: switched off; the configured order is in force')
            self._in_force.take(*self._in_force.configured)
        self._tuner = None
        self._told = Told()

    def _room_now(self) -> int:
        """Bytes that objects have on SSDs of the engine file, between the
        watermarks."""
        tier = self._in_force.conf.tier
        total = sum(
            keeper.state.pressure.ssd_bytes for keeper in self._keepers
            if keeper.state.pressure is not None
            and not keeper.device.is_block)
        return int(total * (tier.high_watermark + tier.low_watermark) / 2)


def _penalty(table: ClassTable) -> Penalty:
    """As the index weighs misses."""
    return Penalty({class_id: table.spec(class_id).weight
                    for class_id in range(CLASS_ID_MAX + 1)},
                   LOOK_MICROSECONDS, BYTES_PER_MICROSECOND * 1e6)
