"""One device's keeper: makes room, cleans, brings back. Mechanism only.

One thread a device plans; a few movers carry out. So a slow HDD holds back
its own device and no other. Each round asks the strategy with the sums of
the index, never with objects, and takes the least recently used bytes of
the classes it names.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, Iterable, List, Optional, Set, Tuple

from swift_dss.core.classes import ClassTable, RemoteMode
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import (
    DamagedRecord, DssError, TierFull, TierUnavailable, VersionGone)
from swift_dss.core.version import VersionId
from swift_dss.strategy.eviction import STRATEGIES
from swift_dss.strategy.eviction.verbs import (
    EvictionStrategy, Occupancy, Take)
from swift_dss.strategy.promotion import admit
from swift_dss.strategy.watermarks import bytes_to_free, used_bytes
from swift_dss.tier.devices import Device
from swift_dss.tier.index import IndexUnavailable
from swift_dss.tier.local import Local
from swift_dss.tier.metrics import Metrics
from swift_dss.tier.rows import Candidate
from swift_dss.tier.state import DeviceState, publish
from swift_dss.wire.pressure import Pressure

#: Candidates taken from the index at a time.
_BATCH = 64
#: Versions that wait for promotion; later wishes are dropped.
_MAX_WISHES = 10000
#: Rounds follow one another no faster than this, however many events.
_MIN_ROUND_SECONDS = 0.2

Sums = Dict[int, Dict[str, int]]


class Keeper:
    """Keeps one device between its watermarks.

    :param conf: the configuration in force; asked once a round
    """

    def __init__(self, device: Device, local: Local,
                 conf: Callable[[], NodeConf],
                 table: Callable[[], ClassTable], metrics: Metrics,
                 logger: logging.Logger,
                 now: Callable[[], float] = time.time) -> None:
        self.device = device
        self.state = DeviceState()
        self._local = local
        self._index = local.index
        self._conf = conf
        self._table = table
        self._metrics = metrics
        self._logger = logger
        self._now = now
        self._wishes: OrderedDict[VersionId, Tuple[str, List[int]]] = \
            OrderedDict()
        self._full_below = 0
        self._guard = threading.Lock()
        self._rounds_changed = threading.Condition()
        self._rounds_begun = self._rounds_ended = 0
        self._kick = threading.Event()
        self._stopping = threading.Event()
        self._movers = ThreadPoolExecutor(
            max(1, conf().tier.movers),
            thread_name_prefix='dss-move-' + device.name)
        self._thread = threading.Thread(
            target=self._run, name='dss-keep-' + device.name, daemon=True)

    # -- from outside ----------------------------------------------------

    def start(self) -> None:
        """Begin; the first round is at once."""
        self._thread.start()

    def stop(self) -> None:
        """Let running moves end, then return."""
        self._stopping.set()
        self._kick.set()
        self._thread.join()
        self._movers.shutdown(wait=True)

    def kick(self) -> None:
        """Something changed: do not wait for the next interval."""
        self._kick.set()

    def wish(self, version: VersionId, partition: str,
             class_ids: List[int]) -> None:
        """A reader had to take these from a slower tier."""
        with self._guard:
            if len(self._wishes) >= _MAX_WISHES:
                self._metrics.count('tier.wishes_dropped')
                return
            self._wishes[version] = (partition, class_ids)
        self._kick.set()

    @property
    def waiting(self) -> int:
        """Versions that wait to be brought to the SSD."""
        return len(self._wishes)

    def wait_round(self, seconds: float) -> bool:
        """True once a round that began after this call has ended."""
        with self._rounds_changed:
            wanted = self._rounds_begun + 1
            self._kick.set()
            return self._rounds_changed.wait_for(
                lambda: self._rounds_ended >= wanted, max(0.0, seconds))

    def round(self) -> None:
        """One pass over all duties; errors of tiers become states."""
        conf = self._conf()
        try:
            self.device.require_mounted()
        except TierUnavailable as err:
            self._say('ssd_state', 'unmounted', err)
            return
        self._say('ssd_state', 'ready')
        self._look_at_hdd()
        self._make_room(conf)
        self._drop_remote_only()
        self._relieve_hdd(conf)
        self._clean(conf)
        self._promote(conf)
        self.publish_pressure(conf)

    def publish_pressure(self, conf: NodeConf) -> None:
        """Tell object servers how full the device is."""
        room, used, _ = self.levels(conf)
        table = self._table()
        takes = self._strategy(conf).plan(
            self._occupancies(), table, room, 1)
        rank = min((table.spec(class_id).rank for take in takes
                    for class_id in take.class_ids), default=None)
        pressure = Pressure(
            room, used, int(room * conf.tier.high_watermark), rank,
            self.state.hdd_state == 'ready', self._now())
        self.state.pressure = pressure
        try:
            publish(conf.run_dir, self.device.name, pressure)
        except OSError as err:
            self._say('publish_state', 'failing', err)
        else:
            self._say('publish_state', 'ready')

    def levels(self, conf: NodeConf) -> Tuple[int, int, int]:
        """(room, used, free on the disk) of the SSD, bytes."""
        stat = os.statvfs(self.device.path)
        free = stat.f_bavail * stat.f_frsize
        room = conf.tier.ssd_bytes or stat.f_blocks * stat.f_frsize
        tracked = sum(sums['ssd'] for sums in
                      self._index.occupancy(self.device.name).values())
        return room, used_bytes(room, tracked, free), free

    # -- duties ----------------------------------------------------------

    def _look_at_hdd(self) -> None:
        if not self.device.capacity.configured:
            self._say('hdd_state', 'none')
            return
        try:
            self.device.capacity.check()
            total, free = self._hdd_levels()
        except (TierUnavailable, OSError) as err:
            self._say('hdd_state', 'unmounted', err)
            return
        if free < self._full_below:
            self._say('hdd_state', 'full')
        else:
            self._full_below = 0
            self._say('hdd_state', 'ready')

    def _make_room(self, conf: NodeConf) -> None:
        room, used, _ = self.levels(conf)
        need = bytes_to_free(room, used, conf.tier.high_watermark,
                             conf.tier.low_watermark)
        strategy, table = self._strategy(conf), self._table()
        over = [Take((class_id,), surplus) for class_id, surplus in (
            (class_id, strategy.surplus(self._occupancies(), table, room,
                                        class_id))
            for class_id in self._occupancies()) if surplus]
        if over and not need:
            self._take(over)
        if need > 0:
            self._clean_for(strategy, room, need)
            need -= self._take(strategy.plan(
                self._occupancies(), table, room, need))
        self._say('room_state', 'short' if need > 0 else 'ready')

    def _clean_for(self, strategy: EvictionStrategy, room: int,
                   need: int) -> None:
        """Clean what would leave first if it were not dirty.

        Without it a burst of dirty low classes would push out clean high
        ones. The strategy names bytes to *clean* here; what leaves is
        decided after it, from clean bytes alone.
        """
        if self.state.hdd_state != 'ready':
            return
        sums = self._sums()
        if_clean = {class_id: Occupancy(
            one['ssd'], one['evictable'] + one['cleanable'])
            for class_id, one in sums.items()}
        for take in strategy.plan(if_clean, self._table(), room, need):
            clean = sum(sums[class_id]['evictable']
                        for class_id in take.class_ids)
            self._clean_classes(take.class_ids, take.length - clean, None)

    def _take(self, takes: Iterable[Take]) -> int:
        """Evict; returns how many bytes left."""
        freed = 0
        for take in takes:
            wanted = take.length
            skipped: Set[VersionId] = set()
            while wanted > 0 and not self._stopping.is_set():
                found = [one for one in self._index.least_recent(
                    self.device.name, take.class_ids,
                    _BATCH + len(skipped)) if one.version not in skipped]
                some = _until(found, wanted)
                if not some:
                    break
                done = self._each(self._demote, some)
                skipped.update(one.version for one in some)
                wanted -= sum(done)
                freed += sum(done)
        return freed

    def _demote(self, one: Candidate) -> int:
        spec = self._table().spec(one.class_id)
        to_hdd = (self.state.hdd_state == 'ready'
                  and spec.remote is not RemoteMode.ONLY)
        before = self._row_bytes(one)
        self._local.demote(one.version, one.partition, [one.class_id],
                           to_hdd)
        freed = before - self._row_bytes(one)
        self._metrics.count('tier.demoted')
        self._metrics.count('tier.demoted_bytes', max(0, freed))
        return freed

    def _row_bytes(self, one: Candidate) -> int:
        row = self._index.get(one.version)
        return sum(span.ssd_bytes for span in row.spans
                   if span.class_id == one.class_id) if row else 0

    def _clean(self, conf: NodeConf) -> None:
        if self.state.hdd_state != 'ready':
            return
        room, _, _ = self.levels(conf)
        dirty = sum(sums['cleanable'] for sums in self._sums().values())
        before = self._now() - conf.tier.clean_after_seconds
        if dirty > room * conf.tier.dirty_watermark:
            before = self._now()
        # Lowest class first: it is the next to leave.
        for class_id in sorted(self._sums(), key=self._rank):
            dirty = self._clean_classes([class_id], dirty, before)

    def _clean_classes(self, class_ids: Iterable[int], wanted: int,
                       before: Optional[float]) -> int:
        """Copy dirty bytes to the HDD; returns how many are left to do.

        :param before: oldest first, if put before; None: the least
            recently used first, whatever their age
        """
        table = self._table()
        class_ids = [class_id for class_id in class_ids if
                     table.spec(class_id).remote is not RemoteMode.ONLY]
        skipped: Set[VersionId] = set()
        while wanted > 0 and not self._stopping.is_set() \
                and self.state.hdd_state == 'ready':
            limit = _BATCH + len(skipped)
            found = self._index.least_recent_dirty(
                self.device.name, class_ids, limit) if before is None else \
                self._index.oldest_dirty(
                    self.device.name, class_ids, limit, before)
            some = _until([one for one in found
                           if one.version not in skipped], wanted)
            if not some:
                break
            self._each(self._clean_one, some)
            skipped.update(one.version for one in some)
            wanted -= sum(one.length for one in some)
        return wanted

    def _clean_one(self, one: Candidate) -> int:
        self._local.clean(one.version, one.partition, [one.class_id])
        self._metrics.count('tier.cleaned')
        self._metrics.count('tier.cleaned_bytes', one.length)
        return one.length

    def _drop_remote_only(self) -> None:
        """Classes that live in S3: their local bytes go once verified."""
        table = self._table()
        class_ids = [class_id for class_id in self._sums()
                     if table.spec(class_id).remote is RemoteMode.ONLY]
        if not class_ids:
            return
        some = self._index.least_recent_remote(
            self.device.name, class_ids, _BATCH)
        self._each(self._demote, some)
        if self.state.hdd_state in ('ready', 'full'):
            self._each(self._drop_spare, self._index.least_recent_spare(
                self.device.name, class_ids, _BATCH))

    def _relieve_hdd(self, conf: NodeConf) -> None:
        if self.state.hdd_state not in ('ready', 'full'):
            return
        total, free = self._hdd_levels()
        need = bytes_to_free(total, total - free,
                             conf.tier.hdd_high_watermark,
                             conf.tier.hdd_low_watermark)
        if need <= 0:
            return
        spare = {class_id: Occupancy(sums['hdd'], sums['spare'])
                 for class_id, sums in self._sums().items()}
        # Floors and caps are shares of the SSD: here only ranks count.
        for take in self._strategy(conf).plan(spare, self._table(), 0, need):
            wanted = take.length
            while wanted > 0 and not self._stopping.is_set():
                some = _until(self._index.least_recent_spare(
                    self.device.name, take.class_ids, _BATCH), wanted)
                done = sum(self._each(self._drop_spare, some))
                if not done:
                    break
                wanted -= done

    def _drop_spare(self, one: Candidate) -> int:
        self._local.drop_capacity(one.version, one.partition)
        self._metrics.count('tier.hdd_dropped_bytes', one.length)
        return one.length

    def _promote(self, conf: NodeConf) -> None:
        while not self._stopping.is_set():
            with self._guard:
                if not self._wishes:
                    return
                version, (partition, class_ids) = \
                    self._wishes.popitem(last=False)
            if self.state.hdd_state not in ('ready', 'full'):
                continue
            for class_id in class_ids:
                self._promote_class(conf, version, partition, class_id)

    def _promote_class(self, conf: NodeConf, version: VersionId,
                       partition: str, class_id: int) -> None:
        row = self._index.get(version)
        spans = [span for span in row.spans if span.class_id == class_id] \
            if row else []
        need = sum(span.total_bytes - span.ssd_bytes for span in spans)
        if row is None or need <= 0 or not spans[0].hdd_bytes:
            return
        room, used, _ = self.levels(conf)
        takes = admit(
            self._strategy(conf), self._occupancies(), self._table(), room,
            used, int(room * conf.tier.low_watermark),
            int(room * conf.tier.high_watermark), class_id, need)
        if takes is None:
            self._metrics.count('tier.promotions_refused')
            return
        self._take(takes)
        one = Candidate(version, partition, row.size, class_id, need)
        self._each(self._promote_one, [one])

    def _promote_one(self, one: Candidate) -> int:
        self._local.promote(one.version, one.partition, [one.class_id])
        self._metrics.count('tier.promoted')
        self._metrics.count('tier.promoted_bytes', one.length)
        return one.length

    # -- inside ----------------------------------------------------------

    def _each(self, move: Callable[[Candidate], int],
              some: List[Candidate]) -> List[int]:
        """Move candidates in the movers' threads; bytes of each."""
        return list(self._movers.map(
            lambda one: self._guarded(move, one), some))

    def _guarded(self, move: Callable[[Candidate], int],
                 one: Candidate) -> int:
        started = time.monotonic()
        try:
            return move(one)
        except VersionGone:
            # Overwritten meanwhile; its row goes with the event, or now.
            self._local.retrack(one.version, one.partition)
        except TierFull as err:
            self._no_room(move == self._promote_one, err)
        except TierUnavailable as err:
            self._say('hdd_state', 'unmounted', err)
        except DamagedRecord as err:
            self._metrics.count('tier.damaged')
            self._logger.error('%s: %s is left as it is: %s',
                               self.device.name, one.version.key, err)
        except (DssError, OSError) as err:
            self._metrics.count('tier.move_errors')
            self._logger.error('%s: %s: %s', self.device.name,
                               one.version.key, err)
        finally:
            self._metrics.timing('tier.move', time.monotonic() - started)
        return 0

    def _no_room(self, on_ssd: bool, err: TierFull) -> None:
        self._metrics.count('tier.%s_full' % ('ssd' if on_ssd else 'hdd'))
        if not on_ssd:
            total, free = self._hdd_levels()
            # Not ready again before some room has come back: one line in
            # the log and not one for every version that does not fit.
            self._full_below = free + max(1, total // 100)
            self._say('hdd_state', 'full', err)

    def _say(self, part: str, value: str, why: Any = '') -> None:
        """Change a state; one line in the log when it changes, not more."""
        before = getattr(self.state, part)
        if before == value:
            return
        setattr(self.state, part, value)
        good = value in ('ready', 'none')
        if before or not good:
            level = self._logger.info if good else self._logger.error
            level('%s: %s is %s%s', self.device.name,
                  part.replace('_state', ''), value,
                  ': %s' % why if str(why) else '')
        self._metrics.count('tier.state.%s.%s' % (part, value))

    def _sums(self) -> Sums:
        return self._index.occupancy(self.device.name)

    def _occupancies(self) -> Dict[int, Occupancy]:
        return {class_id: Occupancy(sums['ssd'], sums['evictable'])
                for class_id, sums in self._sums().items()}

    def _rank(self, class_id: int) -> Tuple[int, int]:
        return self._table().spec(class_id).rank, class_id

    def _strategy(self, conf: NodeConf) -> EvictionStrategy:
        return STRATEGIES[conf.tier.eviction]

    def _hdd_levels(self) -> Tuple[int, int]:
        stat = os.statvfs(self.device.capacity.path)
        return (stat.f_blocks * stat.f_frsize,
                stat.f_bavail * stat.f_frsize)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._kick.clear()
            with self._rounds_changed:
                self._rounds_begun += 1
            self._try_round()
            with self._rounds_changed:
                self._rounds_ended = self._rounds_begun
                self._rounds_changed.notify_all()
            self._kick.wait(self._conf().tier.interval_seconds)
            self._stopping.wait(_MIN_ROUND_SECONDS)


    def _try_round(self) -> None:
        try:
            self.round()
        except IndexUnavailable as err:
            self._say('index_state', 'unavailable', err)
        except DssError as err:
            self._metrics.count('tier.round_errors')
            self._logger.error('%s: %s', self.device.name, err)
        except OSError as err:
            self._say('ssd_state', 'failing', err)
        except Exception:
            # A device whose keeper died would fill up in silence.
            self._metrics.count('tier.round_errors')
            self._logger.exception('%s: round failed', self.device.name)
        else:
            self._say('index_state', 'ready')




def _until(found: List[Candidate], wanted: int) -> List[Candidate]:
    """The first of them that together have ``wanted`` bytes."""
    some = []
    for one in found:
        if wanted <= 0:
            break
        some.append(one)
        wanted -= one.length
    return some
