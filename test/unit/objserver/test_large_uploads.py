"""Uploads of more than one window: hashed together, written early."""

from __future__ import annotations

import hashlib
from typing import Any, List, Tuple

import eventlet
import pytest
from support import pattern
from support.rigs.dss_disk import Disk

from swift_dss.core.limits import WIDE_WINDOW_BYTES
from swift_dss.io import classified
from swift_dss.io.sums import hashing

#: Two windows and a piece that fills no block of MD5.
_SIZE = 2 * WIDE_WINDOW_BYTES + 12345


@pytest.mark.parametrize('compiled', [
    pytest.param(True, marks=pytest.mark.skipif(
        hashing.md5_lanes is None, reason='md5_lanes was not compiled')),
    False])
def test_uploads_side_by_side_get_their_own_etags(
        disk: Disk, green: None, monkeypatch: Any, compiled: bool) -> None:
    if not compiled:
        monkeypatch.setattr(hashing, 'md5_lanes', None)
    bodies = [pattern(_SIZE + number, 'o%d' % number)
              for number in range(3)]

    def upload(number: int) -> Any:
        body = bodies[number]
        chunks = [body[at:at + 300000]
                  for at in range(0, len(body), 300000)]
        return disk.put('o%d' % number, chunks,
                        size=None if number == 2 else -1)

    threads = [eventlet.spawn(upload, number) for number in range(3)]
    for number, thread in enumerate(threads):
        thread.wait()
        with disk.open_file('o%d' % number).open() as disk_file:
            assert disk_file.get_metadata()['ETag'] == \
                hashlib.md5(bodies[number]).hexdigest()
        assert disk.read('o%d' % number) == bodies[number]
    assert (disk.node.hasher.passes > 0) == compiled
    assert ('md5' in disk.pools()) == compiled


def test_an_upload_that_ends_early_leaves_nothing(
        disk: Disk, green: None) -> None:
    upload = disk.open_file('o').writer(size=_SIZE)
    upload.open()
    for _ in range(WIDE_WINDOW_BYTES // 65536 + 3):
        upload.write(b'x' * 65536)
    upload.close()
    body = pattern(_SIZE, 'after')
    disk.put('o', [body[:WIDE_WINDOW_BYTES], body[WIDE_WINDOW_BYTES:]])
    assert disk.read('o') == body
    assert disk.node.uploads == 0
    # Nor does an upload wait for the one that is gone.
    hasher = disk.node.hasher
    if hasher.is_there():
        jobs, stream = hasher.pool.jobs, hasher.stream()
        stream.begin([body])
        assert hasher.pool.jobs == jobs + 1
        stream.close()


def test_the_etag_may_be_asked_for_at_any_time(
        disk: Disk, green: None) -> None:
    body = pattern(_SIZE, 'o')
    upload = disk.open_file('o').writer(size=None)
    upload.open()
    written = 0
    for step in (5000, 65536, WIDE_WINDOW_BYTES - 1, 1, 4000000):
        upload.write(body[written:written + step])
        written += step
        for _ in range(2):
            assert upload.chunks_finished() == (
                written, hashlib.md5(body[:written]).hexdigest())
    upload.close()


def test_the_disk_begins_before_the_upload_ends(
        disk: Disk, green: None, monkeypatch: Any) -> None:
    begun: List[Tuple[int, int]] = []
    monkeypatch.setattr(
        classified, 'start_writeback',
        lambda fd, offset, length: begun.append((offset, length)))
    body = pattern(_SIZE, 'o')
    disk.put('o', [body[at:at + 65536]
                   for at in range(0, len(body), 65536)])
    # All but the piece that the sync takes along.
    assert begun == [(0, WIDE_WINDOW_BYTES),
                     (WIDE_WINDOW_BYTES, WIDE_WINDOW_BYTES)]
    del begun[:]
    disk.put('small', body[:65536])
    assert not begun
