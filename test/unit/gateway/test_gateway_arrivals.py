"""What S3 must say before a stub of another node is believed."""

from __future__ import annotations

import base64
import hashlib
import io
import logging
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Event
from types import SimpleNamespace
from typing import Any, Dict, Iterator, List, Optional

import pytest
from support.clocks import StillClock

from swift_dss.core.classes import ClassTable
from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import DssError, RemoteUnavailable, VersionGone
from swift_dss.core.residency import RemoteCopy, Residency, Tier
from swift_dss.core.version import VersionId
from swift_dss.gateway.around import Around
from swift_dss.gateway.bundle import proof as bundle_proof
from swift_dss.gateway.bundle.book import Book, Member
from swift_dss.gateway.bundle.own import OwnMembers
from swift_dss.gateway.bundle.pack import seal_of
from swift_dss.gateway.bundle.proof import BundleProofs
from swift_dss.gateway.bundle.read import FOLDER
from swift_dss.gateway.bundle.shelves import Shelves
from swift_dss.gateway.form import metadata
from swift_dss.gateway.form.encrypt import KeyFile
from swift_dss.gateway.form.verify import PART_BYTES_META
from swift_dss.gateway.link.client import S3Head
from swift_dss.gateway.ports import LocalVersion
from swift_dss.gateway.restore.arrivals import Arrivals, NotProven
from swift_dss.wire.bundle import Builder, plain
from swift_dss.wire.records import proof

BODY = b'x' * 5000
ETAG = hashlib.md5(BODY).hexdigest()
VERSION = VersionId('sdb', 0, 'a' * 29 + 'f00', '1700000000.00001')
FRAGMENT = replace(VERSION, policy=1, frag_index=2)
CONF = GatewayConf(endpoint='s3', bucket='b', prefix='p/')


PLAIN = KeyFile('')


class Client:
    """S3, as far as it is asked."""

    def __init__(self) -> None:
        self.heads: Dict[str, S3Head] = {}
        self.small: Dict[str, bytes] = {}
        self.bundles: Dict[str, bytes] = {}
        self.asked: List[str] = []
        self.is_down = False

    def head(self, key: str) -> Optional[S3Head]:
        if self.is_down:
            raise RemoteUnavailable('down', 1)
        self.asked.append('HEAD ' + key)
        return self.heads.get(key)

    def get(self, key: str, offset: int, length: int) -> Any:
        self.asked.append('GET ' + key)
        return io.BytesIO(self.bundles[key][offset:offset + length])

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


    def has_bundle(self, key: str, versions: List[VersionId],
                   keys: KeyFile = PLAIN) -> List[RemoteCopy]:
        """Have these versions in one bundle; where each is."""
        seal = keys.new() if keys else None
        text = seal.text if seal else ''
        made = Builder({'seal': text} if seal else {}, seal is not None,
                       seal.wrap if seal else plain)
        remotes = []
        for number, version in enumerate(versions):
            offset, _ = made.add(metadata.record_of(LocalVersion(
                version, '7', ETAG, {'name': '/a/c/o'},
                Residency.whole(len(BODY)))), BODY)
            remotes.append(RemoteCopy('s3', key, ETAG, 1.0, offset,
                                      seal_of(text, number)))
        self.bundles[key] = made.finish()
        self.heads[key] = S3Head(len(self.bundles[key]), 'e', {})
        return remotes


class Counts:
    def count(self, _name: str, _number: int = 1) -> None:
        pass


@pytest.fixture
def s3() -> Client:
    return Client()


@pytest.fixture
def clock() -> StillClock:
    return StillClock(1000.0)


@pytest.fixture
def held() -> List[Any]:
    return []


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    made = Book(str(tmp_path / 'bundles.db'))
    yield made
    made.close()


@pytest.fixture
def arrivals(s3: Any, clock: Any, held: List[Any], book: Book) -> Arrivals:
    return arrivals_by(s3, clock, book, PLAIN, held)


def arrivals_by(s3: Any, clock: Any, book: Book, keys: KeyFile,
                held: List[Any]) -> Arrivals:
    metrics: Any = Counts()
    told: Any = SimpleNamespace(hold=lambda *arguments: held.append(arguments))
    proofs = BundleProofs(s3, keys, clock)
    return Arrivals(
        Around(CONF, ClassTable, metrics, logging.getLogger('arrivals'),
               clock=clock),
        Shelves(told, s3, keys), proofs, OwnMembers(book, s3, keys, proofs))


def ask_of(version: VersionId, remote: RemoteCopy, etag: str = ETAG,
           length: int = len(BODY)) -> proof.ProofRequest:
    return proof.ProofRequest(version, '7', etag, replace(
        Residency.whole(length, Tier.REMOTE), remote=remote))


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
    {'etag': 'f' * 32},
    {'remote_etag': 'f' * 32}, {'offset': 12},
    {'version': replace(VERSION, timestamp='1700000000.00002')},
    {'version': replace(VERSION, frag_index=1)}])
def test_what_differs_is_not_believed(arrivals: Arrivals, s3: Client,
                                      changed: Any) -> None:
    with pytest.raises(NotProven):
        arrivals.prove(ask(s3.has(VERSION), **changed))


def test_another_name_of_the_bucket_is_no_matter(
        arrivals: Arrivals, s3: Client) -> None:
    reply = arrivals.prove(ask(s3.has(VERSION), endpoint='elsewhere'))
    assert reply.residency is not None and reply.residency.remote is not None
    assert reply.residency.remote.endpoint == 's3'


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


def members(count: int) -> List[VersionId]:
    return [replace(VERSION, timestamp='17000000%02d.00000' % number)
            for number in range(count)]


def test_the_index_of_a_bundle_is_read_once_for_all_members(
        arrivals: Arrivals, s3: Client, held: List[Any],
        clock: StillClock) -> None:
    key, versions = 'p/%sone' % FOLDER, members(9)
    for version, remote in zip(versions, s3.has_bundle(key, versions)):
        reply = arrivals.prove(ask_of(version, remote))
        assert reply.residency is not None
        assert reply.residency.remote == replace(
            remote, verified_at=clock.now)
    assert s3.asked == ['HEAD ' + key] + ['GET ' + key] * 2
    assert held == [(version, '7', key) for version in versions]
    clock.now += 5
    arrivals.prove(ask_of(version, remote))
    assert s3.asked[3:] == ['HEAD ' + key]


@pytest.mark.parametrize('is_there', [True, False])
def test_members_that_come_at_a_time_ask_once(
        arrivals: Arrivals, s3: Client, clock: StillClock,
        is_there: bool) -> None:
    """One HEAD, one answer for all of them, and another one later."""
    key = 'p/%sone' % FOLDER
    versions = members(4)
    remotes = s3.has_bundle(key, versions)
    head, came, go = s3.head, Barrier(2), Event()

    def slow(asked: str) -> Optional[S3Head]:
        came.wait(30)
        assert go.wait(30)
        if not is_there:
            raise RemoteUnavailable('down', 1)
        return head(asked)
    s3.head = slow  # type: ignore[method-assign]
    with ThreadPoolExecutor(len(versions)) as pool:
        first = pool.submit(arrivals.prove, ask_of(versions[0], remotes[0]))
        came.wait(30)
        rest = [pool.submit(arrivals.prove, ask_of(*pair))
                for pair in zip(versions[1:], remotes[1:])]
        assert not wait([first, *rest], 0.2).done
        go.set()
        for future in (first, *rest):
            if is_there:
                assert future.result(30).residency
            else:
                with pytest.raises(RemoteUnavailable):
                    future.result(30)
    assert s3.asked.count('HEAD ' + key) == is_there
    s3.head = head  # type: ignore[method-assign]
    clock.now += 5
    assert arrivals.prove(ask_of(versions[0], remotes[0])).residency
    assert s3.asked.count('HEAD ' + key) == is_there + 1


def test_a_bundle_that_went_is_missed_within_seconds(
        arrivals: Arrivals, s3: Client, clock: StillClock) -> None:
    key = 'p/%sone' % FOLDER
    remote, = s3.has_bundle(key, [VERSION])
    arrivals.prove(ask_of(VERSION, remote))
    del s3.heads[key]
    clock.now += 5
    with pytest.raises(NotProven):
        arrivals.prove(ask_of(VERSION, remote))


def test_another_bundle_under_the_key_is_read_again(
        arrivals: Arrivals, s3: Client, clock: StillClock) -> None:
    key = 'p/%sone' % FOLDER
    arrivals.prove(ask_of(VERSION, s3.has_bundle(key, [VERSION])[0]))
    other = members(2)
    remotes_of_other = s3.has_bundle(key, other)
    clock.now += 5
    arrivals.prove(ask_of(other[1], remotes_of_other[1]))


@pytest.mark.parametrize('changed,remote_changed', [
    ({'version': replace(VERSION, timestamp='1999999999.00000')}, {}),
    ({'version': replace(VERSION, object_hash='b' * 32)}, {}),
    ({'version': replace(VERSION, policy=2)}, {}),
    ({'version': replace(VERSION, frag_index=1)}, {}),
    ({'etag': 'f' * 32}, {}), ({'length': len(BODY) - 1}, {}),
    ({'etag': 'f' * 32}, {'etag': 'f' * 32}), ({}, {'etag': 'f' * 32}),
    ({}, {'offset': 4711}), ({}, {'seal': 'x.0'})])
def test_a_member_that_the_index_has_not_is_not_believed(
        arrivals: Arrivals, s3: Client, held: List[Any], changed: Any,
        remote_changed: Any) -> None:
    remote, = s3.has_bundle('p/%sone' % FOLDER, [VERSION])
    with pytest.raises(NotProven):
        arrivals.prove(ask_of(**dict(
            {'version': VERSION,
             'remote': replace(remote, **remote_changed)}, **changed)))
    assert not held


def keys_in(tmp_path: Path) -> KeyFile:
    path = tmp_path / 'keys'
    path.write_text('active = k1\nkey k1 = %s\n' % base64.b64encode(
        bytes(32)).decode('ascii'))
    path.chmod(0o600)
    return KeyFile(str(path))


def test_members_of_sealed_bundles(s3: Any, tmp_path: Any,
                                   book: Book) -> None:
    keys = keys_in(tmp_path)
    proves = arrivals_by(s3, StillClock(1000.0), book, keys, [])
    versions = members(2)
    remotes = s3.has_bundle('p/%sone' % FOLDER, versions, keys)
    for version, remote in zip(versions, remotes):
        assert proves.prove(ask_of(version, remote)).status == 200
    with pytest.raises(NotProven):
        proves.prove(ask_of(versions[0], replace(
            remotes[0], seal=remotes[1].seal)))


def test_a_member_whose_bundle_is_gone_has_a_key_of_its_own(
        arrivals: Arrivals, s3: Client, held: List[Any]) -> None:
    own = s3.has(VERSION)
    bundle = 'p/%sgone' % FOLDER
    reply = arrivals.prove(ask(bundle, offset=100))
    assert s3.asked == ['HEAD ' + bundle, 'HEAD ' + own]
    # To follow to where the bundle's members are by now.
    assert [call[2] for call in held] == [bundle]
    assert reply.residency is not None and reply.residency.remote is not None
    assert reply.residency.remote.key == own
    assert not reply.residency.remote.in_bundle
    with pytest.raises(NotProven):
        arrivals.prove(ask(bundle, offset=100, etag='f' * 32))


def test_a_bundle_that_is_none(arrivals: Arrivals, s3: Client) -> None:
    with pytest.raises(NotProven):
        arrivals.prove(ask('p/%sone' % FOLDER))


def test_a_bundle_that_is_damaged_proves_nothing(
        arrivals: Arrivals, s3: Client) -> None:
    key = 'p/%sone' % FOLDER
    remote, = s3.has_bundle(key, [VERSION])
    s3.bundles[key] = s3.bundles[key][:-9] + b'123456789'
    with pytest.raises(NotProven):
        arrivals.prove(ask_of(VERSION, remote))


def remembered(arrivals: Arrivals, s3: Client,
               asks: List[proof.ProofRequest]) -> int:
    """Of how many of these, from the last one on, S3 is not asked again."""
    for number, request in enumerate(reversed(asks)):
        del s3.asked[:]
        arrivals.prove(request)
        if s3.asked:
            return number
    return len(asks)


def test_bundles_are_not_remembered_without_end(
        arrivals: Arrivals, s3: Client, monkeypatch: Any) -> None:
    monkeypatch.setattr(bundle_proof, '_BUNDLES', 10)
    asks = [ask_of(VERSION, s3.has_bundle(
        'p/%s%d' % (FOLDER, number), [VERSION])[0]) for number in range(30)]
    for request in asks:
        arrivals.prove(request)
    assert remembered(arrivals, s3, asks) == 10
    monkeypatch.setattr(bundle_proof, '_MEMBERS', 25)
    asks = [ask_of(VERSION, s3.has_bundle(
        'p/%sm%d' % (FOLDER, number), members(9) + [VERSION])[9])
        for number in range(9)]
    for request in asks:
        arrivals.prove(request)
    assert remembered(arrivals, s3, asks) == 2


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


def fragments(count: int) -> List[VersionId]:
    return [replace(FRAGMENT, timestamp='17000000%02d.00000' % number)
            for number in range(count)]


@pytest.mark.parametrize('is_sealed', [False, True])
@pytest.mark.parametrize('is_own', [False, True])
def test_a_lost_fragment_is_found_in_the_bundle_that_its_record_named(
        s3: Any, clock: Any, tmp_path: Path, book: Book, held: List[Any],
        is_sealed: bool, is_own: bool) -> None:
    """The node's own, or another one's."""
    keys = keys_in(tmp_path) if is_sealed else PLAIN
    key, versions = 'p/%sone' % FOLDER, fragments(3)
    remotes = s3.has_bundle(key, versions, keys)
    if is_own:
        seal = remotes[0].seal.rpartition('.')[0]
        book.adopt(key, 'g', seal, s3.heads[key].size, [Member(
            version, '7', 'live', 'g', len(BODY), ETAG, 0, number,
            remote.offset, len(BODY)) for number, (version, remote)
            in enumerate(zip(versions, remotes))], 1.0)
    else:
        book.hold_all([(version, '7') for version in versions], key)
    arrivals = arrivals_by(s3, clock, book, keys, held)
    for version, remote in zip(versions, remotes):
        reply = arrivals.prove(proof.ProofRequest(version, '7', packed=True))
        assert reply.residency is not None
        assert reply.residency.remote == replace(
            remote, verified_at=clock.now)
        assert reply.residency.tiers == Tier.REMOTE
        assert (reply.etag, reply.metadata['name']) == (ETAG, '/a/c/o')
    assert held == [(version, '7', key) for version in versions]
    # No key of a version is asked for, and the bundle once.
    assert s3.asked.count('HEAD ' + key) == 1
    assert set(s3.asked) == {'HEAD ' + key, 'GET ' + key}


@pytest.mark.parametrize('packed', [False, True])
def test_what_no_bundle_has_may_have_a_key_of_its_own(
        arrivals: Arrivals, s3: Client, book: Book, packed: bool) -> None:
    """The book is behind: the bundle went, or has other members."""
    key = s3.has(FRAGMENT)
    for bundle in ('p/%sgone' % FOLDER, 'p/%sother' % FOLDER):
        s3.has_bundle('p/%sother' % FOLDER, members(2))
        book.hold(FRAGMENT, '7', bundle)
        asked = proof.ProofRequest(FRAGMENT, '7', packed=packed)
        if packed:
            with pytest.raises(VersionGone):
                arrivals.prove(asked)
        else:
            reply = arrivals.prove(asked)
            assert reply.residency and reply.residency.remote
            assert reply.residency.remote.key == key
        assert ('HEAD ' + key in s3.asked) is not packed


def test_a_key_that_is_not_what_its_name_says(arrivals: Arrivals,
                                              s3: Client) -> None:
    s3.heads[metadata.own_key('p/', FRAGMENT)] = s3.heads[s3.has(VERSION)]
    with pytest.raises(DssError):
        arrivals.prove(proof.ProofRequest(FRAGMENT, '7'))


def test_a_record_without_a_copy_proves_nothing(arrivals: Arrivals) -> None:
    with pytest.raises(NotProven):
        arrivals.prove(proof.ProofRequest(
            VERSION, '7', ETAG, Residency.whole(5)))


def has_pieces(s3: Client, etag: str, pieces: Dict[str, str]) -> str:
    """Have a fragment under an ETag that is not its MD5; its key."""
    key = s3.has(FRAGMENT)
    s3.heads[key] = S3Head(len(BODY), etag, dict(
        s3.heads[key].metadata, **pieces))
    return key


@pytest.mark.parametrize('body, is_right', [
    (BODY, True), (b'y' + BODY[1:], False)])
def test_a_fragment_with_another_etag_is_read_once(
        arrivals: Arrivals, s3: Client, body: bytes, is_right: bool) -> None:
    """S3 has stored other bytes than an upload sent, or its ETags are no
    digests."""
    key = has_pieces(s3, 'f' * 32, {})
    s3.bundles[key] = body
    if is_right:
        arrivals.prove(proof.ProofRequest(FRAGMENT, '7'))
    else:
        with pytest.raises(NotProven):
            arrivals.prove(proof.ProofRequest(FRAGMENT, '7'))
    assert s3.asked == ['HEAD ' + key, 'GET ' + key]


def test_a_fragment_in_parts_is_not_read(
        arrivals: Arrivals, s3: Client) -> None:
    """It may be large; who reads it compares digests."""
    key = has_pieces(s3, 'f' * 32 + '-2', {PART_BYTES_META: '4096'})
    arrivals.prove(proof.ProofRequest(FRAGMENT, '7'))
    assert s3.asked == ['HEAD ' + key]
