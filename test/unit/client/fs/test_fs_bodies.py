"""What waits to be sent is hashed side by side, in memory used again."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import random
import threading
import weakref

import pytest

pytest.importorskip('aiohttp')
pytest.importorskip('tenacity')

from support.edges.swift_objects import Swift

from swift_dss.client.fs.large import Large
from swift_dss.client.fs.writing import bodies
from swift_dss.client.fs.writing.bodies import Body
from swift_dss.client.fs.writing.segments import Cutter
from swift_dss.client.fs.writing.upload import Target, Upload

MIB = 1 << 20
NEEDS_LANES = pytest.mark.skipif(
    bodies.md5_lanes is None, reason='md5_lanes was not compiled')


@pytest.fixture(params=[pytest.param('lanes', marks=NEEDS_LANES), 'hashlib'])
def form(request, monkeypatch):
    if request.param == 'hashlib':
        monkeypatch.setattr(bodies, 'md5_lanes', None)
    return request.param


@pytest.fixture
def passes(monkeypatch):
    """How many bodies were hashed side by side, pass by pass."""
    counts, update = [], bodies.md5_lanes.update

    def counting(runs):
        counts.append(len(runs))
        update(runs)
    monkeypatch.setattr(bodies.md5_lanes, 'update', counting)
    return counts


def filled(*contents):
    """Bodies of one file, one after another."""
    made = []
    for content in contents:
        made.append(Body(made[-1] if made else None))
        made[-1].append(memoryview(content))
    return made


def md5(data):
    return hashlib.md5(data).hexdigest()


def test_each_has_the_md5_of_its_bytes(form):
    seed = random.randrange(1 << 32)
    print('seed', seed)
    source = random.Random(seed)
    contents = [source.randbytes(source.choice(
        (0, 1, 1000, MIB - 1, MIB, MIB + 1, 5 * MIB + 77, 9 * MIB)))
        for _ in range(20)]
    made = filled(*contents)
    order = list(range(len(made)))
    source.shuffle(order)
    for number in order:
        assert made[number].etag == md5(contents[number])
    assert [b''.join(body.pieces) for body in made] == contents
    assert list(map(len, made)) == list(map(len, contents))


def test_the_last_one_grows_while_others_are_hashed(form):
    data = random.randbytes(24 * MIB + 5)
    first, last = filled(data, b'')

    def grow():
        for at in range(0, len(data), 77777):
            last.append(memoryview(data)[at:at + 77777])
    thread = threading.Thread(target=grow)
    thread.start()
    assert first.etag == md5(data)
    thread.join()
    assert last.etag == md5(data)


@NEEDS_LANES
def test_later_ones_are_hashed_beside_the_first(passes):
    made = filled(*(random.randbytes(4 * MIB) for _ in range(3)))
    assert made[0].etag and passes == [3] * 4
    assert made[1].etag and made[2].etag and len(passes) == 4


@NEEDS_LANES
def test_a_piece_that_still_grows_waits(passes):
    made = filled(b'x' * 3 * MIB, b'y' * (MIB + 5))
    assert made[0].etag and passes == [2, 1, 1]
    made[1].append(memoryview(b'z'))
    assert made[1].etag == md5(b'y' * (MIB + 5) + b'z')


@NEEDS_LANES
def test_there_are_no_more_runs_than_lanes(passes):
    made = filled(*[b'x' * MIB] * (bodies.md5_lanes.LANES + 3))
    assert made[0].etag and passes == [bodies.md5_lanes.LANES]
    assert made[-1].etag == md5(b'x' * MIB)


def test_memory_of_one_that_was_sent_is_used_again(form):
    first, second = filled(b'x' * 3 * MIB, b'y' * MIB)
    were = {id(piece.obj) for piece in first.pieces}
    etag = first.etag
    first.free()
    second.append(memoryview(b'z' * 2 * MIB))
    assert were >= {id(piece.obj) for piece in second.pieces[1:]}
    assert (first.etag, len(first), first.pieces) == (etag, 3 * MIB, [])
    assert second.etag == md5(b'y' * MIB + b'z' * 2 * MIB)


def test_a_cutter_that_gave_its_last_segment_keeps_nothing(form):
    cutter = Cutter(MIB, 10)
    cut = list(cutter.add(memoryview(b'x' * 3 * MIB), None))
    cut.append(cutter.take_last())
    assert [len(segment) for segment in cut] == [MIB] * 3
    gone = [weakref.ref(segment) for segment in cut]
    del cut
    gc.collect()
    assert [segment() for segment in gone] == [None] * 3


def test_a_file_is_written_in_memory_of_a_few_segments(form):
    """Its segments use again what those before them had."""
    swift = Swift()
    content = random.randbytes(20 * MIB)
    pieces = {}

    async def run():
        upload = Upload(swift, Large(swift), Target('c', 'o'), uploads=2)
        cutter = Cutter(2 * MIB, 10)
        for segment in cutter.add(memoryview(content), None):
            pieces.update((id(piece.obj), piece.obj)
                          for piece in segment.pieces)
            await upload.add(segment)
        await upload.finish(cutter.take_last())
    asyncio.run(run())
    assert len(pieces) <= 2 * 3
    stored = [swift.objects[path] for path in sorted(swift.objects)
              if path.startswith('c_segments/')]
    assert b''.join(body for _, body in stored) == content
    assert [headers['ETag'] for headers, _ in stored] == [
        md5(body) for _, body in stored]
