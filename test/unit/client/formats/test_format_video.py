"""Video other than MP4: the first frame and jumps read hot bytes only."""

from __future__ import annotations

import os

import pytest
from support.format_files import Recorder

from swift_dss.client.formats.contract import BadFile
from swift_dss.client.formats.plan import Limits

av = pytest.importorskip('av')
numpy = pytest.importorskip('numpy')


@pytest.fixture(scope='module', params=['mkv', 'avi', 'ts'])
def movie(request, tmp_path_factory):
    path = str(tmp_path_factory.mktemp('v') / ('f.' + request.param))
    noise = numpy.random.default_rng(5).integers(
        0, 255, (360, 640, 3), dtype='uint8')
    with av.open(path, 'w') as made:
        stream = made.add_stream('mpeg4', rate=24)
        stream.width, stream.height, stream.bit_rate = 640, 360, 20000000
        for number in range(120):
            frame = av.VideoFrame.from_ndarray(
                numpy.roll(noise, number, axis=1), format='rgb24')
            made.mux(stream.encode(frame))
        made.mux(stream.encode())
    return path


def test_the_first_frame_reads_hot_bytes_only(movie, classify):
    made = classify(movie)
    assert made.format_name == 'video'
    read = Recorder(movie)
    with av.open(read) as opened:
        next(opened.decode(video=0))
    assert read.reads and read.cold(made.plan.ranges) == []


def test_key_frames_are_hot_where_there_is_room(movie, classify):
    few = classify(movie, limits=Limits(share=0.0)).plan
    many = classify(movie, limits=Limits(share=1.0)).plan
    with av.open(movie) as opened:
        frames = [packet.pos for packet in opened.demux(video=0)
                  if packet.is_keyframe and packet.pos is not None]
    assert 5 < len(frames) < 30 and few.left_out
    for frame in frames:
        assert any(start - 16 <= frame < start + length
                   for start, length in many.ranges)
    assert few.hot_bytes < many.hot_bytes < 0.9 * os.path.getsize(movie)


def test_damage_is_named(tmp_path, classify):
    (tmp_path / 'f').write_bytes(b'\x1a\x45\xdf\xa3' + bytes(5000))
    with pytest.raises(BadFile, match='video at '):
        classify(tmp_path / 'f')
