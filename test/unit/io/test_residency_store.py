"""The residency record on a real file."""

from __future__ import annotations

import os
import shutil
import uuid
from typing import Any, Iterator

import pytest

from swift_dss.core.errors import DamagedRecord, TierFull
from swift_dss.core.residency import Extent, Residency, Tier
from swift_dss.io import residency_store
from swift_dss.wire import names

STUB = Residency(10, (Extent(0, 4, Tier.SSD), Extent(4, 6, Tier.HDD)))
COPIES = Residency.whole(10, Tier.SSD | Tier.HDD)


@pytest.fixture
def data_file() -> Iterator[Any]:
    folder = '/dev/shm/dss-unit-%s' % uuid.uuid4().hex
    os.makedirs(folder)
    with open(os.path.join(folder, 'x.data'), 'wb+', 0) as opened:
        opened.write(b'0123456789')
        yield opened
    shutil.rmtree(folder)


@pytest.mark.parametrize('size', range(14))
@pytest.mark.parametrize('record', [None, COPIES, STUB, 'damaged'])
def test_the_invariant(data_file: Any, size: int, record: Any) -> None:
    """Content-Length is 10: of all sizes and records only a whole file
    and a sound stub are believed, and each for what it is."""
    fd = data_file.fileno()
    if isinstance(record, Residency):
        residency_store.store(fd, record, 'abc')
    elif record:
        os.setxattr(fd, names.XATTR_RESIDENCY, b'DSR1 rubbish')
    os.truncate(fd, size)
    if size == 10:
        expected = COPIES if record == COPIES else Residency.whole(10)
        assert residency_store.judge(fd, 10) == expected
    elif size == 11 and record == STUB:
        assert residency_store.judge(fd, 10) == STUB
    else:
        with pytest.raises(DamagedRecord):
            residency_store.judge(fd, 10)


def test_every_flipped_bit_of_a_record_is_found(data_file: Any) -> None:
    fd = data_file.fileno()
    residency_store.store(fd, STUB, 'abc')
    os.truncate(fd, 11)
    raw = os.getxattr(fd, names.XATTR_RESIDENCY)
    for bit in range(len(raw) * 8):
        bent = bytearray(raw)
        bent[bit // 8] ^= 1 << bit % 8
        os.setxattr(fd, names.XATTR_RESIDENCY, bytes(bent))
        with pytest.raises(DamagedRecord):
            residency_store.judge(fd, 10)


def test_whole_and_alone_needs_no_record(data_file: Any) -> None:
    fd = data_file.fileno()
    residency_store.store(fd, STUB, 'abc')
    assert residency_store.load_capacity_id(fd) == 'abc'
    residency_store.store(fd, Residency.whole(10))
    residency_store.store(fd, Residency.whole(10))
    assert os.listxattr(fd) == []
    assert residency_store.load(fd) is None
    assert residency_store.load_capacity_id(fd) == ''


def test_no_room_for_the_record_is_said_so(
        data_file: Any, monkeypatch: Any) -> None:
    def full(*_args: Any) -> None:
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(os, 'setxattr', full)
    with pytest.raises(TierFull):
        residency_store.store(data_file.fileno(), STUB)
