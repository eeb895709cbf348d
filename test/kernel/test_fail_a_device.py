"""Failing devices, in small: ``fail_a_device.py`` has all of it."""

from __future__ import annotations

import fail_a_device

#: One of each kind of fault and moment, and two that once went wrong: a
#: resume took the mark of a failed SSD away, or never came.
CASES = (
    (29, 'ssd', 'bad blocks', 'reload'), (14, 'ssd', 'all', 'reload'),
    (5, 'ssd', 'reads', 'start'), (21, 'ssd', 'now and then', 'load'),
    (17, 'ssd', 'gone', 'flush'), (8, 'ssd', 'writes', 'switch'),
    (41, 'hdd', 'all', 'load'), (56, 'hdd', 'bad blocks', 'start'))
#: The same with a stage, which is full now and then, and a dead SSD at other
#: moments: each kernel's virtual time has its own.
STAGED = tuple((*case, 5) for case in (*CASES, *(
    (seed, 'ssd', 'all', 'reload') for seed in range(16, 24))))


def test_readers_of_failing_devices_get_errors_or_right_bytes():
    rows = fail_a_device.examined([list(case) for case in CASES])
    assert [row['case'] for row in rows] == [list(case) for case in CASES]
    assert all(row['fired'] for row in rows), rows
    assert not any(row['stage_waits'] for row in rows), rows
    ends = {tuple(row['case'][1:]): row['end'] for row in rows}
    # Dirty bytes of a dead SSD: nobody may forget that they were there.
    assert ends['ssd', 'all', 'reload'] == 'refusing'
    assert ends['ssd', 'reads', 'start'] == 'not started'
    assert ends['hdd', 'all', 'load'] == 'ok'


def test_readers_with_a_stage_get_errors_or_right_bytes():
    rows = fail_a_device.examined([list(case) for case in STAGED])
    assert all(row['fired'] for row in rows), rows
    assert any(row['stage_waits'] for row in rows), rows
    ends = {}
    for row in rows:
        ends.setdefault(tuple(row['case'][1:4]), set()).add(row['end'])
    # Dirty bytes of a dead SSD: nobody may forget that they were there. One
    # without is given up, and its guest finds everything on the HDD.
    assert ends['ssd', 'all', 'reload'] == {'refusing', 'given_up'}
    assert ends['hdd', 'all', 'load'] == {'ok'}


def test_a_device_that_lies_is_seen():
    assert fail_a_device.lie_is_seen(1)
