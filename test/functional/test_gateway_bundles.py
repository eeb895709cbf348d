"""Bundles against real S3 servers, each test on every server."""

from __future__ import annotations

import json
import logging
import uuid

from support import md5, pattern, wait_until
from support.nodes.gateway_node import (
    DEVICE, Collector, CountingMetrics, FixedRanks, FolderVersions, OnlyHere,
    conf_for)

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.residency import Tier
from swift_dss.core.spans import ClassMap
from swift_dss.gateway.bundle import since
from swift_dss.gateway.bundle.read import is_bundle
from swift_dss.gateway.restore.catalog import Catalog, Held, open_client
from swift_dss.gateway.ports import Upload
from swift_dss.gateway.parts import Outside
from swift_dss.gateway.service import Gateway
from swift_dss.wire import bundle
from swift_dss.wire.control import FetchRequest

LOG = logging.getLogger('test.bundles')
TABLE = ClassTable.of([
    ClassSpec(0, 'plain', 0), ClassSpec(1, 'small', 1, bundle=True),
    ClassSpec(2, 'tiny', 2, bundle=True)])


class Node:
    """One gateway that bundles, over one folder."""

    def __init__(self, server, root, ranks=None, others=(), **options):
        for name, value in (('prefix', 'b-%s/' % uuid.uuid4().hex[:8]),
                            ('bundle_age_seconds', 0.3),
                            ('bundle_bytes', 1 << 20),
                            ('bundle_member_bytes', 1 << 19)):
            options.setdefault(name, value)
        self.conf = conf_for(server, str(root), **options)
        self.prefix = options['prefix']
        self.server = server
        self.local = FolderVersions(str(root))
        self.ranks = ranks
        self.others = others
        self.start()

    def start(self):
        self.metrics = CountingMetrics()
        self.gateway = Gateway(
            self.conf, lambda: TABLE, self.local, LOG, self.metrics,
            outside=Outside(
                ranks=FixedRanks(self.ranks),
                primaries=OnlyHere(self.local, *self.others)))
        self.gateway.start()

    def put(self, name, data, class_id=1, **options):
        return self.local.put(name, data, class_map=ClassMap.uniform(
            class_id), **options)

    def enqueue(self, versions):
        # All at once: a first one that waits alone for a bundle's age gets
        # a key of its own.
        self.gateway.enqueue_uploads([
            Upload(version, '7', True, class_id=1) for version in versions])

    def upload(self, versions):
        self.enqueue(versions)
        self.settle()

    def settle(self):
        def idle():
            status = self.gateway.status()
            return not (status['uploads'] or status['deletes'])
        wait_until(idle, 60, 'queue is empty')

    def listed(self):
        return [key for key in self.server.list_keys()
                if key.startswith(self.prefix)]

    def bundles(self):
        return [key for key in self.listed() if is_bundle(self.prefix, key)]

    def fetch(self, version, offset=0, length=None):
        if length is None:
            length = self.local.residency(version).content_length - offset
        sink = Collector()
        whole = self.gateway.fetch(FetchRequest(
            version, '7', offset, length, 0, 20.0, True), sink)
        assert whole, sink.reply
        wait_until(lambda: not self.gateway.status()['reading'])
        return sink.data

    def members(self, key):
        raw = self.server.body(key)
        return {member.record['metadata']['name']: raw[
            member.offset:member.offset + member.stored_bytes]
            for member in bundle.scan(raw)}


def test_small_versions_share_an_object_and_come_back(server, node):
    bodies = {'o%d' % n: pattern(n * 700, 's%d' % n) for n in range(20)}
    versions = {name: node.put(name, body)
                for name, body in bodies.items()}
    large = node.put('large', pattern(600000, 'large'))
    node.upload(list(versions.values()) + [large])
    assert server.body('%s%s/%s' % (
        node.prefix, large.object_hash[-3:], large.key))
    assert len(node.listed()) == 1 + len(node.bundles())
    assert 1 <= len(node.bundles()) <= 3
    members = {}
    for key in node.bundles():
        members.update(node.members(key))
    assert members == {'/a/c/' + name: body for name, body in bodies.items()}
    for name, body in bodies.items():
        version = versions[name]
        if not body:
            continue
        remote = node.local.residency(version).remote
        assert remote.in_bundle and remote.etag == md5(body)
        node.local.drop_local(version)
        assert node.fetch(version, len(body) // 2, 1) == body[
            len(body) // 2:len(body) // 2 + 1]
        assert node.fetch(version) == body
        assert node.local.residency(version).bytes_on(Tier.HDD) == len(body)


def test_a_bundle_has_one_account_and_class(server, node):
    versions = []
    for number in range(12):
        account, container = 'a%d' % (number % 2), 'c%d' % (number // 2 % 2)
        versions.append(node.put(
            'o%d' % number, b'%d' % number, class_id=1 + number // 4 % 2,
            metadata={'name': '/%s/%s/o%d' % (account, container, number)}))
    node.upload(versions)
    seen = 0
    for key in node.bundles():
        raw = server.body(key)
        head = bundle.read_head(raw)[0]
        for member in bundle.scan(raw):
            seen += 1
            assert member.record['metadata']['name'].startswith(
                '/%s/' % head['account'])
            assert member.record['map'].endswith(
                str(head['classes'][0])), member.record['map']
    assert seen == 12
    assert len(node.bundles()) >= 4


def test_overwrites_and_deletes_are_told_and_written_anew(server, node):
    bodies = {n: pattern(40000, 'd%d' % n) for n in range(10)}
    versions = {n: node.put('d%d' % n, body) for n, body in bodies.items()}
    node.upload(versions.values())
    first = node.bundles()
    for number in range(0, 10, 2):
        version = versions.pop(number)
        node.local.tombstone(version, '1800000000.00000')
        node.gateway.enqueue_deletes([(version, '7')])
    node.settle()

    def rewritten():
        return not set(first) & set(node.listed()) and len(
            node.bundles()) == 1
    wait_until(rewritten, 60, 'the old bundle went')
    names = {'/a/c/d%d' % number for number in versions}
    assert set(node.members(node.bundles()[0])) == names
    for number, version in versions.items():
        node.local.drop_local(version)
        assert node.fetch(version) == bodies[number]


def test_the_bucket_is_told_who_is_dead(server, tmp_path, nodes):
    node = nodes(server, tmp_path, bundle_dead_share=0.9)
    versions = [node.put('t%d' % n, b'x' * 5000) for n in range(4)]
    node.upload(versions)
    node.local.tombstone(versions[2], '1800000000.00000')
    node.gateway.enqueue_deletes([(versions[2], '7')])
    key, = node.bundles()
    wait_until(lambda: key + since.SUFFIX in node.listed(), 30)
    node.gateway.stop()
    node.start()
    for version in versions[:2] + versions[3:]:
        node.local.tombstone(version, '1800000000.00000')
        node.gateway.enqueue_deletes([(version, '7')])
    wait_until(lambda: not node.listed(), 30, 'an empty bundle goes')


def test_a_replica_on_another_node_leans_on_the_first_ones_bundle(
        server, tmp_path, nodes):
    first = nodes(server, tmp_path / 'first')
    bodies = {name: pattern(5000, name) for name in ('one', 'two')}
    versions = [first.put(*item) for item in bodies.items()]
    first.upload(versions)
    other = nodes(server, tmp_path / 'other', ranks={DEVICE: 1},
                  prefix=first.prefix, take_over_seconds=3600.0,
                  others=[first.local])
    for item in bodies.items():
        other.put(*item)
    other.upload(versions)
    key, = first.bundles()
    assert {other.local.residency(version).remote.key
            for version in versions} == {key}
    for version, body in zip(versions, bodies.values()):
        other.local.drop_local(version)
        assert other.fetch(version) == body


def test_a_newest_version_is_never_dead(server, node):
    version = node.put('keep', b'k' * 999)
    node.upload([version])
    node.gateway.enqueue_deletes([(version, '7')])
    node.settle()
    assert node.metrics.counters['gateway.deletes_refused'] == 1
    assert node.gateway.status()['bundles']['dead_bytes'] == 0
    node.local.drop_local(version)
    assert node.fetch(version) == b'k' * 999


def test_what_rotted_here_is_left_out_and_the_others_go(server, node):
    good, bad = node.put('good', b'g' * 5000), node.put('bad', b'b' * 5000)
    node.local.corrupt(bad)
    node.enqueue([good, bad])
    wait_until(lambda: node.local.residency(good).remote is not None, 30)
    assert node.local.residency(bad).remote is None
    wait_until(lambda: any('LocalCorrupt' in text for text in
                           node.gateway.status()['errors']), 30)
    assert '/a/c/bad' not in str([node.members(key).keys()
                                  for key in node.bundles()])


def test_a_post_and_rot_between_parking_and_packing_are_seen(server, node):
    """What the book has of a version is not what goes up then."""
    before = {name: node.put(name, pattern(900, name))
              for name in ('same', 'posted', 'rotten')}
    packer = node.gateway.parts.bundles.packer
    flush = packer.flush
    parked = []

    def meanwhile(claim):
        parked.extend(member.record for member in claim.members)
        node.local.post(before['posted'], {'X-Object-Meta-A': 'new'})
        node.local.corrupt(before['rotten'])
        return flush(claim)
    packer.flush = meanwhile
    node.enqueue(before.values())
    wait_until(lambda: node.local.residency(before['posted']).remote, 60)
    assert len(parked) == 3 and all(parked)
    records = {member.record['metadata']['name']: member.record['metadata']
               for key in node.bundles()
               for member in bundle.scan(server.body(key))}
    assert sorted(records) == ['/a/c/posted', '/a/c/same']
    assert records['/a/c/posted']['X-Object-Meta-A'] == 'new'
    assert node.local.residency(before['rotten']).remote is None
    assert node.metrics.counters['gateway.bundle_skipped'] == 1


def test_replicas_of_the_node_lean_on_one_bundle(server, tmp_path, nodes):
    node = nodes(server, tmp_path, ranks={'sdb': 1},
                 take_over_seconds=3600.0)
    body = pattern(9000, 'twin')
    twins = [node.put('twin', body, device=device)
             for device in (DEVICE, 'sdb')]
    other = node.put('other', pattern(90000, 'other'))
    node.upload(twins + [other])
    assert len(node.bundles()) == 1
    remotes = {node.local.residency(twin).remote.key for twin in twins}
    assert remotes == set(node.bundles())
    # Both follow when the bundle is written anew.
    node.local.tombstone(other, '1800000000.00000')
    node.gateway.enqueue_deletes([(other, '7')])
    wait_until(lambda: not remotes & set(node.listed()), 60)
    for twin in twins:
        node.local.drop_local(twin)
        assert node.fetch(twin) == body


def test_nothing_is_sent_while_s3_is_away_and_all_of_it_after(
        server, tmp_path, nodes):
    node = nodes(server, tmp_path)
    server.stop()
    try:
        versions = [node.put('w%d' % n, b'w' * 3000) for n in range(5)]
        node.enqueue(versions)
        wait_until(lambda: node.gateway.status()['bundles']['waiting'] == 5
                   and node.gateway.status()['bundles']['last_error'], 60)
    finally:
        server.start()
    node.settle()
    # A bundle whose reply came too late was given up, and its key goes.
    wait_until(lambda: len(node.bundles()) == 1, 30, 'one bundle')
    assert len({node.local.residency(version).remote.key
                for version in versions}) == 1
    assert json.dumps(node.gateway.status())


def test_a_post_after_the_upload_renews_the_record(server, node):
    """In a bundle and with a key of its own."""
    small = node.put('small', b's' * 2000)
    large = node.put('large', pattern(600000, 'p'))
    node.upload([small, large])
    for version in (small, large):
        node.local.post(version, {'X-Object-Meta-Colour': 'red'})
        node.gateway.enqueue_renewals([(version, '7')])

    def records():
        catalog = Catalog(node.conf.gateway, open_client(node.conf.gateway))
        return {member.name: member.record.metadata.get('X-Object-Meta-Colour')
                for member in catalog.walk() if isinstance(member, Held)}
    wait_until(lambda: records() == {
        '/a/c/small': 'red', '/a/c/large': 'red'}, 30)
    # And a second one; written anew, it is in the bundle itself.
    node.local.post(small, {'X-Object-Meta-Colour': 'blue'})
    node.gateway.enqueue_renewals([(small, '7')])
    wait_until(lambda: records()['/a/c/small'] == 'blue', 30)
    assert records()['/a/c/large'] == 'red'


def test_the_catalog_leaves_out_who_is_dead(server, tmp_path, nodes):
    node = nodes(server, tmp_path, bundle_dead_share=0.95)
    versions = {n: node.put('c%d' % n, b'%d' % n * 900) for n in range(4)}
    node.upload(versions.values())
    node.local.tombstone(versions[1], '1800000000.00000')
    node.gateway.enqueue_deletes([(versions[1], '7')])

    def held():
        catalog = Catalog(node.conf.gateway, open_client(node.conf.gateway))
        return {member.name: member for member in catalog.walk()}
    wait_until(lambda: '/a/c/c1' not in held(), 30)
    offered = held()
    assert set(offered) == {'/a/c/c0', '/a/c/c2', '/a/c/c3'}
    for number in (0, 2, 3):
        version = versions[number]
        mine = node.local.residency(version).remote
        theirs = offered['/a/c/c%d' % number].remote
        assert (mine.key, mine.offset, mine.etag, mine.endpoint) == (
            theirs.key, theirs.offset, theirs.etag, theirs.endpoint)


def test_what_finds_no_room_waits_for_the_next_bundle(
        server, node, monkeypatch):
    monkeypatch.setattr(bundle.Builder, 'has_room',
                        lambda self, length: self.members < 2)
    versions = [node.put('m%d' % n, b'm' * 900) for n in range(5)]
    node.upload(versions)
    assert sorted(len(node.members(key)) for key in node.bundles()) in (
        [1, 2, 2], [1, 1, 1, 2], [1, 1, 1, 1, 1], [2, 2])
    assert all(node.local.residency(version).remote for version in versions)
