"""A restore from a bucket that others have written to takes none of it.

Everything that a holder of the bucket's write key can do without the key file
is planted beside what was sent: unsealed records, copies under other names,
side cars, bundles, accounts and containers, the future.
"""

from __future__ import annotations

import dataclasses
import time
import zlib

import pytest
from functional.test_gateway_bundles import Node
from functional.test_gateway_sealed import write_keys
from support import md5, pattern
from support.edges.s3_servers import BUCKET, VersityServer
from support.nodes.gateway_node import OnlyHere

from swift_dss.core.residency import Residency
from swift_dss.core.version import VersionId
from swift_dss.gateway.bundle.since import SUFFIX
from swift_dss.gateway.form import encrypt, metadata
from swift_dss.gateway.ports import LocalVersion
from swift_dss.gateway.restore import places as restore_places
from swift_dss.gateway.restore.catalog import Catalog, open_client
from swift_dss.gateway.restore.places import Place
from swift_dss.gateway.restore.run import Cluster, Restore
from swift_dss.gateway.restore.trust import Trust
from swift_dss.gateway.restore.write import Target
from swift_dss.wire import bundle
from swift_dss.wire.layout import remote_key

CLUSTER, OTHER = 'c' * 32, 'd' * 32
EACH = 100
#: Of the year 2286.
FUTURE = '9999999999.00000'


@pytest.fixture(scope='module')
def server():
    made = VersityServer()
    yield made
    made.close()


def hash_here(name):
    """What this cluster makes of a name."""
    return md5(name.rsplit('/', 1)[1].encode())


class Written:
    """Stands for devices, rings, and servers of containers."""

    def __init__(self):
        self.versions, self.places = [], []

    def named(self, held):
        return dataclasses.replace(held, record=dataclasses.replace(
            held.record, version=dataclasses.replace(
                held.record.version, object_hash=hash_here(held.name))))

    def targets(self, held):
        return [Target('sda', 7, 0)]

    def write(self, item, target=None):
        if target is None:
            self.places.append(item)
        else:
            self.versions.append((item.name, item.record.version.timestamp,
                                  item.record.etag))
        return True

    def list_in_container(self, held):
        """Nobody is told."""

    def require(self, held):
        """They are there."""


class Bucket:
    """What a node sent, sealed; and what somebody planted."""

    def __init__(self, server, root, keyed=True):
        self.server = server
        self.keys = write_keys(str(root / 'keys'), 'k1', 'k1') \
            if keyed else ''
        self.node = Node(server, root / 'node', key_file=self.keys)
        self.versions = [
            self.node.put('o%d' % n, pattern(600000 if n == 0 else 3000,
                                             's%d' % n), class_id=n % 2)
            for n in range(6)]
        self.node.upload(self.versions)
        self.node.gateway.stop()
        self.s3 = server.client()
        self.file = encrypt.KeyFile(self.keys)
        self.planted = 0
        if keyed:
            self.put_place('/a/c', CLUSTER)
            self.sealed_places = 1
        self.planted = 0

    def put(self, key, body, **metadata_):
        self.s3.put_object(Bucket=BUCKET, Key=key, Body=body,
                           Metadata=metadata_.get('metadata', {}))
        self.planted += 1

    def put_place(self, path, cluster, key=None, sealed=True, **headers):
        raw = restore_places.encode(Place(path, {
            name.replace('_', '-'): value
            for name, value in headers.items()}, cluster))
        key = key or restore_places.key_of(self.node.prefix, path)
        if sealed:
            raw = encrypt.close_envelope(self.file.new(
                key.encode() + raw), raw)
        self.put(key, raw)

    def put_version(self, name, timestamp='1700000000.00000', seal=False,
                    object_hash='', key='', body=b'planted'):
        version = VersionId('sda', 0, object_hash or hash_here(name),
                            timestamp, None)
        local = LocalVersion(version, '7', md5(body), {
            'name': name, 'X-Timestamp': timestamp, 'ETag': md5(body),
            'Content-Type': 'text/plain',
            'Content-Length': str(len(body))}, Residency.whole(len(body)))
        key = key or remote_key(self.node.prefix, version)
        if not seal:
            self.put(key, body, metadata=metadata.encode(local)[0])
            return
        made = encrypt.seal_for(self.file, key, local)
        self.put(key, made.wrap('data', 0, body), metadata=dict(
            metadata.encode(local, lambda raw: made.wrap(
                'record', 0, raw))[0], **{encrypt.SEAL_META: made.text}))

    def singles(self):
        return [key for key in self.node.listed() if not key.startswith((
            self.node.prefix + 'bundles/', self.node.prefix + 'containers/',
            self.node.prefix + 'accounts/'))]

    def copy(self, key, to):
        answer = self.s3.get_object(Bucket=BUCKET, Key=key)
        self.put(to, answer['Body'].read(), metadata=answer['Metadata'])

    def restore(self, **trust):
        written = Written()
        client = open_client(self.node.conf.gateway)
        work = Restore(
            self.node.conf.gateway, client, written, written, Trust(**dict(
                {'prefix': self.node.prefix, 'cluster': CLUSTER,
                 'only_sealed': bool(self.keys), 'now': time.time()},
                **trust)), Cluster(lambda version: True, OnlyHere()),
            open_place=lambda key, data: encrypt.open_envelope(
                self.file, data))
        restored = work.run(Catalog(self.node.conf.gateway, client),
                            lambda now: None)
        return written, restored, work.problems


@pytest.fixture
def bucket(server, tmp_path):
    return Bucket(server, tmp_path)


def mine(bucket):
    return sorted(('/a/c/o%d' % n, version.timestamp) for n, version
                  in enumerate(bucket.versions))


def taken(written):
    return sorted(version[:2] for version in written.versions)


def test_all_that_was_sent_comes_back(bucket):
    written, restored, problems = bucket.restore()
    assert (taken(written), problems) == (mine(bucket), [])
    assert [place.path for place in written.places] == ['/a/c']
    assert restored.refused == 0


def plant(bucket):
    """Ten kinds of evil, ``EACH`` of each."""
    source = bucket.singles()[0]
    head = bucket.s3.head_object(Bucket=BUCKET, Key=source)
    for n in range(EACH):
        name = '/a/c/evil%d' % n
        bucket.put_version(name)
        bucket.put_version('/a/c/o%d' % (n % 6), '%d.00000' % (
            1790000000 + n))
        bucket.put_version(name, FUTURE, seal=True)
        bucket.put_place('/a/open%d' % n, CLUSTER, sealed=False,
                         x_container_read='.r:*')
        bucket.put_place('/a/theirs%d' % n, OTHER, x_container_read='.r:*')
        bucket.put_place('/a/c', CLUSTER, key=restore_places.key_of(
            bucket.node.prefix, '/a/copy%d' % n))
        # A copy of what is sealed, as another version and as another name.
        bucket.copy(source, remote_key(bucket.node.prefix, VersionId(
            'sda', 0, md5(b'o0'), '%d.00000' % (1795000000 + n), None)))
        bucket.copy(source, remote_key(bucket.node.prefix, VersionId(
            'sda', 0, md5(b'as%d' % n), '1700000000.00000', None)))
        # Sealed by another cluster that has the same key file.
        bucket.put_version('/a/c/theirs%d' % n, seal=True,
                           object_hash=md5(b'other hash path %d' % n))
        # A bundle of one member.
        body = b'in a bundle'
        made = bundle.Builder({'account': 'a', 'container': 'c'})
        made.add({'v': 1, 'policy': 0, 'hash': '', 'frag': None, 'map': '1',
                  'timestamp': '1700000000.00000', 'length': len(body),
                  'etag': md5(body), 'metadata': {
                      'name': '/a/c/member%d' % n}}, body)
        bucket.put('%sbundles/abc/1700000000.00000-%032d' % (
            bucket.node.prefix, n), made.finish())
    return head


def test_none_of_a_thousand_planted_records_is_taken(bucket):
    """The experiment: 1,000 planted, 0 taken."""
    plant(bucket)
    assert bucket.planted == 10 * EACH
    written, restored, problems = bucket.restore()
    extra = [version for version in taken(written)
             if version not in mine(bucket)]
    places = [place.path for place in written.places
              if place.path != '/a/c']
    print('%d planted, %d taken, %d refused' % (
        bucket.planted, len(extra) + len(places), restored.refused))
    assert (extra, places) == ([], [])
    assert taken(written) == mine(bucket), 'and all of ours is'
    assert restored.refused == bucket.planted == len(problems)


def test_told_to_it_takes_what_is_not_sealed_but_no_future(bucket):
    bucket.put_version('/a/c/old')
    bucket.put_version('/a/c/future', FUTURE)
    bucket.put_place('/a/open', '', sealed=False)
    written, restored, _ = bucket.restore(only_sealed=False)
    assert taken(written) == sorted(
        mine(bucket) + [('/a/c/old', '1700000000.00000')])
    assert '/a/open' in [place.path for place in written.places]
    assert restored.refused == 1


def test_without_a_key_file_copies_and_the_future_are_refused(
        server, tmp_path):
    bucket = Bucket(server, tmp_path, keyed=False)
    bucket.copy(bucket.singles()[0], remote_key(
        bucket.node.prefix, VersionId('sda', 0, md5(b'x'),
                                      '1795000000.00000', None)))
    bucket.put_version('/a/c/future', FUTURE)
    bucket.put_version('/a/c/skewed', '%016.5f' % (time.time() + 300))
    bucket.put_version('/a/c/o1', 'no-timestamp')
    bucket.put_place('/a/x', CLUSTER, sealed=False,
                     x_backend_put_timestamp=FUTURE)
    written, restored, problems = bucket.restore()
    assert [name for name, _ in taken(written)] == [
        '/a/c/o%d' % n for n in range(6)] + ['/a/c/skewed']
    assert (written.places, restored.refused) == ([], 4), problems


@pytest.mark.parametrize('suffix', [metadata.META_SUFFIX, SUFFIX])
def test_a_record_that_was_planted_beside_sealed_data_is_refused(
        bucket, suffix):
    """The side car goes before what the data itself says."""
    key = bucket.singles()[0] if suffix == metadata.META_SUFFIX else \
        bucket.node.bundles()[0]
    if suffix == metadata.META_SUFFIX:
        name = '/a/c/o0'
        version = bucket.versions[0]
        body = pattern(600000, 's0')
        raw = metadata.pack(metadata.record_of(LocalVersion(
            version, '7', md5(body), {
                'name': name, 'X-Timestamp': version.timestamp,
                'X-Object-Meta-Evil': 'yes', 'ETag': md5(body),
                'Content-Length': str(len(body))},
            Residency.whole(len(body)))))
    else:
        raw = zlib.compress(b'{"v": 1, "dead": [0, 1, 2]}')
    bucket.put(key + suffix, raw)
    written, restored, problems = bucket.restore()
    assert restored.failed == 1 and len(problems) == 1
    assert all(version in mine(bucket) for version in taken(written))
    assert len(taken(written)) < 6


def test_what_earlier_releases_sealed_still_opens(bucket):
    """Their records of places name no cluster; all else is as it was."""
    bucket.put_place('/a/old', '')
    written, restored, problems = bucket.restore()
    assert (taken(written), problems) == (mine(bucket), [])
    assert sorted(place.path for place in written.places) == [
        '/a/c', '/a/old']
