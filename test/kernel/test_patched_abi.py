"""Classified vectors, call by call, on the patched kernel."""

from __future__ import annotations

from typing import Any, Dict

import patched_guests
import pytest


def _found(kind: str, variant: str = 'patched') -> Dict[str, Any]:
    """What is wrong, by statement."""
    return {name: wrong for _kind, name, wrong in patched_guests.rows(
        'patched_abi.py', [patched_guests.DISK, kind], variant)}


@pytest.mark.parametrize('kind', ['xfs', 'ext4'])
def test_the_interface_is_as_documented(kind: str) -> None:
    results = _found(kind)
    assert len(results) > 20
    assert not {name: wrong for name, wrong in results.items() if wrong}


def test_a_kernel_without_the_patches_fails_almost_all_of_it() -> None:
    results = _found('xfs', 'plain')
    right = {name for name, wrong in results.items() if not wrong}
    assert len(right) < len(results) // 3, right
