"""Virtual time: the wait of each request of a trace.

Two ways to the same figures. Where nothing but misses fills the cache and
nothing is dirty (:func:`_quick`), hits do not depend on time: one pass over
the cache, and all latencies at once with numpy after it. With a prefetcher,
write-back, an HDD tier, a closed loop or a shared link
(:mod:`~swift_dss.replay.timed`) requests and arrivals are played in the
order of their times. Without any of them both give the same hits, to the
last request.
"""

from __future__ import annotations

import time
from typing import Any, Dict, Iterator, List, Optional, Set

from swift_dss.core.classes import ClassTable
from swift_dss.replay import compiled, timed
from swift_dss.replay.columns import Columns
from swift_dss.replay.plan import Accesses, Plan
from swift_dss.replay.setup import Outcome, Progress, Setup
from swift_dss.replay.traces.model import Verb, numpy
from swift_dss.replay.traces.spool import slices
from swift_dss.strategy.eviction.objects import orders
from swift_dss.strategy.eviction.objects.verbs import HIT, ObjectCache

_META_ENTRY_BYTES = 1
#: Requests whose columns are made at a time: they fit a processor's cache.
_SLICE = 1 << 14


def replay(plan: Plan, setup: Setup,
           progress: Optional[Progress] = None) -> Outcome:
    """Play a trace on a set-up."""
    began = time.process_time()
    np = numpy()
    writes = bool((plan.trace.verbs == int(Verb.WRITE)).any())
    needs_time = setup.prefetch != 'none' or setup.hdd_bytes or (
        writes and setup.write == 'back') \
        or setup.think_seconds is not None or setup.link_bytes_per_second
    if needs_time:
        outcome = timed.play(plan, setup, progress)
    else:
        outcome = _quick(plan, setup, progress)
    if setup.metadata_entries:
        missed = _metadata_misses(plan, setup.metadata_entries)
        dice = np.random.Generator(np.random.PCG64([setup.seed, 3]))
        outcome.latency_ms[missed] += setup.ssd.times.draw(
            dice, int(missed.sum()))
        outcome.counts['metadata_misses'] = int(missed.sum())
    outcome.seconds = time.process_time() - began
    return outcome


def _metadata_misses(plan: Plan, entries: int) -> Any:
    """By request, with LRU over objects."""
    np = numpy()
    cache = orders.make('lru', entries, ClassTable())
    access = cache.access
    return np.frombuffer(bytes(
        access(key, _META_ENTRY_BYTES) != HIT
        for rows in slices(plan.requests)
        for key in plan.trace.objects[rows].tolist()), dtype='bool')


def _quick(plan: Plan, setup: Setup,
           progress: Optional[Progress]) -> Outcome:
    """Hits first, times after: of some requests, and then of the next."""
    fast = compiled.cache(setup, plan)
    if fast is None:
        cache = setup.make_cache()
        steps = decided(plan, setup, cache, _SLICE)
    else:
        steps = compiled.play(plan, setup, fast, _SLICE)
    columns = Columns(plan, setup)
    cache_seconds, began = 0.0, time.process_time()
    for part, results, came in steps:
        cache_seconds += time.process_time() - began
        columns.take(part, results, came)
        if progress is not None:
            progress(part.before + len(results), plan.accesses)
        began = time.process_time()
    return columns.outcome(float(
        cache.used_bytes if fast is None else fast.used_bytes),
        cache_seconds)


def decided(plan: Plan, setup: Setup, cache: ObjectCache,
            requests: int) -> Iterator[compiled.Step]:
    """As :func:`compiled.play`, in Python.

    Blocks are written where they are, so that a write is an access like
    any; objects are replaced.
    """
    np = numpy()
    renews = bool(plan.renewed.any()) or setup.write == 'around' or \
        cache.doorkeeper is not None
    renewing = _Renewing(plan, setup, cache)
    last: Dict[int, int] = {}
    for part in plan.slices(requests):
        rows = slice(part.before, part.before + len(part.keys))
        columns = [part.keys.tolist(), part.sizes.tolist(),
                   part.class_ids.tolist()]
        if setup.asks_sequential:
            columns.append(plan.sequential[rows].tolist())
        results = renewing.take(part, columns) if renews else \
            bytes(map(cache.access, *columns))
        yield part, np.frombuffer(results, dtype='uint8'), \
            _came(columns[0], results, part.before, last)


class _Renewing:
    """With objects that are overwritten, deleted or of another size."""

    def __init__(self, plan: Plan, setup: Setup, cache: ObjectCache) -> None:
        self._plan, self._cache = plan, cache
        self._around = setup.write == 'around'
        #: Keys that may be there, by object, where it is kept in units.
        self._held: Dict[int, Set[int]] = {}

    def take(self, part: Accesses, columns: List[Any]) -> bytes:
        """The results of some accesses.

        :param columns: arguments of each
        """
        requests, cache = slice(part.begin, part.end), self._cache
        results = bytearray()
        first = part.first.tolist()
        rows = list(zip(*columns))
        units = bool(self._plan.unit_bytes)
        trace = self._plan.trace
        for at, (verb, renewed, number) in enumerate(zip(
                trace.verbs[requests].tolist(),
                self._plan.renewed[requests].tolist(),
                trace.objects[requests].tolist())):
            asked = rows[first[at]:first[at + 1]]
            if renewed:
                for key in self._held.pop(number, ()) if units \
                        else (number,):
                    cache.remove(key)
            if verb == Verb.DELETE or self._around and verb == Verb.WRITE:
                if not renewed:
                    for row in asked:
                        cache.remove(row[0])
                results += bytes((compiled.NOT_ASKED,)) * len(asked)
                continue
            come = cache.write if verb == Verb.WRITE else cache.access
            for row in asked:
                results.append(come(*row))
                if units:
                    self._held.setdefault(number, set()).add(row[0])
        return bytes(results)


def _came(keys: List[int], results: bytes, before: int,
          last: Dict[int, int]) -> Any:
    """By access: the one that brought in what it hit; its own number of any
    other.

    :param before: accesses before these
    :param last: by key, the last access that was no hit
    """
    came = []
    for at, (key, outcome) in enumerate(zip(keys, results), before):
        if outcome != HIT:
            last[key] = at
        came.append(last[key])
    return numpy().array(came, dtype='uint32')
