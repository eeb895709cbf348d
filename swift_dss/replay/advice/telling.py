"""A recommendation in plain values, and for people."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional, Union

from swift_dss.bench import figures
from swift_dss.core.classes import ClassTable
from swift_dss.replay.advice.confidence import Certainty
from swift_dss.replay.advice.goals import Goal, Row
from swift_dss.replay.advice.recommend import Found, Result, floors
from swift_dss.replay.bounds.limits import Limit
from swift_dss.replay.stretches import LEAST_REQUESTS

#: A smaller cache is as good if it loses no more than this share.
AS_GOOD = 0.01
#: Set-ups that tie with the best and are named.
_MOST_TIES = 6
#: The names of the modes in ``[tier] eviction``.
_DAEMON = {'class': 'class_ordered', 'weighted': 'weighted'}
#: The daemon's default: above this share of ``ssd_bytes`` it evicts.
_HIGH_WATERMARK = 0.85


def _gain(goal: Goal, base: float, best: float) -> str:
    if goal.is_share:
        return '%+.1f points' % (100.0 * (best - base))
    return '%+.1f %%' % (100.0 * (best - base) / base) if base else '-'


def report(search_result: Found, sure: Optional[Certainty],
           limit: Union[Limit, str]) -> Dict[str, Any]:
    """In plain values.

    :param sure: how sure it is; None: nobody can say
    :param limit: of the best, or the reason why none is known
    """
    def told(result: Result) -> Dict[str, Any]:
        setup, row = result
        return {'strategy': setup.strategy, 'admit': str(setup.admit),
                'prefetch': setup.prefetch,
                'cache_bytes': setup.cache_bytes,
                'floors': floors(result),
                'score': search_result.goal.score(row),
                **{name: row[name] for name in (
                    'dollars', 'ssd_written_bytes', 'drive_writes_a_day')}}
    return {'goal': search_result.goal.kind, 'best': told(search_result.best),
            'lru': told(search_result.base),
            'admitted': told(search_result.admitted),
            'smaller': [told(result) for result in search_result.smaller],
            'larger': [told(result) for result in search_result.larger],
            'tried': len(search_result.tried),
            'limit': None if isinstance(limit, str) else {
                'best': limit.best, 'offline': limit.reached,
                'to_save': limit.to_save(search_result.goal.score(
                    search_result.best[1]))},
            'certainty': sure and {
                'score': sure.score, 'gain': sure.gain,
                'ties': [told(result) for result in sure.ties],
                'first_half': dict(told(sure.early),
                                   second_half_score=sure.early_score),
                'second_half': dict(told(sure.late),
                                    second_half_score=sure.late_score),
                'lru_second_half_score': sure.base_score}}


def rows(search_result: Found, table: ClassTable) -> List[Row]:
    """All that was tried, in plain values; ``set_up`` is its name."""
    return [{'set_up': named(result, table), **{
        name: value for name, value in result[1].items()
        if name != 'stretches'}} for result in search_result.tried]


def text(search_result: Found, table: ClassTable,
         sure: Optional[Certainty], limit: Union[Limit, str]) -> str:
    """For people; see :func:`report`."""
    goal = search_result.goal
    base = goal.score(search_result.base[1])
    best = goal.score(search_result.best[1])
    lines = ['%d set-ups were replayed.' % len(search_result.tried), '',
             'Best: ' + _said(search_result.best, table),
             '  %s; LRU on the same room: %s (%s)' % (
                 goal.shown(best), goal.shown(base),
                 _gain(goal, base, best)),
             '  ' + _spent(search_result.best[1]),
             '  LRU: ' + _spent(search_result.base[1]),
             _fewer_writes(search_result),
             *_limited(search_result, limit),
             *_certain(goal, sure, table),
             *_price_of_classes(search_result, table)]
    for title, results in (('With less room:', search_result.smaller),
                           ('With more room:', search_result.larger)):
        lines += ['', title] + ['  %s: %s%s; %s' % (
            figures.size_text(setup.cache_bytes),
            goal.shown(goal.score(row)),
            ' (as good)' if setup.cache_bytes
            < search_result.best[0].cache_bytes
            and _as_good(goal, best, goal.score(row)) else '', _spent(row))
            for setup, row in results]
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


def _fewer_writes(search_result: Found) -> str:
    """The best again, with missed objects kept out."""
    goal, admit = search_result.goal, search_result.admitted[0].admit
    before, after = (goal.score(row) for _, row in (
        search_result.best, search_result.admitted))
    written, written_after = (row['ssd_written_bytes'] for _, row in (
        search_result.best, search_result.admitted))
    return '  With admit = %s: %s (%s), %s to the SSD ' \
        '(%s)' % (admit, goal.shown(after), _gain(goal, before, after),
                  figures.size_text(int(written_after)),
                  '%+.0f %%' % (100 * (written_after / written - 1))
                  if written else '-')


def _limited(search_result: Found, limit: Union[Limit, str]) -> List[str]:
    """How much better any order could be."""
    goal, row = search_result.goal, search_result.best[1]
    if isinstance(limit, str):
        return ['  How much better another order could be is not known: '
                + limit]
    line = '  No order on this room has %s than %s; one that knows all ' \
        'requests has %s: ' % (
            'more' if goal.is_share else 'less', goal.shown(limit.best),
            goal.shown(limit.reached))
    gain = limit.to_save(goal.score(row))
    if goal.is_share:
        return [line + 'at most %.1f points more' % (100 * gain)]
    if math.isnan(gain):
        return []
    month = row.get('month', {})
    share = month['times'] * gain * row['dollars'] / month['total'] \
        if month else float('nan')
    return [line + 'at most %.1f %% could be saved%s' % (
        100 * gain, '' if math.isnan(share) else
        ' (%.1f %% of a month with its room)' % (100 * share))]


def _certain(goal: Goal, sure: Optional[Certainty],
             table: ClassTable) -> List[str]:
    if sure is None:
        return ['How sure that is cannot be said of a sample, or of fewer '
                'than %d requests.' % LEAST_REQUESTS]
    lines = ['  95 %% of draws: %s to %s; beside LRU %s to %s' % (
        goal.shown(sure.score[0]), goal.shown(sure.score[1]),
        *(_difference(goal, end) for end in sure.gain))]
    if sure.ties:
        more = len(sure.ties) - _MOST_TIES
        lines.append('Ties with it, for all that these requests tell: '
                     + '; '.join(named(result, table)
                                 for result in sure.ties[:_MOST_TIES])
                     + ('; and %d more' % more if more > 0 else ''))
    return [*lines, 'By the first half of the requests alone: %s. In the '
            'second half it has %s; the best there, %s, %s; LRU %s.' % (
                named(sure.early, table), goal.shown(sure.early_score),
                named(sure.late, table), goal.shown(sure.late_score),
                goal.shown(sure.base_score))]


def _difference(goal: Goal, difference: float) -> str:
    if goal.is_share:
        return '%+.2f points' % (100 * difference)
    return ('%+.4f dollars' if goal.kind == 'dollars' else '%+.2f ms'
            ) % difference


def _price_of_classes(search_result: Found, table: ClassTable) -> List[str]:
    """The best that keeps the order of classes, and the best that does not:
    the price of that order."""
    goal, room = search_result.goal, search_result.best[0].cache_bytes
    kept, blind = ([
        result for result in search_result.tried
        if result[0].cache_bytes == room
        and result[0].strategy.startswith('class-') is is_kept]
        for is_kept in (True, False))
    if not kept:
        return []
    bests = [min(results, key=lambda result: goal.rank(result[1]))
             for results in (kept, blind)]
    return ['Best that keeps the order of classes: %s, %s; best of the '
            'others: %s, %s' % tuple(
                said for result in bests for said in (
                    named(result, table),
                    goal.shown(goal.score(result[1]))))]


def _spent(row: Row) -> str:
    month = ', %.2f a month with its room' % row['month']['total'] \
        if 'month' in row else ''
    return '%.4f dollars%s, %s written to the SSD (%s drive writes a day)' % (
        row['dollars'], month,
        figures.size_text(int(row['ssd_written_bytes'])),
        figures.number(row['drive_writes_a_day']))


def _as_good(goal: Goal, best: float, score: float) -> bool:
    if goal.is_share:
        return score >= best * (1 - AS_GOOD)
    return score <= best * (1 + AS_GOOD)


def _said(result: Result, table: ClassTable) -> str:
    setup = result[0]
    return '%s, %s' % (named(result, table),
                       figures.size_text(setup.cache_bytes))


def named(result: Result, table: ClassTable) -> str:
    """The set-up in a few words, but for its room."""
    setup, row_floors = result[0], floors(result)
    parts = [setup.strategy]
    if setup.prefetch != 'none':
        parts.append('prefetch ' + setup.prefetch)
    if row_floors and setup.strategy.startswith(('class', 'weighted')):
        parts.append('floors ' + ', '.join('%s %g %%' % (
            table.name_of(class_id), 100 * floor)
            for class_id, floor in row_floors.items()))
    return ' with '.join(parts)


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
