"""The cleaner reads its next batch while it writes one."""

from __future__ import annotations

import dss_lab
import pytest

#: Seconds: four batches of 64 chunks, each read in 50 ms and written in 64;
#: and a commit of the table, two requests of the SSD.
ONE_AFTER_THE_OTHER = 4 * 0.114 + 0.1


def test_the_hdd_does_not_wait_for_the_ssd():
    report = dss_lab.found('dss_clean_ahead.py')
    assert report['dirty'] == 256 and report['clean'], report
    assert report['wrong'] == [], report
    assert report['seconds'] < 0.8 * ONE_AFTER_THE_OTHER, report


@pytest.mark.twin
def test_a_cleaner_without_a_batch_ahead_is_seen(tmp_path):
    twin = dss_lab.wrong_twin(str(tmp_path), [
        ('dss_clean.c', 'return batch->how == DSS_CLEAN_IDLE;',
         'return false;')])
    report = dss_lab.found('dss_clean_ahead.py', module=twin)
    assert report['wrong'] == [], report
    assert report['seconds'] > 0.9 * ONE_AFTER_THE_OTHER, report
