"""Records written by this version are those that old clusters hold.

``records.json`` holds the bytes (hex where they are binary). A line there
changes only together with a new version of its format.
"""

from __future__ import annotations

import json
import pathlib

import pytest

from swift_dss.core.residency import RemoteCopy, Residency, Tier
from swift_dss.core.spans import ClassMap, Span
from swift_dss.core.version import VersionId
from swift_dss.wire import classmap, control
from swift_dss.wire.node import pressure
from swift_dss.wire.dssfile import Decoder
from swift_dss.wire.dsssection import encode_section
from swift_dss.wire.records import residency

GOLDEN = json.loads((pathlib.Path(__file__).parent
                     / 'records.json').read_text())
VERSION = VersionId('sda', 1, 'd41d8cd98f00b204e9800998ecf8427e',
                    '1700000000.00000', 2)
MAP = ClassMap((Span(0, 64, 25), Span(64, 960, 3), Span(1024, 32, 26)), 3)
STUB = Residency.whole(8192).add(0, 8192, Tier.HDD).with_remote(
    RemoteCopy('s3', 'abc/0/k', '5d41402abc4b2a76b9719d911017c592',
               1700000000.5)).drop(4096, 4096, Tier.SSD)

BUNDLED = Residency.whole(9).with_remote(RemoteCopy(
    's3', 'p/bundles/abc/k', '5d41402abc4b2a76b9719d911017c592',
    1700000000.5, 4096, 'g1.k1.d3JhcA.7')).drop(0, 9, Tier.SSD)


def _section(size, form, block_bytes=None):
    def encode(class_map):
        return encode_section(class_map, size, form, block_bytes)

    def decode(raw):
        decoder = Decoder(object_bytes=size)
        decoder.feed(raw)
        decoder.finish()
        return decoder.class_map
    return encode, decode


RECORDS = [
    ('class map of one class', ClassMap.uniform(25), classmap.encode,
     classmap.decode),
    ('residency, whole on the SSD', Residency.whole(8192), residency.encode,
     residency.decode),
    ('residency, a stub with a remote copy', STUB, residency.encode,
     residency.decode),
    ('residency, a stub of a sealed bundle', BUNDLED, residency.encode,
     residency.decode),
    ('event', control.Event(control.EventKind.PUT, VERSION, '12', 5, '25',
                            0, 0, 1, 1700000000.5),
     control.encode_event, control.decode_event),
    ('fetch request', control.FetchRequest(VERSION, '12', 0, 5, 25, 1.5),
     control.encode_fetch, control.decode_fetch),
    ('fetch reply', control.FetchReply(503, 'down', 15),
     control.encode_fetch_reply, control.decode_fetch_reply),
    ('pressure', pressure.Pressure(100, 50, 80, None, True, 1.5),
     pressure.encode, pressure.decode),
    ('pressure with a backlog', pressure.Pressure(
        100, 50, 80, 7, False, 1.5, pressure.Backlog(
            30, 60, 6, 90, 2.5, True, 4.0, 0.75, 2.0)),
     pressure.encode, pressure.decode),
    ('pressure beside uploads', pressure.Pressure(
        100, 50, 80, 7, False, 1.5, pressure.Backlog(
            30, 60, 6, 90, 2.5, True, 4.0, 0.75, 2.0, 40, 70, 0.1)),
     pressure.encode, pressure.decode),
    ('.dss block form', ClassMap((Span(0, 8192, 25),), 26),
     *_section(8193, 'block', 4096)),
    ('.dss range form', MAP, *_section(2000, 'range')),
]


def stored(name, like):
    """The golden value, as the type that the encoder gives."""
    text = GOLDEN[name]
    if isinstance(like, str):
        return text
    try:
        return bytes.fromhex(text)
    except ValueError:
        return text.encode('utf-8')


@pytest.mark.parametrize('name, value, encode, decode', RECORDS,
                         ids=[record[0] for record in RECORDS])
def test_a_record_is_written_and_read_as_ever(name, value, encode, decode):
    golden = stored(name, encode(value))
    assert encode(value) == golden
    assert decode(golden) == value


def test_a_packed_class_map_is_read_as_ever():
    # Written it may differ: other builds of zlib pack otherwise.
    assert classmap.decode(GOLDEN['class map']) == MAP


def test_every_golden_record_is_checked():
    assert {record[0] for record in RECORDS} | {'class map'} == set(GOLDEN)
