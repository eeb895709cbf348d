"""A run's figures: for programs, for people, and beside those of another."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Optional, Sequence, Tuple

from swift_dss.bench.load.drive import Outcome, Part
from swift_dss.bench.load.records import (
    PERCENTILES, Counts, check, decoded, merged)
from swift_dss.bench.load.warpcsv import Numbered
from swift_dss.core.errors import DssError

FORMAT = 'swift-dss-load'
VERSION = 1
MAX_REPORT_BYTES = 64 << 20
#: Share of a rate that has to be sent, for it to be kept.
KEPT = 0.99


class BadReport(DssError):
    """A file is no report of a run."""

    exit_code = 65
    counter = 'bad_input'


def rows(counts: Counts, seconds: float) -> List[Dict[str, Any]]:
    """One of each class, operation and tier; times in milliseconds."""
    failures: Dict[Any, Dict[str, int]] = {}
    for (key, error), count in counts.failures.items():
        failures.setdefault(key, {})[error] = count
    listed = []
    for key in sorted(set(counts.histograms) | set(failures)):
        row: Dict[str, Any] = dict(zip(('class', 'operation', 'tier'), key))
        row['failures'] = failures.get(key, {})
        row['count'] = 0
        if key in counts.histograms:
            row.update(_figures(counts, key, seconds))
        listed.append(row)
    return listed


def _figures(counts: Counts, key: Any, seconds: float) -> Dict[str, Any]:
    histogram = decoded(counts.histograms[key])
    count = histogram.get_total_count()
    row = {'count': count, 'bytes': counts.bytes[key],
           'per_second': count / seconds if seconds else 0.0,
           'min_ms': histogram.get_min_value() / 1e3,
           'mean_ms': histogram.get_mean_value() / 1e3,
           'max_ms': histogram.get_max_value() / 1e3,
           'hdr': counts.histograms[key].decode('ascii')}
    for percentile in PERCENTILES:
        row['p%g_ms' % percentile] = histogram.get_value_at_percentile(
            percentile) / 1e3
    return row


def report(outcome: Outcome, setup: Dict[str, Any],
           lines: Optional[Numbered] = None) -> Dict[str, Any]:
    """The whole, as JSON has it.

    :param setup: of the run; ``rate`` is None in closed loop
    :param lines: of its requests
    """
    counts = outcome.counts
    operations = counts.operations
    cpu_seconds = sum(part.cpu_seconds for part in outcome.parts)
    made: Dict[str, Any] = {
        'format': FORMAT, 'version': VERSION, 'setup': setup,
        'seconds': outcome.seconds, 'operations': operations,
        'per_second': operations / outcome.seconds if outcome.seconds
        else 0.0,
        'failures': sum(counts.failures.values()),
        'skipped': counts.skipped, 'gone': counts.gone,
        'stale': counts.stale, 'wrong': counts.wrong_count,
        'wrong_reads': counts.wrong, 'left': outcome.left,
        'interrupted': outcome.interrupted,
        'uncleaned': not outcome.is_cleaned,
        'client_cpu_seconds': cpu_seconds,
        'client_cpu_us_per_operation':
            cpu_seconds * 1e6 / max(1, operations),
        'lost': sum(part.loss is not None for part in outcome.parts),
        'unlisted': sum(part.unlisted for part in outcome.parts)
        + (lines.missing if lines else 0),
        'csv_error': str(lines.error) if lines and lines.error else None,
        'processes': [_process(part, outcome) for part in outcome.parts],
        'rows': rows(counts, outcome.seconds)}
    if setup.get('rate') is not None:
        sent = _rate(counts, outcome.start)
        made['open_loop'] = {
            'rate': setup['rate'],
            'sent_per_second': setup['rate'] if sent is None else sent,
            'error': 0.0 if sent is None else sent / setup['rate'] - 1.0,
            'late_ms': counts.late_seconds * 1e3,
            'kept': (sent is None or sent >= KEPT * setup['rate'])
            and all(part.is_measured or part.is_given
                    for part in outcome.parts)}
    return made


def _rate(counts: Counts, start: float) -> Optional[float]:
    """Requests a second that were sent; None: too few for it."""
    span, operations = counts.last_sent - start, counts.operations
    return (operations - 1) / span if span > 0 and operations > 1 else None


def _process(part: Part, outcome: Outcome) -> Dict[str, Any]:
    """Its part in the run; times from the start."""
    counts, loss = part.counts or merged([]), part.loss
    return {
        'machine': part.machine, 'number': part.number,
        'operations': counts.operations, 'of': part.turns,
        'failures': sum(counts.failures.values()),
        'sent_per_second': _rate(counts, outcome.start),
        'late_ms': counts.late_seconds * 1e3,
        'cpu_seconds': part.cpu_seconds, 'unlisted': part.unlisted,
        'lost': None if loss is None else {
            'reason': loss.reason,
            'lost_seconds': loss.lost_at - outcome.start,
            'figures_until_seconds': None if loss.figures_at is None
            else loss.figures_at - outcome.start,
            'is_measured': part.is_measured, 'is_given': part.is_given}}


def read(path: str) -> Dict[str, Any]:
    """The report of another run.

    :raises BadReport: names the file and the reason
    """
    try:
        with open(path, encoding='utf-8') as source:
            text = source.read(MAX_REPORT_BYTES + 1)
        data = json.loads(text)
        for row in data['rows']:
            _name(row), int(row['count'])
            for name in ('per_second', 'p50_ms', 'p99_ms'):
                float(row.get(name, 0.0))
            if 'hdr' in row:
                check(row['hdr'])
        is_ours = data['format'] == FORMAT and data['version'] == VERSION
    except (OSError, UnicodeDecodeError) as err:
        raise BadReport('%s: %s' % (path, err)) from err
    except (ValueError, TypeError, KeyError, AttributeError,
            RecursionError) as err:
        raise BadReport('%s: is no report of "swift-dss load --json": %r'
                        % (path, err)) from err
    if not is_ours:
        raise BadReport('%s: is no report of version %d of "swift-dss load"'
                        % (path, VERSION))
    return dict(data)


#: Heads of :func:`lines`; ``>`` sets a column to the right.
HEADS = ('class', 'operation', 'tier', 'count>', '1/s>', 'MB/s>', 'p50 ms>',
         'p99 ms>', 'p99.9 ms>', 'max ms>', 'failed>')
COMPARED = ('class', 'operation', 'tier', '1/s>', 'other>', 'ratio>',
            'p50 ms>', 'other>', 'ratio>', 'p99 ms>', 'other>', 'ratio>')


def lines(listed: Sequence[Dict[str, Any]],
          seconds: float) -> List[List[Optional[str]]]:
    """Cells of a table of :func:`rows`."""
    return [[*_name(row), str(row['count']),
             _text(row.get('per_second')),
             _text(row.get('bytes', 0) / 1e6 / seconds if seconds else None),
             *(_text(row.get(name)) for name in (
                 'p50_ms', 'p99_ms', 'p99.9_ms', 'max_ms')),
             str(sum(row['failures'].values()))] for row in listed]


def compared(listed: Sequence[Dict[str, Any]],
             others: Sequence[Dict[str, Any]]) -> List[List[Optional[str]]]:
    """Cells of a table of two runs; rows that one of them lacks too."""
    left, right = ({_name(row): row for row in part}
                   for part in (listed, others))
    table: List[List[Optional[str]]] = []
    for name in sorted(set(left) | set(right)):
        cells: List[Optional[str]] = [*name]
        for field in ('per_second', 'p50_ms', 'p99_ms'):
            ours, theirs = (part.get(name, {}).get(field)
                            for part in (left, right))
            cells += [_text(ours), _text(theirs),
                      _text(ours / theirs) if ours and theirs else None]
        table.append(cells)
    return table


def _name(row: Dict[str, Any]) -> Tuple[str, str, str]:
    return str(row['class']), str(row['operation']), str(row['tier'])


def _text(value: Optional[float]) -> Optional[str]:
    if value is None:
        return None
    return '%.3g' % value if abs(value) < 100 else '%.0f' % value
