"""The end of the SSD can be given up while the device is in use."""

from __future__ import annotations

import dss_lab
import pytest

from swift_dss.block import lab

#: What lies at the end is taken for gone without being written back.
FORGETFUL = ('dss_shrink.c', 'dss_evict_over_limit(d)) {', 'false) {')


@pytest.mark.parametrize('chunk', [8, 64])
def test_smaller_ssd_costs_no_byte(chunk):
    report = dss_lab.found('dss_shrink.py', [chunk, chunk])
    assert report['refused'] == ['8', 'x', '']
    assert report['dirty'] > 0
    assert 0 < report['after'] < report['before']
    assert report['after'] == report['reloaded']
    assert report['used_before'] > report['after'] >= report['used']
    assert report['shrunk'] >= report['used_before'] - report['after']
    # What lay before the cut stayed, warm.
    assert report['kept'] > report['after'] // 2


@pytest.mark.twin
def test_wrong_twin_that_forgets_the_end_is_caught(tmp_path):
    module = dss_lab.wrong_twin(str(tmp_path), [FORGETFUL])
    try:
        ended = dss_lab.result('dss_shrink.py', [8, 8], module, timeout=120)
    except lab.GuestDied:
        return
    assert ended.status or ended.complaints
