"""Lifecycle rules and restorations as they are stored."""

from __future__ import annotations

import base64
import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift_dss.core.errors import BadClassInput, TooManySpans
from swift_dss.core.lifecycle import Lifecycle, Rule, Transition, When
from swift_dss.core.limits import LIFECYCLE_CHUNK_BYTES
from swift_dss.wire import names
from swift_dss.wire.s3 import lifecycle, restores
from swift_dss.wire.s3.restores import Restored

NAME = names.CONTAINER_SYSMETA_LIFECYCLE
WHEN = st.one_of(st.builds(lambda days: When(days=days), st.integers(0)),
                 st.builds(lambda date: When(date=date), st.integers(0)))
RULES = st.builds(
    Rule, st.text(max_size=9), st.booleans(), st.text(max_size=9),
    st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)),
             max_size=3).map(tuple),
    st.none() | st.integers(0, 2 ** 63), st.none() | st.integers(0, 2 ** 63),
    st.lists(st.builds(Transition, WHEN, st.text(max_size=9)),
             max_size=3).map(tuple), st.none() | WHEN, st.booleans())


@given(st.lists(RULES, min_size=1, max_size=5))
def test_rules_come_back(rules: list) -> None:
    known = Lifecycle(tuple(rules))
    headers = lifecycle.to_headers(NAME, known)
    assert all(value.isascii() for value in headers.values())
    assert lifecycle.from_headers(NAME, headers) == known


def test_no_rules_are_no_configuration() -> None:
    assert set(lifecycle.to_headers(NAME, None).values()) == {''}
    assert lifecycle.from_headers(
        NAME, lifecycle.to_headers(NAME, None)) is None
    assert lifecycle.from_headers(NAME, {}) is None


def test_long_ones_are_cut_and_too_long_ones_refused() -> None:
    dice = random.Random(5)
    rules = [Rule('%x' % dice.getrandbits(200), True,
                  expiration=When(days=1)) for _rule in range(100)]
    headers = lifecycle.to_headers(NAME, Lifecycle(tuple(rules)))
    assert max(map(len, headers.values())) == LIFECYCLE_CHUNK_BYTES
    assert lifecycle.from_headers(NAME, headers) == Lifecycle(tuple(rules))
    with pytest.raises(TooManySpans, match='its 1000 rules take [0-9]+ bytes'):
        lifecycle.to_headers(NAME, Lifecycle(tuple(rules * 2 + [
            Rule('%x' % dice.getrandbits(200), True) for _ in range(800)])))


def packed(raw: bytes) -> str:
    return base64.b64encode(zlib.compress(raw)).decode()


@pytest.mark.parametrize('text', [
    'x', '====', packed(b'x'), packed(b'{}')[:-8], packed(b'[[]]'),
    packed(b'[["a",1,0,"",[],null,null,[],[null,null]]]'),
    packed(b'[["a",1,0,"",[],null,null,[],[1,2]]]'),
    packed(b'[["a",1,0,"",[],true,null,[],null]]'),
    packed(b'[[1,1,0,"",[],null,null,[],null]]'),
    packed(b'[' * 100000), packed(b' ' * (2 << 20) + b'[]')])
def test_damaged_ones_are_said_to_be(text: str) -> None:
    with pytest.raises(BadClassInput, match='is damaged'):
        lifecycle.decode(text)


@given(st.integers(0, 10 ** 11), st.booleans(),
       st.sampled_from(['', 'lifecycle']))
def test_restorations_come_back(until: int, is_done: bool, by: str) -> None:
    restored = Restored(until, is_done, by)
    # Servers of HTTP take spaces off the ends of values.
    assert restores.encode(restored) == restores.encode(restored).strip()
    assert restores.of_headers(
        {names.RESTORED: restores.encode(restored)}) == restored


@pytest.mark.parametrize('text', [None, '', 'x', '1 done ', '-1 done', '1 x',
                                  '9' * 13 + ' done'])
def test_a_restoration_that_cannot_be_read_is_none(text: str) -> None:
    assert restores.of_headers({names.RESTORED: text} if text is not None
                               else {}) is None


def test_a_restoration_is_shown_as_s3_does() -> None:
    shown = [restores.shown({names.RESTORED: text}) for text in (
        '0 ongoing', '86400 done', '')]
    assert shown == [
        'ongoing-request="true"', 'ongoing-request="false", '
        'expiry-date="Fri, 02 Jan 1970 00:00:00 GMT"', '']
