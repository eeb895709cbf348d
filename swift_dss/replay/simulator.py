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
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from swift_dss.core.classes import ClassTable
from swift_dss.replay import compiled, timed
from swift_dss.replay.columns import Columns
from swift_dss.replay.plan import Plan
from swift_dss.replay.setup import PROGRESS_EVERY, Outcome, Progress, Setup
from swift_dss.replay.traces.model import Verb, numpy
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
        for key in plan.trace.objects.tolist()), dtype='bool')


def _quick(plan: Plan, setup: Setup,
           progress: Optional[Progress]) -> Outcome:
    """Hits first, times after."""
    began = time.process_time()
    results, came, cached_bytes = compiled.play(plan, setup, progress) or \
        _decided(plan, setup, progress)
    cache_seconds = time.process_time() - began
    columns = Columns(plan, setup, results, came)
    for begin in range(0, plan.requests, _SLICE):
        columns.take(begin, min(begin + _SLICE, plan.requests))
    columns.counts['cached_bytes'] = cached_bytes
    return Outcome(
        setup, columns.latency_ms, columns.hits, columns.hit_bytes,
        columns.asked_bytes, columns.counts, cache_seconds, 0.0)


def _decided(plan: Plan, setup: Setup, progress: Optional[Progress]
             ) -> Tuple[Any, Any, float]:
    """As :func:`compiled.play`, in Python."""
    np = numpy()
    cache = setup.make_cache()
    results = np.frombuffer(bytes(outcomes(
        plan, cache, setup, progress)), dtype='uint8')
    return results, _came(plan, results), float(cache.used_bytes)


def outcomes(plan: Plan, cache: ObjectCache, setup: Setup,
             progress: Optional[Progress]) -> Any:
    """HIT, MISS or BYPASS of each access, or ``compiled.NOT_ASKED``.

    Blocks are written where they are, so that a write is an access like
    any; objects are replaced.
    """
    access = cache.access
    columns = [plan.keys.tolist(), plan.sizes.tolist(),
               plan.class_ids.tolist()]
    # Only SARC asks for it, and the column costs time.
    if 'sarc' in setup.strategy or any(
            spec.inner == 'sarc' for spec in setup.table.specs.values()):
        columns.append(plan.sequential.tolist())
    if plan.renewed.any() or setup.write == 'around' or \
            cache.doorkeeper is not None:
        return _renewing(plan, cache, columns, setup, progress)
    if progress is None:
        return map(access, *columns)
    return _shown(access, columns, progress)


def _shown(access: Callable[..., int], columns: List[Any],
           progress: Progress) -> bytearray:
    results = bytearray()
    total = len(columns[0])
    for start in range(0, total, PROGRESS_EVERY):
        end = start + PROGRESS_EVERY
        results += bytes(map(access, *(
            column[start:end] for column in columns)))
        progress(min(end, total), total)
    return results


def _renewing(plan: Plan, cache: ObjectCache, columns: List[Any],
              setup: Setup, progress: Optional[Progress]) -> bytearray:
    """With objects that are overwritten, deleted or of another size."""
    access, remove = cache.access, cache.remove
    results = bytearray()
    first = plan.first.tolist()
    around = setup.write == 'around'
    rows = list(zip(*columns))
    held: Dict[int, Set[int]] = {}
    units = bool(plan.unit_bytes)
    for request, (verb, renewed, number) in enumerate(zip(
            plan.trace.verbs.tolist(), plan.renewed.tolist(),
            plan.trace.objects.tolist())):
        begin, end = first[request], first[request + 1]
        if renewed:
            for key in held.pop(number, ()) if units else (number,):
                remove(key)
        if verb == Verb.DELETE or around and verb == Verb.WRITE:
            if not renewed:
                for row in rows[begin:end]:
                    remove(row[0])
            results += bytes((compiled.NOT_ASKED,)) * (end - begin)
            continue
        come = cache.write if verb == Verb.WRITE else access
        for row in rows[begin:end]:
            results.append(come(*row))
            if units:
                held.setdefault(number, set()).add(row[0])
        if progress is not None and not request % PROGRESS_EVERY:
            progress(end, len(rows))
    return results


def _came(plan: Plan, results: Any) -> Any:
    """By access: the one that brought in what it hit; its own number of any
    other."""
    np = numpy()
    order = np.argsort(plan.keys, kind='stable')
    place = np.arange(len(order))
    # A hit comes after a miss of its key.
    last = np.maximum.accumulate(np.where(results[order] == HIT, 0, place))
    came = np.empty(len(order), dtype='uint32')
    came[order] = order[last]
    return came
