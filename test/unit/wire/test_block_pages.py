"""Checksums of blocks, as the bytes of an attribute."""

from __future__ import annotations

from array import array

import pytest

from swift_dss.core.errors import DamagedRecord
from swift_dss.wire.records.blocks import (
    BLOCK_BYTES, PAGE_BLOCKS, decode_page, encode_page)

LENGTH = 2 * BLOCK_BYTES + 7
SUMS = array('I', [1, 2 ** 32 - 1, 0x01020304])
RAW = encode_page(LENGTH, SUMS)


def test_they_come_back():
    assert decode_page(RAW, 0, LENGTH) == SUMS
    length = PAGE_BLOCKS * BLOCK_BYTES + 1
    assert decode_page(encode_page(length, SUMS[:1]), 1, length) == SUMS[:1]


def test_every_flipped_bit_is_noticed():
    for bit in range(8 * len(RAW)):
        flipped = bytearray(RAW)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DamagedRecord):
            decode_page(bytes(flipped), 0, LENGTH)


def test_what_is_cut_off_is_refused():
    for length in range(len(RAW)):
        with pytest.raises(DamagedRecord):
            decode_page(RAW[:length], 0, LENGTH)


@pytest.mark.parametrize('length', [
    LENGTH - 1, LENGTH + 1, BLOCK_BYTES, LENGTH + BLOCK_BYTES])
def test_sums_of_another_version_are_refused(length):
    with pytest.raises(DamagedRecord):
        decode_page(RAW, 0, length)
