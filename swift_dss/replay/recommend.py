"""Find the set-up that serves an operator's goal best, on a trace and within a
budget.

All orders, blind and by class, are replayed at the budget; then the floors
of those classes that class order starves, one after the other; then smaller
caches, as a way to save. Every printed figure comes from a replay.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, List, Sequence, Tuple

from swift_dss.bench import figures
from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.errors import BadConfig
from swift_dss.replay import runs
from swift_dss.replay.plan import Plan
from swift_dss.replay.setup import Setup
from swift_dss.strategy.eviction.objects import orders

#: Floors to try for a class, and the loss against LRU that makes a class
#: starved.
FLOORS = (0.02, 0.05, 0.1, 0.2, 0.4)
STARVED = 0.02
#: Sizes below the budget that are tried, as shares of it.
SMALLER = (0.75, 0.5, 0.25)
#: A smaller cache is as good if it loses no more than this share.
AS_GOOD = 0.01
#: The names of the modes in ``[tier] eviction``.
_DAEMON = {'class': 'class_ordered', 'weighted': 'weighted'}
#: The daemon's default: above this share of ``ssd_bytes`` it evicts.
_HIGH_WATERMARK = 0.85

Row = Dict[str, Any]


@dataclass(frozen=True)
class Goal:
    """The goal.

    :param kind: ``hits``, ``bytes``, ``p99`` or ``dollars``
    :param class_id: of ``p99``; -1 is all
    """

    kind: str
    class_id: int = -1
    weights: Dict[int, float] = field(default_factory=dict)

    def score(self, row: Row) -> float:
        """The figure; more is better for hits and bytes, less else."""
        if self.kind == 'dollars':
            return float(row['dollars'])
        if self.kind == 'p99':
            part = row if self.class_id < 0 else \
                row['classes'][str(self.class_id)]
            return float(part['p99_ms'])
        if self.kind == 'bytes':
            return float(row['byte_hit_ratio'])
        hits = total = 0.0
        for class_id, part in row['classes'].items():
            weight = self.weights.get(int(class_id), 1.0) * part['reads']
            if part['reads']:
                hits += weight * part['hit_ratio']
                total += weight
        return figures.ratio(hits, total)

    def rank(self, row: Row) -> float:
        """Least is best; an unknown value comes last."""
        score = self.score(row)
        if math.isnan(score):
            return math.inf
        return -score if self.kind in ('hits', 'bytes') else score

    def shown(self, score: float) -> str:
        """With its unit."""
        return {'hits': '%.4f of reads hit', 'bytes': '%.4f of bytes hit',
                'p99': 'p99 %.2f ms', 'dollars': '%.4f dollars'}[
                    self.kind] % score


def parse_goal(text: str, table: ClassTable, plan: Plan,
               weights: Dict[int, float]) -> Goal:
    """``hits``, ``bytes``, ``p99``, ``p99:CLASS`` or ``dollars``.

    :raises BadConfig: it is none of them
    """
    kind, _, name = text.partition(':')
    if kind not in ('hits', 'bytes', 'p99', 'dollars') or \
            name and kind != 'p99':
        raise BadConfig('--goal: %r is not one of hits, bytes, p99, '
                        'p99:CLASS and dollars' % text)
    if not name:
        return Goal(kind, weights=weights)
    spec = table.by_name(name)
    class_id = spec.class_id if spec else (
        int(name) if name.isdigit() else -1)
    if class_id not in plan.trace.classes():
        raise BadConfig('--goal: no request of the trace has class %r'
                        % name)
    return Goal(kind, class_id, weights)


@dataclass
class Found:
    """All tried set-ups, and the best ones.

    :param base: LRU at the whole budget
    :param best: of all
    :param smaller: at less room, the largest first
    """

    goal: Goal
    tried: List[Tuple[Setup, Row]]
    base: Tuple[Setup, Row]
    best: Tuple[Setup, Row]
    smaller: List[Tuple[Setup, Row]]


def search(plan: Plan, first: Setup, budget_bytes: int, goal: Goal,
           jobs: int, show: Callable[[int, str], None],
           prefetchers: Sequence[str] = ('none',)) -> Found:
    """Replay the promising set-ups."""
    tried: List[Tuple[Setup, Row]] = []

    def attempt(setups: List[Setup]) -> List[Tuple[Setup, Row]]:
        results = []
        for setup, row in runs.each(plan, setups, jobs):
            results.append((setup, row))
            tried.append((setup, row))
            show(len(tried), '%s %s' % (setup.strategy, setup.prefetch))
        return results

    def best_of(results: List[Tuple[Setup, Row]]) -> Tuple[Setup, Row]:
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
    smaller = attempt([replace(best[0], cache_bytes=max(1, int(
        budget_bytes * share))) for share in SMALLER])
    return Found(goal, tried, base, best, smaller)


def _with_floors(plan: Plan, start: Tuple[Setup, Row],
                 base: Tuple[Setup, Row], attempt: Callable[
                     [List[Setup]], List[Tuple[Setup, Row]]],
                 best_of: Callable[
                     [List[Tuple[Setup, Row]]], Tuple[Setup, Row]]) -> None:
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


def floors(plan_classes: Sequence[int],
           table: ClassTable) -> Dict[int, float]:
    """The floors of those classes that have one."""
    return {class_id: table.spec(class_id).floor
            for class_id in plan_classes if table.spec(class_id).floor}


def _gain(goal: Goal, base: float, best: float) -> str:
    if goal.kind in ('hits', 'bytes'):
        return '%+.1f points' % (100.0 * (best - base))
    return '%+.1f %%' % (100.0 * (best - base) / base) if base else '-'


def report(search_result: Found) -> Dict[str, Any]:
    """In plain values."""
    def told(result: Tuple[Setup, Row]) -> Dict[str, Any]:
        setup, row = result
        return {'strategy': setup.strategy, 'prefetch': setup.prefetch,
                'cache_bytes': setup.cache_bytes,
                'floors': floors([int(result) for result in row['classes']],
                                 setup.table),
                'score': search_result.goal.score(row),
                **{name: row[name] for name in (
                    'dollars', 'ssd_written_bytes', 'drive_writes_a_day')}}
    return {'goal': search_result.goal.kind, 'best': told(search_result.best),
            'lru': told(search_result.base),
            'smaller': [told(result) for result in search_result.smaller],
            'tried': len(search_result.tried)}


def drawn(search_result: Found) -> List[Row]:
    """Rows worth a curve: LRU, and the best at all sizes."""
    return [search_result.base[1]] + [
        dict(row, strategy='best: ' + setup.strategy)
        for setup, row in [search_result.best] + search_result.smaller]


def text(search_result: Found, table: ClassTable) -> str:
    """For people."""
    goal = search_result.goal
    base = goal.score(search_result.base[1])
    best = goal.score(search_result.best[1])
    lines = ['%d set-ups were replayed.' % len(search_result.tried), '',
             'Best: ' + _said(search_result.best, table),
             '  %s; LRU on the same room: %s (%s)' % (
                 goal.shown(best), goal.shown(base),
                 _gain(goal, base, best)),
             '  ' + _spent(search_result.best[1]),
             '  LRU: ' + _spent(search_result.base[1])]
    lines += ['', 'With less room:'] + ['  %s: %s%s; %s' % (
        figures.size_text(setup.cache_bytes), goal.shown(goal.score(row)),
        ' (as good)' if _as_good(goal, best, goal.score(row)) else '',
        _spent(row))
        for setup, row in search_result.smaller]
    lines += ['', 'By class, LRU and best:', figures.table(
        ('class', 'reads', 'hits', '', 'p99 ms', ''), [
            ['%s (%s)' % (table.name_of(int(class_id)), class_id),
             '%d' % row['reads'],
             figures.number(
                 search_result.base[1]['classes'][class_id]['hit_ratio'], 4),
             figures.number(row['hit_ratio'], 4),
             figures.number(search_result.base[1]['classes'][class_id]['p99_ms']),
             figures.number(row['p99_ms'])]
            for class_id, row in search_result.best[1]['classes'].items()])]
    return '\n'.join(lines + ['', _settings(search_result)])


def _spent(row: Row) -> str:
    month = ', %.2f a month with its room' % row['month']['total'] \
        if 'month' in row else ''
    return '%.4f dollars%s, %s written to the SSD (%s drive writes a day)' % (
        row['dollars'], month,
        figures.size_text(int(row['ssd_written_bytes'])),
        figures.number(row['drive_writes_a_day']))


def _as_good(goal: Goal, best: float, score: float) -> bool:
    if goal.kind in ('hits', 'bytes'):
        return score >= best * (1 - AS_GOOD)
    return score <= best * (1 + AS_GOOD)


def _said(result: Tuple[Setup, Row], table: ClassTable) -> str:
    setup, row = result
    parts = [setup.strategy, 'prefetch ' + setup.prefetch,
             figures.size_text(setup.cache_bytes)]
    row_floors = floors([int(class_id) for class_id in row['classes']],
                        setup.table)
    if row_floors and setup.strategy.startswith(('class', 'weighted')):
        parts.append('floors ' + ', '.join('%s %g %%' % (
            table.name_of(class_id), 100 * floor)
            for class_id, floor in row_floors.items()))
    return ', '.join(parts)


def _settings(search_result: Found) -> str:
    """The lines for the operator's files."""
    setup, row = search_result.best
    kind, _, inner = setup.strategy.partition('-')
    lines = ['For dss.conf (objects have the high watermark\'s share, %g, '
             'of ssd_bytes):' % _HIGH_WATERMARK, '  [tier]',
             '  eviction = %s' % _DAEMON.get(kind, kind),
             '  ssd_bytes = %d' % math.ceil(
                 setup.cache_bytes / _HIGH_WATERMARK)]
    if setup.prefetch != 'none':
        lines += ['  [prefetch]', '  strategy = %s' % setup.prefetch]
    if kind not in _DAEMON:
        return '\n'.join(lines)
    lines.append('For dss-classes.conf:')
    for name in row['classes']:
        spec = setup.table.spec(int(name))
        options = ['inner = %s' % (inner or spec.inner)]
        if spec.floor:
            options.append('floor = %g' % spec.floor)
        weight = max(1, round(setup.weights.get(int(name), spec.weight)))
        if kind == 'weighted' or inner == 'gdsf' and weight != 1:
            options.append('weight = %d' % weight)
        lines += ['  [class:%s]' % name] + [
            '  ' + option for option in options]
    return '\n'.join(lines)
