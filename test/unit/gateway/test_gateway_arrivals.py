"""What S3 must say before a stub of another node is believed."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any, Dict, List, Optional

import pytest

from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import DssError, RemoteUnavailable, VersionGone
from swift_dss.core.residency import RemoteCopy, Residency, Tier
from swift_dss.core.version import VersionId
from swift_dss.gateway import metadata
from swift_dss.gateway.arrivals import Arrivals, NotProven
from swift_dss.gateway.bundle_read import FOLDER
from swift_dss.gateway.client import S3Head
from swift_dss.gateway.encrypt import KeyFile
from swift_dss.gateway.ports import LocalVersion
from swift_dss.wire import proof

BODY = b'x' * 5000
ETAG = hashlib.md5(BODY).hexdigest()
VERSION = VersionId('sdb', 0, 'a' * 29 + 'f00', '1700000000.00001')
FRAGMENT = replace(VERSION, policy=1, frag_index=2)
CONF = GatewayConf(endpoint='s3', bucket='b', prefix='p/')


class Client:
    """S3, as far as it is asked."""

    def __init__(self) -> None:
        self.heads: Dict[str, S3Head] = {}
        self.small: Dict[str, bytes] = {}
        self.asked: List[str] = []
        self.is_down = False

    def head(self, key: str) -> Optional[S3Head]:
        if self.is_down:
            raise RemoteUnavailable('down', 1)
        self.asked.append('HEAD ' + key)
        return self.heads.get(key)

    def get_small(self, key: str, _limit: int) -> bytes:
        self.asked.append('GET ' + key)
        return self.small[key]

    def has(self, version: VersionId, name: str = '/a/c/o') -> str:
        """Have a version as an upload leaves it; its key."""
        local = LocalVersion(version, '7', ETAG, {
            'name': name, 'Content-Type': 'a/b'},
            Residency.whole(len(BODY)))
        said, packed = metadata.encode(local)
        key = metadata.own_key(CONF.prefix, version)
        self.heads[key] = S3Head(len(BODY), ETAG, said)
        if packed is not None:
            self.small[key + '.meta'] = packed
        return key


class Counts:
    def count(self, _name: str, _number: int = 1) -> None:
        pass


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def s3() -> Client:
    return Client()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def held() -> List[Any]:
    return []


@pytest.fixture
def arrivals(s3: Any, clock: Any, held: List[Any]) -> Arrivals:
    metrics: Any = Counts()
    return Arrivals(CONF, s3, KeyFile(''), lambda *one: held.append(one),
                    metrics, clock)


def ask(key: str, version: VersionId = VERSION, etag: str = ETAG,
        offset: int = 0, endpoint: str = 's3',
        remote_etag: str = ETAG) -> proof.ProofRequest:
    return proof.ProofRequest(version, '7', etag, replace(
        Residency.whole(len(BODY), Tier.REMOTE), remote=RemoteCopy(
            endpoint, key, remote_etag, 1.0, offset)))


def test_one_head_proves_a_version(arrivals: Arrivals, s3: Client) -> None:
    key = s3.has(VERSION)
    reply = arrivals.prove(ask(key))
    assert s3.asked == ['HEAD ' + key]
    assert reply.status == 200 and reply.residency is not None
    assert reply.residency.remote == RemoteCopy('s3', key, ETAG, 1000.0)


@pytest.mark.parametrize('changed', [
    {'endpoint': 'elsewhere'}, {'etag': 'f' * 32},
    {'remote_etag': 'f' * 32}, {'offset': 12},
    {'version': replace(VERSION, timestamp='1700000000.00002')},
    {'version': replace(VERSION, frag_index=1)}])
def test_what_differs_is_not_believed(arrivals: Arrivals, s3: Client,
                                      changed: Any) -> None:
    with pytest.raises(NotProven):
        arrivals.prove(ask(s3.has(VERSION), **changed))


def test_a_key_outside_of_the_prefix_is_not_asked_for(
        arrivals: Arrivals, s3: Client) -> None:
    with pytest.raises(NotProven):
        arrivals.prove(ask('other/key'))
    assert not s3.asked


def test_a_key_of_another_length_is_not_believed(
        arrivals: Arrivals, s3: Client) -> None:
    key = s3.has(VERSION)
    s3.heads[key] = replace(s3.heads[key], size=len(BODY) - 1)
    with pytest.raises(NotProven):
        arrivals.prove(ask(key))


def test_a_missing_key_and_a_silent_s3_are_two_things(
        arrivals: Arrivals, s3: Client) -> None:
    with pytest.raises(NotProven):
        arrivals.prove(ask('p/gone'))
    s3.is_down = True
    with pytest.raises(RemoteUnavailable):
        arrivals.prove(ask('p/gone'))


def test_large_metadata_lies_beside(arrivals: Arrivals, s3: Client) -> None:
    noise = ''.join(hashlib.sha256(b'%d' % number).hexdigest()
                    for number in range(90))
    key = s3.has(VERSION, '/a/c/' + noise)
    assert arrivals.prove(ask(key)).status == 200
    assert s3.asked == ['HEAD ' + key, 'GET %s.meta' % key]


def test_a_bundle_is_asked_for_once_and_holds_its_members(
        arrivals: Arrivals, s3: Client, held: List[Any],
        clock: Clock) -> None:
    key = 'p/%sone' % FOLDER
    s3.heads[key] = S3Head(10 * len(BODY), 'e', {})
    members = [replace(VERSION, timestamp='17000000%02d.00000' % number)
               for number in range(9)]
    for number, version in enumerate(members):
        reply = arrivals.prove(ask(key, version, offset=(
            1 + number) * len(BODY)))
        assert reply.residency is not None
    assert s3.asked == ['HEAD ' + key]
    assert held == [(version, '7') for version in members]
    with pytest.raises(NotProven):
        arrivals.prove(ask(key, offset=9 * len(BODY) + 1))
    assert len(held) == 9
    clock.now += 3600
    del s3.heads[key]
    with pytest.raises(NotProven):
        arrivals.prove(ask(key, offset=len(BODY)))


def test_a_member_whose_bundle_is_gone_has_a_key_of_its_own(
        arrivals: Arrivals, s3: Client, held: List[Any]) -> None:
    own = s3.has(VERSION)
    bundle = 'p/%sgone' % FOLDER
    reply = arrivals.prove(ask(bundle, offset=100))
    assert s3.asked == ['HEAD ' + bundle, 'HEAD ' + own] and not held
    assert reply.residency is not None and reply.residency.remote is not None
    assert reply.residency.remote.key == own
    assert not reply.residency.remote.in_bundle
    with pytest.raises(NotProven):
        arrivals.prove(ask(bundle, offset=100, etag='f' * 32))


def test_a_bundle_that_is_none(arrivals: Arrivals, s3: Client) -> None:
    with pytest.raises(NotProven):
        arrivals.prove(ask('p/%sone' % FOLDER))


def test_bundles_are_not_remembered_without_end(
        arrivals: Arrivals, s3: Client) -> None:
    for number in range(1500):
        key = 'p/%s%d' % (FOLDER, number)
        s3.heads[key] = S3Head(10 * len(BODY), 'e', {})
        arrivals.prove(ask(key, offset=100))
    assert len(arrivals._bundles) == 1024


def test_a_version_is_found_by_its_name(arrivals: Arrivals,
                                        s3: Client) -> None:
    key = s3.has(FRAGMENT)
    reply = arrivals.prove(proof.ProofRequest(FRAGMENT, '7'))
    assert s3.asked == ['HEAD ' + key]
    assert reply.etag == ETAG and reply.metadata['name'] == '/a/c/o'
    assert reply.residency is not None and reply.residency.remote is not None
    assert reply.residency.remote.key == key
    with pytest.raises(VersionGone):
        arrivals.prove(proof.ProofRequest(
            replace(FRAGMENT, frag_index=0), '7'))


def test_a_key_that_is_not_what_its_name_says(arrivals: Arrivals,
                                              s3: Client) -> None:
    s3.heads[metadata.own_key('p/', FRAGMENT)] = s3.heads[s3.has(VERSION)]
    with pytest.raises(DssError):
        arrivals.prove(proof.ProofRequest(FRAGMENT, '7'))


def test_a_record_without_a_copy_proves_nothing(arrivals: Arrivals) -> None:
    with pytest.raises(NotProven):
        arrivals.prove(proof.ProofRequest(
            VERSION, '7', ETAG, Residency.whole(5)))
