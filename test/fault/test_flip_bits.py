"""R18 in CI: a few bits flip in each kind of file that we keep."""

from __future__ import annotations

import pytest
from fault import flip_bits
from support.edges.s3_servers import VersityServer


@pytest.fixture(scope='module')
def rot(tmp_path_factory):
    server = VersityServer()
    yield flip_bits.Rot(server, str(tmp_path_factory.mktemp('rot')))
    server.close()


def test_a_flipped_bit_is_refused_or_does_not_matter(rot):
    assert set(rot.read()) == {'right'}
    outcome = flip_bits.flips(rot, 1, 7)
    assert outcome.wrong == []
    assert outcome.noticed, 'every flip was where nobody looks'
    print('R18: %d flips, %d noticed, 0 wrong' % (
        outcome.flips, outcome.noticed))


def test_a_gateway_that_does_not_look_is_caught(rot):
    with flip_bits.trusting():
        assert flip_bits.flips(rot, 1, 7).wrong
