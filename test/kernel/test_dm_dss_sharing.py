"""Two devices never write one table, nor one HDD."""

from __future__ import annotations

import dss_lab

BUSY = '[Errno 16] Device or resource busy'


def test_ssd_and_hdd_of_a_device_are_refused_to_every_other():
    assert dss_lab.found('dss_sharing.py') == {
        'ssd': BUSY, 'formatted': BUSY, 'hdd': BUSY, 'crossed': BUSY,
        'targets': BUSY, 'suspended': BUSY, 'others': 'made', 'dirty': 1,
        'right': True, 'after': 'made'}
