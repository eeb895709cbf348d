"""MP4: the index and key frames, by the boxes."""

from __future__ import annotations

import struct

import pytest
from support.format_files import (
    MIB, Recorder, box, film, full, sparse, track)

from swift_dss.client.formats.contract import BadFile
from swift_dss.client.formats.plan import Limits

#: All optional ranges.
ALL = Limits(share=1.0)


def covers(ranges, offset, length):
    return any(start <= offset and offset + length <= start + size
               for start, size in ranges)


@pytest.mark.parametrize('moov_first', [False, True])
def test_moov_and_key_frames_are_hot(tmp_path, classify, moov_first):
    frames = film(tmp_path / 'f', moov_first=moov_first)
    made = classify(tmp_path / 'f', limits=ALL)
    assert made.format_name == 'mp4' and made.plan.left_out == 0
    assert all(covers(made.plan.ranges, *frame) for frame in frames)
    raw = (tmp_path / 'f').read_bytes()
    at = raw.index(b'moov') - 4
    length, = struct.unpack('>I', raw[at:at + 4])
    assert covers(made.plan.ranges, at, length)
    # The frames between stay cold.
    assert made.plan.hot_bytes < 0.4 * made.size


def test_a_large_film_is_hot_by_2_percent(tmp_path, classify):
    film(tmp_path / 'f', frames=12000, frame_bytes=20000)
    made = classify(tmp_path / 'f')
    assert made.size > 200 * MIB
    assert made.plan.hot_bytes <= 0.02 * made.size
    assert made.plan.left_out and len(made.plan.ranges) > 50


def test_sizes_offsets_and_chunks_of_every_kind(tmp_path, classify):
    start = 1 << 33
    sizes = [5000 + number for number in range(100)]
    moov = box(b'moov', track(b'soun', [9] * 10, [start - 9000], 10,
                             wide=True),
               track(b'vide', sizes, [
                   start + at * 50 * MIB for at in range(10)], 10, [
                       1, 15, 20, 91], wide=True))
    ftyp = box(b'ftyp', b'qt  ')
    mdat = 8 + len(ftyp) + len(moov)
    sparse(tmp_path / 'f', start + 600 * MIB, [
        (0, ftyp + moov + struct.pack(
            '>I4sQ', 1, b'mdat', start + 600 * MIB - mdat + 8))])
    made = classify(tmp_path / 'f', limits=ALL)
    for number in (1, 15, 20, 91):
        first = (number - 1) // 10 * 10
        offset = start + first // 10 * 50 * MIB + sum(
            sizes[first:number - 1])
        assert covers(made.plan.ranges, offset, sizes[number - 1])
    assert covers(made.plan.ranges, start - 9000, 90)


def test_fragments(tmp_path, classify):
    ftyp = box(b'ftyp', b'iso5', box(b'sidx', bytes(30)))
    parts = [(0, ftyp)]
    at = len(ftyp)
    for _ in range(60):
        moof = box(b'moof', bytes(500))
        parts += [(at, moof), (at + len(moof), struct.pack(
            '>I4s', MIB, b'mdat'))]
        at += len(moof) + MIB
    mfra = box(b'mfra', bytes(400))
    sparse(tmp_path / 'f', at + len(mfra), [*parts, (at, mfra)])
    made = classify(tmp_path / 'f')
    assert covers(made.plan.ranges, at, len(mfra))
    assert all(covers(made.plan.ranges, offset, len(part))
               for offset, part in parts[:20])


def of_moov(tmp_path, *boxes):
    path = tmp_path / 'f'
    path.write_bytes(box(b'ftyp', b'isom') + box(b'moov', *boxes)
                     + bytes(1000))
    return path


def stbl(*tables):
    return box(b'trak', box(b'mdia', full(b'hdlr', 0, raw=b'vide'),
                            box(b'minf', box(b'stbl', *tables))))


SIZES = full(b'stsz', 10, 4)
RUNS = full(b'stsc', 1, 1, 4, 1)
CHUNKS = full(b'stco', 1, 100)


@pytest.mark.parametrize('boxes, said', [
    ([stbl(SIZES, RUNS)], 'MP4 box stbl at .*lacks stsz, stsc or stco'),
    ([box(b'trak')], 'MP4 box trak at .*has no box mdia'),
    ([stbl(full(b'stsz', 0, 1 << 31), RUNS, CHUNKS)],
     'MP4 box stsz at .*claims'),
    ([stbl(full(b'stz2', 5, 1, 0), RUNS, CHUNKS)], 'has sizes of 5 bits'),
    ([stbl(SIZES, RUNS, full(b'stco', 1, 1 << 31))], 'MP4 box stbl at 2147'),
    ([stbl(SIZES, RUNS, CHUNKS, full(b'stss', 2, 3, 2))], 'is not sorted'),
    ([stbl(SIZES, RUNS, full(b'stco', 2, 100, 150),
           full(b'stss', 1, 5))], 'names sample 5 of 4'),
    ([stbl(full(b'stsz', 0, 4, 1, 1, 1, 1 << 30), RUNS, CHUNKS,
           full(b'stss', 1, 4))], 'MP4 box stss at .*claims'),
    ([struct.pack('>I4s', 99999, b'trak')], 'MP4 box trak at .*claims 99999'),
    ([struct.pack('>I4s', 4, b'trak')], 'MP4 box trak at .*claims 4'),
    ([box(b'free')] * 5000, 'holds more than 4096 boxes')])
def test_damage_is_named(tmp_path, classify, boxes, said):
    with pytest.raises(BadFile, match=said):
        classify(of_moov(tmp_path, *boxes))


def test_sizes_of_8_16_and_4_bits(tmp_path, classify):
    for bits, raw in ((8, b'\1\2\3'), (16, b'\0\1\0\2\0\3'),
                      (4, b'\x12\x30')):
        path = of_moov(tmp_path, stbl(
            full(b'stz2', bits, 3, raw=raw), full(b'stsc', 1, 1, 3, 1),
            CHUNKS, full(b'stss', 1, 3)))
        assert classify(path).plan.ranges


def test_the_first_frame_reads_hot_bytes_only(tmp_path, classify):
    av = pytest.importorskip('av')
    numpy = pytest.importorskip('numpy')
    path = str(tmp_path / 'f.mp4')
    noise = numpy.random.default_rng(5)
    with av.open(path, 'w') as made:
        stream = made.add_stream('mpeg4', rate=24)
        stream.width, stream.height, stream.bit_rate = 640, 360, 20000000
        for _ in range(240):
            frame = av.VideoFrame.from_ndarray(noise.integers(
                0, 255, (360, 640, 3), dtype='uint8'), format='rgb24')
            made.mux(stream.encode(frame))
        made.mux(stream.encode())
    made = classify(path)
    read = Recorder(path)
    with av.open(read) as opened:
        next(opened.decode(video=0))
    assert read.reads and read.cold(made.plan.ranges) == []
    assert made.plan.hot_bytes < made.size
