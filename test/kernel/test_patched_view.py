"""The class of each page at the disk, whoever takes it there."""

from __future__ import annotations

from typing import Any, Dict

import patched_guests
import patched_view
import pytest


def _found(kind: str, variant: str) -> Dict[str, Any]:
    """What is wrong, by statement; all were tried."""
    results = {name: wrong for _kind, name, wrong in patched_guests.rows(
        'patched_view.py', [patched_guests.DISK, kind], variant)}
    assert set(results) == {statement.__name__ for statement
                            in patched_view.STATEMENTS}
    return {name: wrong for name, wrong in results.items() if wrong}


@pytest.mark.parametrize('kind', sorted(patched_view.KINDS))
def test_each_page_goes_with_the_class_it_was_written_with(
        kind: str) -> None:
    assert not _found(kind, 'patched')


def test_a_kernel_without_the_patches_loses_the_class_of_a_thread() -> None:
    wrong = _found('xfs', 'plain')
    # The flusher wrote them, all without a class.
    assert wrong['the_flusher_keeps_the_class_of_a_thread'].startswith(
        '32 of 48 pages: 0: [0], not 9;')
    # What needs no patch is right, so the harness sees both.
    assert 'a_store_to_a_mapping_is_of_who_syncs' not in wrong
    assert 'a_request_of_io_uring_has_its_own' not in wrong
    assert 'the_flusher_keeps_the_classes_of_a_mixed_file' in wrong
