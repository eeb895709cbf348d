"""Limits of a trace on a cache: for dollars, hits and bytes.

A limit holds for every cache of that room which keeps units that requests
asked for or wrote: for all orders, classes, weights, floors and doorkeepers,
and for all ways to write. It does not hold for a prefetcher, whose one GET may
bring what several requests would ask for. With an HDD its room counts for
dollars, because what is there needs no GET.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Dict, List, Optional, Sequence, Union

from swift_dss.bench import figures
from swift_dss.core.errors import BadConfig
from swift_dss.replay import results
from swift_dss.replay.bounds import offline, rents
from swift_dss.replay.bounds.reuses import (
    Worth, by_class, dollars, find, fitting, hits, size)
from swift_dss.replay.columns import Columns
from swift_dss.replay.plan import Plan
from swift_dss.replay.setup import Outcome, Setup
from swift_dss.replay.traces.model import Verb, numpy
from swift_dss.strategy.eviction.objects.verbs import BYPASS, HIT, MISS

KINDS = DOLLARS, HITS, BYTES = 'dollars', 'hits', 'bytes'
#: Requests whose columns are made at a time.
_SLICE = 1 << 14


@dataclass(frozen=True)
class Limit:
    """The limit of a goal: dollars, or a share of reads or of bytes.

    :param best: no order has less dollars, or more hits
    :param reached: by an order that knows every request beforehand; the
        truth is between both
    """

    kind: str
    best: float
    reached: float

    def to_save(self, score: float) -> float:
        """What better orders could gain at most on a run's score: a share
        of its dollars, or shares of reads or bytes more; not a number if
        it spends nothing."""
        if self.kind != DOLLARS:
            return max(0.0, self.best - score)
        return max(0.0, 1.0 - self.best / score) if score else float('nan')


def why_not(plan: Plan, setup: Setup) -> str:
    """The reason why no limit is known for runs of a set-up; '': it is."""
    if plan.sample is not None:
        return 'a sample lacks requests that compete for the room'
    if setup.think_seconds is not None:
        return 'in a closed loop the order of requests depends on the answers'
    if setup.prefetch != 'none':
        return 'a prefetcher may bring in one GET what several requests ask ' \
            'for'
    return ''


def require(plan: Plan, setup: Setup) -> None:
    """:raises BadConfig: no limit is known for runs of a set-up"""
    reason = why_not(plan, setup)
    if reason:
        raise BadConfig('--bound: no limit is known, because %s' % reason)


class Limits:
    """Limits of one trace.

    :param first: a set-up, whose cloud, way to write and HDD are those of
        all runs
    :raises BadConfig: no limit is known for such runs
    """

    def __init__(self, plan: Plan, first: Setup) -> None:
        require(plan, first)
        self._plan, self._first = plan, first
        self._reuses = find(plan, first.write)

    def of(self, kind: str, cache_bytes: int,
           weights: Optional[Dict[int, float]] = None) -> Limit:
        """The limit with a room on the SSD.

        :param kind: one of ``KINDS``
        :param weights: of the classes' hits
        """
        weights = weights or {}
        worth = self._worth(kind, weights)
        room = self._room(kind, cache_bytes)
        reuses, wanted = fitting(self._reuses, worth, room)
        market = rents.Market(reuses, wanted, room)
        gained, best_rents = rents.at_most(market, self._first.seed)
        is_kept = offline.kept(market, best_rents)
        outcome = self._played(reuses.begins[is_kept], reuses.ends[is_kept])
        if kind == DOLLARS:
            return Limit(kind, worth.without - gained,
                         results.dollars(outcome))
        return Limit(kind, figures.ratio(gained, worth.without),
                     self._hit(kind, outcome, weights))

    def _worth(self, kind: str, weights: Dict[int, float]) -> Worth:
        plan, reuses = self._plan, self._reuses
        if kind == DOLLARS:
            return dollars(plan, reuses, self._first.cloud)
        return hits(plan, reuses, weights) if kind == HITS \
            else size(plan, reuses)

    def _room(self, kind: str, cache_bytes: int) -> int:
        """Bytes that may be there at any access."""
        if kind != DOLLARS or not self._first.hdd_bytes:
            return cache_bytes
        plan = self._plan
        room = cache_bytes + self._first.hdd_bytes
        if not plan.unit_bytes:
            return room
        # Units that a request sends away go to the HDD at its end.
        return room + int(numpy().add.reduceat(
            plan.sizes, plan.first[:-1]).max())

    def _played(self, begins: Any, ends: Any) -> Outcome:
        """A run of an order that keeps units from ``begins`` to ``ends``."""
        np = numpy()
        plan = self._plan
        came = np.full(plan.accesses, BYPASS, dtype='uint8')
        came[begins] = MISS
        came[ends] = HIT
        columns = Columns(plan, self._first)
        for part in plan.slices(_SLICE):
            rows = slice(part.before, part.before + len(part.keys))
            columns.take(part, came[rows], np.arange(
                rows.start, rows.stop, dtype='uint32'))
        return columns.outcome(0.0, 0.0)

    def _hit(self, kind: str, outcome: Outcome,
             weights: Dict[int, float]) -> float:
        reads = self._plan.trace.verbs == int(Verb.READ)
        if kind == BYTES:
            return figures.ratio(outcome.found_of(reads),
                                 outcome.asked_of(reads))
        weight = by_class(weights)[self._plan.trace.class_ids[reads]]
        return figures.ratio(float(weight[outcome.hits[reads]].sum()),
                             float(weight.sum()))


def beside(plan: Plan, setup: Setup, kind: str,
           weights: Dict[int, float]) -> Union[Limit, str]:
    """The limit of one run, or the reason why none is known.

    :param kind: of the goal; waits have no limit
    :param weights: of the classes' hits
    """
    if kind not in KINDS:
        return 'no order is known that waits least'
    return why_not(plan, setup) or Limits(plan, setup).of(
        kind, setup.cache_bytes, weights)


def rows(plan: Plan, first: Setup, runs: Sequence[Dict[str, Any]]
         ) -> List[Dict[str, Any]]:
    """The limits at each size of a replay, beside the best of its runs
    without a prefetcher, in plain values.

    :raises BadConfig: no limit is known for such runs
    """
    limits = Limits(plan, first)
    rooms = sorted({run['cache_bytes'] for run in runs})
    spent, hit = (steady([limits.of(kind, room) for room in rooms])
                  for kind in (DOLLARS, HITS))
    return [_row([run for run in runs if run['cache_bytes'] == room
                  and run['prefetch'] == 'none'], *pair)
            for room, *pair in zip(rooms, spent, hit)]


def steady(limits: Sequence[Limit]) -> List[Limit]:
    """Limits of one goal that only get better with the room.

    More room cannot reach less: its limit holds for less room, too, and an
    order that fits less room fits more.

    :param limits: by their room, which rises
    """
    if not limits:
        return []
    sign = 1.0 if limits[0].kind == DOLLARS else -1.0
    best = [sign * limit.best for limit in limits]
    reached = [sign * limit.reached for limit in limits]
    best = list(accumulate(reversed(best), max))[::-1]
    reached = list(accumulate(reached, min))
    return [Limit(limit.kind, sign * least, sign * had)
            for limit, least, had in zip(limits, best, reached)]


def _row(peers: List[Dict[str, Any]], spent: Limit,
         hit: Limit) -> Dict[str, Any]:
    cheapest = min(peers, key=lambda run: float(run['dollars']))
    surest = max(peers, key=lambda run: float(run['hit_ratio']))
    return {
        'cache_bytes': cheapest['cache_bytes'],
        'cache_share': cheapest['cache_share'],
        'cheapest': cheapest['strategy'], 'dollars': cheapest['dollars'],
        'dollars_at_least': spent.best, 'dollars_offline': spent.reached,
        'to_save_share': spent.to_save(cheapest['dollars']),
        'most_hits': surest['strategy'], 'hit_ratio': surest['hit_ratio'],
        'hit_ratio_at_most': hit.best, 'hit_ratio_offline': hit.reached}
