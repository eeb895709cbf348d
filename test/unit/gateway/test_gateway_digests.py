"""Digests, side cars and metadata records: formats and their enemies."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift_dss.core.errors import DamagedRecord
from swift_dss.core.limits import S3_MAX_PARTS
from swift_dss.core.residency import Residency
from swift_dss.core.spans import ClassMap, Span
from swift_dss.core.version import VersionId
from swift_dss.gateway.form import digests, metadata
from swift_dss.gateway.ports import LocalVersion

MIB = 1024 * 1024
PART = 5 * MIB


def _sums(size=2 * PART + 7):
    body = hashlib.sha256(b'x').digest() * (size // 32 + 1)
    body = body[:size]
    builder = digests.SumsBuilder(size, PART)
    for at in range(0, size, PART):
        builder.add_part(body[at:at + PART])
    return body, builder.finish()


def test_the_etag_is_the_md5_of_the_part_md5s():
    body, sums = _sums()
    parts = [hashlib.md5(body[at:at + PART]).digest()
             for at in range(0, len(body), PART)]
    assert sums.etag == '%s-3' % hashlib.md5(b''.join(parts)).hexdigest()
    assert sums.md5 == hashlib.md5(body).digest()
    assert sums.blocks[3] == digests.block_digest(body[3 * MIB:4 * MIB])
    assert digests.is_md5_etag(sums.etag)


def test_a_side_car_survives_the_trip():
    _body, sums = _sums()
    assert digests.decode(sums.encode()) == sums


def test_every_flipped_bit_and_cut_of_a_side_car_is_noticed():
    _body, sums = _sums()
    raw = sums.encode()
    for at in range(len(raw)):
        broken = raw[:at] + bytes((raw[at] ^ 1,)) + raw[at + 1:]
        with pytest.raises(DamagedRecord):
            digests.decode(broken)
        with pytest.raises(DamagedRecord):
            digests.decode(raw[:at])


@given(st.binary(max_size=300))
def test_no_bytes_crash_the_side_car_parser(raw):
    for candidate in (raw, b'DSU1' + hashlib.sha256(raw).digest() + raw):
        try:
            digests.decode(candidate)
        except DamagedRecord:
            pass


@given(st.integers(1, 5 << 40), st.integers(1, 1 << 30))
def test_parts_fit_the_limits_of_s3_for_any_length(length, wanted):
    size = digests.part_size(length, wanted)
    assert size >= max(wanted, PART) and size % MIB == 0
    assert -(-length // size) <= S3_MAX_PARTS
    block = digests.block_size(length, size)
    assert size % block == 0 and block % MIB == 0
    assert -(-length // block) <= digests.MAX_BLOCKS or block == size


@pytest.mark.parametrize('etag, is_md5', [
    ('0' * 32, True), ('0' * 32 + '-1', True), ('0' * 32 + '-0', False),
    ('A' * 32, False), ('', False), ('0' * 31, False),
    ('crc64:abc', False)])
def test_what_may_be_an_md5_etag(etag, is_md5):
    assert digests.is_md5_etag(etag) is is_md5


_TEXT = st.text(max_size=40)


@given(st.dictionaries(_TEXT, _TEXT, max_size=30),
       st.integers(0, 31), st.sampled_from([None, 0, 13]))
def test_metadata_records_survive_inline_and_in_a_side_car(
        fields, class_id, frag):
    local = LocalVersion(
        VersionId('sda', 3, 'a' * 32, '1700000000.00000_000000000000000a',
                  frag), '7', 'e' * 32, fields, Residency.whole(9),
        ClassMap.from_spans([Span(1, 2, class_id)]))
    user, sidecar = metadata.encode(local)
    assert all(len(value) <= 256 for value in user.values())
    assert sum(len(name) + len(value) + 11
               for name, value in user.items()) <= 2048
    assert metadata.has_sidecar(user) is (sidecar is not None)
    record = metadata.decode(user, sidecar)
    assert record.metadata == fields
    assert record.version.key == local.version.key
    assert (record.content_length, record.etag) == (9, 'e' * 32)


def test_names_that_are_not_utf8_survive():
    name = b'/a/c/\xff\xfe'.decode('utf-8', 'surrogateescape')
    local = LocalVersion(VersionId('d', 0, 'a' * 32, '1'), '7', 'e',
                         {'name': name}, Residency.whole(0))
    user, _ = metadata.encode(local)
    assert metadata.decode(user).metadata['name'] == name


@given(st.dictionaries(st.sampled_from(['dss-0', 'dss-1', 'dss-meta']),
                       _TEXT), st.none() | st.binary(max_size=100))
def test_no_metadata_crashes_its_parser(user, sidecar):
    with pytest.raises(DamagedRecord):
        metadata.decode(user, sidecar)


def test_a_record_that_inflates_without_end_is_refused():
    import zlib
    bomb = zlib.compress(b' ' * (64 * MIB), 9)
    with pytest.raises(DamagedRecord):
        metadata.decode({}, bomb)
