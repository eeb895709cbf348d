"""R14 and R17 in CI: no room for one operation, and drives that return."""

from __future__ import annotations

import os

import pytest
import fill_the_disk
import pull_a_drive
from scenarios import SCENARIOS


def test_drives_that_return_give_no_stale_byte(tmp_path):
    found = pull_a_drive.campaign(str(tmp_path), 15, 1)
    assert found.wrong == []
    assert found.stale_files > 0, 'nothing stale was ever there'
    print('R17: %d drives pulled and returned, %d stale files on them, 0 '
          'wrong' % (found.pulls, found.stale_files))


def test_a_cache_that_knows_names_alone_is_caught(tmp_path):
    assert pull_a_drive.campaign(
        str(tmp_path), 10, 1, pull_a_drive.by_name_alone).wrong


@pytest.mark.skipif(os.geteuid() != 0, reason='makes file systems')
def test_without_room_nothing_is_lost_and_reads_go_on(tmp_path):
    demote = [one for one in SCENARIOS if one.name == 'demote']
    with fill_the_disk.small_disks(str(tmp_path)):
        found = fill_the_disk.campaign(str(tmp_path), demote, 1 << 20)
        twin = fill_the_disk.campaign(
            str(tmp_path), [fill_the_disk.WRONG_TWIN], 1 << 20)
    assert found.wrong == [] and found.refused_reads == 0
    assert found.fired > 5 and twin.wrong
    print('R14: %d passes, %d without room, 0 reads refused, 0 wrong' % (
        found.passes, found.fired))
