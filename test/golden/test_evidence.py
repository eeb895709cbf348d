"""Tables of the manual's evidence are what their commands print.

Those in virtual time are the same on every machine. Here a part of the
shorter ones is replayed; all of them, whole, with ``SWIFT_DSS_EVIDENCE=1`` in
the environment. ``python doc/ext/evidence.py NAME`` writes one again.
"""

from __future__ import annotations

import json
import os
import shlex

import pytest
from support import manual

from swift_dss.cli import main

EVIDENCE = manual.evidence()
TABLES = EVIDENCE.tables.TABLES
#: Of these tables a part is quick: words of a command, and words instead.
QUICK = {
    'class-order': {},
    'prefetching-think': {'--prefetch all': '--prefetch none,amp',
                          '--cache 1.7%,5%': '--cache 5%'},
    'prefetching-loop': {'none,amp,combined': 'none,combined',
                         '--cache 1.7%,5%': '--cache 5%'},
}
#: A figure is shown with fewer digits than that.
CLOSE = 1e-4


def runs(table, printed):
    """The runs of a replay, by what makes each of them another one."""
    return {(run.get('strategy'), run.get('prefetch'),
             round(run['cache_share'], 3)): run for run
            in EVIDENCE.trimmed(printed, TABLES[table].kept)['runs']}


def other(printed, kept):
    """The fields of a run whose values differ from those of the manual."""
    if isinstance(kept, dict):
        return [name for name in {*kept, *printed} if name not in kept
                or name not in printed or other(printed[name], kept[name])]
    if isinstance(kept, float):
        return [] if printed == pytest.approx(kept, CLOSE) else [kept]
    return [] if printed == kept else [kept]


@pytest.mark.parametrize('table', QUICK)
def test_replays_print_what_the_manual_says(table, tmp_path, capsys):
    for shown in EVIDENCE.kept(table)['runs']:
        command, out = shown['command'], tmp_path / 'out.json'
        for words, instead in QUICK[table].items():
            assert words in command
            command = command.replace(words, instead)
        assert main.main([*shlex.split(command)[1:],
                          '--json', str(out)]) == 0
        printed = runs(table, json.loads(out.read_text()))
        shown = runs(table, shown['printed'])
        assert printed and set(printed) <= set(shown)
        for name, run in printed.items():
            assert not other(run, shown[name]), (command, name)


def test_a_wrong_figure_is_seen():
    """The wrong twin: another value, a field less, one more."""
    run = {'dollars': 0.5, 'classes': {'11': {'hit_ratio': 0.25}}}
    assert not other(run, {**run})
    assert other({**run, 'dollars': 0.501}, run) == ['dollars']
    assert other(run, {**run, 'gets': 1}) == ['gets']
    assert other({'dollars': 0.5, 'classes': {}}, run) == ['classes']


@pytest.mark.skipif(not os.environ.get('SWIFT_DSS_EVIDENCE'),
                    reason='minutes; SWIFT_DSS_EVIDENCE=1 runs them')
@pytest.mark.parametrize('table', [
    name for name in TABLES if TABLES[name].clock == 'exact'])
def test_exact_tables_are_what_their_commands_print(table):
    folder = os.environ.get('SWIFT_DSS_TRACES')
    if not folder and 'FOLDER' in ''.join(TABLES[table].commands):
        pytest.skip('SWIFT_DSS_TRACES names the folder of the traces')
    again = EVIDENCE.filled(table, [
        EVIDENCE.run(command, folder or '')
        for command in TABLES[table].commands])
    assert EVIDENCE.rows(table, again) == EVIDENCE.rows(
        table, EVIDENCE.kept(table))
