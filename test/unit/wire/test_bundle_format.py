"""The bundle's bytes: as documented, readable from both ends, never lying."""

from __future__ import annotations

import hashlib
import json
import random
import struct
import zlib

import pytest

from swift_dss.core.errors import DamagedRecord
from swift_dss.core.limits import MAX_BUNDLE_MEMBERS
from swift_dss.wire import bundle

HEAD = {'account': 'AUTH_a', 'container': 'c', 'classes': [25]}


def record(name, data):
    return {'v': 1, 'length': len(data),
            'etag': hashlib.md5(data).hexdigest(),
            'metadata': {'name': '/AUTH_a/c/' + name}}


def made(bodies, **options):
    builder = bundle.Builder(HEAD, **options)
    for number, body in enumerate(bodies):
        builder.add(record('o%d' % number, body), body)
    return builder.finish()


def read(raw, unwrap=bundle.plain):
    bundle.read_head(raw)
    trailer = bundle.read_trailer(raw[-bundle.TRAILER_BYTES:], len(raw))
    index = raw[trailer.index_offset:
                trailer.index_offset + trailer.index_bytes]
    return bundle.read_index(index, trailer, unwrap)


BODIES = [b'', b'x', bytes(range(256)) * 20, b'last']


def test_members_come_back_from_the_index_and_from_a_scan():
    raw = made(BODIES)
    entries = read(raw)
    assert entries == list(bundle.scan(raw))
    assert [raw[entry.offset:entry.offset + entry.stored_bytes]
            for entry in entries] == BODIES
    assert bundle.read_head(raw)[0] == HEAD


def test_proofs_lie_where_releases_before_pass_over_them():
    builder = bundle.Builder(HEAD)
    for number, body in enumerate(BODIES):
        builder.add(record('o%d' % number, body), body, b'%08d' % number)
    raw = builder.finish()
    assert raw[-bundle.TRAILER_BYTES:]
    assert read(raw) == list(bundle.scan(raw))
    at, length = builder.proofs_at
    proofs = raw[at:at + length]
    assert list(bundle.read_proofs(proofs)) == [
        (b'%08d' % entry.number, entry.offset, entry.number)
        for entry in read(raw)]
    for spoilt in (b'', proofs[:-1], proofs[1:], proofs + b'x',
                   bytes((proofs[0] ^ 1,)) + proofs[1:]):
        with pytest.raises(DamagedRecord):
            list(bundle.read_proofs(spoilt))
    odd = b'x' * 19
    with pytest.raises(DamagedRecord):
        list(bundle.read_proofs(odd + hashlib.sha256(odd).digest()))


def test_without_an_identity_of_each_there_are_no_proofs():
    builder = bundle.Builder(HEAD)
    builder.add(record('a', b'a'), b'a', b'12345678')
    builder.add(record('b', b'b'), b'b')
    assert len(read(builder.finish())) == 2
    assert builder.proofs_at == (0, 0)


def test_a_record_that_was_packed_before_makes_the_same_bundle():
    builder = bundle.Builder(HEAD)
    places = []
    for number, body in enumerate(BODIES):
        packed = bundle.pack_record(record('o%d' % number, body))
        for spoilt in (b'', packed[:-1], packed + b'x',
                       packed[:9] + bytes([packed[9] ^ 1]) + packed[10:]):
            with pytest.raises(DamagedRecord):
                builder.add_packed(spoilt, body)
        places.append(builder.add_packed(packed, body))
    raw = builder.finish()
    assert raw == made(BODIES)
    assert places == [(entry.offset, entry.stored_bytes)
                      for entry in read(raw)]


def test_the_bytes_are_those_of_the_documentation():
    """By hand, after explanation/bundles.rst, without the module."""
    raw = made([b'hello'])
    flags, text_bytes, crc = struct.unpack('>III', raw[4:16])
    text = raw[16:16 + text_bytes]
    assert (raw[:4], flags) == (b'DSB1', 0)
    assert crc == zlib.crc32(raw[4:12] + text)
    assert json.loads(text) == HEAD
    at = 16 + text_bytes
    magic, r, d, crc = struct.unpack('>4sIQI', raw[at:at + 20])
    packed = raw[at + 20:at + 20 + r]
    assert (magic, d) == (b'DSBM', 5)
    assert crc == zlib.crc32(raw[at + 4:at + 16] + packed)
    assert json.loads(zlib.decompress(packed)) == record('o0', b'hello')
    offset = at + 20 + r
    assert raw[offset:offset + 5] == b'hello'
    start, length, members, magic, digest = struct.unpack(
        '>QQI4s32s', raw[-56:])
    index = raw[start:start + length]
    assert (start, members, magic) == (offset + 5, 1, b'DSBE')
    assert digest == hashlib.sha256(index).digest()
    assert json.loads(zlib.decompress(index)) == [
        [offset, 5, record('o0', b'hello')]]
    assert start + length + 56 == len(raw)


def test_a_bundle_cut_off_anywhere_gives_whole_members_or_none():
    raw = made(BODIES)
    whole = read(raw)
    for end in range(len(raw)):
        piece = raw[:end]
        with pytest.raises(DamagedRecord):
            read(piece)
        try:
            members = list(bundle.scan(piece))
        except DamagedRecord:
            continue
        assert members == whole[:len(members)]
        assert all(member.offset + member.stored_bytes <= end
                   for member in members)


def test_no_flipped_bit_gives_a_wrong_member():
    raw = bytearray(made(BODIES))
    right = read(bytes(raw))
    seed = 20260801
    dice = random.Random(seed)
    caught = 0
    for _ in range(2000):
        at, bit = dice.randrange(len(raw)), 1 << dice.randrange(8)
        raw[at] ^= bit
        try:
            members = read(bytes(raw))
        except DamagedRecord:
            caught += 1
        else:
            # In a member's own bytes: its MD5 is in the index.
            assert members == right, (seed, at, bit)
        raw[at] ^= bit
    assert caught > 100


@pytest.mark.parametrize('spoil', [
    lambda rows: rows[0].__setitem__(0, 3),
    lambda rows: rows[3].__setitem__(0, rows[2][0]),
    lambda rows: rows[-1].__setitem__(1, 1 << 40),
    lambda rows: rows[0].__setitem__(1, -1),
    lambda rows: rows[0].__setitem__(1, True),
    lambda rows: rows[0].__setitem__(2, []),
    lambda rows: rows[0][2].pop('etag'),
    lambda rows: rows[0][2].__setitem__('length', -1),
    lambda rows: rows.pop()])
def test_an_index_that_lies_is_refused(spoil):
    raw = made(BODIES)
    trailer = bundle.read_trailer(raw[-56:], len(raw))
    rows = json.loads(zlib.decompress(
        raw[trailer.index_offset:-bundle.TRAILER_BYTES]))
    spoil(rows)
    index = zlib.compress(json.dumps(rows).encode())
    lying = bundle.Trailer(trailer.index_offset, len(index),
                           trailer.members,
                           hashlib.sha256(index).digest())
    with pytest.raises(DamagedRecord):
        bundle.read_index(index, lying)


def test_an_index_that_explodes_is_refused():
    index = zlib.compress(b'0' * (80 << 20), 9)
    lying = bundle.Trailer(100, len(index), 1,
                           hashlib.sha256(index).digest())
    with pytest.raises(DamagedRecord, match='more than'):
        bundle.read_index(index, lying)


def test_a_bundle_of_much_metadata_says_when_it_is_full():
    builder = bundle.Builder(HEAD)
    huge = {'length': 0, 'etag': '', 'metadata': 'x' * 500000}
    while builder.has_room(0):
        builder.add(huge, b'')
    assert 50 < builder.members < 80
    assert len(read(builder.finish())) == builder.members
    roomy = bundle.Builder(HEAD)
    assert roomy.has_room(64 << 20) and not roomy.has_room(95 << 20)


def test_no_more_members_than_may_be():
    builder = bundle.Builder(HEAD)
    for _ in range(MAX_BUNDLE_MEMBERS):
        builder.add({'length': 0, 'etag': ''}, b'')
    with pytest.raises(ValueError):
        builder.add({'length': 0, 'etag': ''}, b'')
    assert len(read(builder.finish())) == MAX_BUNDLE_MEMBERS


def test_what_is_sealed_is_opened_by_part_and_number():
    def flip(part, number, data):
        key = hashlib.sha256(b'%s %d' % (part.encode(), number)).digest()
        return bytes(byte ^ key[at % 32] for at, byte in enumerate(data))

    raw = made(BODIES, sealed=True, wrap=flip)
    assert bundle.read_head(raw)[1] is True
    assert b'last' not in raw
    entries = read(raw, flip)
    assert entries == list(bundle.scan(raw, flip))
    assert [flip('data', entry.number, raw[
        entry.offset:entry.offset + entry.stored_bytes])
        for entry in entries] == BODIES
    with pytest.raises(DamagedRecord):
        read(raw)


@pytest.mark.parametrize('length', [0, 3900, 4200, 9000])
def test_a_record_of_any_length_comes_back(length):
    text = '%x' % random.Random(length).getrandbits(4 * length + 1)
    written = dict(record('o', b'body'), metadata={'x': text})
    packed = bundle.pack_record(written)
    assert bundle.read_record(packed) == written
    assert json.loads(zlib.decompress(packed)) == written
