"""Backups of a file system on dm-dss: fsfreeze above, volumes below."""

from __future__ import annotations

import dss_lab


def test_frozen_file_system_is_whole_on_the_hdd_after_a_drain():
    report = dss_lab.found('dss_freeze.py')
    assert report.pop('dirty') > 0
    assert report == {'drained': 0, 'waits': True, 'right': 41, 'check': 0,
                      'snapshot_check': 0, 'snapshot': 40}
