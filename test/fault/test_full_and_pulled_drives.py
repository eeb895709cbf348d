"""R14 and R17 in CI: no room for one operation, and drives that return."""

from __future__ import annotations

import os

import pytest
import fill_the_disk
import pull_a_drive
from scenarios import SCENARIOS


def test_drives_that_return_give_no_stale_byte(tmp_path):
    outcome = pull_a_drive.campaign(str(tmp_path), 15, 1)
    assert outcome.wrong == []
    assert outcome.stale_files > 0, 'nothing stale was ever there'
    print('R17: %d drives pulled and returned, %d stale files on them, 0 '
          'wrong' % (outcome.pulls, outcome.stale_files))


def test_a_cache_that_knows_names_alone_is_caught(tmp_path):
    assert pull_a_drive.campaign(
        str(tmp_path), 10, 1, pull_a_drive.by_name_alone).wrong


@pytest.mark.skipif(os.geteuid() != 0, reason='makes file systems')
def test_without_room_nothing_is_lost_and_reads_go_on(tmp_path):
    demote = [scenario for scenario in SCENARIOS if scenario.name == 'demote']
    with fill_the_disk.small_disks(str(tmp_path)):
        outcome = fill_the_disk.campaign(str(tmp_path), demote, 1 << 20)
        twin = fill_the_disk.campaign(
            str(tmp_path), [fill_the_disk.WRONG_TWIN], 1 << 20)
    assert outcome.wrong == [] and outcome.refused_reads == 0
    assert outcome.fired > 5 and twin.wrong
    print('R14: %d passes, %d without room, 0 reads refused, 0 wrong' % (
        outcome.passes, outcome.fired))
