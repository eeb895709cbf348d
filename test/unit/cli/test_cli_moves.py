"""What operators see of a verb on many versions."""

from __future__ import annotations

import io

import pytest

from swift_dss.cli import table
from swift_dss.cli.tier import tables

ANSWER = {'moved': 1200, 'moved_bytes': 5 << 30, 'failures': 0,
          'dry_run': False}


@pytest.mark.parametrize('changed, took_seconds, text', [
    ({}, 9.6, 'demote: 1200 versions, 5.0 GiB; 9.6s, 125 a second'),
    ({'failures': 3}, 0.5, 'demote: 1200 versions, 5.0 GiB; 3 not; 0.5s'),
    ({'moved': 1, 'moved_bytes': 0}, 0.5, 'demote: 1 version, -; 0.5s'),
    ({'dry_run': True, 'failures': 3}, 5,
     'would demote: 1200 versions, 5.0 GiB; 3 not')])
def test_a_verb_on_many_ends_with_a_line(changed, took_seconds, text):
    assert tables.moves('demote', dict(ANSWER, **changed),
                        took_seconds) == text


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_says_how_fast_and_how_long_still(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(table.time, 'monotonic', lambda: now[0])
    out = Terminal()
    with table.Progress('demote', stream=out) as progress:
        progress.show(10, 1000)
        now[0] += 4
        progress.show(200, 1000)
        now[0] += 16
        progress.show(1000, 1000)
    lines = out.getvalue().replace('\x1b[K', '').split('\r')
    # Nothing is known at once, and nothing is left in the end.
    assert lines[1:4] == ['demote 10 of 1000 ', 'demote 200 of 1000, 50 a '
                          'second, 16.0s left, ', 'demote 1000 of 1000 ']
