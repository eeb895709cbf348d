"""The duties for one device: make room, clean, bring back.

Mechanism only: each duty asks the strategy with the sums of the index, never
with objects, and moves the next bytes in the order of the named classes. A few
movers do the work; one thread calls.
"""

# long: the duties share one order of work and one view of the device.
from __future__ import annotations

import functools
import os
import threading
import time
from typing import (
    Callable, Dict, Iterable, List, Optional, Sequence, Set, Tuple, Union)

from swift_dss.core.classes import RemoteMode
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import (
    DamagedRecord, DssError, Pinned, RemoteCorrupt, RemoteUnavailable,
    RottenBytes, TierFull, TierUnavailable, VersionGone)
from swift_dss.core.residency import Tier
from swift_dss.core.version import VersionId
from swift_dss.gateway.ports import NotProven
from swift_dss.io.workers import World
from swift_dss.strategy.eviction import STRATEGIES
from swift_dss.strategy.eviction.bytes.verbs import (
    EvictionStrategy, Occupancy)
from swift_dss.strategy.eviction.rule import Account, Entry, Relief
from swift_dss.strategy.eviction.warmth import Warmth, cold_first
from swift_dss.strategy.promotion import admit
from swift_dss.strategy.watermarks import bytes_to_free, used_bytes
from swift_dss.tier.devices import Device
from swift_dss.tier.index.rows import Candidate
from swift_dss.tier.keep.checks import DiskChecks
from swift_dss.tier.keep.mender import Mender
from swift_dss.tier.keep.state import StateBook
from swift_dss.tier.keep.wishes import (
    Doorkeeper, Newcomer, Wish, Wishes)
from swift_dss.tier.local.departures import Departures
from swift_dss.tier.local.local import Local
from swift_dss.tier.metrics import Metrics

#: Candidates taken from the index at a time.
_BATCH = 64
#: A round cleans or promotes no longer than this, so that pressure is
#: looked at again; the rest is the next round's.
_TURN_SECONDS = 2.0

Sums = Dict[int, Dict[str, int]]
#: A request for room: for a newcomer, or without one.
Asked = Union[Entry, Relief]
#: By classes: versions that are on their way out, or were refused.
Skipped = Dict[Tuple[int, ...], Set[VersionId]]
#: Classes, about how many bytes, and versions to pass over, to candidates.
NextOf = Callable[[Sequence[int], int, Set[VersionId]], List[Candidate]]


class Duties:
    """The duties of one device's keeper. Called by one thread.

    :ivar wishes: thread-safe
    :param world: its dice choose what is read to see whether a disk fails
    """

    def __init__(self, device: Device, local: Local, departures: Departures,
                 metrics: Metrics, book: StateBook, world: World) -> None:
        self.device = device
        self._departures = departures
        self.stopping = threading.Event()
        self.checks = DiskChecks(device, local, metrics, world.dice)
        self.mender = Mender(device.name, local, metrics, self.checks,
                             world.pool)
        self._local = local
        self._index = local.index
        self._in_force = local.in_force
        self._metrics = metrics
        self._logger = metrics.logger
        self._book = book
        self._clock = world.clock
        self.wishes = Wishes(metrics)
        self.doorkeeper = Doorkeeper(device.name, local.in_force, metrics)
        self._full_below = 0
        #: Moves that were tried; what :meth:`begin` forgets they change.
        self.moved = 0
        self._found: Optional[Sums] = None
        #: Why no byte can be left to S3 alone in this round; '' if it can.
        self._s3_silent = ''
        self._movers = world.pool(
            max(1, self._in_force.conf.tier.movers),
            'dss-move-' + device.name)

    def stop(self) -> None:
        """Let the movers end, and who asks other nodes."""
        self._movers.shutdown(wait=True)
        self.mender.stop()

    def begin(self) -> None:
        """Begin a round: forget the figures of the index and the answers of
        S3.
        """
        self._found = None
        self._s3_silent = ''

    def levels(self, conf: NodeConf) -> Tuple[int, int, int]:
        """(room, used, free on the disk) of the SSD, bytes.

        With engine block the file system is SSD and HDD: all of it."""
        stat = os.statvfs(self.device.path)
        free = stat.f_bavail * stat.f_frsize
        total = stat.f_blocks * stat.f_frsize
        room = total if self.device.is_block else \
            min(conf.tier.ssd_bytes or total, total)
        tracked = sum(sums['ssd'] for sums in self.sums().values())
        on_disk = total - stat.f_bfree * stat.f_frsize
        return room, used_bytes(room, tracked, on_disk, free), free

    def look_at_hdd(self) -> None:
        """Is the HDD there, and has it room?"""
        if not self.device.has_hdd:
            self._book.say('hdd_state', 'none')
            return
        try:
            self.device.capacity.check()
            total, free = self._hdd_levels()
        except (TierUnavailable, OSError) as err:
            self._book.say('hdd_state', 'unmounted', err)
            return
        if self.checks.why(Tier.HDD):
            self._book.say('hdd_state', 'failing', self.checks.why(Tier.HDD))
        elif free < self._full_below:
            self._book.say('hdd_state', 'full')
        else:
            self._full_below = 0
            self._book.say('hdd_state', 'ready')

    def settle_orders(self) -> bool:
        """After an order was exchanged; False if some are left to do."""
        return self._index.victims.settle_orders(self.device.name)

    def make_room(self, conf: NodeConf) -> None:
        """Between the watermarks of the SSD, and under every cap."""
        need, room = self._need(conf), self.levels(conf)[0]
        strategy, table = self.strategy(conf), self._in_force.table
        if self.device.is_block:
            # Versions that leave here leave the HDD too, for S3: floors and
            # caps are shares of the SSD, which the kernel keeps.
            left = need - self._evict(strategy.relief(
                self.occupancies(), table, 0, need)) if need > 0 else 0
            self._say_room(left)
            return
        if need > 0:
            need -= self._evict_cold(need)
        if not need and self._is_over_a_cap(strategy, room):
            self._evict(strategy.relief(
                self.occupancies(), table, room, None))
        if need > 0:
            self._clean_for(strategy, room, need)
            need -= self._evict(strategy.relief(
                self.occupancies(), table, room, need))
        self._say_room(need)

    def _evict_cold(self, need: int) -> int:
        """Have cold copies leave, lowest class first; how much left."""
        if self._may_clean():
            missing = need - sum(part.evictable_bytes
                                 for part in self.cold().values())
            for class_id in sorted(self.cold(), key=self._rank):
                missing = self._clean_until(missing, functools.partial(
                    self._index.victims.cold_dirty, self.device.name,
                    [class_id]))
        return self._carry_out(
            cold_first(self.cold(), self._in_force.table, need), Tier.SSD,
            self._cold_victims, self._demote)

    def _cold_victims(self, class_ids: Sequence[int], wanted: int,
                      skipped: Set[VersionId]) -> List[Candidate]:
        return self._index.victims.cold(
            self.device.name, self._able(class_ids),
            _BATCH + len(skipped), self._hdd_is_away)

    def _say_room(self, need: int) -> None:
        """Publish how far pressure was relieved, and if S3's silence is the
        cause: versions that S3 cannot confirm stay here.
        """
        self._book.state.room_why = self._s3_silent if need > 0 else ''
        self._book.say('room_state', 'short' if need > 0 else 'ready',
                       self._book.state.room_why)

    def _need(self, conf: NodeConf) -> int:
        """Bytes to free; where only the index says so, and not the disk,
        without those of versions that have left."""
        room, used, free = self.levels(conf)
        marks = self.watermarks(conf)
        need = bytes_to_free(room, used, *marks)
        if need <= 0 or bytes_to_free(room, room - free, *marks) > 0:
            return need
        self._look_for_departed()
        return bytes_to_free(room, self.levels(conf)[1], *marks)

    def _is_over_a_cap(self, strategy: EvictionStrategy,
                       room: int) -> bool:
        """True if a class is over its cap after a check for versions that left
        without an event.
        """
        def over() -> bool:
            return any(
                account.used > account.cap for account in strategy.accounts(
                    self.occupancies(), self._in_force.table, room))

        if not over():
            return False
        self._look_for_departed()
        return over()

    def _look_for_departed(self) -> None:
        """Remove versions from the index that left without an event. If
        another thread is already checking, use its result.
        """
        self._departures.look(self.device)
        self.begin()

    def watermarks(self, conf: NodeConf) -> Tuple[float, float]:
        """High and low: of the SSD, or of the HDD behind engine block."""
        if self.device.is_block:
            return conf.tier.hdd_high_watermark, conf.tier.hdd_low_watermark
        return conf.tier.high_watermark, conf.tier.low_watermark

    def _clean_for(self, strategy: EvictionStrategy, room: int,
                   need: int) -> None:
        """Clean the versions that would leave first if they were clean.

        Without it a burst of dirty low classes would push out clean high
        ones. The strategy names bytes to *clean* here; what leaves is
        decided after it, from clean bytes alone.
        """
        if not self._may_clean():
            return
        sums = self.sums()
        if_clean = {class_id: Occupancy(
            part['ssd'] - part['cold'], part['evictable'] + part['cleanable']
            - part['cold_evictable'] - part['cold_cleanable'])
            for class_id, part in sums.items()}
        for take in strategy.plan(if_clean, self._in_force.table, room, need):
            candidates = self._index.victims.next_if_clean(
                self.device.name, take.class_ids, take.length)
            if candidates is not None:
                self._each(self._clean_one, [
                    part for part in candidates
                    if not self._waits_for_s3(part)])
                continue
            # A blind order takes of all classes, also of those that have
            # nothing here.
            there = [class_id for class_id in take.class_ids
                     if class_id in sums]
            clean = sum(sums[class_id]['evictable']
                        - sums[class_id]['cold_evictable']
                        for class_id in there)
            self._clean_classes(there, take.length - clean, None)

    def _evict(self, asked: Asked) -> int:
        """Have bytes leave the SSD; how many left."""
        return self._carry_out(asked, Tier.SSD, self._victims, self._demote)

    def _victims(self, class_ids: Sequence[int], wanted: int,
                 skipped: Set[VersionId]) -> List[Candidate]:
        able = self._able(class_ids)
        if not able:
            return []
        if self._hdd_is_away:
            return self._index.victims.least_recent(
                self.device.name, able, _BATCH + len(skipped), off_hdd=True)
        return self._index.victims.next(
            self.device.name, able, wanted, _BATCH, skipped)

    def _able(self, class_ids: Sequence[int]) -> List[int]:
        """Classes whose bytes have somewhere to go now."""
        if self._hdd_is_away:
            sums = self.sums()
            # S3 has to have more of them than the HDD has too.
            return [class_id for class_id in class_ids
                    if not self._s3_silent and class_id in sums
                    and sums[class_id]['remote'] > sums[class_id]['spare']]
        return [class_id for class_id in class_ids
                if not self._s3_silent or self._to_hdd(class_id)]

    @property
    def _hdd_is_away(self) -> bool:
        """True if a copy there lets no byte leave the SSD in this round: a
        version that has its other copy there alone is not even tried."""
        return self._book.state.hdd_state == 'unmounted'

    def _carry_out(self, asked: Asked, tier: Tier, next_of: NextOf,
                   move: Callable[[Candidate], int]) -> int:
        """Evict by the class rule, an object at a time: a surplus counts for
        the next. Returns the bytes that left.

        :param next_of: candidates of some classes, with about so many bytes
        """
        freed = 0
        skipped: Skipped = {}
        while not self.stopping.is_set():
            batch = self._next_batch(asked, next_of, skipped)
            if not batch:
                break
            candidates = [candidate for _, candidate in batch]
            self._ask_ahead([candidate for candidate in candidates
                             if tier is Tier.HDD
                             or not self._to_hdd(candidate.class_id)], tier)
            for (giver, candidate), left in zip(
                    batch, self._each(move, candidates)):
                freed += left
                if left != candidate.length:
                    # It was refused, or has changed.
                    giver.used += candidate.length - left
                    asked.left(giver, left - candidate.length)
        return freed

    def _next_batch(self, asked: Asked, next_of: NextOf,
                    skipped: Skipped) -> List[Tuple[Account, Candidate]]:
        """The next victims to move side by side."""
        batch: List[Tuple[Account, Candidate]] = []
        giver = asked.next()
        while giver is not None and len(batch) < _BATCH:
            most = asked.most(giver)
            passed = skipped.setdefault(giver.class_ids, set())
            proposed = [candidate for candidate in next_of(
                giver.class_ids, most, passed)
                        if candidate.version not in passed]
            candidates = _until(self._not_kept(proposed), most)
            if not candidates:
                giver.loose = 0
            for candidate in candidates:
                giver.gave(candidate.length)
                asked.left(giver, candidate.length)
                batch.append((giver, candidate))
                passed.add(candidate.version)
            giver = asked.next()
        return batch

    def _not_kept(self, candidates: List[Candidate]) -> List[Candidate]:
        """The candidates that the watcher does not keep; kept ones count as
        just used.
        """
        kept = {candidate.version for candidate in candidates
                if self._local.watcher.keeps(candidate.version)}
        if kept:
            self._index.renew(kept, self._clock.wall())
        return [candidate for candidate in candidates
                if candidate.version not in kept]

    def _demote(self, candidate: Candidate) -> int:
        before = self._row_bytes(candidate)
        self._local.demote(candidate.version, candidate.partition,
                           [candidate.class_id],
                           self._to_hdd(candidate.class_id), spare_pins=True)
        freed = before - self._row_bytes(candidate)
        self._metrics.count('tier.demoted')
        self._metrics.count('tier.demoted_bytes', max(0, freed))
        return freed

    def _to_hdd(self, class_id: int) -> bool:
        """True if bytes leave the SSD for the HDD, not for S3 alone."""
        return self._may_clean() and self._in_force.table.spec(
            class_id).remote is not RemoteMode.ONLY

    def _may_clean(self) -> bool:
        """True if bytes may be copied from the SSD to the HDD: each try on
        an SSD that fails as a whole would be one more line in the log."""
        return self._book.state.hdd_state == 'ready' and \
            not self.checks.why(Tier.SSD)

    def _ask_ahead(self, candidates: List[Candidate], tier: Tier) -> None:
        if not self._s3_silent:
            self._local.ask_ahead([(candidate.version, candidate.partition)
                                   for candidate in candidates], tier)

    def _row_bytes(self, candidate: Candidate) -> int:
        row = self._index.get(candidate.version)
        return sum(span.ssd_bytes for span in row.spans
                   if span.class_id == candidate.class_id) if row else 0

    def clean(self, conf: NodeConf) -> bool:
        """Copy dirty bytes to the HDD; False if some are left to do."""
        if not self._may_clean():
            return True
        room, _, _ = self.levels(conf)
        dirty = sum(sums['cleanable'] for sums in self.sums().values())
        before = self._clock.wall() - conf.tier.clean_after_seconds
        if dirty > room * conf.tier.dirty_watermark:
            before = self._clock.wall()
        until = time.monotonic() + _TURN_SECONDS
        # Lowest class first: it is the next to leave.
        for class_id in sorted(self.sums(), key=self._rank):
            dirty = self._clean_classes([class_id], dirty, before, until)
        return time.monotonic() <= until

    def _clean_classes(self, class_ids: Iterable[int], wanted: int,
                       before: Optional[float],
                       until: float = float('inf')) -> int:
        """Copy dirty bytes to the HDD; returns how many are left to do.

        :param before: oldest first, if put before; None: the least
            recently used first, whatever their age
        :param until: give the rest up at this monotonic time
        """
        class_ids = list(class_ids)
        return self._clean_until(
            wanted, lambda limit: self._index.victims.least_recent_dirty(
                self.device.name, class_ids, limit) if before is None else
            self._index.victims.oldest_dirty(
                self.device.name, class_ids, limit, before), until)

    def _clean_until(self, wanted: int,
                     next_of: Callable[[int], List[Candidate]],
                     until: float = float('inf')) -> int:
        """The same of any order.

        :param next_of: at most so many candidates
        """
        skipped: Set[VersionId] = set()
        while wanted > 0 and not self.stopping.is_set() \
                and self._book.state.hdd_state == 'ready':
            if time.monotonic() > until:
                break
            candidates = _until([
                candidate for candidate in next_of(_BATCH + len(skipped))
                if candidate.version not in skipped
                and not self._waits_for_s3(candidate)], wanted)
            if not candidates:
                break
            self._each(self._clean_one, candidates)
            skipped.update(candidate.version for candidate in candidates)
            wanted -= sum(candidate.length for candidate in candidates)
        return wanted

    def _waits_for_s3(self, candidate: Candidate) -> bool:
        """True if bytes are to live in S3 alone, and will: a version with a
        byte of a class that stays on the cluster is never sent."""
        if self._in_force.table.spec(
                candidate.class_id).remote is not RemoteMode.ONLY:
            return False
        row = self._index.get(candidate.version)
        return row is None or row.wants_remote or row.on_remote

    def _clean_one(self, candidate: Candidate) -> int:
        self._local.clean(candidate.version, candidate.partition,
                          [candidate.class_id])
        self._metrics.count('tier.cleaned')
        self._metrics.count('tier.cleaned_bytes', candidate.length)
        return candidate.length

    def drop_remote_only(self) -> None:
        """Classes that live in S3: their local bytes go once verified."""
        table = self._in_force.table
        class_ids = [class_id for class_id in self.sums()
                     if table.spec(class_id).remote is RemoteMode.ONLY]
        if not class_ids:
            return
        candidates = self._index.victims.least_recent_remote(
            self.device.name, class_ids, _BATCH, self._hdd_is_away)
        self._ask_ahead(candidates, Tier.SSD)
        self._each(self._demote, candidates)
        if self._book.state.hdd_state in ('ready', 'full') and \
                not self._s3_silent:
            candidates = self._index.victims.least_recent_spare(
                self.device.name, class_ids, _BATCH)
            self._ask_ahead(candidates, Tier.HDD)
            self._each(self._drop_spare, candidates)

    def relieve_hdd(self, conf: NodeConf) -> None:
        """Between the watermarks of the HDD: what S3 has may go."""
        if self._book.state.hdd_state not in ('ready', 'full'):
            return
        total, free = self._hdd_levels()
        need = bytes_to_free(total, total - free,
                             conf.tier.hdd_high_watermark,
                             conf.tier.hdd_low_watermark)
        if need <= 0:
            return
        spare = {class_id: Occupancy(sums['hdd'], sums['spare'])
                 for class_id, sums in self.sums().items()}
        # Floors and caps are shares of the SSD: here only ranks count.
        self._carry_out(self.strategy(conf).relief(
            spare, self._in_force.table, 0, need), Tier.HDD, self._spares,
            self._drop_spare)

    def _spares(self, class_ids: Sequence[int], wanted: int,
                skipped: Set[VersionId]) -> List[Candidate]:
        if self._s3_silent:
            return []
        return self._index.victims.least_recent_spare(
            self.device.name, class_ids, _BATCH + len(skipped))

    def _drop_spare(self, candidate: Candidate) -> int:
        self._local.drop_capacity(candidate.version, candidate.partition,
                                  [candidate.class_id], spare_pins=True)
        self._metrics.count('tier.hdd_dropped_bytes', candidate.length)
        return candidate.length

    def promote(self, conf: NodeConf) -> bool:
        """Bring wishes to the SSD; False if some are left for later."""
        until = time.monotonic() + _TURN_SECONDS
        while not self.stopping.is_set():
            if time.monotonic() > until:
                return not self.wishes
            wish = self.wishes.take()
            if wish is None:
                return True
            if self._book.state.hdd_state not in ('ready', 'full'):
                continue
            for class_id in wish.class_ids:
                self._promote_class(conf, wish, class_id)
        return True

    def _promote_class(self, conf: NodeConf, wish: Wish,
                       class_id: int) -> None:
        row = self._index.get(wish.version)
        spans = [span for span in row.spans if span.class_id == class_id] \
            if row else []
        need = sum(span.total_bytes - span.ssd_bytes for span in spans)
        if row is None or need <= 0 or not spans[0].hdd_bytes:
            return
        if spans[0].warmth is Warmth.COLD:
            self._metrics.count('tier.promotions_cold')
            return
        room, used, _ = self.levels(conf)
        low, high = (int(room * mark) for mark in (
            conf.tier.low_watermark, conf.tier.high_watermark))
        # Cold copies are room.
        loose = min(max(0, used + need - high), sum(
            candidate.evictable_bytes for candidate in self.cold().values()))
        entry = admit(
            self.strategy(conf), self.occupancies(), self._in_force.table,
            room, used - loose, low, high, class_id, need)
        if entry.is_refused:
            self._metrics.count('tier.promotions_refused')
            return
        is_known = spans[0].warmth is Warmth.HOT or any(
            span.ssd_bytes for span in spans)
        if not self.doorkeeper.lets_in(
                Newcomer(wish, class_id, need, is_known), room,
                low - used + loose):
            return
        freed = self._evict_cold(loose) if loose else 0
        self._evict(entry)
        # Bytes that cannot be moved now, or that prefetch keeps, have stayed.
        if freed < loose or entry.is_short:
            self._metrics.count('tier.promotions_refused')
            return
        self._each(self._promote_one, [Candidate(
            wish.version, wish.partition, row.size, class_id, need)])

    def _promote_one(self, candidate: Candidate) -> int:
        self._local.promote(candidate.version, candidate.partition,
                            [candidate.class_id])
        self._metrics.count('tier.promoted')
        self._metrics.count('tier.promoted_bytes', candidate.length)
        return candidate.length

    # -- inside ----------------------------------------------------------

    def _each(self, move: Callable[[Candidate], int],
              candidates: List[Candidate]) -> List[int]:
        """Move candidates in the movers' threads; bytes of each."""
        if not candidates:
            return []
        try:
            return list(self._movers.map(
                lambda candidate: 0 if self.mender.holds(candidate.version)
                else self._guarded(move, candidate), candidates))
        finally:
            self.moved += len(candidates)
            self._found = None

    def _guarded(self, move: Callable[[Candidate], int],
                 candidate: Candidate) -> int:
        started = time.monotonic()
        try:
            return move(candidate)
        except VersionGone:
            # Overwritten or handed over by now; its row goes with the event,
            # or now. Its bytes are off the device, as was asked.
            self._local.mover.retrack(candidate.version, candidate.partition)
            return 0 if move == self._promote_one else candidate.length
        except (NotProven, Pinned, RemoteCorrupt) as err:
            # It stays; those behind it may have to go, so it is not the
            # first to leave any more.
            self._metrics.count('tier.evictions_refused')
            self._index.renew([candidate.version], self._clock.wall())
            self._logger.info('%s: %s', self.device.name, err)
        except RemoteUnavailable as err:
            self._metrics.count('tier.evictions_unproven')
            self._s3_silent = 'S3 cannot be asked: %s' % err
        except TierFull as err:
            self._no_room(move == self._promote_one, err)
        except TierUnavailable as err:
            if self._hdd_is_there():
                self._failed(candidate, err)
            else:
                self._book.say('hdd_state', 'unmounted', err)
        except RottenBytes as err:
            # Mended, it can move in the next round.
            self.mender.add(candidate.version, candidate.partition)
            self._metrics.count('tier.rotten_moves')
            self._left(candidate, err)
        except DamagedRecord as err:
            self._metrics.count('tier.damaged')
            self._left(candidate, err)
        except (DssError, OSError) as err:
            self._failed(candidate, err)
        finally:
            self._metrics.timing('tier.move', time.monotonic() - started)
        return 0

    def _hdd_is_there(self) -> bool:
        """True if a tier that failed one version has not gone as a whole.
        """
        if self._book.state.hdd_state == 'none':
            return True
        try:
            self.device.capacity.check()
        except (TierUnavailable, OSError):
            return False
        return True

    def _failed(self, candidate: Candidate, err: Exception) -> None:
        self._metrics.count('tier.move_errors')
        self._left(candidate, err)

    def _left(self, candidate: Candidate, err: Exception) -> None:
        """A version stays where it is: named, and behind all others, so
        that those go on."""
        self._index.renew([candidate.version], self._clock.wall())
        self._logger.error('%s: %s stays where it is: %s', self.device.name,
                           candidate.version.key, err)

    def _no_room(self, on_ssd: bool, err: TierFull) -> None:
        self._metrics.count('tier.%s_full' % ('ssd' if on_ssd else 'hdd'))
        if not on_ssd:
            total, free = self._hdd_levels()
            # Not ready again before some room has come back: one line in
            # the log and not one for every version that does not fit.
            self._full_below = free + max(1, total // 100)
            self._book.say('hdd_state', 'full', err)

    def sums(self) -> Sums:
        """The index's sums by class, of this round: asked again once
        something was moved."""
        if self._found is None:
            self._found = self._index.occupancy(self.device.name)
        return self._found

    def occupancies(self) -> Dict[int, Occupancy]:
        """The strategy's input: sums of clean bytes by class, but for cold
        copies."""
        return {class_id: Occupancy(
            sums['ssd'] - sums['cold'],
            sums['evictable'] - sums['cold_evictable'])
            for class_id, sums in self.sums().items()}

    def cold(self) -> Dict[int, Occupancy]:
        """The cold copies' bytes on the SSD, which leave before all others."""
        return {class_id: Occupancy(sums['cold'], sums['cold_evictable'])
                for class_id, sums in self.sums().items() if sums['cold']}

    def _rank(self, class_id: int) -> Tuple[int, int]:
        return self._in_force.table.spec(class_id).rank, class_id

    def strategy(self, conf: NodeConf) -> EvictionStrategy:
        """The strategy that ``[tier] eviction`` names."""
        return STRATEGIES[conf.tier.eviction]

    def _hdd_levels(self) -> Tuple[int, int]:
        stat = os.statvfs(self.device.capacity.path)
        return (stat.f_blocks * stat.f_frsize,
                stat.f_bavail * stat.f_frsize)


def _until(candidates: List[Candidate], wanted: int) -> List[Candidate]:
    """The first of them that together have ``wanted`` bytes."""
    chosen = []
    for candidate in candidates:
        if wanted <= 0:
            break
        chosen.append(candidate)
        wanted -= candidate.length
    return chosen
