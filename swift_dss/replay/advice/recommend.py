"""Find the set-up that serves an operator's goal best, on a trace and within a
budget.

All orders, blind and by class, are replayed at the budget; then the floors
of those classes that class order starves, one after the other; then smaller
caches, as a way to save, and larger ones, for what they would save; and the
best with fewer writes to the SSD (``admit``), which is told beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Callable, Dict, List, Sequence, Tuple

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.config import Admit
from swift_dss.replay import runs
from swift_dss.replay.advice.goals import Goal, Row
from swift_dss.replay.plan import Plan
from swift_dss.replay.setup import Setup
from swift_dss.strategy.eviction.objects import orders

#: Floors to try for a class, and the loss against LRU that makes a class
#: starved.
FLOORS = (0.02, 0.05, 0.1, 0.2, 0.4)
STARVED = 0.02
#: Sizes below the budget that are tried, as shares of it.
SMALLER = (0.75, 0.5, 0.25)
#: And above it: what more room would save.
LARGER = (1.5, 2.0, 4.0)
#: An admission that writes less.
ADMIT = Admit(4)

#: A set-up and its figures.
Result = Tuple[Setup, Row]


@dataclass
class Found:
    """All tried set-ups, and the best ones.

    :param base: LRU at the whole budget
    :param best: of all
    :param admitted: the best with ADMIT; it is none of the tried
    :param smaller, larger: the best at less room, and at more, the nearest
        to the budget first
    """

    goal: Goal
    tried: List[Result]
    base: Result
    best: Result
    admitted: Result
    smaller: List[Result]
    larger: List[Result]


# long: the rounds of the search, one after the other.
def search(plan: Plan, first: Setup, budget_bytes: int, goal: Goal,
           jobs: int, show: Callable[[int, str], None],
           prefetchers: Sequence[str] = ('none',)) -> Found:
    """Replay the promising set-ups."""
    first = replace(first, cut=True)
    tried: List[Result] = []

    def attempt(setups: List[Setup]) -> List[Result]:
        results = []
        for setup, row in runs.each(plan, setups, jobs):
            results.append((setup, row))
            tried.append((setup, row))
            show(len(tried), '%s %s' % (setup.strategy, setup.prefetch))
        return results

    def best_of(results: List[Result]) -> Result:
        return min(results, key=lambda result: goal.rank(result[1]))

    kinds = list(orders.ORDERS)
    if len(plan.trace.classes()) > 1:
        kinds += ['%s-%s' % (kind, order) for kind in ('class', 'weighted')
                  for order in orders.ORDERS]
    start = attempt([replace(first, strategy=kind, cache_bytes=budget_bytes)
                     for kind in kinds])
    base = next(result for result in start if result[0].strategy == 'lru')
    by_class = [result for result in start
                if result[0].strategy.startswith('class')]
    for contender in ([best_of(by_class)] + [
            result for result in by_class
            if result[0].strategy == 'class-lru']) \
            if by_class else []:
        _with_floors(plan, contender, base, attempt, best_of)
    ahead = [name for name in prefetchers if name != 'none']
    if ahead:
        attempt([replace(best_of(tried)[0], prefetch=name)
                 for name in ahead])
    best = best_of(tried)
    admitted, = runs.each(plan, [replace(best[0], admit=ADMIT)], jobs)
    smaller, larger = (
        attempt([replace(best[0], cache_bytes=max(1, int(
            budget_bytes * share))) for share in shares])
        for shares in (SMALLER, LARGER))
    return Found(goal, tried, base, best, admitted, smaller, larger)


def _with_floors(plan: Plan, start: Result, base: Result,
                 attempt: Callable[[List[Setup]], List[Result]],
                 best_of: Callable[[List[Result]], Result]) -> None:
    """One class after the other, the busiest of the starved first."""
    setup, row = start
    starved = [int(class_id) for class_id, part in row['classes'].items()
               if part['reads'] and base[1]['classes'][class_id]['hit_ratio']
               - part['hit_ratio'] > STARVED]
    starved.sort(key=lambda other: -row['classes'][str(other)]['reads'])
    best = start
    for class_id in starved:
        room = 1.0 - sum(best[0].table.spec(other).floor
                         for other in plan.trace.classes()
                         if other != class_id)
        tries = [replace(best[0], table=floored(
            best[0].table, class_id, floor)) for floor in FLOORS
            if floor <= room]
        if tries:
            best = best_of([best] + attempt(tries))


def floored(table: ClassTable, class_id: int, floor: float) -> ClassTable:
    """The table with another floor of one class."""
    specs = dict(table.specs)
    spec = specs.get(class_id) or ClassSpec(
        class_id, 'c%d' % class_id, table.spec(class_id).rank)
    specs[class_id] = replace(spec, floor=floor, cap=max(spec.cap, floor))
    return ClassTable(specs)


def floors(result: Result) -> Dict[int, float]:
    """The floors of those classes that have one."""
    setup, row = result
    return {class_id: setup.table.spec(class_id).floor
            for class_id in map(int, row['classes'])
            if setup.table.spec(class_id).floor}
