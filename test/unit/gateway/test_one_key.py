"""One key that cannot be read, or not be removed, is skipped and named; the
rest of the bucket is walked."""

from __future__ import annotations

import base64
import json
import zlib
from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError

from test_bundles_of_others import NAMES, Nodes
from test_gateway_deletes import NEW, OLD, Cluster
from test_gateway_ranks import swift_dir  # noqa: F401
from test_restore_asks import Here

from swift_dss.core.errors import (
    DamagedRecord, RemoteUnavailable, TierUnavailable)
from swift_dss.core.version import VersionId
from swift_dss.gateway.bundle import since
from swift_dss.gateway.collect.keys import Wish
from swift_dss.gateway.form import metadata
from swift_dss.gateway.form.one_key import MAX_IN_A_ROW, KeyFailures
from swift_dss.gateway.link.client import (
    S3Archived, S3Down, S3Missing, S3Rejected)
from swift_dss.gateway.peers.primaries import RingPrimaries, Wanted, looks_at
from swift_dss.gateway.peers.ranks import NoRing, Ranks
from swift_dss.gateway.restore import run, places
from swift_dss.gateway.restore.catalog import Catalog, Held, Unreadable
from swift_dss.gateway.restore.places import Place, Servers
from swift_dss.gateway.restore.run import Restore
from swift_dss.gateway.restore.trust import Trust
from swift_dss.gateway.restore.write import PlaceWriter
from swift_dss.wire.layout import remote_key

ALL = Wish(everything=True)
#: Of a policy that no ring is there for.
RETIRED = VersionId('sda', 5, 'a' * 32, OLD)


@pytest.fixture
def trio(tmp_path):
    made = Cluster(tmp_path)
    yield made
    made.stop()


@pytest.fixture
def nodes(tmp_path):
    made = Nodes(tmp_path)
    yield made
    made.stop()


# -- whose failure it is ---------------------------------------------------

def walk(failures, raised):
    """The keys that were skipped; each raises its own of ``raised``."""
    skipped = []
    for number, err in enumerate(raised):
        with failures.of('k%d' % number,
                         lambda key, why: skipped.append(key)):
            if err is not None:
                raise err
    return skipped


@pytest.mark.parametrize('err', [
    S3Rejected('403'), S3Archived('403'), RemoteUnavailable('500', 1),
    DamagedRecord('x'), NoRing('x')])
def test_a_key_that_fails_is_skipped(err):
    assert walk(KeyFailures(), [None, err, None]) == ['k1']


def test_a_key_that_is_gone_is_no_failure():
    assert walk(KeyFailures(), [S3Missing('404'), None]) == []


@pytest.mark.parametrize('err', [
    S3Down('silent', 1), TierUnavailable('disk full')])
def test_what_is_no_keys_failure_ends_the_walk(err):
    with pytest.raises(type(err)):
        walk(KeyFailures(), [err])


@pytest.mark.parametrize('err', [
    S3Rejected('403'), RemoteUnavailable('500', 1)])
def test_a_server_that_fails_for_every_key_ends_the_walk(err):
    failures = KeyFailures()
    assert len(walk(failures, [err] * MAX_IN_A_ROW + [None] + [err])) == \
        MAX_IN_A_ROW + 1
    with pytest.raises(type(err)):
        walk(failures, [err] * MAX_IN_A_ROW)
    # The next walk looks for itself.
    assert walk(failures, [err]) == ['k0']


def test_a_bucket_of_archived_keys_is_walked_to_its_end():
    assert len(walk(KeyFailures(), [S3Archived('403')] * 100)) == 100


# -- odd records -----------------------------------------------------------

GOOD = {'v': 1, 'policy': 0, 'hash': 'a' * 32, 'timestamp': OLD, 'frag': None,
        'length': 1, 'etag': 'e', 'metadata': {}, 'map': ''}
ODD = {
    'no object': json.dumps([1]),
    'metadata is a list': json.dumps(dict(GOOD, metadata=[])),
    'length is infinite': json.dumps(dict(GOOD, length=float('inf'))),
    'length is negative': json.dumps(dict(GOOD, length=-1)),
    'policy is infinite': json.dumps(dict(GOOD, policy=float('inf'))),
    'fragment is none': json.dumps(dict(GOOD, frag=10000)),
    'fragment is negative': json.dumps(dict(GOOD, frag=-1)),
    'policy is negative': json.dumps(dict(GOOD, policy=-1)),
    'hash is none': json.dumps(dict(GOOD, hash='../..')),
    'brackets': '[' * 200000}


def test_a_good_record_is_read():
    assert metadata.of_record(GOOD).version == VersionId(
        '', 0, 'a' * 32, OLD)
    # Made beside the bucket: its hash is that of its name.
    assert not metadata.of_record(dict(GOOD, hash='')).version.object_hash


@pytest.mark.parametrize('oddity', sorted(ODD))
def test_an_odd_record_is_its_keys_problem(nodes, oddity):
    nodes.put(NAMES)
    packed = base64.b64encode(zlib.compress(ODD[oddity].encode(), 9)).decode()
    chunks = [packed[at:at + 256] for at in range(0, len(packed), 256)]
    nodes.s3.keys[remote_key('p/', VersionId('', 0, 'a' * 32, OLD))] = b'x', {
        'dss-%d' % number: chunk for number, chunk in enumerate(chunks)}
    gateway = nodes.gateways[0]
    entries = list(Catalog(gateway.parts.conf, gateway.parts.client).walk())
    assert [isinstance(entry, Unreadable)
            for entry in entries].count(True) == 1
    assert len(entries) == 7


def test_an_odd_record_beside_a_bundle_is_its_members_problem(nodes):
    nodes.put(NAMES)
    key, = nodes.bundles()
    nodes.s3.keys[key + since.SUFFIX] = zlib.compress(json.dumps({
        'dead': [], 'records': [[0, dict(GOOD, metadata=[])]]
        }).encode()), {}
    gateway = nodes.gateways[0]
    entries = list(Catalog(gateway.parts.conf, gateway.parts.client).walk())
    assert [type(entry) for entry in entries].count(Held) == 5
    assert len(entries) == 6


class Rings(Servers):
    """A server that is not there: nothing need be asked of it."""

    def ring(self, name):
        return SimpleNamespace(get_nodes=lambda *_: (1, [
            {'ip': '127.0.0.1', 'port': 9, 'device': 'sda'}]))


@pytest.mark.parametrize('value', ('a\nb', '\u20ac'))
def test_a_place_that_http_cannot_carry_is_its_own_problem(
        trio, tmp_path, value):
    trio.put('o')
    trio.s3.keys[places.key_of('p/', '/a')] = places.encode(
        Place('/a', {'x-account-meta-odd': value})), {}
    gateway, here = trio.gateways[0], Here()
    work = Restore(
        gateway.parts.conf, gateway.parts.client, here,
        PlaceWriter(Rings(str(tmp_path))),
        Trust('p/', 'c' * 32, False, trio.now), run.Cluster(
            lambda version: True, trio.primaries), '')
    work.run(Catalog(gateway.parts.conf, gateway.parts.client),
             lambda now: None)
    assert 'HTTP cannot carry' in work.problems[0]
    assert '/a/c/o' in work.problems[1], 'the walk went on'


# -- what S3 does not give, or keep ----------------------------------------

def refused(code, status=403):
    return ClientError({'Error': {'Code': code}, 'ResponseMetadata': {
        'HTTPStatusCode': status}}, 'x')


def freeze(s3, keys):
    """A lifecycle rule moved them to an archive."""
    inner = s3.get_object

    def get_object(Bucket, Key, **more):
        if Key in keys:
            raise refused('InvalidObjectState')
        return inner(Bucket, Key, **more)
    s3.get_object = get_object


def test_an_archived_bundle_is_named_and_the_rest_is_walked(nodes):
    nodes.put(NAMES[:3])
    nodes.now += 10
    nodes.put(NAMES[3:])
    frozen = nodes.bundles()[0]
    freeze(nodes.s3, [frozen])
    gateway = nodes.gateways[0]
    entries = list(Catalog(gateway.parts.conf, gateway.parts.client).walk())
    assert [entry.key for entry in entries
            if isinstance(entry, Unreadable)] == [
        frozen]
    assert [type(entry) for entry in entries].count(Held) == 3


def test_a_pass_looks_past_an_archived_bundle(nodes):
    nodes.put(NAMES)
    freeze(nodes.s3, nodes.bundles())
    # It is not in this node's book.
    counts = nodes.gateway(1).collect(ALL)
    assert counts.failed == 1 and 'InvalidObjectState' in counts.said[0]


@pytest.mark.parametrize('how', ('stays', '500', '403'))
def test_a_pass_removes_the_other_keys(trio, how):
    versions = [trio.put('o%d' % number) for number in range(20)]
    for version in versions:
        for disk in trio.disks:
            disk.tombstone(version, NEW)
    first = trio.s3.listed_keys()[0]
    inner = trio.s3.delete_object

    def delete_object(Bucket, Key):
        if Key != first:
            return inner(Bucket, Key)
        if how == 'stays':
            return {}
        raise refused('X', int(how))
    trio.s3.delete_object = delete_object
    counts = trio.gateways[0].collect(ALL)
    assert (counts.removed, counts.failed) == (19, 1)
    assert trio.s3.listed_keys() == [first]


# -- policies without a ring -----------------------------------------------

def rings_decide(trio, tmp_path, folder):
    """As in the daemon; the nodes of the rings are all this one."""
    ranks = Ranks(folder, {'10.0.0.0', '10.0.0.1', '10.0.0.2'})
    primaries = RingPrimaries(ranks, looks_at(trio.disks[0]))
    trio.gateways[0].stop()
    trio.gateways[0] = trio.gateway(tmp_path, 0, ranks, primaries)
    return ranks, primaries


def test_nobody_can_say_who_has_an_object_without_a_ring(
        trio, tmp_path, swift_dir):  # noqa: F811
    _, primaries = rings_decide(trio, tmp_path, swift_dir)
    known = VersionId('sd0', 1, 'b' * 32, OLD)
    unnamed = VersionId('sd0', 1, '', OLD)
    retired, nowhere, other = primaries.ask([
        Wanted(RETIRED), Wanted(unnamed), Wanted(known)])
    assert retired == nowhere == [None]
    assert len(other) == 3


@pytest.mark.parametrize('mine', (True, False))
def test_a_pass_leaves_a_key_without_a_ring(
        trio, tmp_path, swift_dir, mine):  # noqa: F811
    trio.s3.keys[remote_key('p/', RETIRED)] = b'x', {}
    rings_decide(trio, tmp_path, swift_dir)
    counts = trio.gateways[0].collect(Wish(everything=True, mine=mine))
    assert trio.has(RETIRED)
    assert counts.failed if mine else counts.silent


def test_a_restore_goes_on_behind_a_key_without_a_ring(
        trio, tmp_path, swift_dir):  # noqa: F811
    trio.put('o')
    trio.s3.keys[remote_key('p/', RETIRED)] = b'x', {}
    ranks, primaries = rings_decide(trio, tmp_path, swift_dir)
    gateway, here = trio.gateways[0], Here()
    work = Restore(
        gateway.parts.conf, gateway.parts.client, here, here,
        SimpleNamespace(version=lambda *_: None, place=lambda *_: None),
        run.Cluster(lambda version: version.policy == 0
                        or ranks.belongs_here(version), trio.primaries), '')
    work.run(Catalog(gateway.parts.conf, gateway.parts.client),
             lambda now: None)
    assert here.written == ['/a/c/o']
    assert 'ring' in work.problems[0] and len(work.problems) == 1


def test_a_delete_without_a_ring_holds_no_other_up(
        trio, tmp_path, swift_dir):  # noqa: F811
    rings_decide(trio, tmp_path, swift_dir)
    gateway = trio.gateways[0]
    for version in (RETIRED, VersionId('sd0', 1, 'b' * 32, OLD)):
        gateway.parts.queue.add_delete(
            remote_key('p/', version), version, '7', 0.0, trio.now)
    gateway.parts.uploads.agreement.look()
    counters = gateway.parts.around.metrics.counters
    assert 'gateway.agreement_errors' not in counters
    assert counters['gateway.deletes_held'] == 2
