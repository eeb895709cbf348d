"""Classes change no byte, also with the kernel's own checks on."""

from __future__ import annotations

import patched_guests
import pytest


@pytest.mark.parametrize('kind', ['xfs', 'xfs-1k', 'ext4', 'ext4-1k'])
def test_random_operations_by_all_ways_leave_the_right_bytes(
        kind: str) -> None:
    last = patched_guests.output('patched_bytes.py', [
        patched_guests.DISK, kind, '1', '3000'])
    assert ': 3000 operations, ' in last


# Its kernel is one more to build.
@pytest.mark.slow
@pytest.mark.parametrize('kind', ['xfs', 'ext4'])
def test_neither_kasan_nor_lockdep_has_anything_to_say(kind: str) -> None:
    last = patched_guests.output('patched_bytes.py', [
        patched_guests.DISK, kind, '2', '1000'], 'debug')
    assert ': 1000 operations, ' in last
