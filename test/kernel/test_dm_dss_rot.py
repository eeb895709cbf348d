"""A table block that rots, or another origin, is never taken in silence."""

from __future__ import annotations

import dss_lab
import pytest

#: A kernel that takes whatever copy it can read.
TRUSTING = ('dss_load.c', 'dss_lost_counts(load)) {', 'false) {')


def test_rotten_table_blocks_cost_no_byte_in_silence():
    report = dss_lab.found('dss_rot.py', ['table', 11, 60])
    assert report['wrong'] == report['disagreed'] == 0
    assert report['started'] > 5 and report['refused'] > 5
    assert report['dirty'] > 1000
    # What was quiet has a twin: one rotten copy of it costs nothing.
    assert report['quiet_started'] > 3


@pytest.mark.twin
def test_wrong_twin_that_takes_what_it_can_read_is_caught(tmp_path):
    module = dss_lab.wrong_twin(str(tmp_path), [TRUSTING])
    report = dss_lab.found('dss_rot.py', ['table', 11, 30], module)
    assert report['wrong'] > 0
    assert report['disagreed'] > 0


def test_another_origin_is_refused():
    report = dss_lab.found('dss_rot.py', ['origin'])
    started = {step for step, value in report.items() if value is True}
    assert started == {'first', 'same', 'rebound', 'restored_begin',
                       'restored_far'}
    assert report['same_table'].endswith('origin_id ' + '11' * 16)
    # It is for the one time.
    assert report['rebound_table'].endswith('origin_id ' + '22' * 16)
