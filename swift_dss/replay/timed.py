"""Requests and arrivals in the order of their times.

For set-ups in which time decides the place of units: prefetching, dirty bytes
that wait for their upload, an HDD below the SSD. Keys are those of
:mod:`~swift_dss.replay.plan`: an object's number and a unit's.

A miss brings its units in at once, because the next reader waits for the same
fetch; prefetched units come in when they arrive. Bytes that are on their way
are a miss for the prefetcher, and a wait for the reader.
"""

from __future__ import annotations

import heapq
import time
from collections import deque
from typing import Deque, Dict, List, Optional, Set, Tuple

from swift_dss.core.errors import BadConfig
from swift_dss.replay.columns import Answers
from swift_dss.replay.latency import Link, Lots
from swift_dss.replay.plan import UNIT_BITS, Asked, Plan, Turns
from swift_dss.replay.setup import PROGRESS_EVERY, Outcome, Progress, Setup
from swift_dss.replay.traces.model import Verb
from swift_dss.strategy.eviction.objects import orders
from swift_dss.strategy.eviction.objects.verbs import BYPASS, HIT, MISS
from swift_dss.strategy.prefetch import STRATEGIES
from swift_dss.strategy.prefetch.base import (
    Access, NoPrefetch, Prefetch, Settings, Want)

_UNIT_MASK = (1 << UNIT_BITS) - 1
_READ, _WRITE, _DELETE = int(Verb.READ), int(Verb.WRITE), int(Verb.DELETE)


def play(plan: Plan, setup: Setup,
         progress: Optional[Progress] = None) -> Outcome:
    """Play a trace on a set-up.

    :raises BadConfig: prefetching of whole objects
    """
    if setup.prefetch != 'none' and not plan.unit_bytes:
        raise BadConfig('--prefetch %s: prefetches units, and this trace '
                        'is kept as whole objects; say --unit'
                        % setup.prefetch)
    return _Player(plan, setup).run(progress)


class _Player:
    """The state of a replay."""

    # long: all of it is here, and said.
    def __init__(self, plan: Plan, setup: Setup) -> None:
        self._plan = plan
        self._setup = setup
        self._unit = plan.unit_bytes
        self._cache = setup.make_cache()
        self._cache.evicted = []
        self._hdd = orders.make('lru', setup.hdd_bytes, setup.table) \
            if setup.hdd_bytes else None
        if setup.prefetch not in STRATEGIES:
            raise BadConfig('--prefetch: %s is not one of %s' % (
                setup.prefetch, ', '.join(STRATEGIES)))
        self._prefetch: Prefetch = STRATEGIES[setup.prefetch](Settings(
            setup.prefetch_unit_bytes or self._unit or 1))
        self._prefetches = not isinstance(self._prefetch, NoPrefetch)
        if self._prefetches:
            self._cache.last_chance = self._last_chance
        self._get, self._put, self._ssd_ms, self._hdd_ms = (
            Lots(times, setup.seed + at) for at, times in enumerate((
                setup.cloud.get, setup.cloud.put, setup.ssd.times,
                setup.hdd.times)))
        self._link = Link(setup.link_bytes_per_second)
        self.now = 0.0
        #: Key: when the missed units will be there.
        self._ready: Dict[int, float] = {}
        #: Key of a prefetch under way: (when it arrives, its bytes).
        self._flying: Dict[int, Tuple[float, int]] = {}
        self._arrivals: List[Tuple[float, int]] = []
        self._flying_bytes = 0
        #: Key of a prefetched unit in the cache: whether it was read.
        self._used: Dict[int, bool] = {}
        #: (when it is clean, key, turn), and the turn of the last write.
        self._uploads: Deque[Tuple[float, int, int]] = deque()
        self._written: Dict[int, int] = {}
        self._accounts: Dict[int, str] = {}
        self._classes: Dict[int, int] = {}
        self._bytes: Dict[int, int] = {}
        self._held: Dict[int, Set[int]] = {}
        self.counts: Dict[str, float] = dict.fromkeys((
            'gets', 'get_bytes', 'puts', 'put_bytes', 'bypasses', 'delayed',
            'stalls', 'hdd_hits', 'prefetches', 'prefetched_bytes',
            'useful_bytes', 'late_bytes', 'wasted_bytes', 'refused_bytes',
            'ssd_written_bytes'), 0.0)

    # long: one turn a request, in the order in which it happens.
    def run(self, progress: Optional[Progress]) -> Outcome:
        """The whole trace."""
        plan, trace = self._plan, self._plan.trace
        began = time.process_time()
        answers = Answers(plan)
        think = self._setup.think_seconds
        turns = Turns(trace, think)
        asked = Asked(plan, self._setup.asks_sequential, think is None)
        rate_ms = self._setup.ssd.bytes_per_second / 1000.0
        for done, (row, at_ms) in enumerate(turns):
            (verb, number, class_id, owner, client, start, length, size,
             renewed, units) = asked.take(row)
            self.now = at_ms
            self._catch_up()
            self._bytes[number] = size
            if self._prefetches:
                self._accounts[number] = str(owner)
                self._classes[number] = class_id
            if renewed or verb == _DELETE:
                self._forget(number, units)
            wait, bytes_found, at_once, hit = 0.0, 0, False, False
            if verb == _READ:
                wait, bytes_found, all_bytes = self._read(number, units)
                at_once = wait == 0.0
                hit = bytes_found == all_bytes
                wait += self._ssd_ms.next() + length / rate_ms
            elif verb == _WRITE:
                wait = self._write(number, units, length)
            answers.add(row, wait, hit, bytes_found)
            if self._cache.evicted:
                self._gone()
            if self._prefetches and verb == _READ:
                self._ask(Access(
                    str(owner), client, number, start, length, size,
                    at_once, at_ms / 1000.0, class_id))
            turns.answered(row, at_ms + wait)
            if progress is not None and not done % PROGRESS_EVERY:
                progress(done, plan.requests)
        self._end()
        self.counts['cached_bytes'] = float(self._cache.used_bytes)
        return Outcome(
            self._setup, answers.latency_ms, answers.hits,
            *answers.by_bytes(), self.counts, time.process_time() - began,
            0.0, 0.0 if think is None else self.now - float(trace.at_ms[0]))

    # Requests

    # long: the states of a unit: here, on its way, on the HDD, or nowhere.
    def _read(self, number: int, units: List[Tuple[int, int, int, bool]]
              ) -> Tuple[float, int, int]:
        """(milliseconds until all bytes are on the SSD, bytes that were in
        the cache, all bytes)."""
        access, now = self._cache.access, self.now
        wait, there, asked = 0.0, 0, 0
        missing = 0
        before = False
        gets = 0
        absent: List[int] = []
        for key, size, class_id, sequential in units:
            flying = self._flying.pop(key, None)
            outcome = access(key, size, class_id, sequential)
            self._note(number, key)
            asked += size
            if outcome == HIT:
                there += size
                wait = max(wait, self._ready.get(key, 0.0) - now)
                if self._used.get(key) is False:
                    self._used[key] = True
                    self.counts['useful_bytes'] += size
                before = False
                continue
            self._count_written(outcome, size)
            if flying is not None:
                wait = max(wait, self._take_over(key, size, flying))
                before = False
            elif self._hdd is not None and key in self._hdd:
                self._hdd.remove(key)
                self.counts['hdd_hits'] += 1
                wait = max(wait, self._hdd_ms.next() + size
                           / self._setup.hdd.bytes_per_second * 1000.0)
                before = False
            else:
                gets += self._plan.parted or not before
                before = True
                missing += size
                absent.append(key)
        self.counts['delayed'] += wait > 0 and there == asked
        if missing:
            wait = max(wait, self._fetch(absent, missing, gets))
        return wait, there, asked

    def _fetch(self, keys: List[int], length: int, gets: int) -> float:
        self.counts['gets'] += gets
        self.counts['get_bytes'] += length
        wait = self._get.next() + max(
            length / self._setup.cloud.bytes_per_second * 1000.0,
            self._link.wait_ms(self.now, length, False))
        for key in keys:
            self._ready[key] = self.now + wait
        return wait

    def _take_over(self, key: int, size: int,
                   flying: Tuple[float, int]) -> float:
        """A reader waits for the bytes of a prefetch."""
        arrives, length = flying
        self._flying_bytes -= length
        self.counts['late_bytes'] += size
        self._ready[key] = arrives
        self._used[key] = True
        heapq.heappush(self._arrivals, (arrives, -key - 1))
        return arrives - self.now

    def _write(self, number: int, units: List[Tuple[int, int, int, bool]],
               length: int) -> float:
        """Milliseconds until it is acknowledged."""
        setup, cache = self._setup, self._cache
        self.counts['puts'] += 1
        self.counts['put_bytes'] += length
        put_ms = self._put.next() + length \
            / setup.cloud.bytes_per_second * 1000.0
        stays = True
        for key, size, class_id, sequential in units:
            if setup.write == 'around':
                cache.remove(key)
                continue
            outcome = cache.write(key, size, class_id, sequential)
            self._note(number, key)
            stays &= outcome != BYPASS
            self._count_written(outcome, size)
            self._ready.pop(key, None)
            self._used.pop(key, None)
            if self._hdd is not None:
                self._hdd.remove(key)
        if setup.write != 'back' or not stays:
            # A unit that finds no room among dirty bytes bypasses the cache.
            self.counts['stalls'] += setup.write == 'back'
            return put_ms
        due = self.now + setup.upload_seconds * 1000.0 + put_ms
        for key, _, _, _ in units:
            if cache.set_dirty(key):
                turn = self._written.get(key, 0) + 1
                self._written[key] = turn
                self._uploads.append((due, key, turn))
        return self._ssd_ms.next() + length \
            / setup.ssd.bytes_per_second * 1000.0

    def _count_written(self, outcome: int, size: int) -> None:
        bypassed = outcome == BYPASS
        self.counts['bypasses'] += bypassed
        self.counts['ssd_written_bytes'] += 0 if bypassed else size

    # Events between requests

    def _catch_up(self) -> None:
        now = self.now
        while self._arrivals and self._arrivals[0][0] <= now:
            at_ms, key = heapq.heappop(self._arrivals)
            if key < 0:
                self._arrived(-key - 1, True, at_ms)
                continue
            flying = self._flying.get(key)
            if flying is None or flying[0] != at_ms:
                continue
            del self._flying[key]
            self._flying_bytes -= flying[1]
            self._arrived(key, False, at_ms)
        uploads = self._uploads
        while uploads and uploads[0][0] <= now:
            _, key, turn = uploads.popleft()
            if self._written.get(key) == turn:
                del self._written[key]
                self._cache.set_clean(key)

    def _arrived(self, key: int, waited: bool, at_ms: float) -> None:
        number, offset, length = self._place(key)
        if not waited:
            if self._cache.fill(key, length, self._classes[number], True):
                self._count_written(MISS, length)
                self._used[key] = False
                self._note(number, key)
            else:
                self.counts['refused_bytes'] += length
                self._prefetch.on_dropped(
                    self._accounts[number], number, offset, length,
                    at_ms / 1000.0)
                return
        self._prefetch.on_arrival(
            self._accounts[number], number, offset, length, waited,
            at_ms / 1000.0)
        if self._cache.evicted:
            self._gone()

    def _gone(self) -> None:
        """Evictions: to the HDD, and told to the prefetcher."""
        evicted = self._cache.evicted or []
        for key in evicted:
            self._ready.pop(key, None)
            if self._hdd is not None:
                self._hdd.fill(key, self._size_of(key))
            used = self._used.pop(key, True)
            if not used:
                self.counts['wasted_bytes'] += self._size_of(key)
            if self._prefetches:
                number, offset, length = self._place(key)
                self._prefetch.on_evict(
                    self._accounts[number], number, offset, length, used,
                    self.now / 1000.0)
        evicted.clear()

    def _last_chance(self, key: int) -> bool:
        if self._used.get(key) is not False:
            return False
        number, offset, length = self._place(key)
        return self._prefetch.on_last_chance(
            self._accounts[number], number, offset, length,
            self.now / 1000.0)

    # Prefetching

    def _ask(self, access: Access) -> None:
        room = max(0, self._setup.prefetch_bytes - self._flying_bytes)
        for want in self._prefetch.on_request(access, room):
            self._want(want)

    def _want(self, want: Want) -> None:
        """The units of a want that are neither there nor under way, as one
        request."""
        unit, number = self._unit, want.object_id
        assert isinstance(number, int)
        end = min(want.offset + want.length, self._bytes[number])
        keys = [number << UNIT_BITS | at for at in range(
            want.offset // unit, (end - 1) // unit + 1)]
        there = [key for key in keys if key in self._cache]
        keys = [key for key in keys
                if key not in self._cache and key not in self._flying]
        for key in there:
            self._prefetch.on_arrival(
                want.account, number, *self._place(key)[1:], False,
                self.now / 1000.0)
        if not keys:
            return
        self.counts['prefetches'] += 1
        latency = self._get.next()
        rate_ms = self._setup.cloud.bytes_per_second / 1000.0
        come = 0
        for key in keys:
            length = self._size_of(key)
            come += length
            # A stream of bytes: the first units are there before the last.
            arrives = self.now + latency + max(
                come / rate_ms, self._link.wait_ms(self.now, length, True))
            self._flying[key] = (arrives, length)
            heapq.heappush(self._arrivals, (arrives, key))
        self._flying_bytes += come
        self.counts['gets'] += 1
        self.counts['get_bytes'] += come
        self.counts['prefetched_bytes'] += come

    # Inside

    def _place(self, key: int) -> Tuple[int, int, int]:
        """(object, offset, length) of a unit."""
        return (key >> UNIT_BITS, (key & _UNIT_MASK) * self._unit,
                self._size_of(key))

    def _size_of(self, key: int) -> int:
        if not self._unit:
            return self._bytes[key]
        return max(1, min(self._unit, self._bytes[key >> UNIT_BITS]
                          - (key & _UNIT_MASK) * self._unit))

    def _note(self, number: int, key: int) -> None:
        if self._unit and not self._plan.trace.unit_bytes:
            self._held.setdefault(number, set()).add(key)

    def _forget(self, number: int,
                units: List[Tuple[int, int, int, bool]]) -> None:
        """The object's bytes, or a volume's units, are others now."""
        for key in self._held.pop(number, {unit[0] for unit in units}):
            self._cache.remove(key)
            if self._hdd is not None:
                self._hdd.remove(key)
            self._ready.pop(key, None)
            self._used.pop(key, None)
            self._written.pop(key, None)

    def _end(self) -> None:
        """Count prefetched units that were never read as wasted."""
        for key, used in self._used.items():
            if not used:
                self.counts['wasted_bytes'] += self._size_of(key)
        for _, length in self._flying.values():
            self.counts['wasted_bytes'] += length
