"""What counts as the newest file of an object."""

from __future__ import annotations

import os

import pytest

from swift_dss.io.newest import newest_file, newest_timestamp

OLD, NEW = '1700000000.00000', '1700000100.00000'


@pytest.mark.parametrize('there, newest', [
    ([], None),
    ([OLD + '.data'], OLD),
    ([OLD + '.data', NEW + '.data'], NEW),
    ([OLD + '.data', NEW + '.ts'], NEW),
    ([OLD + '.ts', NEW + '.data'], NEW),
    ([OLD + '.data', NEW + '.meta'], OLD),
    ([OLD + '#1#d.data', NEW + '#1.data'], OLD),
    ([NEW + '#1.data'], None),
    ([NEW + '#1#d.data'], NEW)])
def test_the_newest_is_a_tombstone_or_durable_data(
        tmp_path, there, newest):
    for name in there:
        open(os.path.join(str(tmp_path), name), 'w').close()
    assert newest_timestamp(str(tmp_path)) == newest


def test_of_fragments_one_is_preferred(tmp_path):
    for number in range(3):
        open(os.path.join(str(tmp_path), '%s#%d#d.data' % (
            NEW, number)), 'w').close()
    assert newest_file(str(tmp_path), 1) == (NEW, NEW + '#1#d.data')
