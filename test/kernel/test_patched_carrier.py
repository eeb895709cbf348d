"""The carrier ``classified`` on the kernel that it is for."""

from __future__ import annotations

from typing import Any

import patched_guests
import pytest


@pytest.mark.parametrize('kind', ['xfs', 'ext4'])
def test_every_span_arrives_with_its_class_and_nobody_syncs(
        kind: str, capsys: Any) -> None:
    row, = patched_guests.rows(
        'patched_carrier.py', [patched_guests.DISK, kind])
    with capsys.disabled():
        print('\n%(carrier_table)s\n%(server_table)s' % row)
    assert (row['carrier'], row['refused']) == ('classified', [])
    assert row['carrier_wrong'] == 0
    assert row['server_wrong'] == 0


def test_without_the_patches_the_next_best_is_taken() -> None:
    row, = patched_guests.rows(
        'patched_carrier.py', [patched_guests.DISK, 'xfs'], 'plain')
    assert row['carrier'] == 'ioprio'
    assert row['refused'] == [
        'classified: this kernel has no RWF_CLASSIFIED']
    assert row['server_wrong'] == 0
