"""What is sealed opens in its own place, and in no other."""

from __future__ import annotations

import pytest

from swift_dss.gateway.form.encrypt import BLOCK_BYTES, Seal, WrongSeal

SEAL = Seal('g1.k.x', b'k' * 32)
#: Of a version of several blocks.
LENGTH = 3 * BLOCK_BYTES
PARTS = ('record', 'index', 'since', 'meta', 'proofs')


def test_a_block_opens():
    sealed = SEAL.block(0, 1, LENGTH, b'data')
    assert SEAL.open_block(0, 1, LENGTH, sealed) == b'data'


@pytest.mark.parametrize('number, index, length', [
    (1, 1, LENGTH), (0, 2, LENGTH), (0, 1, LENGTH + 1),
    # Cut off behind this block, which would be the last one.
    (0, 1, 2 * BLOCK_BYTES)])
def test_a_block_opens_in_its_place_of_its_version_alone(
        number, index, length):
    sealed = SEAL.block(0, 1, LENGTH, b'data')
    with pytest.raises(WrongSeal):
        SEAL.open_block(number, index, length, sealed)


@pytest.mark.parametrize('part', PARTS)
def test_a_part_opens_as_itself_alone(part):
    sealed = SEAL.wrap(part, 3, b'data')
    assert SEAL.unwrap(part, 3, sealed) == b'data'
    for other in PARTS:
        for number in (3, 4):
            if (other, number) != (part, 3):
                with pytest.raises(WrongSeal):
                    SEAL.unwrap(other, number, sealed)
