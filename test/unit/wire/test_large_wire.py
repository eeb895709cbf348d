"""Claims on segments, and manifests as Swift stores them."""

from __future__ import annotations

import base64
import json
import random

import pytest

from swift_dss.core.errors import BadClassInput
from swift_dss.core.limits import MAX_CLAIM_BYTES, MAX_CLAIMS
from swift_dss.core.spans import Span
from swift_dss.wire.large import claims, manifests
from swift_dss.wire.large.manifests import Entry

CLAIMS = {claims.owner_of('a/c/one'): claims.everywhere(25),
          claims.owner_of('a/c/two'): (Span(0, 5, 1), Span(9, 1, 31))}


def test_claims_are_read_as_they_were_written():
    text = claims.encode(CLAIMS)
    assert text.endswith('=0-5-1,9-1-31') and text.isascii()
    assert claims.decode(text) == CLAIMS
    assert claims.decode('') == {} and claims.encode({}) == ''


def test_the_oldest_claims_are_forgotten_and_too_long_ones():
    many = {claims.owner_of(str(number)): claims.everywhere(number)
            for number in range(MAX_CLAIMS + 3)}
    assert list(claims.decode(claims.encode(many)).items()) == \
        list(many.items())[3:]
    assert claims.encode({claims.owner_of('x'): tuple(
        Span(2 * at, 1, 1) for at in range(500))}) == ''


def test_paths_get_the_room_that_claims_leave():
    one, two = CLAIMS
    paths = {one: '/c/a=b;c \xe4', two: '/c/two/three', 'other': '/c/o'}
    text = claims.encode_paths(CLAIMS, paths)
    assert text.isascii() and claims.decode_paths(text) == {
        one: paths[one], two: paths[two]}
    # The newest are kept.
    paths[one] = '/c/' + 'x' * 1000
    assert claims.decode_paths(claims.encode_paths(CLAIMS, paths)) == {
        two: paths[two]}
    paths[two] = '/c/' + 'x' * MAX_CLAIM_BYTES
    assert claims.encode_paths(CLAIMS, paths) == ''
    assert claims.encode_paths({}, paths) == ''


@pytest.mark.parametrize('text', [
    '', 'x', '=/c/o', '0011223=/c/o', '00112233=/c', '00112233=c/o/p',
    '00112233', ';=;', '00112233=%2'])
def test_other_text_is_no_path(text):
    assert claims.decode_paths(text) == {}


@pytest.mark.parametrize('text', [
    'x', '=25', '0011223=25', '00112233=32', '00112233=-1', '00112233=',
    '00112233=5-5-1,9-1-1', '00112233=0-0-1', '00112233=1-2', ';',
    '00112233=9223372036854775807-2-1', '00112233=a-b-c'])
def test_other_text_says_nothing(text):
    assert claims.decode(text) == {}


def test_any_text_is_survived():
    rng = random.Random(7)
    text = claims.encode(CLAIMS)
    for _ in range(2000):
        at = rng.randrange(len(text))
        claims.decode(text[:at] + chr(rng.randrange(32, 300)) + text[at + 1:])


def row(**more):
    return dict({'name': '/c/o', 'bytes': 10, 'hash': 'e',
                 'content_type': 'x', 'last_modified': 'y'}, **more)


def test_a_static_manifest():
    raw = json.dumps([
        row(), row(range='2-5'), row(sub_slo=True),
        {'data': base64.b64encode(b'abc').decode()}]).encode()
    assert manifests.parse_static(raw) == [
        Entry('/c/o', 0, 10, 10, 'e'), Entry('/c/o', 2, 4, 10, 'e'),
        Entry('/c/o', 0, 10, 10, 'e', True), Entry('', 0, 3, 3, data=b'abc')]


@pytest.mark.parametrize('raw', [
    b'', b'{', b'5', b'[5]', b'{"a": 1}', b'[{"name": "/c/o"}]',
    json.dumps([row(bytes=-1)]).encode(),
    json.dumps([row(bytes='10')]).encode(),
    json.dumps([row(range='5-2')]).encode(),
    json.dumps([row(range='x-')]).encode(), b'[{"data": 5}]', b'\xff'])
def test_anything_else_is_refused(raw):
    with pytest.raises(BadClassInput):
        manifests.parse_static(raw)


def test_a_listing():
    raw = json.dumps([row(name='o'), {'subdir': 'x/'}]).encode()
    assert manifests.parse_listing(raw, 'c') == [Entry('/c/o', 0, 10, 10)]
    with pytest.raises(BadClassInput):
        manifests.parse_listing(b'[{"name": "x"}]', 'c')
