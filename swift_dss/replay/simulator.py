"""Virtual time: the wait of each request of a trace.

Two ways to the same figures. Where nothing but misses fills the cache and
nothing is dirty (:func:`_quick`), hits do not depend on time: one pass over
the cache, and all latencies at once with numpy after it. With a prefetcher,
write-back or an HDD tier (:mod:`~swift_dss.replay.timed`) requests
and arrivals are played in the order of their times. Without any of the
three both give the same hits, to the last request.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Optional, Set

from swift_dss.core.classes import ClassTable
from swift_dss.replay import timed
from swift_dss.replay.plan import Plan
from swift_dss.replay.setup import PROGRESS_EVERY, Outcome, Progress, Setup
from swift_dss.replay.traces.model import Verb, numpy
from swift_dss.strategy.eviction.objects import orders
from swift_dss.strategy.eviction.objects.verbs import (
    BYPASS, HIT, MISS, ObjectCache)

_META_ENTRY_BYTES = 1
#: Beside HIT, MISS and BYPASS: the cache was not asked.
_NOT_ASKED = 3


def replay(plan: Plan, setup: Setup,
           progress: Optional[Progress] = None) -> Outcome:
    """Play a trace on a set-up."""
    began = time.process_time()
    np = numpy()
    writes = bool((plan.trace.verbs == int(Verb.WRITE)).any())
    needs_time = setup.prefetch != 'none' or setup.hdd_bytes or (
        writes and setup.write == 'back')
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


# long: the columns of one account, from hits to dollars.
def _quick(plan: Plan, setup: Setup,
           progress: Optional[Progress]) -> Outcome:
    """Hits first, times after."""
    np = numpy()
    cache = setup.make_cache()
    began = time.process_time()
    results = np.frombuffer(bytes(outcomes(
        plan, cache, setup, progress)), dtype='uint8')
    cache_seconds = time.process_time() - began
    verbs, first = plan.trace.verbs, plan.first[:-1]
    is_hit = results == HIT
    missing = np.where(is_hit, 0, plan.sizes)
    missing_bytes = np.add.reduceat(missing, first)
    asked_bytes = np.add.reduceat(plan.sizes, first)
    reads, writes = verbs == int(Verb.READ), verbs == int(Verb.WRITE)
    hits = (missing_bytes == 0) & reads
    gets = _gaps(plan, is_hit) * reads
    dice = np.random.Generator(np.random.PCG64([setup.seed, 1]))
    latency_ms = setup.ssd.times.draw(dice, len(verbs)) + \
        np.minimum(plan.trace.lengths, asked_bytes) \
        / setup.ssd.bytes_per_second * 1000.0
    fetch_ms = np.where(
        reads & (missing_bytes > 0), setup.cloud.get.draw(dice, len(verbs))
        + missing_bytes / setup.cloud.bytes_per_second * 1000.0, 0.0)
    put_ms = np.where(writes, setup.cloud.put.draw(dice, len(verbs))
                      + plan.trace.lengths
                      / setup.cloud.bytes_per_second * 1000.0, 0.0)
    waits_ms = _still_on_the_way(plan, results, fetch_ms, hits)
    latency_ms += fetch_ms + waits_ms
    # The SSD's copy is made at the same time.
    latency_ms = np.where(writes, put_ms, latency_ms)
    latency_ms[verbs == int(Verb.DELETE)] = 0.0
    get_bytes = float((missing_bytes * reads).sum())
    put_bytes = float(plan.trace.lengths[writes].sum())
    return Outcome(
        setup, latency_ms, hits, (asked_bytes - missing_bytes) * reads,
        asked_bytes, {
            'gets': float(gets.sum()), 'get_bytes': get_bytes,
            'puts': float(writes.sum()), 'put_bytes': put_bytes,
            'bypasses': float((results == BYPASS).sum()),
            'delayed': float((waits_ms > 0).sum()),
            'ssd_written_bytes': _written(plan, results, writes),
            'cached_bytes': float(cache.used_bytes)},
        cache_seconds, 0.0, cache)


def outcomes(plan: Plan, cache: ObjectCache, setup: Setup,
             progress: Optional[Progress]) -> Any:
    """HIT, MISS or BYPASS of each access, or ``_NOT_ASKED``.

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
    if plan.renewed.any() or setup.write == 'around':
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
            results += bytes((_NOT_ASKED,)) * (end - begin)
            continue
        for row in rows[begin:end]:
            results.append(access(*row))
            if units:
                held.setdefault(number, set()).add(row[0])
        if progress is not None and not request % PROGRESS_EVERY:
            progress(end, len(rows))
    return results


def _gaps(plan: Plan, is_hit: Any) -> Any:
    """GETs of each request: one for each part, or for each run of units,
    that is missing."""
    np = numpy()
    if plan.parted:
        return np.add.reduceat((~is_hit).astype('int64'), plan.first[:-1])
    before = np.concatenate(([True], is_hit[:-1]))
    before[plan.first[:-1]] = True
    return np.add.reduceat((~is_hit & before).astype('int64'),
                           plan.first[:-1])


def _written(plan: Plan, results: Any, writes: Any) -> float:
    """Bytes that the SSD takes: of what comes in, and of what clients
    write in place."""
    np = numpy()
    in_place = (results == HIT) & np.repeat(writes, np.diff(plan.first))
    return float(plan.sizes[(results == MISS) | in_place].sum())


def _still_on_the_way(plan: Plan, results: Any, fetch_ms: Any,
                      hits: Any) -> Any:
    """The wait of hits that come while their unit is being fetched."""
    np = numpy()
    request = np.repeat(np.arange(plan.requests), np.diff(plan.first))
    at_ms = plan.trace.at_ms[request]
    order = np.argsort(plan.keys, kind='stable')
    keys, came = plan.keys[order], results[order] == MISS
    place = np.arange(len(order))
    last = np.maximum.accumulate(np.where(came, place, -1))
    start = np.maximum.accumulate(np.where(
        np.concatenate(([True], keys[1:] != keys[:-1])), place, 0))
    known = (last >= start) & (results[order] == HIT)
    source = order[np.maximum(last, 0)]
    there = at_ms[source] + fetch_ms[request[source]]
    wait = np.where(known, np.maximum(0.0, there - at_ms[order]), 0.0)
    waits = np.zeros(plan.requests)
    np.maximum.at(waits, request[order], wait)
    return waits * hits
