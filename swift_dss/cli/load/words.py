"""The words of a run's end, and the table of its processes."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional

from swift_dss.bench.load.report import KEPT

#: Heads of :func:`process_lines`; ``>`` sets a column to the right.
HEADS = ('machine', 'process>', 'count>', 'of>', '1/s>', 'late ms>',
         'CPU s>', 'failed>', 'lost')
#: A process is slow that sent a request later than this, in milliseconds; in
#: a short run, the lateness of one request changes the rate.
_LATE_MS = 1000.0


def process_lines(made: Mapping[str, Any]) -> List[List[Optional[str]]]:
    """Cells of a table of the processes of a report."""
    return [[
        _short(row['machine']), str(row['number']), str(row['operations']),
        None if row['of'] is None else str(row['of']),
        None if row['sent_per_second'] is None
        else '%.1f' % row['sent_per_second'],
        '%.1f' % row['late_ms'] if 'open_loop' in made else None,
        '%.1f' % row['cpu_seconds'], str(row['failures']),
        None if row['lost'] is None
        else 'after %.1f s' % row['lost']['lost_seconds']]
        for row in made['processes']]


def _short(machine: str) -> str:
    """Its host alone, of a specification with options of ssh."""
    return machine.partition('//')[0].split()[-1].rpartition('ssh=')[2]


def sentences(made: Mapping[str, Any]) -> List[str]:
    """All that the tables do not say."""
    text = ['%d operations in %.1f s: %.1f a second; %.0f us of CPU here for '
            'each' % (made['operations'], made['seconds'],
                      made['per_second'],
                      made['client_cpu_us_per_operation'])]
    if 'open_loop' in made:
        opened = made['open_loop']
        text.append('sent %.1f a second, %+.2f %% of the rate; the latest '
                    '%.1f ms after its turn' % (
                        opened['sent_per_second'], 100 * opened['error'],
                        opened['late_ms']))
    text += _lost(made) + _slow(made)
    for name, words in (
            ('skipped', 'operations had no object to be done on'),
            ('gone', 'reads of an object that was deleted meanwhile'),
            ('stale', 'reads of a version that had been replaced'),
            ('left', 'objects or containers could not be cleaned up'),
            ('unlisted', 'requests are not in the CSV: %s' % (
                made['csv_error'] or 'their process could not send their '
                'lines fast enough'))):
        if made[name]:
            text.append('%d %s' % (made[name], words))
    for row in made['rows']:
        for error, count in row['failures'].items():
            text.append('%d %s of class %s failed: %s' % (
                count, row['operation'], row['class'], error))
    if made['wrong']:
        text.append('WRONG BYTES in %d reads:' % made['wrong'])
        text += made['wrong_reads']
    if made['interrupted']:
        text.append('interrupted')
    if made['uncleaned']:
        text.append('the clean-up was interrupted: objects stay there')
    return text


def _lost(made: Mapping[str, Any]) -> List[str]:
    text = []
    for row in made['processes']:
        if row['lost'] is not None:
            text.append('LOST %s, process %d, %.1f s after the start: %s; %s'
                        % (_short(row['machine']), row['number'],
                           row['lost']['lost_seconds'],
                           row['lost']['reason'], _share(made, row)))
    if text:
        text.append('objects of what was lost stay there')
    if 'open_loop' in made and not made['open_loop']['kept']:
        text.append('the rate was not kept')
    return text


def _share(made: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Which part of a lost process' requests the figures have."""
    lost = row['lost']
    if lost['is_measured']:
        return 'its figures are whole'
    until = lost['figures_until_seconds']
    if until is None:
        return 'none of its figures came'
    if row['of'] is not None:
        return 'the figures have %d of its %d requests (%.0f %%), those ' \
            'until %.1f s%s' % (
                row['operations'], row['of'],
                100 * row['operations'] / max(1, row['of']), until,
                '; others took over its later turns'
                if lost['is_given'] else '')
    return 'the figures have its %d requests until %.1f s of %.1f' % (
        row['operations'], until, made['seconds'])


def _slow(made: Mapping[str, Any]) -> List[str]:
    """Processes that did not keep their share of the rate, if others did."""
    if 'open_loop' not in made:
        return []
    due = made['open_loop']['rate'] / len(made['processes'])
    slow: List[Dict[str, Any]] = [
        row for row in made['processes'] if row['lost'] is None
        and row['late_ms'] > _LATE_MS
        and (row['sent_per_second'] or due) < KEPT * due]
    if len(slow) == sum(row['lost'] is None for row in made['processes']):
        return []
    return ['%s, process %d, sent %.1f a second of its %.1f, and others kept '
            'theirs: give it less, or more users' % (
                _short(row['machine']), row['number'],
                row['sent_per_second'], due)
            for row in slow]
