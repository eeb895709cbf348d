"""The end of the SSD can be given up while the device is in use."""

from __future__ import annotations

import dss_lab
import pytest

from swift_dss.block import lab

#: What lies at the end is taken for gone without being written back.
FORGETFUL = ('dss_shrink.c', 'dss_evict_over_limit(d)) {', 'false) {')


@pytest.mark.parametrize('chunk', [8, 64])
def test_smaller_ssd_costs_no_byte(chunk):
    found = dss_lab.found('dss_shrink.py', [chunk, chunk])
    assert found['refused'] == ['8', 'x', '']
    assert found['dirty'] > 0
    assert 0 < found['after'] < found['before']
    assert found['after'] == found['reloaded']
    assert found['used_before'] > found['after'] >= found['used']
    assert found['shrunk'] >= found['used_before'] - found['after']
    # What lay before the cut stayed, warm.
    assert found['kept'] > found['after'] // 2


def test_wrong_twin_that_forgets_the_end_is_caught(tmp_path):
    module = dss_lab.wrong_twin(str(tmp_path), [FORGETFUL])
    try:
        ended = dss_lab.result('dss_shrink.py', [8, 8], module, timeout=120)
    except lab.GuestDied:
        return
    assert ended.status or ended.complaints
