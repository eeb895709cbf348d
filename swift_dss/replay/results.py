"""The figures of a replay: ratios, percentiles, bytes and dollars."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Dict, List, Sequence

from swift_dss.bench import figures
from swift_dss.core.classes import ClassTable
from swift_dss.replay import estimates, stretches
from swift_dss.replay.plan import Plan
from swift_dss.replay.prices import MONTH_SECONDS, Prices
from swift_dss.replay.setup import Outcome, Setup
from swift_dss.replay.traces.model import Verb, numpy

PERCENTS = (50, 90, 95, 99)
#: Points of a CDF, as shares.
_CDF = tuple(at / 200.0 for at in range(1, 200)) + (0.999,)
_COUNTS = ('gets', 'get_bytes', 'puts', 'put_bytes', 'bypasses', 'delayed',
           'ssd_written_bytes')
_DAY_MS = 86400e3
_MONTH = ('requests', 'bytes', 'ssd', 'hdd', 's3', 'total')


def head(plan: Plan, first: Setup) -> Dict[str, Any]:
    """A report without its runs: the trace, and what all runs share."""
    sample, trace = plan.sample, plan.trace
    return {'sample': None if sample is None else {
                'share': sample.share, 'requests': plan.requests},
            'prices': None if first.prices is None else asdict(first.prices),
            'cost': first.cost,
            'trace': trace.name,
            'requests': sample.requests if sample else len(trace),
            'accesses': plan.accesses, 'timed': trace.timed,
            'asked_bytes': sample.moved_bytes if sample
            else int(trace.lengths.sum()),
            'footprint_bytes': plan.footprint_bytes,
            'unit_bytes': plan.unit_bytes,
            'classes': sorted(sample.reads) if sample else trace.classes()}


def summary(plan: Plan, outcome: Outcome) -> Dict[str, Any]:
    """One run, in plain values."""
    np = numpy()
    setup = outcome.setup
    reads = plan.trace.verbs == int(Verb.READ)
    row: Dict[str, Any] = {
        'strategy': setup.name, 'prefetch': setup.prefetch,
        'cache_bytes': setup.cache_bytes,
        'cache_share': setup.cache_bytes / max(1, plan.footprint_bytes),
        'cloud': setup.cloud.name}
    classes = plan.trace.classes() if plan.sample is None \
        else sorted(plan.sample.reads)
    row.update(_ratios(plan, outcome, reads, classes))
    row['classes'] = {
        str(class_id): _ratios(plan, outcome, reads & (
            plan.trace.class_ids == class_id), [class_id])
        for class_id in classes}
    row.update({name: outcome.counts.get(name, 0.0) for name in _COUNTS})
    row.update({name: count for name, count in outcome.counts.items()
                if name not in row and count})
    row['drive_writes_a_day'] = drive_writes_a_day(plan, outcome)
    row['dollars'] = dollars(outcome)
    if setup.prices is not None:
        row['month'] = month(plan, outcome, setup.prices)
    if setup.cut:
        row['stretches'] = stretches.cut(plan, outcome, row['dollars'])
    row['accesses_a_second'] = plan.accesses / max(1e-9, outcome.seconds)
    row['cdf_ms'] = [
        [share, float(ms)] for share, ms in zip(_CDF, np.quantile(
            outcome.latency_ms[reads], _CDF, overwrite_input=True))] \
        if reads.any() else []
    return row


def dollars(outcome: Outcome) -> float:
    """The cloud's price for the whole trace."""
    cloud, counts = outcome.setup.cloud, outcome.counts
    return (counts['gets'] * cloud.get_dollars
            + counts['puts'] * cloud.put_dollars
            + counts['get_bytes'] * cloud.out_dollars
            + counts['put_bytes'] * cloud.in_dollars)


def drive_writes_a_day(plan: Plan, outcome: Outcome) -> float:
    """How often a day the SSD's room is written; not a number without
    times."""
    return outcome.counts['ssd_written_bytes'] \
        / outcome.setup.cache_bytes / (_span_ms(plan, outcome) / _DAY_MS)


def _span_ms(plan: Plan, outcome: Outcome) -> float:
    """From the first request to the last; not a number without times."""
    trace = plan.trace
    if outcome.span_ms:
        return outcome.span_ms
    span = float(trace.at_ms[-1] - trace.at_ms[0]) if trace.timed else 0.0
    return span if span > 0 else float('nan')


def month(plan: Plan, outcome: Outcome, prices: Prices) -> Dict[str, float]:
    """Dollars of 30 days: the trace again and again, and the room that it
    needs. Requests and bytes are not a number without times.

    :returns: ``requests``, ``bytes``, ``ssd``, ``hdd``, ``s3`` (all
        different bytes of the trace), ``total``, and ``times``: how often
        the trace is played
    """
    times = MONTH_SECONDS * 1000.0 / _span_ms(plan, outcome)
    setup, counts = outcome.setup, outcome.counts
    cloud = setup.cloud
    requests = counts['gets'] * cloud.get_dollars \
        + counts['puts'] * cloud.put_dollars
    parts = {
        'requests': times * requests,
        'bytes': times * (dollars(outcome) - requests),
        'ssd': prices.room('ssd', setup.cache_bytes),
        'hdd': prices.room('hdd', setup.hdd_bytes),
        's3': prices.room('s3', plan.footprint_bytes)}
    return dict(parts, total=sum(parts.values()), times=times)


def _ratios(plan: Plan, outcome: Outcome, which: Any,
            class_ids: List[int]) -> Dict[str, Any]:
    np = numpy()
    count = int(which.sum())
    asked = outcome.asked_of(which)
    row: Dict[str, Any] = {
        'reads': count,
        'hit_ratio': figures.ratio(
            float(np.sum(outcome.hits, where=which)), count),
        'byte_hit_ratio': figures.ratio(outcome.found_of(which), asked)}
    if plan.sample is not None:
        row = estimates.ratios(plan.sample, outcome, which,
                               tuple(class_ids))
    # The copy alone is put in order: there is no second one.
    percentiles = np.percentile(outcome.latency_ms[which], PERCENTS,
                                overwrite_input=True) \
        if count else [float('nan')] * len(PERCENTS)
    row.update(('p%d_ms' % percent, float(ms))
               for percent, ms in zip(PERCENTS, percentiles))
    return row


def text(report: Dict[str, Any], table: ClassTable) -> str:
    """The report for people."""
    parts = ['%s: %d requests for %s, %s; %d accesses of a cache'
             % (report['trace'], report['requests'],
                figures.size_text(report['asked_bytes']),
                figures.size_text(report['footprint_bytes'])
                + ' of different bytes', report['accesses'])]
    if report.get('sample'):
        parts.append(
            'A sample of %.3g %% of the objects, %d requests; behind "+-" '
            'are %d standard errors' % (
                100 * report['sample']['share'],
                report['sample']['requests'],
                estimates.STANDARD_ERRORS))
    rows: List[Sequence[str]] = []
    for run in report['runs']:
        rows.append(_line(run, run['strategy'], run['prefetch']))
    parts.append(figures.table(_HEAD, rows))
    if len(report['classes']) > 1:
        parts.append('By class:')
        parts.append(figures.table(_CLASS_HEAD, [
            ['%s %s' % (run['strategy'], _cache(run)), run['prefetch'],
             '%s (%s)' % (table.name_of(int(class_id)), class_id),
             '%d' % row['reads']] + _shared(row)
            for run in report['runs']
            for class_id, row in run['classes'].items()]))
    parts += _months(report) + _limits(report.get('limits', []))
    waste = [run for run in report['runs'] if run.get('prefetches')]
    if waste:
        parts.append('Prefetched:')
        parts.append(figures.table(
            ('strategy', 'cache', 'prefetch', 'wants', 'bytes', 'useful',
             'late', 'wasted', 'dollars', 'to none'), [
                (run['strategy'], _cache(run), run['prefetch'],
                 '%d' % run['prefetches'],
                 figures.size_text(int(run['prefetched_bytes'])),
                 *(figures.size_text(int(run.get(name, 0))) for name in (
                     'useful_bytes', 'late_bytes', 'wasted_bytes')),
                 '%.4f' % run['dollars'], _to_none(run, report['runs']))
                for run in waste]))
    return '\n'.join(parts)


def _months(report: Dict[str, Any]) -> List[str]:
    rows = [(run, run['month']) for run in report['runs'] if 'month' in run]
    if not rows:
        return []
    prices = report['prices']
    return ['A month of 30 days, %s times the trace, in dollars (%s: %s, %s):'
            % (figures.number(rows[0][1]['times'], 1), prices['name'],
               prices['source'], prices['date']),
            figures.table(
                ('strategy', 'cache', 'prefetch', *_MONTH), [
                    (run['strategy'], _cache(run), run['prefetch'],
                     *(figures.number(month[name]) for name in _MONTH))
                    for run, month in rows])]


def _limits(rows: List[Dict[str, Any]]) -> List[str]:
    if not rows:
        return []
    return [
        'Limits that no order can beat, and what one reaches that knows all '
        'requests beforehand:',
        figures.table(
            ('cache', 'cheapest', 'dollars', 'at least', 'offline',
             'to save', 'most hits', 'hits', 'at most', 'offline'), [
                 (_cache(row), row['cheapest'],
                  *('%.4f' % row[name] for name in (
                      'dollars', 'dollars_at_least', 'dollars_offline')),
                  '<= %.1f %%' % (100.0 * row['to_save_share'])
                  if row['dollars'] else '-', row['most_hits'],
                  *(figures.number(row[name], 4) for name in (
                      'hit_ratio', 'hit_ratio_at_most',
                      'hit_ratio_offline'))) for row in rows])]


def _to_none(run: Dict[str, Any], others: List[Dict[str, Any]]) -> str:
    """Its dollars over those of the same set-up without prefetching."""
    base = next((other['dollars'] for other in others
                 if other['prefetch'] == 'none' and all(
                     other[key] == run[key]
                     for key in ('strategy', 'cache_bytes'))), 0.0)
    return '%.2f' % (run['dollars'] / base) if base else '-'


_HEAD = ('strategy', 'cache', 'prefetch', 'hits', 'bytes', 'p50 ms',
         'p90 ms', 'p95 ms', 'p99 ms', 'GETs', 'from cloud', 'PUTs',
         'dollars', 'SSD written', 'writes/day', 'accesses/s')
_CLASS_HEAD = ('strategy', 'prefetch', 'class', 'reads', 'hits', 'bytes',
               'p50 ms', 'p90 ms', 'p95 ms', 'p99 ms')


def _cache(run: Dict[str, Any]) -> str:
    return '%.3g %%' % (100.0 * run['cache_share'])


def _shared(row: Dict[str, Any]) -> List[str]:
    return [_ratio(row, 'hit_ratio'), _ratio(row, 'byte_hit_ratio')] + [
                figures.number(row['p%d_ms' % percent])
                for percent in PERCENTS]


def _ratio(row: Dict[str, Any], name: str) -> str:
    error = row.get(name + '_error')
    return figures.number(row[name], 4) + (
        '' if error is None else ' +-%s' % figures.number(error, 4))


def _line(run: Dict[str, Any], strategy: str, prefetch: str) -> List[str]:
    return [strategy, _cache(run), prefetch, *_shared(run),
            '%d' % run['gets'], figures.size_text(int(run['get_bytes'])),
            '%d' % run['puts'], '%.4f' % run['dollars'],
            figures.size_text(int(run['ssd_written_bytes'])),
            figures.number(run['drive_writes_a_day']),
            '%d' % run['accesses_a_second']]
