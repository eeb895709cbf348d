"""The SSD's share of what is written through a stage, counted."""

from __future__ import annotations

import dss_lab
import pytest

#: SSD bytes for each byte uploaded: tables and journals are the rest.
MOST = 1.15


@pytest.mark.parametrize('object_bytes, count', [(1 << 20, 48), (1 << 16, 96)])
def test_ssd_takes_little_more_than_was_uploaded(object_bytes, count):
    report = dss_lab.found('dss_wear.py', [object_bytes, count, 50])
    assert report['right']
    uploaded = report['uploaded']
    assert uploaded <= report['ssd'] <= MOST * uploaded, report
    # All went by the SSD, and then to the HDD once.
    assert report['hdd'] >= uploaded, report


def test_without_a_stage_the_ssd_takes_nothing_of_them():
    report = dss_lab.found('dss_wear.py', [1 << 20, 16, 0])
    assert report['right']
    assert report['ssd'] < 0.15 * report['uploaded'], report
