"""The carrier ``classified`` on the kernel that it is for."""

from __future__ import annotations

from typing import Any

import patched_guests
import pytest


@pytest.mark.parametrize('kind', ['xfs', 'ext4'])
def test_every_span_arrives_with_its_class_and_nobody_syncs(
        kind: str, capsys: Any) -> None:
    found, = patched_guests.rows(
        'patched_carrier.py', [patched_guests.DISK, kind])
    with capsys.disabled():
        print('\n%(carrier_table)s\n%(server_table)s' % found)
    assert (found['carrier'], found['refused']) == ('classified', [])
    assert found['carrier_wrong'] == 0
    assert found['server_wrong'] == 0


def test_without_the_patches_the_next_best_is_taken() -> None:
    found, = patched_guests.rows(
        'patched_carrier.py', [patched_guests.DISK, 'xfs'], 'plain')
    assert found['carrier'] == 'ioprio'
    assert found['refused'] == [
        'classified: this kernel has no RWF_CLASSIFIED']
    assert found['server_wrong'] == 0
