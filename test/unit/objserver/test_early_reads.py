"""A GET's first read begins before its answer is made."""

from __future__ import annotations

import io
import os
from typing import Any, Iterator, List, Optional, Tuple

import pytest
from support.rigs.dss_disk import Disk, Full
from swift.common.swob import Request
from swift.common.utils import Timestamp

from swift_dss.core.spans import ClassMap, Span
from swift_dss.io.probe import AHEAD_BYTES, CHUNK_BYTES
from swift_dss.objserver.extents import VersionBytes
from swift_dss.objserver.server import DssObjectController, _first_range

BODY = os.urandom(3 * CHUNK_BYTES + 100)


class Watched(Full):
    """Notes what is asked for; has nothing at first if it is ``cold``."""

    def __init__(self, cold: bool = False) -> None:
        super().__init__()
        self.asked: List[Tuple[int, int, int]] = []
        self._cold = cold

    def look(self, carrier: Any, fd: int, length: int, offset: int,
             class_id: int) -> int:
        self.asked.append((offset, length, class_id))
        if self._cold and len(self.asked) == 1:
            return 0
        return super().look(carrier, fd, length, offset, class_id)


def begun(disk: Disk, cache: Watched, name: str,
          wanted: Optional[Tuple[int, int]]) -> Any:
    """The reader of a diskfile whose request is about to read a range."""
    disk.node.page_cache = cache
    disk_file = disk.open_file(name)
    disk_file.dss_range = wanted
    with disk_file.open():
        return disk_file.reader()


def trips(disk: Disk) -> int:
    return disk.pools().get('ssd-sda', {}).get('jobs', 0)


def test_what_is_there_by_then_makes_no_trip(
        disk: Disk, green: None) -> None:
    disk.put('o', BODY[:4096], ClassMap.uniform(5))
    before = trips(disk)
    cache = Watched(cold=True)
    reader = begun(disk, cache, 'o', (0, -1))
    assert cache.asked == [(0, 4096, 5)]
    assert b''.join(reader) == BODY[:4096]
    assert cache.asked == [(0, 4096, 5)] * 2
    assert trips(disk) == before


@pytest.mark.parametrize('size', [
    100, CHUNK_BYTES, len(BODY), 2 * AHEAD_BYTES])
def test_what_was_there_at_once_is_not_read_again(
        disk: Disk, size: int) -> None:
    body = os.urandom(size)
    disk.put('o', body)
    cache = Watched()
    assert b''.join(begun(disk, cache, 'o', (0, -1))) == body
    assert [request[:2] for request in cache.asked] == [
        (0, min(size, CHUNK_BYTES))] + [
        (at, min(AHEAD_BYTES, size - at))
        for at in range(CHUNK_BYTES, size, AHEAD_BYTES)]


@pytest.mark.parametrize('wanted', [(0, -1), (5, 9), (CHUNK_BYTES, -1)])
def test_another_range_than_was_foretold_is_right_too(
        disk: Disk, wanted: Tuple[int, int]) -> None:
    disk.put('o', BODY)
    for start, stop in ((0, 7), (5, 9), (4, 20), (70000, 180000)):
        reader = begun(disk, Watched(), 'o', wanted)
        assert b''.join(reader.app_iter_range(start, stop)) == \
            BODY[start:stop]


@pytest.mark.parametrize('wanted', [None, (len(BODY), -1), (9, 9)])
def test_nothing_is_begun_without_need(
        disk: Disk, wanted: Optional[Tuple[int, int]]) -> None:
    disk.put('o', BODY)
    cache = Watched()
    begun(disk, cache, 'o', wanted).close()
    assert not cache.asked


def test_nothing_is_begun_of_what_the_hdd_or_several_classes_have(
        disk: Disk) -> None:
    disk.put('cold', BODY, ClassMap.uniform(2))
    disk.put('mixed', BODY, ClassMap.from_spans([Span(0, 9, 1)], rest=5))
    cache = Watched()
    for name in ('cold', 'mixed'):
        begun(disk, cache, name, (0, -1)).close()
    assert not cache.asked


@pytest.mark.parametrize('headers, expected', [
    ({}, (0, -1)),
    ({'Range': 'bytes=5-9'}, (5, 10)),
    ({'Range': 'bytes=0-0'}, (0, 1)),
    ({'Range': 'bytes=5-'}, (5, -1)),
    ({'Range': 'bytes=-5'}, None),
    ({'Range': 'bytes=1-2,5-6'}, None),
    ({'Range': 'bytes=x'}, None),
    ({'If-None-Match': '"x"'}, None),
    ({'If-Modified-Since': 'Sun, 22 Nov 2026 08:00:00 GMT'}, None)])
def test_what_a_request_will_read(
        headers: Any, expected: Optional[Tuple[int, int]]) -> None:
    assert _first_range(Request.blank('/sda/7/a/c/o', headers=headers)) == \
        expected


@pytest.mark.parametrize('method, headers, expected', [
    # Begun, and then read: whole blocks.
    ('GET', {}, [0, 0]), ('GET', {'Range': 'bytes=10-19'}, [0, 0]),
    ('HEAD', {}, [])])
def test_only_a_get_begins_to_read(
        disk: Disk, monkeypatch: Any, method: str, headers: Any,
        expected: List[int]) -> None:
    dss_server = _server(disk, monkeypatch)
    cache = disk.node.page_cache = Watched(cold=True)
    said: List[str] = []
    answer = dss_server(_environ(method, b'', headers),
                        lambda status, *_: said.append(status))
    assert [offset for offset, *_ in cache.asked] == expected
    body = b''.join(answer)
    assert said[0][0] == '2'
    assert len(body) == {'HEAD': 0, 'GET': 10 if headers else 4096}[method]


@pytest.mark.parametrize('headers, is_cold, held', [
    ({}, False, 0), ({}, True, 1),
    ({'Range': 'bytes=10-19'}, False, 0),
    ({'Range': 'bytes=10-19'}, True, 1),
    # Its first bytes are not those that were foretold.
    ({'Range': 'bytes=-10'}, False, 1),
    ({'Range': 'bytes=10-19', 'X-Backend-Ignore-Range-If-Metadata-Present':
      'Content-Type'}, False, 1)])
def test_only_an_answer_with_nothing_proven_yet_is_held_back(
        disk: Disk, monkeypatch: Any, headers: Any, is_cold: bool,
        held: int) -> None:
    dss_server = _server(disk, monkeypatch)
    disk.node.page_cache = Watched(cold=is_cold)
    taken: List[bytes] = []

    def read(self: Any, *args: Any) -> Iterator[bytes]:
        for chunk in real(self, *args):
            taken.append(chunk)
            yield chunk

    real = VersionBytes.read
    monkeypatch.setattr(VersionBytes, 'read', read)
    body = dss_server(_environ('GET', b'', headers), lambda *_: None)
    # An answer that is held back takes bytes before anybody asks for them.
    assert len(taken) == held
    answer = b''.join(body)
    assert len(taken) == 1
    assert len(answer) == (
        10 if 'Range' in headers and len(headers) == 1 else 4096)


def _server(disk: Disk, monkeypatch: Any) -> DssObjectController:
    """An object server with an object of 4 KiB."""
    monkeypatch.setattr(
        disk.policies[0], 'diskfile_module', 'egg:swift_dss#dss.fs')
    made = DssObjectController(dict(
        disk.options, log_level='ERROR', swift_dir=disk.root))
    put = made(_environ('PUT', BODY[:4096], {
        'Content-Type': 'a/b', 'Content-Length': '4096',
        'X-Timestamp': Timestamp.now().internal}), lambda *_: None)
    b''.join(put)
    return made


def _environ(method: str, body: bytes, headers: Any) -> Any:
    made = Request.blank('/sda/7/a/c/early', environ={
        'REQUEST_METHOD': method, 'wsgi.input': io.BytesIO(body)})
    made.headers.update(headers)
    made.headers['X-Backend-Storage-Policy-Index'] = '0'
    return made.environ
