"""The class in the GROUP NUMBER of READ and WRITE."""

from __future__ import annotations

from typing import Any, Dict, List

import patched_guests
import pytest
from patched_group import CLASSES

#: What makes sd choose a form: options of the disk; (operation, service
#: action) of WRITE and of READ.
_FORMS = {
    '10': ((), (0x2a, 0), (0x28, 0)),
    '16': (('scsi_debug.virtual_gb=4096',), (0x8a, 0), (0x88, 0)),
    '32': (('scsi_debug.dif=2',), (0x7f, 0x0b), (0x7f, 0x09)),
}


def _commands(row: Dict[str, Any], form: Any) -> List[int]:
    """The group numbers; all commands are of the form."""
    assert {(code, action) for code, action, _group
            in row['commands']} == {form}
    return [group for _code, _action, group in row['commands']]


@pytest.mark.parametrize('form', sorted(_FORMS))
def test_the_class_is_the_group_number_where_it_is_switched_on(
        form: str) -> None:
    options, write, read = _FORMS[form]
    row, = patched_guests.rows(
        'patched_group.py', [patched_guests.DISK],
        options=patched_guests.DISK_OPTIONS + options)
    assert row['default'] == '0'
    assert row['nonsense'] == 'Invalid argument'
    off, on = row['0'], row['1']
    assert _commands(off['write'], write) == [0] * CLASSES
    assert _commands(off['read'], read) == [0] * CLASSES
    assert off['write']['counts'] == {'0': CLASSES}
    assert _commands(on['write'], write) == list(range(CLASSES))
    assert _commands(on['read'], read) == list(range(CLASSES))
    assert on['write']['counts'] == {
        str(group): 1 for group in range(CLASSES)}


def test_new_disks_start_as_the_module_says() -> None:
    row, = patched_guests.rows(
        'patched_group.py', [patched_guests.DISK],
        options=patched_guests.DISK_OPTIONS + (
            'sd_mod.storage_class_group=1',))
    assert row['default'] == '1'
