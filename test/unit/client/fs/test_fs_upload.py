"""Uploads and their segments: what is published, removed, and kept."""

from __future__ import annotations

import asyncio
import errno
import json

import pytest

pytest.importorskip('aiohttp')
pytest.importorskip('tenacity')

from support.edges.swift_objects import Swift

from swift_dss.client.fs.errors import error_of, marked_unsure
from swift_dss.client.fs.large import Large, Rooms
from swift_dss.client.fs.writing.segments import Cutter, Segment
from swift_dss.client.fs.writing.upload import Target, Upload


def write(swift, body, end=True, **target):
    """Write ``body`` to ``c/o`` in segments of ten bytes."""
    async def run():
        upload = Upload(swift, Large(swift), Target('c', 'o', **target))
        cutter = Cutter(10, 100)
        try:
            for segment in cutter.add(memoryview(body), None):
                await upload.add(segment)
            if end:
                await upload.finish(cutter.last)
            else:
                await upload.abort()
        except OSError:
            await upload.abort()
            raise
    asyncio.run(run())


def segments(swift):
    return sorted(path for path in swift.objects
                  if path.startswith('c_segments/'))


def test_a_small_object_is_one_put():
    swift = Swift()
    write(swift, b'0123456789', class_id=25)
    assert swift.objects['c/o'][1] == b'0123456789'
    assert swift.objects['c/o'][0]['X-DSS-Object-Class'] == '25'
    assert segments(swift) == []


def test_a_large_one_is_a_manifest_of_its_segments():
    swift = Swift(c={'X-Storage-Policy': 'p', 'X-DSS-Container-Class': '3'})
    write(swift, b'0123456789abc')
    rows = json.loads(swift.objects['c/o'][1])
    assert [row['path'] for row in rows] == [
        '/' + path for path in segments(swift)]
    assert [row['size_bytes'] for row in rows] == [10, 3]
    assert swift.containers['c_segments'] == swift.containers['c']


def test_a_request_that_was_sent_holds_no_segment():
    """Clients of HTTP keep it until the collector comes by."""
    swift = Swift()
    write(swift, b'0123456789' * 4)
    sent = [request for request in swift.seen
            if request.method == 'PUT' and 'c_segments/' in request.path]
    assert len(sent) == 4
    assert not any(request.body for request in sent)


def test_an_aborted_upload_leaves_nothing():
    swift = Swift()
    write(swift, b'x' * 35, end=False)
    assert swift.objects == {}


@pytest.mark.parametrize('where', ['c_segments/o/', 'c/o'])
def test_a_refused_upload_leaves_nothing(where):
    swift = Swift()
    swift.plan['PUT', where] = PermissionError(13, 'refused')
    with pytest.raises(PermissionError):
        write(swift, b'x' * 35)
    assert swift.objects == {}


@pytest.mark.parametrize('body, where', [
    (b'x' * 35, 'c_segments/o/'), (b'x' * 5, 'c/o')])
def test_a_byte_that_changed_on_the_way_stores_nothing(body, where):
    swift = Swift()
    swift.damaged = where
    with pytest.raises(OSError) as caught:
        write(swift, body)
    assert caught.value.errno == errno.EIO
    assert swift.objects == {}


@pytest.mark.parametrize('error', [
    TimeoutError(), ConnectionError(),
    error_of(503, 'PUT', 'c/o', b''), error_of(507, 'PUT', 'c/o', b''),
    marked_unsure(error_of(412, 'PUT', 'c/o', b''))])
def test_segments_stay_if_the_object_may_be_stored(error):
    swift = Swift()
    swift.plan['PUT', 'c/o'] = error
    with pytest.raises(type(error)):
        write(swift, b'x' * 35)
    assert len(segments(swift)) == 4


def test_a_replaced_objects_segments_go_with_it():
    swift = Swift()
    write(swift, b'x' * 35)
    first = segments(swift)
    write(swift, b'y' * 25)
    assert len(segments(swift)) == 3
    assert not set(first) & set(segments(swift))
    write(swift, b'z')
    assert segments(swift) == []


@pytest.mark.parametrize('containers', [{}, {'c_segments': {}}])
def test_many_writes_at_once_ask_once_for_a_container_of_segments(containers):
    swift = Swift(**containers)

    async def run():
        large = Large(swift)

        async def one(number):
            upload = Upload(swift, large, Target('c', str(number)))
            await upload.finish(Segment(0))
        await asyncio.gather(*map(one, range(50)))
    asyncio.run(run())
    assert len(swift.objects) == 50
    assert [request.method for request in swift.seen
            if request.path == 'c_segments'] == ['HEAD']


def test_an_answer_of_the_time_before_hides_no_container_of_segments():
    """A question is under way while a large object makes the container."""
    swift = Swift()

    async def run():
        rooms = Rooms(swift)
        asked = asyncio.ensure_future(rooms.has('c'))
        await asyncio.sleep(0)  # it has begun
        rooms.made('c')
        assert await rooms.has('c')
        assert await asked
        assert await rooms.has('c')
    asyncio.run(run())


def test_a_write_that_is_given_up_ends_no_question_of_others():
    swift = Swift()

    async def run():
        rooms = Rooms(swift)
        first, second = (asyncio.ensure_future(rooms.has('c'))
                         for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert await second is False
    asyncio.run(run())


def test_a_question_without_an_answer_is_asked_again():
    swift = Swift()
    swift.plan['HEAD', 'c_segments'] = ConnectionError('gone')

    async def run():
        rooms = Rooms(swift)
        with pytest.raises(ConnectionError):
            await rooms.has('c')
        swift.plan.clear()
        assert await rooms.has('c') is False
    asyncio.run(run())


def test_segments_that_another_tool_made_stay():
    swift = Swift(c_segments={})
    swift.objects['c_segments/o/1700000000/00'] = {}, b'x'
    swift.objects['c_segments/other/dss-%016x/00' % 1] = {}, b'x'
    swift.objects['c/o'] = {'X-Static-Large-Object': 'True'}, json.dumps([
        {'path': '/' + path, 'etag': '', 'size_bytes': 1}
        for path in segments(swift)]).encode()
    before = segments(swift)
    write(swift, b'new')
    assert segments(swift) == before


@pytest.mark.parametrize('name', ['X-Versions-Enabled',
                                  'X-Versions-Location',
                                  'X-History-Location'])
def test_segments_of_kept_versions_stay(name):
    swift = Swift()
    write(swift, b'x' * 35)
    swift.containers['c'][name] = 'True'
    write(swift, b'new')
    assert len(segments(swift)) == 4


@pytest.mark.parametrize('meanwhile', [
    None, ({}, b'small'), ({}, b'[{"name": "/c_segments/o"}]')])
def test_an_object_that_changes_before_its_manifest_is_read(meanwhile):
    """Between two looks at what is replaced it is deleted, or written by
    another."""
    swift = Swift()
    write(swift, b'x' * 35)

    class Meets(Swift):
        def GET(self, request):
            if request.path == 'c/o' and request.query:
                self.objects.pop('c/o')
                if meanwhile is None:
                    return 404, {}, b''
                self.objects['c/o'] = meanwhile
                return (200, *meanwhile)
            return super().GET(request)
    swift.__class__ = Meets
    write(swift, b'new')
    assert swift.objects['c/o'][1] == b'new'


def test_a_copy_of_an_object_that_changes_is_an_error():
    swift = Swift()
    write(swift, b'x' * 35)
    swift.objects['c/o'] = {}, b'small'

    async def run():
        with pytest.raises(OSError, match='changed'):
            await Large(swift).pieces('c', 'o')
    swift.GET = lambda request: (200, *swift.objects[request.path])
    asyncio.run(run())


def test_removing_old_segments_may_fail():
    swift = Swift()
    write(swift, b'x' * 35)
    swift.plan['DELETE', 'c_segments'] = OSError(5, 'broken')
    write(swift, b'new')
    assert swift.objects['c/o'][1] == b'new'


def test_ranges_that_older_servers_refuse_are_left_out():
    swift = Swift()

    async def run():
        upload = Upload(swift, Large(swift), Target('c', 'o', 3))
        first, last = Segment(0), Segment(10)
        first.add(memoryview(b'0123456789'), 25)
        last.add(memoryview(b'x'), None)
        await upload.add(first)
        await upload.finish(last)
    refusal = swift.PUT
    swift.PUT = lambda request: (400, {}, b'') if request.query and \
        'X-DSS-Range-Class' in request.headers else refusal(request)
    asyncio.run(run())
    said = [swift.objects[path][0].get('X-DSS-Object-Class')
            for path in segments(swift) + ['c/o']]
    assert said == ['25', '3', '3']
    assert [request.headers.get('X-DSS-Range-Class') for request in swift.seen
            if request.query] == ['0-10-25', None]
