"""What a restore believes of the bucket, rule by rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from swift_dss.core.limits import MAX_CLOCK_SKEW_SECONDS
from swift_dss.core.residency import RemoteCopy
from swift_dss.core.version import VersionId
from swift_dss.gateway.form.metadata import RemoteRecord, own_key
from swift_dss.gateway.restore.catalog import Held
from swift_dss.gateway.restore.places import Place, key_of
from swift_dss.gateway.restore.trust import Refused, Trust

NOW = 1700000000.0
VERSION = VersionId('', 0, 'a' * 29 + 'f00', '1600000000.00000')
RECORD = RemoteRecord(VERSION, 4, 'e' * 32, {
    'name': '/a/c/o', 'X-Timestamp': VERSION.timestamp}, '')
HELD = Held(RECORD, RemoteCopy('s3', own_key('p/', VERSION), 'e', 0.0,
                               seal='g1.k.x'))
SEALED = Trust('p/', 'c' * 32, True, NOW)
PLAIN = replace(SEALED, only_sealed=False)
HASH = VERSION.object_hash


def refused(trust, held, hash_here=HASH):
    with pytest.raises(Refused):
        trust.version(held, hash_here)


def at(timestamp):
    """The same version of another time."""
    version = replace(VERSION, timestamp=timestamp)
    return replace(HELD, record=replace(
        RECORD, version=version, metadata={
            'name': '/a/c/o', 'X-Timestamp': timestamp}),
        remote=replace(HELD.remote, key=own_key('p/', version)))


def test_what_is_right_is_believed():
    SEALED.version(HELD, HASH)
    PLAIN.version(replace(HELD, remote=replace(HELD.remote, seal='')), HASH)
    SEALED.version(at('%016.5f' % (NOW + MAX_CLOCK_SKEW_SECONDS)), HASH)


def test_what_is_not_sealed_is_not():
    refused(SEALED, replace(HELD, remote=replace(HELD.remote, seal='')))


@pytest.mark.parametrize('trust', [SEALED, PLAIN])
def test_the_future_is_not(trust):
    refused(trust, at('%016.5f' % (NOW + MAX_CLOCK_SKEW_SECONDS + 1)))
    refused(trust, at('9999999999.99999'))
    refused(trust, at('nan'))


@pytest.mark.parametrize('name', ['X-Timestamp', 'Content-Type-Timestamp'])
def test_metadata_of_the_future_is_not(name):
    refused(SEALED, replace(HELD, record=replace(RECORD, metadata=dict(
        RECORD.metadata, **{name: '9999999999.99999'}))))


@pytest.mark.parametrize('trust', [SEALED, PLAIN])
def test_a_copy_under_another_key_is_not(trust):
    refused(trust, replace(HELD, remote=replace(
        HELD.remote, key=own_key('p/', replace(
            VERSION, timestamp='1650000000.00000')))))


def test_what_was_sealed_for_another_cluster_is_not():
    refused(SEALED, HELD, 'b' * 32)
    PLAIN.version(HELD, 'b' * 32)


def test_places_have_the_same_rules():
    place = Place('/a/c', {'x-backend-put-timestamp': VERSION.timestamp},
                  'c' * 32)
    key = key_of('p/', place.path)
    SEALED.place(key, place, 'g1.k.x')
    for bad_key, bad, seal in (
            (key, place, ''), (key_of('p/', '/a/d'), place, 'g1.k.x'),
            (key, place._replace(cluster='d' * 32), 'g1.k.x'),
            (key, place._replace(headers={
                'x-backend-put-timestamp': '9999999999.99999'}), 'g1.k.x')):
        with pytest.raises(Refused):
            SEALED.place(bad_key, bad, seal)
