"""The capacity tier of one device."""

from __future__ import annotations

import os
import shutil
import threading
import uuid
from typing import Any, Iterator

import pytest

from swift_dss.core.errors import TierUnavailable, VersionGone
from swift_dss.core.version import VersionId
from swift_dss.io import spool
from swift_dss.io.capacity import Capacity

ONE = VersionId('sda', 1, 'a' * 32, '1000000000.00000', 3)
TWO = VersionId('sda', 1, 'b' * 29 + 'aaa', '1000000000.00000', 3)


@pytest.fixture
def tier() -> Iterator[Capacity]:
    path = '/dev/shm/dss-unit-%s' % uuid.uuid4().hex
    made = Capacity(path, 'sda')
    made.initialise()
    yield made
    shutil.rmtree(path)


def _write(tier: Capacity, version: VersionId, data: bytes,
           **options: Any) -> None:
    fd = tier.create()
    try:
        os.write(fd, data)
        os.fsync(fd)
        tier.publish(fd, version, **options)
    finally:
        os.close(fd)


def _read(tier: Capacity, version: VersionId) -> bytes:
    fd = tier.open_read(version)
    try:
        return os.read(fd, 100)
    finally:
        os.close(fd)


def test_published_files_are_read_replaced_and_removed(
        tier: Capacity) -> None:
    _write(tier, ONE, b'one')
    assert _read(tier, ONE) == b'one'
    _write(tier, ONE, b'again')
    assert _read(tier, ONE) == b'again'
    with pytest.raises(FileExistsError):
        _write(tier, ONE, b'no', replace=False)
    assert _read(tier, ONE) == b'again'
    _write(tier, TWO, b'two')
    assert tier.remove(ONE) and not tier.remove(ONE)
    with pytest.raises(VersionGone):
        tier.open_read(ONE)
    assert _read(tier, TWO) == b'two'
    assert os.listdir(os.path.join(tier.path, 'tmp')) == []
    tier.remove(TWO)
    assert os.listdir(os.path.join(tier.path, 'data', '1')) == []


def test_without_its_marker_everything_is_unavailable(
        tier: Capacity) -> None:
    _write(tier, ONE, b'one')
    os.unlink(os.path.join(tier.path, '.dss-capacity'))
    for call in (tier.check, tier.create,
                 lambda: tier.open_read(ONE), lambda: tier.remove(ONE),
                 lambda: tier.publish(0, ONE)):
        with pytest.raises(TierUnavailable):
            call()


@pytest.mark.parametrize('text', [
    '', '{}', '[]', '{"device": "sdb", "identity": "x"}'])
def test_a_marker_of_another_device_or_of_rubbish_is_no_marker(
        tier: Capacity, text: str) -> None:
    with open(os.path.join(tier.path, '.dss-capacity'), 'w') as target:
        target.write(text)
    with pytest.raises(TierUnavailable):
        tier.check()


OTHER = '{"device": "sdb", "identity": "x"}'


def test_a_marker_that_is_rewritten_with_its_old_time_is_read(
        tier: Capacity) -> None:
    marker = os.path.join(tier.path, '.dss-capacity')
    os.utime(marker, ns=(0, 0))
    tier.check()
    with open(marker, 'w') as target:
        target.write(OTHER)
    os.utime(marker, ns=(0, 0))
    with pytest.raises(TierUnavailable):
        tier.check()


def test_a_marker_that_is_rewritten_within_a_tick_is_read(
        tier: Capacity, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system's clock stands still for milliseconds."""
    marker = os.path.join(tier.path, '.dss-capacity')
    with open(marker, 'a') as target:
        target.write(' ' * 99)
    status = os.stat(marker)
    with monkeypatch.context() as patched:
        patched.setattr('swift_dss.io.capacity.os.stat',
                        lambda *_, **__: status)
        tier.check()
        with open(marker, 'w') as target:
            target.write(OTHER)
        with pytest.raises(TierUnavailable):
            tier.check()


def test_a_new_tier_has_a_new_identity(tier: Capacity) -> None:
    before = tier.identity
    assert tier.initialise() == before
    shutil.rmtree(tier.path)
    assert tier.initialise() != before


def test_publish_and_remove_race_for_the_same_folders(
        tier: Capacity) -> None:
    """Both share the folder 'aaa', which remove() takes when empty."""
    errors: list = []

    def turn(version: VersionId) -> None:
        try:
            for _ in range(300):
                _write(tier, version, b'x')
                assert _read(tier, version) == b'x'
                tier.remove(version)
        except BaseException as err:
            errors.append(err)

    threads = [threading.Thread(target=turn, args=(version,))
               for version in (ONE, TWO)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_a_name_and_all_folders_above_it_are_durable(
        tier: Capacity, monkeypatch: Any) -> None:
    synced, fsync = set(), os.fsync
    monkeypatch.setattr(os, 'fsync', lambda fd: (
        fsync(fd), synced.add(os.fstat(fd).st_ino)))
    _write(tier, ONE, b'one')
    folder = os.path.dirname(tier.file_path(ONE))
    while len(folder) >= len(tier.path):
        assert os.stat(folder).st_ino in synced, folder
        folder = os.path.dirname(folder)


def test_an_event_is_not_written_into_a_spool_that_was_taken(
        tier: Capacity, monkeypatch: Any) -> None:
    assert spool.append(tier.path, b'one', 100)
    flock, taken = spool.fcntl.flock, []

    def wait(fd: int, how: int) -> None:
        if not taken:
            # The daemon had the lock until now.
            monkeypatch.setattr(spool.fcntl, 'flock', flock)
            taken.extend(spool.take(tier.path))
        flock(fd, how)

    monkeypatch.setattr(spool.fcntl, 'flock', wait)
    assert spool.append(tier.path, b'two', 100)
    assert taken == [b'one']
    assert spool.take(tier.path) == [b'two']


def test_spooled_events_are_taken_once_by_many_writers(
        tier: Capacity) -> None:
    taken: list = []
    done = threading.Event()

    def add(writer: int) -> None:
        for number in range(400):
            assert spool.append(tier.path, b'%d %d' % (writer, number),
                                1 << 20)

    def take() -> None:
        while not done.is_set():
            taken.extend(spool.take(tier.path))

    reader = threading.Thread(target=take)
    reader.start()
    writers = [threading.Thread(target=add, args=(i,)) for i in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    done.set()
    reader.join()
    taken.extend(spool.take(tier.path))
    assert sorted(taken) == sorted(
        b'%d %d' % (i, n) for i in range(3) for n in range(400))


def test_the_spool_is_bounded_and_needs_its_device(
        tier: Capacity) -> None:
    assert spool.append(tier.path, b'x' * 90, 100)
    assert not spool.append(tier.path, b'y' * 20, 100)
    assert spool.take(tier.path) == [b'x' * 90]
    assert spool.take(tier.path) == []
    with pytest.raises(OSError):
        spool.append(tier.path + '-absent', b'x', 100)
