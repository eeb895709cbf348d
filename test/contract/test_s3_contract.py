"""What S3 does, of the simulation and of real servers alike.

The gateway's typed client and boto3's verbs below it are asked the same of the
simulated bucket, of versitygw, and of a second Swift. What the simulation
does otherwise, no simulated history can be trusted with.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

import botocore.exceptions
import pytest
from support.edges.s3_servers import (
    BUCKET, S3Server, SwiftServer, VersityServer)

from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import DamagedRecord, RemoteUnavailable
from swift_dss.gateway.link.breaker import Breaker
from swift_dss.gateway.link.client import (
    S3Client, S3Exists, S3Missing, S3Rejected)
from swift_dss.sim.world.s3 import Bucket

#: S3 takes no smaller part but the last one.
PART_BYTES = 5 * 1024 * 1024
_numbers = itertools.count()


class Side(NamedTuple):
    """A server, or what stands for it.

    :param client: the gateway's
    :param away: the same client of a server that does not answer
    :param elsewhere: the same client of a bucket that is not there
    :param verbs: boto3's, of the bucket
    """

    client: S3Client
    away: S3Client
    elsewhere: S3Client
    verbs: Any


class Verbs:
    """boto3's verbs on one bucket."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        def ask(**arguments: Any) -> Any:
            return getattr(self._client, verb)(Bucket=BUCKET, **arguments)
        return ask


def simulated(conf: Callable[..., GatewayConf]) -> Side:
    bucket = Bucket(random.Random(1), name=BUCKET)
    away = Bucket(random.Random(1), name=BUCKET, mood='away')

    def client(of: Bucket, made: GatewayConf) -> S3Client:
        return S3Client(made, Breaker(), 1,
                        connect=lambda *_: of.client('n1'))
    return Side(client(bucket, conf()), client(away, conf()),
                client(bucket, conf(bucket='none')),
                Verbs(bucket.client('judge')))


def real(server: S3Server, conf: Callable[..., GatewayConf]) -> Side:
    def client(**more: Any) -> S3Client:
        return S3Client(conf(**dict({'url': server.url}, **more)),
                        Breaker(), 1)
    return Side(client(), client(url='http://127.0.0.1:9'),
                client(bucket='none'), Verbs(server.client()))


SERVERS: Dict[str, Callable[[], S3Server]] = {
    'versitygw': VersityServer, 'swift': SwiftServer}


@pytest.fixture(scope='module', params=['simulated', *SERVERS])
def side(request: Any, tmp_path_factory: Any) -> Iterator[Side]:
    secret: Path = tmp_path_factory.mktemp('s3') / 'secret'
    server = SERVERS[request.param]() if request.param in SERVERS else None
    secret.write_text('access_key = %s\nsecret_key = %s\n' % (
        ('a', 's') if server is None else (
            server.access_key, server.secret_key)))
    secret.chmod(0o600)

    def conf(**more: Any) -> GatewayConf:
        return GatewayConf(**dict({
            'enabled': True, 'bucket': BUCKET, 'url': 'http://s3',
            'prefix': 'p/', 'secret_file': str(secret),
            'addressing_style': 'path'}, **more))
    if server is None:
        yield simulated(conf)
        return
    try:
        yield real(server, conf)
    finally:
        server.close()


@pytest.fixture
def key() -> str:
    """A prefix of its own for each test: the servers are shared."""
    return 'p/%04d-' % next(_numbers)


def md5(data: bytes) -> bytes:
    return hashlib.md5(data).digest()


def put(side: Side, key: str, data: bytes, **more: Any) -> str:
    return side.client.put(key, data, md5(data), **more)


def read(side: Side, key: str, offset: int, length: int) -> bytes:
    body = side.client.get(key, offset, length)
    try:
        return body.read(length)
    finally:
        body.close()


def failure(ask: Callable[..., Any], **arguments: Any) -> Tuple[int, str]:
    """Status and code of the answer to a request that fails."""
    with pytest.raises(botocore.exceptions.ClientError) as err:
        ask(**arguments)
    response = err.value.response
    return (response['ResponseMetadata']['HTTPStatusCode'],
            response['Error'].get('Code', ''))


# -- one key ---------------------------------------------------------------

@pytest.mark.parametrize('data', [b'', b'x', bytes(range(256)) * 40])
def test_what_was_put_is_there(side: Side, key: str, data: bytes) -> None:
    etag = put(side, key, data, metadata={'dss-0': 'abc+/=', 'dss-meta': ''})
    assert etag == md5(data).hex()
    head = side.client.head(key)
    assert head is not None
    assert (head.size, head.etag) == (len(data), etag)
    assert head.metadata['dss-0'] == 'abc+/=' and not head.archived
    assert side.client.get_small(key, 20000) == data


def test_names_of_metadata_are_in_lower_case(side: Side, key: str) -> None:
    put(side, key, b'x', metadata={'Dss-Kind': 'Value'})
    head = side.client.head(key)
    assert head is not None and head.metadata['dss-kind'] == 'Value'
    answer = side.verbs.get_object(Key=key)
    answer['Body'].close()
    assert {name.lower(): value for name, value
            in answer['Metadata'].items()} == {'dss-kind': 'Value'}


def test_a_later_put_replaces_all(side: Side, key: str) -> None:
    put(side, key, b'first', metadata={'dss-0': 'a', 'dss-1': 'b'})
    put(side, key, b'second one', metadata={'dss-0': 'c'})
    head = side.client.head(key)
    assert head is not None and head.size == 10
    assert 'dss-1' not in head.metadata and head.metadata['dss-0'] == 'c'
    assert side.client.get_small(key, 100) == b'second one'


def test_bytes_with_another_digest_are_refused(side: Side, key: str) -> None:
    with pytest.raises(S3Rejected):
        side.client.put(key, b'bytes', md5(b'others'))
    assert side.client.head(key) is None


def test_a_key_that_is_not_there(side: Side, key: str) -> None:
    assert side.client.head(key) is None
    for ask in (lambda: side.client.get(key, 0, 1),
                lambda: side.client.get_small(key, 10)):
        with pytest.raises(S3Missing):
            ask()
    side.client.probe(key)
    assert failure(side.verbs.get_object, Key=key) == (404, 'NoSuchKey')
    # The answer to a HEAD has no body that could say more.
    assert failure(side.verbs.head_object, Key=key)[0] == 404


def test_a_delete_may_come_twice(side: Side, key: str) -> None:
    put(side, key, b'x')
    side.client.delete(key)
    assert side.client.head(key) is None
    assert list(side.client.listing(key)) == []
    side.client.delete(key)


def test_a_small_key_has_a_limit(side: Side, key: str) -> None:
    put(side, key, b'12345')
    assert side.client.get_small(key, 5) == b'12345'
    with pytest.raises(DamagedRecord):
        side.client.get_small(key, 4)


# -- ranges ----------------------------------------------------------------

@pytest.mark.parametrize('offset, length', [(0, 1), (0, 10), (3, 4), (9, 1)])
def test_a_range_gives_its_bytes(side: Side, key: str, offset: int,
                                 length: int) -> None:
    put(side, key, b'0123456789')
    assert read(side, key, offset, length) == \
        b'0123456789'[offset:offset + length]
    answer = side.verbs.get_object(Key=key, Range='bytes=%d-%d' % (
        offset, offset + length - 1))
    answer['Body'].close()
    assert answer['ContentRange'] == 'bytes %d-%d/10' % (
        offset, offset + length - 1)
    assert answer['ContentLength'] == length
    # Of the whole, not of the range.
    assert answer['ETag'].strip('"') == md5(b'0123456789').hex()


def test_a_range_beyond_the_end_is_cut(side: Side, key: str) -> None:
    put(side, key, b'0123456789')
    answer = side.verbs.get_object(Key=key, Range='bytes=7-99')
    assert answer['Body'].read() == b'789'
    assert answer['ContentRange'] == 'bytes 7-9/10'
    with pytest.raises(RemoteUnavailable):
        side.client.get(key, 7, 93)


@pytest.mark.parametrize('data', [b'', b'0123456789'])
def test_a_range_behind_the_end_is_refused(side: Side, key: str,
                                           data: bytes) -> None:
    put(side, key, data)
    assert failure(side.verbs.get_object, Key=key, Range='bytes=10-19') == (
        416, 'InvalidRange')
    with pytest.raises(S3Rejected):
        side.client.get(key, 10, 10)


# -- conditions ------------------------------------------------------------

def test_a_key_is_put_only_if_it_is_missing(side: Side, key: str) -> None:
    put(side, key, b'first', only_if_missing=True)
    with pytest.raises(S3Exists):
        put(side, key, b'second', only_if_missing=True)
    assert side.client.get_small(key, 10) == b'first'
    assert failure(side.verbs.put_object, Key=key, Body=b'third',
                   IfNoneMatch='*') == (412, 'PreconditionFailed')
    side.client.delete(key)
    put(side, key, b'fourth', only_if_missing=True)


# -- listings --------------------------------------------------------------

#: versitygw keeps folders, so no key may be another one's folder.
NAMES = ('a', 'a-b', 'a0', 'b', 'é', '日本')


def test_a_listing_is_in_order_and_of_its_prefix(side: Side,
                                                 key: str) -> None:
    for name in reversed(NAMES):
        put(side, key + name, name.encode())
    put(side, key[:-1] + '.', b'other')
    keys = list(side.client.listing(key))
    assert [row.key for row in keys] == [key + name for name in NAMES]
    assert [(row.size, row.etag) for row in keys] == [
        (len(name.encode()), md5(name.encode()).hex()) for name in NAMES]
    assert [row.key for row in side.client.listing(key + 'a')] == [
        key + name for name in NAMES[:3]]


@pytest.mark.parametrize('after, first', [
    ('', 0), ('a', 1), ('a,', 1), ('a-b', 2), ('z', 4), ('日本', 6)])
def test_a_listing_begins_behind_a_key(side: Side, key: str, after: str,
                                       first: int) -> None:
    for name in NAMES:
        put(side, key + name, b'')
    listed = side.client.listing(key, key + after)
    assert [row.key for row in listed] == [
        key + name for name in NAMES[first:]]


def test_a_listing_comes_by_pages(side: Side, key: str) -> None:
    for name in NAMES[:5]:
        put(side, key + name, b'')
    pages: List[List[str]] = []
    more: Dict[str, Any] = {}
    for _ in range(9):
        answer = side.verbs.list_objects_v2(Prefix=key, MaxKeys=2, **more)
        pages.append([row['Key'] for row in answer['Contents']])
        assert answer['KeyCount'] == len(pages[-1])
        if not answer['IsTruncated']:
            break
        more = {'ContinuationToken': answer['NextContinuationToken']}
    assert [len(page) for page in pages] == [2, 2, 1]
    assert list(itertools.chain(*pages)) == [
        key + name for name in NAMES[:5]]


def test_a_page_that_is_full_may_be_the_last(side: Side, key: str) -> None:
    for name in NAMES[:2]:
        put(side, key + name, b'')
    answer = side.verbs.list_objects_v2(Prefix=key, MaxKeys=2)
    assert len(answer['Contents']) == 2 and not answer['IsTruncated']


def test_a_listing_of_nothing(side: Side, key: str) -> None:
    assert side.client.page(key) == ([], '', True)
    answer = side.verbs.list_objects_v2(Prefix=key)
    assert not answer['IsTruncated'] and not answer['KeyCount']
    assert 'Contents' not in answer


# -- uploads in parts ------------------------------------------------------

def test_an_object_is_made_of_its_parts(side: Side, key: str) -> None:
    parts = [b'a' * PART_BYTES, b'b' * 1000]
    upload = side.client.begin_multipart(key, {'dss-0': 'x'})
    assert side.client.parts(key, upload) == {}
    assert side.client.uploads_of(key) == [upload]
    etags = [side.client.put_part(key, upload, number, part, md5(part))
             for number, part in enumerate(parts, 1)]
    assert etags == [md5(part).hex() for part in parts]
    assert side.client.parts(key, upload) == {
        number: (etag, len(part)) for number, (etag, part)
        in enumerate(zip(etags, parts), 1)}
    # Nothing is to be seen of it before it is complete.
    assert side.client.head(key) is None
    assert list(side.client.listing(key)) == []
    side.client.complete(key, upload, etags)
    head = side.client.head(key)
    assert head is not None and head.size == PART_BYTES + 1000
    assert head.metadata['dss-0'] == 'x'
    assert head.etag == md5(b''.join(map(md5, parts))).hex() + '-2'
    assert read(side, key, PART_BYTES - 2, 4) == b'aabb'
    assert side.client.uploads_of(key) == []


def test_a_part_may_come_twice_and_the_last_one_counts(
        side: Side, key: str) -> None:
    upload = side.client.begin_multipart(key, {})
    for part in (b'first', b'second'):
        etag = side.client.put_part(key, upload, 1, part, md5(part))
    side.client.complete(key, upload, [etag])
    assert side.client.get_small(key, 10) == b'second'


def test_an_upload_that_is_dropped_leaves_nothing(
        side: Side, key: str) -> None:
    upload = side.client.begin_multipart(key, {})
    side.client.put_part(key, upload, 1, b'x', md5(b'x'))
    side.client.abort(key, upload)
    side.client.abort(key, upload)
    assert side.client.head(key) is None
    assert side.client.uploads_of(key) == []
    for ask in (lambda: side.client.parts(key, upload),
                lambda: side.client.put_part(key, upload, 1, b'x', md5(b'x')),
                lambda: side.client.complete(key, upload, [md5(b'x').hex()])):
        with pytest.raises(S3Missing):
            ask()


def test_parts_that_are_wrong_make_no_object(side: Side, key: str) -> None:
    small = side.client.begin_multipart(key, {})
    etags = [side.client.put_part(key, small, number, b'x', md5(b'x'))
             for number in (1, 2)]
    # Another part than was sent; a first part that is too small.
    for said in ([md5(b'y').hex()], etags):
        with pytest.raises(S3Rejected):
            side.client.complete(key, small, said)
    with pytest.raises(S3Rejected):
        side.client.put_part(key, small, 1, b'x', md5(b'y'))
    assert side.client.head(key) is None
    side.client.abort(key, small)


# -- what does not work ----------------------------------------------------

#: Each call, and what it needs.
CALLS: List[Callable[[S3Client, str], Any]] = [
    lambda client, key: client.put(key, b'x', md5(b'x')),
    lambda client, key: client.get(key, 0, 1),
    lambda client, key: client.probe(key),
    lambda client, key: client.page(key)]


@pytest.mark.parametrize('call', range(len(CALLS)))
def test_a_server_that_does_not_answer(side: Side, key: str,
                                       call: int) -> None:
    for ask in (CALLS[call], lambda client, at: client.head(at),
                lambda client, at: client.delete(at)):
        with pytest.raises(RemoteUnavailable):
            ask(side.away, key)


@pytest.mark.parametrize('call', range(len(CALLS)))
def test_a_bucket_that_is_not_there(side: Side, key: str, call: int) -> None:
    """It says nothing about a key."""
    with pytest.raises(RemoteUnavailable):
        CALLS[call](side.elsewhere, key)


def test_a_bucket_without_versions(side: Side) -> None:
    try:
        assert side.client.versioning() == ''
    except S3Rejected:
        pass  # the server does not know the question
