"""R18 in CI: a few bits flip in each kind of file that we keep."""

from __future__ import annotations

import pytest
from fault import r18
from functional.s3_servers import VersityServer


@pytest.fixture(scope='module')
def rot(tmp_path_factory):
    server = VersityServer()
    yield r18.Rot(server, str(tmp_path_factory.mktemp('rot')))
    server.close()


def test_a_flipped_bit_is_refused_or_does_not_matter(rot):
    assert set(rot.read()) == {'right'}
    found = r18.flips(rot, 1, 7)
    assert found.wrong == []
    assert found.noticed, 'every flip was where nobody looks'
    print('R18: %d flips, %d noticed, 0 wrong' % (
        found.flips, found.noticed))


def test_a_gateway_that_does_not_look_is_caught(rot):
    with r18.trusting():
        assert r18.flips(rot, 1, 7).wrong
