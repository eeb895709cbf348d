"""Chunks whose bytes are still on their way to the SSD stop no cleaner."""

from __future__ import annotations

import dss_lab
import pytest


def test_the_cleaner_looks_again_for_bytes_on_their_way_to_the_ssd():
    report = dss_lab.found('dss_on_their_way.py', [3, 5000])
    assert report['wrong'] == [] and report['waits'] > 100, report
    assert report['passed'] == 0, report


@pytest.mark.twin
def test_a_cleaner_that_takes_them_for_a_failure_is_seen(tmp_path):
    twin = dss_lab.wrong_twin(str(tmp_path), [
        ('dss_clean.c', '++batch->empty > DSS_CLEAN_TRIES', 'true')])
    report = dss_lab.found('dss_on_their_way.py', [3, 5000], twin)
    assert report['passed'] > 100, report
