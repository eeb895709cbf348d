"""Bytes that a disk changed are never given: read with and without copies."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
from typing import Any, List

import pytest
from support.rigs.dss_disk import Disk, Full, Ragged
from swift.common.swob import Request
from swift.common.utils import close_if_possible

from swift_dss.core.errors import RemoteUnavailable
from swift_dss.core.residency import (
    STUB_SURPLUS, RemoteCopy, Residency, Tier)
from swift_dss.core.spans import ClassMap, Span
from swift_dss.io import residency_store
from swift_dss.io.sums import blocks as block_sums
from swift_dss.objserver import extents
from swift_dss.objserver.reader import RottenBlock
from swift_dss.objserver.server import DssObjectController
from swift_dss.wire import names
from swift_dss.wire.records.blocks import BLOCK_BYTES

SIZE = 5 * BLOCK_BYTES + 1234
BODY = random.Random(1).randbytes(SIZE)
REMOTE = RemoteCopy('s3', 'k', 'e', 1.0)
PART = '206 Partial Content'
BOTH, HDD = ClassMap.uniform(3), ClassMap.uniform(2)
#: Borders of tiers and classes within blocks.
MIXED = ClassMap.from_spans(
    [Span(0, 100000, 1), Span(100000, 70001, 2)], rest=3)
RANGES = [(0, SIZE), (0, 1), (SIZE - 1, SIZE), (65535, 65537),
          (70000, 70001), (1, SIZE), (65536, 131072), (100, 200000)]


@pytest.fixture(params=[None, Full, Ragged])
def either_cache(request: Any, disk: Disk) -> Disk:
    """The page cache has nothing, or everything, or all but the end."""
    if request.param is not None:
        disk.node.page_cache = request.param()
    return disk


def flip(path: str, offset: int) -> None:
    """Change one byte behind everybody's back."""
    with open(path, 'r+b') as target:
        target.seek(offset)
        was = target.read(1)
        target.seek(offset)
        target.write(bytes([was[0] ^ 0x10]))


def hdd_path(disk: Disk, name: str) -> str:
    with disk.open_file(name).open() as disk_file:
        return disk.node.capacity('sda').file_path(disk_file.dss_version())


def read(disk: Disk, start: int, stop: int) -> bytes:
    if (start, stop) == (0, SIZE):
        return disk.read('o')
    return disk.read('o', start, stop)


@pytest.mark.parametrize('class_map', [None, BOTH, HDD, MIXED])
@pytest.mark.parametrize('span', RANGES)
def test_right_bytes_are_given(either_cache: Disk, green: None,
                               class_map: Any, span: Any) -> None:
    disk = either_cache
    disk.put('o', [BODY[:99], BODY[99:200000], BODY[200000:]], class_map)
    assert read(disk, *span) == BODY[slice(*span)]
    assert not disk.logger.counts.get('dss.errors.rotten')
    assert not disk.quarantined()


@pytest.mark.parametrize('class_map', [None, HDD])
@pytest.mark.parametrize('span', RANGES)
@pytest.mark.parametrize('at', [0, 65535, 65536, 70000, SIZE - 1])
def test_no_wrong_byte_is_given(either_cache: Disk, green: None,
                                class_map: Any, span: Any,
                                at: int) -> None:
    disk = either_cache
    disk.put('o', BODY, class_map)
    flip(disk.data_path('o') if class_map is None
         else hdd_path(disk, 'o'), at)
    start, stop = span
    first, last = start // BLOCK_BYTES, (stop - 1) // BLOCK_BYTES
    if not first <= at // BLOCK_BYTES <= last:
        assert read(disk, start, stop) == BODY[start:stop]
        return
    disk_file = disk.open_file('o')
    with disk_file.open():
        reader = disk_file.reader()
    given = b''
    with pytest.raises(RottenBlock):
        for chunk in (reader if (start, stop) == (0, SIZE) else
                      reader.app_iter_range(start, stop)):
            given += chunk
    reader.close()
    assert given == BODY[start:max(
        start, at // BLOCK_BYTES * BLOCK_BYTES)]
    assert disk.lacking() and not disk.quarantined()
    assert disk.logger.counts['dss.errors.rotten'] == 1


@pytest.mark.parametrize('span', RANGES)
def test_the_other_tier_has_it(either_cache: Disk, green: None,
                               span: Any) -> None:
    disk = either_cache
    disk.put('o', BODY, BOTH)
    for at in (0, 65536, 70000, SIZE - 1):
        flip(disk.data_path('o'), at)
    assert read(disk, *span) == BODY[slice(*span)]
    assert not disk.quarantined()
    assert disk.logger.counts['dss.rotten.ssd'] == 1


def unreadable(disk: Disk, monkeypatch: Any, path: str, at: int) -> None:
    """The sector of a byte is bad: reads end before it, as the kernel's
    do, or begin with EIO."""
    real, bad = disk.carrier.pread, at - at % 4096

    def pread(fd: int, length: int, offset: int, class_id: int) -> bytes:
        if os.readlink('/proc/self/fd/%d' % fd) == path:
            if bad <= offset < bad + 4096:
                raise OSError(errno.EIO, 'bad sector')
            if offset < bad:
                length = min(length, bad - offset)
        return real(fd, length, offset, class_id)

    monkeypatch.setattr(disk.carrier, 'pread', pread)


@pytest.mark.parametrize('sums', [True, False])
@pytest.mark.parametrize('at', [0, 70000, SIZE - 1])
@pytest.mark.parametrize('span', RANGES)
def test_the_other_tier_has_what_cannot_be_read(
        disk: Disk, green: None, monkeypatch: Any, span: Any, at: int,
        sums: bool) -> None:
    if not sums:
        disk.without_sums()
    disk.put('o', BODY, BOTH)
    unreadable(disk, monkeypatch, disk.data_path('o'), at)
    assert read(disk, *span) == BODY[slice(*span)]
    assert not disk.quarantined()
    if span == (0, SIZE):
        assert disk.logger.counts['dss.rotten.ssd'] == 1


@pytest.mark.parametrize('class_map', [None, HDD])
def test_what_no_tier_can_read_is_not_given(
        disk: Disk, green: None, monkeypatch: Any, class_map: Any) -> None:
    disk.put('o', BODY, class_map)
    unreadable(disk, monkeypatch, disk.data_path('o') if class_map is None
               else hdd_path(disk, 'o'), 70000)
    assert read(disk, 0, 100) == BODY[:100]
    assert read(disk, 140000, SIZE) == BODY[140000:]
    with pytest.raises(RottenBlock):
        read(disk, 70000, 70001)
    assert disk.lacking() and not disk.quarantined()


@pytest.mark.parametrize('at', [70000, 99999, 100000, 131071])
def test_a_block_of_two_tiers_is_put_together_and_checked(
        either_cache: Disk, green: None, at: int) -> None:
    """From the SSD up to byte 100,000, and from the HDD behind it."""
    disk = either_cache
    disk.put('o', BODY, MIXED)
    flip(disk.data_path('o') if at < 100000 else hdd_path(disk, 'o'), at)
    with pytest.raises(RottenBlock):
        read(disk, at, at + 1)
    assert disk.lacking() and not disk.quarantined()


def test_what_is_wrong_on_both_tiers_is_not_given(
        disk: Disk, green: None) -> None:
    disk.put('o', BODY, BOTH)
    flip(disk.data_path('o'), 70000)
    flip(hdd_path(disk, 'o'), 70001)
    with pytest.raises(RottenBlock):
        read(disk, 70000, 70002)
    assert disk.lacking() and not disk.quarantined()


def test_what_s3_has_is_not_put_aside(disk: Disk) -> None:
    """It does not answer here; it may be asked again."""
    disk.put('o', BODY)
    path = disk.data_path('o')
    with open(path, 'rb') as source:
        residency_store.store(source.fileno(), Residency.whole(
            SIZE).with_remote(RemoteCopy('s3', 'k', 'e', 1.0)))
    flip(path, 70000)
    with pytest.raises(RottenBlock):
        read(disk, 70000, 70002)
    assert not disk.quarantined()


def test_a_version_of_before_is_taken_as_it_is(disk: Disk) -> None:
    disk.put('o', BODY)
    path = disk.data_path('o')
    with open(path, 'rb') as source:
        assert block_sums.remove(source.fileno())
    flip(path, 70000)
    assert disk.read('o', 70000, 70001) != BODY[70000:70001]


def test_damaged_sums_are_none(disk: Disk) -> None:
    disk.put('o', BODY)
    path = disk.data_path('o')
    raw = os.getxattr(path, names.XATTR_BLOCKS)
    os.setxattr(path, names.XATTR_BLOCKS, raw[:-1] + bytes([raw[-1] ^ 1]))
    assert disk.read('o') == BODY


def test_nothing_is_kept_or_checked_where_it_is_off(disk: Disk) -> None:
    disk.put('o', BODY)
    disk.without_sums()
    disk.put('p', BODY)
    assert names.XATTR_BLOCKS not in os.listxattr(disk.data_path('p'))
    flip(disk.data_path('o'), 70000)
    assert disk.read('o', 70000, 70001) != BODY[70000:70001]


def test_an_empty_object_has_no_sums(disk: Disk) -> None:
    disk.put('o', b'', size=0)
    assert disk.read('o') == b''


# -- what S3 has -------------------------------------------------------------


class Stream:
    """What the tier daemon would send."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def chunks(self) -> Any:
        yield from (self._data[:7], self._data[7:])

    def close(self) -> None:
        pass


def put_with_s3(disk: Disk, monkeypatch: Any, answer: Any = BODY,
                tiers: Tier = Tier.SSD) -> List[Any]:
    """A version that S3 has too; what it was asked for."""
    asked: List[Any] = []

    def fetch(_run_dir: str, request: Any) -> Any:
        asked.append(request)
        if isinstance(answer, Exception):
            raise answer
        return Stream(answer[request.offset:
                             request.offset + request.length])

    monkeypatch.setattr(extents, 'open_fetch', fetch)
    disk.put('o', BODY, HDD if tiers is Tier.HDD else None)
    with open(disk.data_path('o'), 'rb') as source:
        capacity_id = residency_store.load_capacity_id(source.fileno())
        residency_store.store(source.fileno(), Residency.whole(
            SIZE, tiers).with_remote(REMOTE), capacity_id)
    return asked


@pytest.mark.parametrize('tiers', [Tier.SSD, Tier.HDD])
@pytest.mark.parametrize('span', RANGES)
def test_s3_has_it(disk: Disk, green: None, monkeypatch: Any, span: Any,
                   tiers: Tier) -> None:
    asked = put_with_s3(disk, monkeypatch, tiers=tiers)
    path = disk.data_path('o') if tiers is Tier.SSD else hdd_path(disk, 'o')
    for at in range(0, SIZE, BLOCK_BYTES):
        flip(path, at)
    assert read(disk, *span) == BODY[slice(*span)]
    assert not disk.quarantined()
    blocks = range(span[0] // BLOCK_BYTES, -(-span[1] // BLOCK_BYTES))
    assert [request.offset // BLOCK_BYTES for request in asked] == list(blocks)
    assert not any(request.keep for request in asked)
    assert disk.logger.counts[
        'dss.rotten.%s' % ('ssd' if tiers is Tier.SSD else 'hdd')] == 1


def test_s3_has_other_bytes_too(disk: Disk, green: None,
                                monkeypatch: Any) -> None:
    put_with_s3(disk, monkeypatch, b'x' * SIZE)
    flip(disk.data_path('o'), 0)
    with pytest.raises(RottenBlock):
        disk.read('o')


@pytest.mark.parametrize('purpose', ['replicate', 'audit'])
def test_s3_is_asked_for_clients_alone(disk: Disk, green: None,
                                       monkeypatch: Any,
                                       purpose: str) -> None:
    asked = put_with_s3(disk, monkeypatch)
    flip(disk.data_path('o'), BLOCK_BYTES)
    disk_file = disk.open_file('o')
    disk_file.dss_purpose = purpose
    with disk_file.open():
        reader = disk_file.reader()
    if purpose == 'audit':
        assert b''.join(reader) == \
            BODY[:BLOCK_BYTES] + BODY[2 * BLOCK_BYTES:]
    else:
        with pytest.raises(RottenBlock):
            b''.join(reader)
    assert not asked and not disk.quarantined()
    assert disk.logger.counts['dss.rotten.ssd'] == 1


# -- answers of the server ---------------------------------------------------


def get(disk: Disk, monkeypatch: Any, text: str = '',
        headers: Any = None) -> Any:
    """(statuses, body, whether it broke) of a GET."""
    for policy, engine in zip(disk.policies, ('dss.fs', 'dss_ec.fs')):
        monkeypatch.setattr(
            policy, 'diskfile_module', 'egg:swift_dss#' + engine)
    server = DssObjectController(dict(
        disk.options, log_level='CRITICAL', swift_dir=disk.root))
    request = Request.blank('/sda/7/a/c/o')
    request.headers['X-Backend-Storage-Policy-Index'] = '0'
    request.headers.update(headers or {})
    if text:
        request.headers['Range'] = text
    said: List[str] = []
    given, broke = b'', False
    answer = server(request.environ,
                    lambda status, headers, **_: said.append(
                        status + dict(headers).get(
                            names.BACKEND_UNAVAILABLE, '')))
    try:
        for part in answer:
            given += part
    except RottenBlock:
        broke = True
    close_if_possible(answer)
    return said, given, broke


@pytest.mark.parametrize('text', ['', 'bytes=1-2', 'bytes=1-99999'])
def test_a_wrong_first_block_is_a_409(disk: Disk, green: None,
                                      monkeypatch: Any, text: str) -> None:
    """It stays in its place, so it is not gone."""
    disk.put('o', BODY)
    flip(disk.data_path('o'), 30000)
    said, given, broke = get(disk, monkeypatch, text)
    assert said[-1] == '409 Conflict15' and not broke
    assert b'Conflict' in given
    assert disk.lacking() and not disk.quarantined()


@pytest.mark.parametrize('text', [
    'bytes=65500-65600', 'bytes=65536-131071', 'bytes=65535-131070',
    'bytes=61441-131071'])
def test_so_is_one_that_comes_before_anything_is_sent(
        either_cache: Disk, green: None, monkeypatch: Any,
        text: str) -> None:
    """The server holds small bodies back, and would say 500."""
    disk = either_cache
    disk.put('o', BODY)
    flip(disk.data_path('o'), 70000)
    said, _, broke = get(disk, monkeypatch, text)
    assert said[-1] == '409 Conflict15' and not broke
    assert disk.lacking() and not disk.quarantined()


def test_a_later_one_ends_the_response(disk: Disk, green: None,
                                       monkeypatch: Any) -> None:
    disk.put('o', BODY)
    flip(disk.data_path('o'), 2 * BLOCK_BYTES)
    assert get(disk, monkeypatch) == (
        ['200 OK'], BODY[:2 * BLOCK_BYTES], True)
    assert disk.lacking() and not disk.quarantined()


def test_what_s3_has_and_does_not_give_now_is_a_409(
        disk: Disk, green: None, monkeypatch: Any) -> None:
    put_with_s3(disk, monkeypatch, RemoteUnavailable('away', 3))
    flip(disk.data_path('o'), 0)
    said, _, broke = get(disk, monkeypatch, 'bytes=0-1')
    assert said[-1] == '409 Conflict15' and not broke
    assert not disk.quarantined()


def test_answers_are_as_ever(disk: Disk, green: None,
                             monkeypatch: Any) -> None:
    disk.put('o', BODY)
    assert get(disk, monkeypatch) == (['200 OK'], BODY, False)
    assert get(disk, monkeypatch, 'bytes=5-99') == (
        ['206 Partial Content'], BODY[5:100], False)
    said, _, _ = get(disk, monkeypatch, 'bytes=%d-' % SIZE)
    assert said == ['416 Requested Range Not Satisfiable']


# -- fragments and what ssync sends -----------------------------------------


def test_a_fragment_is_checked(disk: Disk, green: None) -> None:
    disk.put('o', BODY, policy=1, frag_index=2)
    flip(disk.data_path('o', 1), 3 * BLOCK_BYTES)
    with pytest.raises(RottenBlock):
        disk.read('o', 3 * BLOCK_BYTES + 9, 3 * BLOCK_BYTES + 10, policy=1)
    assert disk.lacking() and not disk.quarantined()


@pytest.mark.parametrize('headers', [
    {}, {'X-Backend-Fragment-Preferences': '[]'},
    {'X-Backend-Fragment-Preferences': 'no JSON'}])
def test_another_fragment_is_given_for_a_wrong_one(
        disk: Disk, green: None, monkeypatch: Any, headers: Any) -> None:
    headers = dict(headers, **{'X-Backend-Storage-Policy-Index': '1'})
    for index in (0, 2):
        disk.put('o', b'%d' % index + BODY, policy=1, frag_index=index,
                 timestamp='1700000000')
    folder = os.path.dirname(disk.data_path('o', 1))
    name = os.path.join(folder, '1700000000.00000#%d#d.data')
    # One of an older version is none of this one.
    shutil.copy(name % 0, os.path.join(folder, '1600000000.00000#1#d.data'))
    assert get(disk, monkeypatch, 'bytes=0-0', headers)[1] == b'2'
    flip(name % 2, 1)
    said, given, broke = get(disk, monkeypatch, 'bytes=0-0', headers)
    assert (said[-1], given, broke) == ('206 Partial Content', b'0', False)
    assert disk.lacking()
    # The caller has that one.
    excluded = json.dumps([{'timestamp': '1700000000.00000',
                            'exclude': [0]}])
    assert get(disk, monkeypatch, '', dict(headers, **{
        'X-Backend-Fragment-Preferences': excluded}))[0][-1] == \
        '409 Conflict15'
    flip(name % 0, 1)
    assert get(disk, monkeypatch, 'bytes=0-0', headers)[0][-1] == \
        '409 Conflict15'


def test_another_fragment_is_given_for_a_stub_that_s3_lacks(
        disk: Disk, green: None, monkeypatch: Any) -> None:
    for index in (0, 2):
        disk.put('o', b'%d' % index + BODY, policy=1, frag_index=index,
                 timestamp='1700000000')
    path = disk.data_path('o', 1)
    assert '#2#' in path
    with open(path, 'r+b') as target:
        residency_store.store(target.fileno(), Residency.whole(
            SIZE + 1, Tier.REMOTE).with_remote(REMOTE))
        target.truncate(0)
        target.truncate(SIZE + 1 + STUB_SURPLUS)

    def fetch(_run_dir: str, request: Any) -> Any:
        raise RemoteUnavailable('no such key', 3)

    monkeypatch.setattr(extents, 'open_fetch', fetch)
    policy = {'X-Backend-Storage-Policy-Index': '1'}
    said, given, _ = get(disk, monkeypatch, 'bytes=0-0', policy)
    assert (said[-1], given) == (PART, b'0')
    os.unlink(os.path.join(os.path.dirname(path),
                           '1700000000.00000#0#d.data'))
    assert get(disk, monkeypatch, 'bytes=0-0', policy)[0][-1] == \
        '409 Conflict3'


def test_a_rebuild_gets_fragments_of_its_own_write_alone(
        disk: Disk, green: None, monkeypatch: Any) -> None:
    """Swift rebuilds one write from fragments of another, if it gets
    enough."""
    disk.put('o', BODY, policy=1, frag_index=2, timestamp='1700000000')

    def status(stamp: str, **headers: str) -> str:
        return str(get(disk, monkeypatch, 'bytes=0-9', dict({
            'X-Backend-Storage-Policy-Index': '1',
            'X-Backend-Fragment-Preferences': json.dumps(
                [{'timestamp': stamp, 'exclude': []}] if stamp else [])},
            **headers))[0][-1])
    rebuild = {'X-Backend-Replication': 'True'}
    for stamp in ('1600000000.00000', '1800000000.00000'):
        assert status(stamp, **rebuild) == '409 Conflict'
        # A proxy looks at the timestamps itself.
        assert status(stamp) == PART
    assert status('1700000000.00000', **rebuild) == PART
    assert status('', **rebuild) == PART
