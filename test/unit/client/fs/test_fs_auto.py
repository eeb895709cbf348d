"""``auto``: the bytes that open a file get their class as it is written."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip('aiohttp')
pytest.importorskip('tenacity')

from support.edges.swift_objects import Swift

from swift_dss.client.formats import known
from swift_dss.client.formats.contract import MissingLibrary
from swift_dss.client.fs.errors import error_of
from swift_dss.client.fs.large import Large
from swift_dss.client.fs.writing import auto, whole
from swift_dss.client.fs.writing.auto import (
    Auto, InMemory, merged, outside, within)
from swift_dss.client.fs.writing.segments import Cutter
from swift_dss.client.fs.writing.upload import Target, Upload
from swift_dss.core.spans import Span
from swift_dss.wire.dssfile import Decoder

HOT, GIVEN, SPANS = 1, 25, 2048


def archive(members=50, size=4000):
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w') as target:
        for number in range(members):
            target.writestr('m%d' % number, os.urandom(size))
    return out.getvalue()


def write(swift, pieces, segment_bytes, most_spans=SPANS):
    """Write (bytes, class) pieces to ``c/o``."""
    async def run():
        upload = Upload(swift, Large(swift), Target(
            'c', 'o', auto=Auto(HOT, most_spans)))
        cutter = Cutter(segment_bytes, 1000)
        try:
            for data, class_id in pieces:
                for segment in cutter.add(memoryview(data), class_id):
                    await upload.add(segment)
            await upload.finish(cutter.last)
        except BaseException:
            await upload.abort()
            raise
    asyncio.run(run())


def classes_sent(swift, path, size):
    """The class of every byte by all requests for an object, in order."""
    classes = [0] * size
    for request in swift.seen:
        if request.path != path or request.method not in ('PUT', 'POST'):
            continue
        if ('dss-classes', '') in request.query:
            section = b''.join(map(bytes, request.body))
            decoder = Decoder(content_length=len(section) + size,
                              max_spans=SPANS)
            decoder.feed(section)
            spans = decoder.class_map.split(0, size)
            classes = [0] * size
        else:
            classes = [int(request.headers.get('X-DSS-Object-Class',
                                               0))] * size
            text = request.headers.get('X-DSS-Range-Class', '')
            spans = [Span(*map(int, part.split('-')))
                     for part in text.split(',') if part]
        end = 0
        for span in spans:
            assert end <= span.offset < span.end <= size, 'overlaps'
            end = span.end
            classes[span.offset:span.end] = [span.class_id] * span.length
    return classes


def segments(swift):
    return sorted(path for path in swift.objects
                  if path.startswith('c_segments/'))


def classes_of(swift):
    """Of every byte of the segments, behind one another."""
    joined = []
    for path in segments(swift):
        joined += classes_sent(swift, path, len(swift.objects[path][1]))
    return joined


def expected_of(body):
    classes = [0] * len(body)
    for offset, length in known.classify(InMemory(body)).plan.ranges:
        classes[offset:offset + length] = [HOT] * length
    assert 0 < sum(classes) < len(body)
    return classes


def methods(swift):
    return [request.method for request in swift.seen
            if request.name and request.method in ('GET', 'PUT', 'POST')]


def test_what_fits_one_object_goes_up_with_its_ranges():
    swift, body = Swift(), archive()
    write(swift, [(body, None)], len(body))
    assert methods(swift) == ['PUT']
    assert swift.objects['c/o'][1] == body
    assert classes_sent(swift, 'c/o', len(body)) == expected_of(body)


@pytest.mark.parametrize('segment_bytes', [3000, 16384, 50000, 150000])
def test_segments_have_their_classes_before_the_object_shows(segment_bytes):
    swift, body = Swift(), archive()
    write(swift, [(body[:9], None), (body[9:], None)], segment_bytes)
    assert classes_of(swift) == expected_of(body)
    assert classes_sent(swift, 'c/o', len(body)) == expected_of(body)
    # Not one request after the manifest, and none for what stays cold.
    assert swift.seen[-1].method == 'PUT'
    assert swift.seen[-1].path == 'c/o'
    posted = [request.path for request in swift.seen
              if request.method == 'POST']
    hot = [path for path in segments(swift)[:-1]
           if any(classes_sent(swift, path, len(swift.objects[path][1])))]
    assert sorted(posted) == hot
    assert len(hot) < len(body) // segment_bytes or segment_bytes > 99999


def test_a_programs_own_ranges_keep_their_class():
    swift, body = Swift(), archive()
    end = len(body)
    write(swift, [(body[:100], None), (body[100:200], GIVEN),
                  (body[200:end - 500], None),
                  (body[end - 500:end - 400], GIVEN),
                  (body[end - 400:], None)], 30000)
    expected = expected_of(body)
    expected[100:200] = expected[end - 500:end - 400] = [GIVEN] * 100
    assert classes_of(swift) == expected
    assert classes_sent(swift, 'c/o', end) == expected


def test_more_ranges_of_the_program_than_a_head_shows_stay_alone():
    swift, body = Swift(), archive()
    pieces = [(body[at:at + 200], GIVEN if at % 400 else None)
              for at in range(0, len(body), 200)]
    write(swift, pieces, 150000, 1 << 20)
    assert set(classes_of(swift)[:400]) == {0, GIVEN}
    assert HOT not in classes_of(swift)
    assert 'POST' not in [request.method for request in swift.seen
                          if request.path.startswith('c_segments')]


def test_more_hot_ranges_than_a_header_holds_go_in_a_section(monkeypatch):
    swift, body = Swift(), archive()
    ranges = [(at, 10) for at in range(0, 150000, 150)]
    plan = known.Classified('made', len(body), known.Plan(ranges, 0, 0))
    monkeypatch.setattr(known, 'classify', lambda *_, **__: plan)
    write(swift, [(body, None)], 160000)
    assert [position for position, class_id in enumerate(
        classes_of(swift)) if class_id == HOT] == [
            at + number for at, _ in ranges for number in range(10)]


def test_a_file_of_no_format_is_stored_as_it_is(caplog):
    swift, body = Swift(), os.urandom(100000)
    with caplog.at_level(logging.INFO):
        write(swift, [(body, None)], 30000)
    assert not any(classes_of(swift))
    assert 'dss://c/o is not classified by its format' in caplog.text
    assert not [record for record in caplog.records
                if record.levelno > logging.INFO]


@pytest.mark.parametrize('error', [
    MissingLibrary('pip install it'), OSError(5, 'no answer'),
    ZeroDivisionError('a bug of others')])
def test_a_failing_classifier_costs_classes_and_no_file(
        caplog, monkeypatch, error):
    def fail(*_, **__):
        raise error
    monkeypatch.setattr(known, 'classify', fail)
    swift, body = Swift(), archive()
    write(swift, [(body, None)], 30000)
    assert b''.join(swift.objects[path][1]
                    for path in segments(swift)) == body
    assert not any(classes_of(swift))
    record, = caplog.records
    assert record.levelno == logging.WARNING
    assert type(error).__name__ in record.getMessage()


def test_a_class_that_is_refused_stores_nothing():
    swift = Swift()
    swift.plan['POST', 'c_segments/'] = error_of(
        403, 'POST', 'c_segments/o', b'not yours')
    with pytest.raises(PermissionError):
        write(swift, [(archive(), None)], 30000)
    assert swift.objects == {}


def test_a_broken_segment_stops_it_before_anything_is_read():
    swift = Swift()
    swift.plan['PUT', 'c_segments/'] = error_of(
        507, 'PUT', 'c_segments/o', b'full')
    with pytest.raises(OSError, match='507'):
        write(swift, [(archive(), None)], 150000)
    assert 'GET' not in methods(swift)
    assert swift.objects == {}


def test_an_empty_file_has_no_format():
    swift = Swift()
    write(swift, [], 10)
    assert swift.objects['c/o'][1] == b''


def test_little_is_read_back_and_little_of_it_kept(monkeypatch):
    """Blocks of 256 KiB; two of them are kept here."""
    monkeypatch.setattr(auto, '_KEPT_BYTES', 512 << 10)
    swift, body = Swift(), archive(60, 100000)
    kept = []

    class Watched(auto.Cached):
        def read(self, offset, length):
            raw = super().read(offset, length)
            kept.append(sum(map(len, self._blocks.values())))
            return raw
    monkeypatch.setattr(auto, 'Cached', Watched)
    write(swift, [(body, None)], 1 << 20)
    assert classes_of(swift) == expected_of(body)
    assert 0 < max(kept) <= 512 << 10
    assert methods(swift).count('GET') <= 3


def send(swift, source, segment_bytes):
    """Send what is whole to ``c/o``; how many bytes were noted."""
    noted = []

    async def run():
        await whole.send(Upload(swift, Large(swift), Target(
            'c', 'o', auto=Auto(HOT, SPANS))), Cutter(segment_bytes, 1000),
            source, noted.append)
    asyncio.run(run())
    return sum(noted)


@pytest.mark.parametrize('segment_bytes', [3000, 16384, 150000, 1 << 20])
def test_what_is_whole_goes_up_with_its_classes(tmp_path, segment_bytes):
    """From memory and from a file; nothing is read back or changed."""
    body = archive()
    (tmp_path / 'a.zip').write_bytes(body)
    with open(tmp_path / 'a.zip', 'rb') as opened:
        for source in (whole.of_bytes(bytearray(body)),
                       whole.of_file(opened)):
            swift = Swift()
            assert send(swift, source, segment_bytes) == len(body)
            assert set(methods(swift)) == {'PUT'}
            if segment_bytes < len(body):
                assert classes_of(swift) == expected_of(body)
                assert b''.join(swift.objects[path][1]
                                for path in segments(swift)) == body
            assert classes_sent(swift, 'c/o', len(body)) == expected_of(body)


def test_a_pipe_is_read_once_and_classified_at_its_end():
    body = archive(3, 9000)
    end, start = os.pipe()
    with open(start, 'wb') as target:
        target.write(body)
    swift = Swift()
    with open(end, 'rb') as opened:
        assert send(swift, whole.of_file(opened), 8000) == len(body)
    assert classes_of(swift) == expected_of(body)
    assert 'POST' in methods(swift)


def test_nothing_is_left_of_a_file_that_cannot_be_read():
    def pieces():
        yield memoryview(b'x' * 50)
        raise OSError(5, 'broken disk')
    swift = Swift()
    with pytest.raises(OSError, match='broken disk'):
        send(swift, whole.Whole(pieces(), None), 10)
    assert swift.objects == {}


@given(st.lists(st.binary(max_size=20), max_size=6),
       st.lists(st.integers(0, 70), max_size=10, unique=True).map(sorted))
def test_pieces_are_cut_where_the_class_changes(pieces, cuts):
    spans = [Span(start, end - start, HOT)
             for start, end in zip(cuts[::2], cuts[1::2])]
    parts = list(whole.classed(map(memoryview, pieces), spans))
    assert b''.join(bytes(part) for part, _ in parts) == b''.join(pieces)
    assert all(len(part) for part, _ in parts)
    assert [class_id or 0 for part, class_id in parts for _ in part] == \
        _bytes(spans, 70)[:len(b''.join(pieces))] + [0] * max(
            0, len(b''.join(pieces)) - 70)


SPLITS = st.lists(st.integers(0, 60), max_size=12, unique=True).map(sorted)


@given(SPLITS, SPLITS)
def test_hot_ranges_leave_out_those_that_are_given(first, second):
    ranges = [(start, end - start)
              for start, end in zip(first[::2], first[1::2])]
    given_spans = [Span(start, end - start, GIVEN)
                   for start, end in zip(second[::2], second[1::2])]
    left = [Span(offset, length, HOT)
            for offset, length in outside(ranges, given_spans)]
    classes = [0] * 60
    for spans in ([Span(*pair, HOT) for pair in ranges], given_spans):
        for span in spans:
            classes[span.offset:span.end] = [span.class_id] * span.length
    found = [0] * 60
    end = 0
    for span in merged(given_spans, left):
        assert span.offset >= end and span.length > 0
        end = span.end
        found[span.offset:end] = [span.class_id] * span.length
    assert found == classes
    assert [byte for start in range(0, 60, 7) for byte in _bytes(within(
        merged(given_spans, left), start, 7), 7)][:60] == classes


def _bytes(spans, size):
    classes = [0] * size
    for span in spans:
        classes[span.offset:span.end] = [span.class_id] * span.length
    return classes
