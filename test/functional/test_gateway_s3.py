"""The gateway against real S3 servers, each test on every server."""

from __future__ import annotations

import logging
import threading
import uuid

import pytest
from support import md5, pattern, wait_until
from support.edges.s3_servers import VersityServer
from support.nodes.gateway_node import (
    Collector, CountingMetrics, FixedRanks, FolderVersions, OnlyHere,
    conf_for)

from swift_dss.core.classes import ClassSpec, ClassTable, RemoteMode
from swift_dss.core.residency import Tier
from swift_dss.core.spans import ClassMap, Span
from swift_dss.gateway.down import source
from swift_dss.gateway.form import digests, metadata
from swift_dss.gateway.parts import Outside
from swift_dss.gateway.service import Gateway
from swift_dss.wire.control import FetchRequest

MIB = 1024 * 1024
PART = 5 * MIB
LOG = logging.getLogger('test.gateway')


@pytest.fixture(scope='module')
def odd_server():
    """A server whose ETags are no MD5s."""
    made = VersityServer(checksum_etags=True)
    yield made
    made.close()


class Node:
    """One gateway over one folder."""

    def __init__(self, server, root, ranks=None, table=None, **options):
        options.setdefault('prefix', 't-%s/' % uuid.uuid4().hex[:8])
        self.conf = conf_for(server, str(root), **options)
        self.prefix = options['prefix']
        self.local = FolderVersions(str(root))
        self.metrics = CountingMetrics()
        self.gateway = Gateway(
            self.conf, lambda: table or ClassTable(), self.local, LOG,
            self.metrics,
            outside=Outside(
                ranks=FixedRanks(ranks), primaries=OnlyHere(self.local)))
        self.gateway.start()

    def upload(self, version):
        self.gateway.enqueue_upload(version, '7')
        self.settle()

    def settle(self):
        def idle():
            status = self.gateway.status()
            return not (status['uploads'] or status['deletes'])
        wait_until(idle, 60, 'queue is empty')

    def fetch(self, version, offset=0, length=None, keep=True,
              deadline=5.0):
        if length is None:
            length = self.local.residency(version).content_length - offset
        sink = Collector()
        whole = self.gateway.fetch(FetchRequest(
            version, '7', offset, length, 0, deadline, keep), sink)
        self.landed()
        return whole, sink

    def landed(self):
        """Wait until parts on their way are stored; they may land a
        moment after their readers have every byte."""
        wait_until(lambda: not self.gateway.status()['reading'])

    def key(self, version):
        return '%s%s/%s' % (self.prefix, version.object_hash[-3:],
                            version.key)


def mine(server, node):
    return sorted(key[len(node.prefix):] for key in server.list_keys()
                  if key.startswith(node.prefix))


@pytest.mark.parametrize('size', [
    0, 1, 4096, MIB, PART - 1, PART, PART + 1, 3 * PART, 3 * PART + 17])
def test_a_version_goes_up_is_proven_and_comes_back(server, node, size):
    body = pattern(size, 'up')
    version = node.local.put('photo.jpg', body)
    node.upload(version)
    remote = node.local.residency(version).remote
    if size:
        assert remote.key == node.key(version)
        assert remote.endpoint == 's3'
        if size <= PART:
            assert remote.etag == md5(body)
        else:
            assert remote.etag.endswith('-%d' % -(-size // PART))
        node.local.drop_local(version)
        assert node.local.residency(version).tiers == Tier.REMOTE
    assert server.body(node.key(version)) == body
    whole, sink = node.fetch(version)
    assert (whole, sink.reply.status) == (True, 200)
    assert sink.data == body
    assert node.local.residency(version).bytes_on(Tier.HDD) == size
    assert not server.uploads()


def test_ranges_fetch_only_the_parts_they_need(server, node):
    body = pattern(4 * PART + 99, 'range')
    version = node.local.put('film.mp4', body)
    node.upload(version)
    node.local.drop_local(version)
    whole, sink = node.fetch(version, 2 * PART + 7, 1000)
    assert whole and sink.data == body[2 * PART + 7:2 * PART + 1007]
    assert node.metrics.counters['gateway.parts_read'] == 1
    residency = node.local.residency(version)
    assert [(e.offset, e.length) for e in residency.extents
            if e.tiers & Tier.HDD] == [(2 * PART, PART)]
    # Over a border, with one side local by now.
    whole, sink = node.fetch(version, 3 * PART - 10, 20)
    assert whole and sink.data == body[3 * PART - 10:3 * PART + 10]
    assert node.metrics.counters['gateway.parts_read'] == 2
    whole, sink = node.fetch(version)
    assert whole and sink.data == body
    assert node.metrics.counters['gateway.parts_read'] == 5


def test_reads_that_must_not_warm_a_cache_store_nothing(node):
    body = pattern(PART + 5, 'cold')
    version = node.local.put('cold', body)
    node.upload(version)
    node.local.drop_local(version)
    whole, sink = node.fetch(version, keep=False)
    assert whole and sink.data == body
    assert node.local.residency(version).tiers == Tier.REMOTE


def test_a_node_without_room_still_serves(node):
    body = pattern(2 * PART, 'full')
    version = node.local.put('full', body)
    node.upload(version)
    node.local.drop_local(version)
    node.local.room = False
    whole, sink = node.fetch(version)
    assert whole and sink.data == body
    assert node.local.residency(version).tiers == Tier.REMOTE


def test_a_node_whose_disk_is_not_mounted_still_serves(node, monkeypatch):
    def unmounted(*arguments):
        raise FileNotFoundError(2, 'No such file or directory')

    body = pattern(2 * PART, 'unmounted')
    version = node.local.put('unmounted', body)
    node.upload(version)
    node.local.drop_local(version)
    monkeypatch.setattr(node.local, 'begin_fill', unmounted)
    whole, sink = node.fetch(version)
    assert whole and sink.data == body
    # The second part may be fetched ahead, in vain: nothing keeps it.
    assert node.metrics.counters['gateway.fill_failed'] >= 2


def test_many_readers_of_a_part_make_one_request(node):
    body = pattern(PART + MIB, 'herd')
    version = node.local.put('herd', body)
    node.upload(version)
    node.local.drop_local(version)
    results = []
    start = threading.Barrier(16)

    def read():
        start.wait()
        results.append(node.fetch(version, keep=False))
    threads = [threading.Thread(target=read) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [sink.data == body for _whole, sink in results] == [True] * 16
    # keep=False reads may come late and lead a second flight of a part.
    assert node.metrics.counters['gateway.parts_read'] < 16


def test_names_metadata_and_classes_lie_in_the_bucket(server, node):
    meta = {'X-Object-Meta-Place': 'Bern \u00e9', 'Content-Type': 'image/x'}
    small = node.local.put('small', b'a', metadata=meta,
                           class_map=ClassMap.uniform(25))
    big = node.local.put('big', b'b', metadata=dict(
        meta, **{'X-Object-Meta-%d' % i: pattern(100, str(i)).hex()
                 for i in range(20)}),
        class_map=ClassMap.from_spans([Span(0, 1, 3)]))
    for version in (small, big):
        node.upload(version)
        key = node.key(version)
        head = server.client().head_object(Bucket='dss-test', Key=key)
        user = {name.lower(): value
                for name, value in head['Metadata'].items()}
        sidecar = None
        if metadata.has_sidecar(user):
            sidecar = server.body(key + metadata.META_SUFFIX)
        record = metadata.decode(user, sidecar)
        local = node.local.describe(version, '7')
        assert record.metadata == local.metadata
        assert record.etag == local.etag
        assert record.version.key == version.key
    assert metadata.has_sidecar(user) and record.class_map_text[:3] == 'm1:'


def test_followers_prove_and_do_not_send(server, nodes, tmp_path):
    body = pattern(2 * PART + 1, 'replica')
    ranks = {'sda': 0, 'sdb': 1}
    leader = nodes(server, tmp_path / 'a', ranks, take_over_seconds=600.0)
    follower = nodes(server, tmp_path / 'b', ranks,
                     take_over_seconds=600.0, prefix=leader.prefix)
    mirror = follower.local.put('r', body, device='sdb')
    follower.gateway.enqueue_upload(mirror, '7')
    wait_until(lambda: follower.metrics.counters.get(
        'gateway.upload.waiting'), 30)
    assert not mine(server, leader)
    leader.upload(leader.local.put('r', body))
    follower.settle()
    assert follower.local.residency(mirror).remote.key == leader.key(mirror)
    assert follower.metrics.counters['gateway.upload.found'] == 1
    assert 'gateway.uploaded_bytes' not in follower.metrics.counters


def test_followers_take_over_when_nobody_uploads(server, nodes, tmp_path):
    node = nodes(server, tmp_path, {'sdb': 1}, take_over_seconds=1.0)
    version = node.local.put('orphan', b'o' * 5000, device='sdb')
    node.upload(version)
    assert node.metrics.counters['gateway.upload.uploaded'] == 1


def test_a_follower_with_rotten_bytes_vouches_for_nothing(
        server, nodes, tmp_path):
    node = nodes(server, tmp_path)
    body = pattern(2 * PART, 'rot')
    version = node.local.put('rot', body)
    node.local.corrupt(version)
    node.gateway.enqueue_upload(version, '7')
    wait_until(lambda: node.metrics.counters.get('gateway.local_corrupt'))
    assert node.key(version) not in server.list_keys()
    assert node.local.residency(version).remote is None
    wait_until(lambda: not server.uploads(), awaited='nothing left behind')


def test_fragments_have_keys_of_their_own(server, node):
    bodies = [pattern(4000, 'f%d' % i) for i in range(3)]
    versions = [node.local.put('ec', body, frag_index=i, device='sd%d' % i)
                for i, body in enumerate(bodies)]
    for version in versions:
        node.upload(version)
    assert len(mine(server, node)) == 3
    for version, body in zip(versions, bodies):
        node.local.drop_local(version)
        assert node.fetch(version)[1].data == body


def test_overwrites_and_deletes_reach_the_bucket(server, node):
    old = node.local.put('o', pattern(PART + 1, 'old'), '1700000001.00000')
    node.upload(old)
    new = node.local.put('o', pattern(100, 'new'), '1700000002.00000')
    node.local.unlink(old)
    node.gateway.enqueue_upload(new, '7')
    node.gateway.enqueue_deletes([(old, '7')])
    node.settle()
    assert [key.rpartition('/')[2] for key in mine(server, node)] == [
        '1700000002.00000']
    node.local.tombstone(new, '1700000003.00000')
    node.gateway.enqueue_deletes([(new, '')])
    node.settle()
    assert not mine(server, node)


def test_the_newest_version_is_never_deleted(server, node):
    version = node.local.put('keep', b'keep me')
    node.upload(version)
    node.gateway.enqueue_deletes([(version, '7')])
    node.settle()
    assert server.body(node.key(version)) == b'keep me'
    assert node.metrics.counters['gateway.deletes_refused'] == 1


def test_an_obsolete_version_is_not_sent(server, node):
    version = node.local.put('gone', b'x' * 100)
    node.local.tombstone(version, '1700000009.00000')
    node.upload(version)
    assert not mine(server, node)
    assert node.metrics.counters['gateway.upload.obsolete'] == 1


def test_an_emptied_handoff_deletes_nothing(server, nodes, tmp_path):
    primary = nodes(server, tmp_path / 'a')
    handoff = nodes(server, tmp_path / 'b', prefix=primary.prefix)
    primary.upload(primary.local.put('h', b'body'))
    version = handoff.local.put('h', b'body', device='sdh')
    handoff.local.unlink(version)
    handoff.upload(version)
    assert handoff.metrics.counters['gateway.upload.gone'] == 1
    assert server.body(primary.key(version)) == b'body'


def test_what_is_there_already_is_not_sent_again(server, nodes, tmp_path):
    body = pattern(2 * PART, 'twice')
    first = nodes(server, tmp_path / 'a')
    first.upload(first.local.put('t', body))
    again = nodes(server, tmp_path / 'b', prefix=first.prefix)
    again.upload(again.local.put('t', body))
    assert again.metrics.counters['gateway.upload.found'] == 1


def test_other_bytes_under_our_key_are_replaced(server, node):
    body = pattern(5000, 'right')
    version = node.local.put('squat', body)
    server.client().put_object(Bucket='dss-test', Key=node.key(version),
                               Body=pattern(5000, 'wrong'))
    node.upload(version)
    assert server.body(node.key(version)) == body


def test_classes_that_must_not_leave_do_not(server, nodes, tmp_path):
    table = ClassTable.of([
        ClassSpec(0, 'unclassified', 0),
        ClassSpec(7, 'secret', 5, remote=RemoteMode.NEVER)])
    node = nodes(server, tmp_path, table=table)
    version = node.local.put('s', b'abcdef', class_map=ClassMap.from_spans(
        [Span(2, 1, 7)]))
    node.upload(version)
    assert not mine(server, node)
    assert node.local.residency(version).remote is None


@pytest.mark.parametrize('size', [1000, 2 * PART + 3])
def test_odd_etags_are_proven_by_reading_back(
        odd_server, nodes, tmp_path, size):
    node = nodes(odd_server, tmp_path)
    body = pattern(size, 'odd')
    version = node.local.put('odd', body)
    node.upload(version)
    remote = node.local.residency(version).remote
    assert remote.etag != md5(body) and remote.etag
    node.local.drop_local(version)
    assert node.fetch(version)[1].data == body


@pytest.mark.parametrize('held_bytes', [128 * MIB, MIB])
def test_a_lost_side_car_costs_ranges_and_not_the_object(
        server, node, monkeypatch, held_bytes):
    monkeypatch.setattr(source, 'MAX_UNIT_BYTES', held_bytes)
    body = pattern(2 * PART + 3, 'side car')
    version = node.local.put('lost', body)
    node.upload(version)
    node.local.drop_local(version)
    server.client().delete_object(
        Bucket='dss-test', Key=node.key(version) + metadata.SUMS_SUFFIX)
    whole, sink = node.fetch(version, PART, 100, deadline=20.0)
    assert whole and sink.data == body[PART:PART + 100]
    assert node.local.residency(version).bytes_on(Tier.HDD) == len(body)


def test_wrong_bytes_without_a_side_car_are_not_kept(
        server, node, monkeypatch):
    monkeypatch.setattr(source, 'MAX_UNIT_BYTES', MIB)
    body = pattern(2 * PART + 3, 'side car')
    version = node.local.put('lost', body)
    node.upload(version)
    node.local.drop_local(version)
    key = node.key(version)
    server.client().delete_object(
        Bucket='dss-test', Key=key + metadata.SUMS_SUFFIX)
    server.client().put_object(
        Bucket='dss-test', Key=key, Body=body[:-1] + b'!')
    whole, sink = node.fetch(version, 0, 100, deadline=20.0)
    assert not whole and (sink.reply.status, sink.data) == (503, b'')
    assert node.local.residency(version).tiers == Tier.REMOTE


def test_readback_can_be_asked_for(server, nodes, tmp_path):
    node = nodes(server, tmp_path, verify='readback')
    body = pattern(PART + 3, 'rb')
    version = node.local.put('rb', body)
    node.upload(version)
    assert node.local.residency(version).remote
    assert digests.is_md5_etag(node.local.residency(version).remote.etag)
