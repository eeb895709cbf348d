"""What counts as the newest file of an object."""

from __future__ import annotations

import os

import pytest

from swift_dss.core.residency import RemoteCopy, Residency, Tier
from swift_dss.io import residency_store
from swift_dss.io.newest import (
    newest_file, newest_record, newest_timestamp)

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


@pytest.mark.parametrize('asked, key', [(1, 'p/key'), (0, ''),
                                        (None, 'p/key')])
def test_the_key_is_that_of_the_fragment_that_is_asked_for(
        tmp_path, asked, key):
    """Who asks for none gets the key of what is there."""
    fd = os.open(str(tmp_path / (NEW + '#1#d.data')),
                 os.O_RDWR | os.O_CREAT)
    residency = Residency.whole(4, Tier.REMOTE).with_remote(
        RemoteCopy('cloud', 'p/key', 'e' * 32, 1.0))
    os.ftruncate(fd, residency.file_size)
    residency_store.store(fd, residency)
    os.close(fd)
    assert newest_record(str(tmp_path), asked) == (NEW, key, False)
