"""A book that is lost is written again from the records here and the bundles
in S3."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from functools import partial

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from test_bundle_following import FixedRanks, Ranked
from test_bundles_of_others import NAMES, NEW, OLD, SMALL

from swift_dss.core.errors import DamagedRecord, TierUnavailable
from swift_dss.core.version import VersionId
from swift_dss.gateway.bundle import since
from swift_dss.gateway.bundle.book import Book
from swift_dss.gateway.bundle.pack import BOOK_FILE
from swift_dss.gateway.form import metadata
from swift_dss.gateway.peers.ranks import NoRing
from swift_dss.gateway.service import Upload


@pytest.fixture
def nodes(tmp_path):
    made = Ranked(tmp_path)
    made.second()
    yield made
    made.stop()


def in_bundles(nodes, *prefixes):
    """Versions of one bundle for each prefix, on both nodes."""
    versions = {}
    for prefix in prefixes:
        names = [prefix + name for name in NAMES]
        for version, name in zip(nodes.put(names), names):
            versions[name] = version
        nodes.replicate(names)
        nodes.run(100)
    assert len(nodes.bundles()) == len(prefixes)
    assert nodes.keys(1, versions.values()) == set(nodes.bundles())
    return versions


def own_keys(nodes, versions):
    return {key for key in nodes.s3.keys
            for version in versions if version.key in key}


def lose_book(nodes, number):
    nodes.gateways.pop(number).stop()
    for name in os.listdir(nodes.root / str(number)):
        if name.startswith(BOOK_FILE):
            os.unlink(nodes.root / str(number) / name)
    return nodes.gateway(0) if number == 0 else nodes.second()


def delete(nodes, versions):
    for version in versions:
        for disk in nodes.disks:
            disk.tombstone(version, NEW)
        for gateway in nodes.gateways.values():
            gateway.enqueue_deletes([(version, '7')])


def requests(nodes, of='bundles/'):
    """Reads of bundles, from now on."""
    seen = []

    def noted(inner, **options):
        if of in options.get('Key', options.get('Prefix', '')):
            seen.append(options)
        return inner(**options)

    for name in ('get_object', 'head_object', 'list_objects_v2'):
        setattr(nodes.s3, name, partial(noted, getattr(nodes.s3, name)))
    return seen


def test_who_kept_bundles_keeps_them_again(nodes):
    versions = in_bundles(nodes, 'a', 'b')
    delete(nodes, [versions['ao5'], versions['bo5']])
    nodes.run(100)
    before = nodes.gateways[0].status()['bundles']
    assert before['dead_bytes'] and before['live'] == 10
    gateway = lose_book(nodes, 0)
    assert gateway.status()['bundles']['bundles'] == 0
    nodes.run(30)
    after = gateway.status()['bundles']
    assert [after[name] for name in ('bundles', 'bytes', 'dead_bytes', 'live')
            ] == [before[name]
                  for name in ('bundles', 'bytes', 'dead_bytes', 'live')]
    # It rewrites them as before, and the others follow.
    old = nodes.bundles()
    gone = [versions[letter + name] for letter in 'ab' for name in NAMES[2:5]]
    delete(nodes, gone)
    nodes.run(300)
    assert not set(old) & set(nodes.bundles())
    left = [versions[letter + name] for letter in 'ab' for name in NAMES[:2]]
    assert nodes.keys(0, left) == nodes.keys(1, left) == set(nodes.bundles())
    assert not own_keys(nodes, versions.values())
    for name in ('ao0', 'bo1'):
        nodes.disks[1].drop_local(versions[name])
        nodes.read(1, versions[name], name)


def test_who_leant_reads_no_bundle(nodes):
    in_bundles(nodes, 'a', 'b')
    gateway = lose_book(nodes, 1)
    nodes.gateways.pop(0).stop()
    asked = requests(nodes)
    nodes.run(20)
    assert gateway.parts.book.is_regained
    assert not asked
    assert list(gateway.parts.book.leaned_on()) == nodes.bundles()


@pytest.mark.parametrize('address, is_kept', [
    ('10.0.0.1', True), ('10.0.0.2', False)])
def test_who_never_kept_a_bundle_asks_once_for_it(
        nodes, monkeypatch, address, is_kept):
    """A node that joins has a new book, too, and is the first primary now."""
    at = ['10.0.0.1']
    monkeypatch.setattr(
        FixedRanks, 'primaries', lambda self, policy, object_hash: (
            '7', [{'device': 'sda', 'ip': at[0]}]))
    in_bundles(nodes, 'a', 'b')
    at[0] = address
    asked = requests(nodes)
    gateway = lose_book(nodes, 0)
    nodes.run(20)
    assert gateway.parts.book.is_regained
    assert gateway.status()['bundles']['bundles'] == 2 * is_kept
    assert is_kept or sorted(request['Key']
                             for request in asked) == nodes.bundles()


def test_who_leant_goes_where_the_bundle_goes(nodes):
    versions = in_bundles(nodes, 'a', 'b')
    lose_book(nodes, 1)
    nodes.run(30)
    assert nodes.gateways[1].status()['bundles']['bundles'] == 0
    old = nodes.bundles()
    delete(nodes, [versions[letter + name]
                   for letter in 'ab' for name in NAMES[3:]])
    nodes.run(300)
    assert not set(old) & set(nodes.bundles())
    left = [versions[letter + name] for letter in 'ab' for name in NAMES[:3]]
    assert nodes.keys(1, left) == set(nodes.bundles())
    assert not own_keys(nodes, versions.values())


def test_a_bundle_costs_few_requests_and_only_once(nodes):
    in_bundles(nodes, 'a', 'b', 'c')
    gateway = lose_book(nodes, 0)
    asked = requests(nodes)
    nodes.run(60)
    assert gateway.status()['bundles']['bundles'] == 3
    assert 0 < len(asked) <= 3 * 5
    del asked[:]
    nodes.gateways.pop(0).stop()
    gateway = nodes.gateway(0)
    walks = []
    nodes.disks[0].in_s3 = walks.append
    nodes.run(60)
    assert gateway.parts.book.is_regained
    assert not asked and not walks


def test_it_waits_for_the_index(nodes):
    in_bundles(nodes, 'a')
    gateway = lose_book(nodes, 0)
    nodes.disks[0].is_indexed = lambda: False
    nodes.run(60)
    assert gateway.status()['bundles']['bundles'] == 0
    del nodes.disks[0].is_indexed
    nodes.run(60)
    assert gateway.status()['bundles']['bundles'] == 1


def test_a_new_index_is_looked_through_from_its_first_row(nodes):
    in_bundles(nodes, 'a')
    gateway, disk = lose_book(nodes, 0), nodes.disks[0]
    walks, in_s3 = [], disk.in_s3

    def listed(after):
        walks.append(after)
        return in_s3(after)
    disk.in_s3 = listed
    regainer = gateway.parts.bundles.regainer
    assert regainer.look() and regainer.look()
    disk.is_indexed = lambda: False
    assert not regainer.look()
    del disk.is_indexed
    regainer.look()
    assert walks == [0, 2, 0]


def test_a_bundle_that_cannot_be_read_stops_no_other(nodes):
    versions = in_bundles(nodes, 'a', 'b')
    bad = nodes.disks[0].residency(versions['ao0']).remote.key
    data, metadata = nodes.s3.keys[bad]
    nodes.s3.keys[bad] = data[:-40] + bytes(40), metadata
    gateway = lose_book(nodes, 0)
    nodes.run(60)
    assert gateway.status()['bundles']['bundles'] == 1
    assert gateway.parts.book.is_regained


def test_a_bundle_that_s3_refuses_stops_no_other(nodes):
    versions = in_bundles(nodes, 'a', 'b')
    bad = nodes.disks[0].residency(versions['ao0']).remote.key
    inner = nodes.s3.head_object

    def refused(**options):
        if options['Key'] == bad:
            raise ClientError({'Error': {'Code': '403'}, 'ResponseMetadata': {
                'HTTPStatusCode': 403}}, 'HeadObject')
        return inner(**options)
    nodes.s3.head_object = refused
    gateway = lose_book(nodes, 0)
    nodes.run(600)
    assert gateway.status()['bundles']['bundles'] == 1
    assert gateway.parts.book.is_regained


def test_a_bundle_that_is_gone_is_not_kept(nodes):
    versions = in_bundles(nodes, 'a', 'b')
    del nodes.s3.keys[nodes.disks[0].residency(versions['ao0']).remote.key]
    gateway = lose_book(nodes, 0)
    nodes.run(60)
    assert gateway.status()['bundles']['bundles'] == 1
    assert gateway.parts.book.is_regained


def test_a_bundle_with_an_unreadable_member_is_not_kept(
        nodes, monkeypatch):
    """The book would not have that member, and drop it with the others."""
    versions = in_bundles(nodes, 'a')
    inner = metadata.of_record

    def damaged(raw):
        record = inner(raw)
        if record.version.object_hash == versions['ao3'].object_hash:
            raise DamagedRecord('spoilt')
        return record
    monkeypatch.setattr('swift_dss.gateway.restore.catalog.metadata.'
                        'of_record', damaged)
    gateway = lose_book(nodes, 0)
    nodes.run(60)
    assert gateway.status()['bundles']['bundles'] == 0
    assert gateway.parts.book.is_regained


def test_s3_that_does_not_answer_is_asked_again(nodes):
    in_bundles(nodes, 'a')
    gateway = lose_book(nodes, 0)
    asked, inner = [], nodes.s3.head_object

    def away(**options):
        asked.append(options)
        if len(asked) < 3:
            raise EndpointConnectionError(endpoint_url='https://s3')
        return inner(**options)
    nodes.s3.head_object = away
    for _ in range(40):
        gateway.look()
        if len(asked) == 1:
            assert not gateway.parts.book.is_regained
        nodes.now += 5
    assert len(asked) >= 3
    assert gateway.status()['bundles']['bundles'] == 1


@pytest.mark.parametrize('others, dead, is_kept', [
    (2, 0, True), (3, 0, False), (3, 1, True)])
def test_who_is_the_first_primary_of_most_members_keeps_it(
        nodes, others, dead, is_kept):
    """With a half, the other half may be another node's."""
    versions = in_bundles(nodes, 'a')
    delete(nodes, [versions['ao%d' % number] for number in range(dead)])
    nodes.run(100)
    gateway = lose_book(nodes, 0)
    theirs = {versions['ao%d' % number].object_hash
              for number in range(others)}
    ranks = gateway.parts.jobs.line.ranks
    ranks.primaries = lambda policy, object_hash: ('7', [
        {'device': 'there' if object_hash in theirs else 'sda'},
        {'device': 'sda'}])
    ranks.is_here = lambda node: node['device'] == 'sda'
    asked = requests(nodes)
    nodes.run(60)
    assert gateway.status()['bundles']['bundles'] == is_kept
    # Their bundle is looked at once.
    assert len(asked) < 10


def test_a_device_that_is_away_is_looked_at_again(nodes):
    in_bundles(nodes, 'a')
    gateway, disk = lose_book(nodes, 0), nodes.disks[0]
    describe = disk.describe

    def away(version, partition):
        raise TierUnavailable('not mounted')
    disk.describe = away
    walks, in_s3 = [], disk.in_s3

    def listed(after):
        walks.append(after)
        return in_s3(after)
    disk.in_s3 = listed
    nodes.run(60)
    assert not gateway.parts.book.is_regained
    # Not again and again.
    assert walks.count(0) == 1
    disk.describe = describe
    nodes.run(2 * 3600, 60.0)
    assert gateway.status()['bundles']['bundles'] == 1


def test_the_first_of_a_fragment_is_the_node_of_its_index(nodes):
    name = 'f%d'
    for number in range(4):
        nodes.disks[0].put(name % number, b'x' * 3000, OLD, class_map=SMALL,
                           frag_index=1)
    nodes.gateways[0].enqueue_uploads([Upload(VersionId(
        'sda', 0, hashlib.md5((name % number).encode()).hexdigest(), OLD, 1),
        '7', True, 1) for number in range(4)])
    nodes.run(100)
    assert len(nodes.bundles()) == 1
    gateway = lose_book(nodes, 0)
    ranks = gateway.parts.link.peers.ranks
    ranks.primaries = lambda policy, object_hash: ('7', [
        {'device': 'there'}, {'device': 'sda'}])
    ranks.is_here = lambda node: node['device'] == 'sda'
    nodes.run(60)
    assert gateway.status()['bundles']['bundles'] == 1


def test_what_has_a_key_of_its_own_is_not_asked_for(nodes):
    version = nodes.disks[0].put('single', b'x' * 3000, OLD)
    nodes.gateways[0].enqueue_uploads([Upload(version, '7', True, 1)])
    nodes.run(20)
    assert own_keys(nodes, [version])
    gateway = lose_book(nodes, 0)
    asked = requests(nodes, '')
    nodes.run(20)
    assert gateway.parts.book.is_regained
    assert not asked


def test_a_record_that_is_damaged_stops_no_other(nodes):
    versions = in_bundles(nodes, 'a')
    gateway, disk = lose_book(nodes, 0), nodes.disks[0]
    describe = disk.describe

    def damaged(version, partition):
        if version.object_hash == versions['ao2'].object_hash:
            raise DamagedRecord('spoilt')
        return describe(version, partition)
    disk.describe = damaged
    nodes.run(60)
    assert gateway.status()['bundles']['bundles'] == 1
    assert gateway.parts.book.is_regained


def test_a_policy_without_a_ring_stops_no_other(nodes):
    in_bundles(nodes, 'a', 'b')
    gateway = lose_book(nodes, 0)
    ranks, rank = [], gateway.parts.jobs.line.ranks.rank

    def of(version):
        ranks.append(version)
        if len(ranks) == 1:
            raise NoRing('none')
        return rank(version)
    gateway.parts.jobs.line.ranks.rank = of
    nodes.run(60)
    assert len(ranks) > 1
    assert not gateway.parts.book.is_regained
    nodes.run(2 * 3600, 60.0)
    assert gateway.status()['bundles']['bundles'] == 2
    assert gateway.parts.book.is_regained


def test_what_died_before_is_still_dead(nodes):
    versions = in_bundles(nodes, 'a')
    key, = nodes.bundles()
    delete(nodes, [versions['ao5']])
    nodes.run(100)
    dead = since.decode(nodes.s3.keys[key + '.since'][0]).dead
    lose_book(nodes, 0)
    del nodes.s3.asked[:]
    nodes.run(60)
    # The bucket has been told of it: its note is read once.
    assert nodes.s3.asked.count(('GET', key + '.since')) == 1
    delete(nodes, [versions['ao4']])
    nodes.run(60)
    key, = nodes.bundles()
    after = nodes.s3.keys.get(key + '.since')
    assert after is None or dead < since.decode(after[0]).dead


def test_dead_members_that_nobody_told_of_are_found(nodes):
    """The queue of deletes is lost with the book."""
    versions = in_bundles(nodes, 'a')
    key, = nodes.bundles()
    for disk in nodes.disks:
        disk.tombstone(versions['ao5'], NEW)
    gateway = lose_book(nodes, 0)
    nodes.run(60)
    for _ in range(8):
        nodes.run(20)
        gateway.parts.rounds.look()
    nodes.run(60)
    assert len(since.decode(nodes.s3.keys[key + '.since'][0]).dead) == 1


def test_who_leant_and_keeps_it_now_does_not_follow_itself(nodes):
    """Most rows come before the one that shows whose bundle it is."""
    in_bundles(nodes, 'a')
    key, = nodes.bundles()
    gateway = lose_book(nodes, 0)
    rank = iter([1, 1, 0])
    gateway.parts.jobs.line.ranks.rank = lambda version: next(rank, 0)
    nodes.run(20)
    assert gateway.status()['bundles']['bundles'] == 1
    assert list(gateway.parts.book.leaned_on()) == []


def test_a_book_of_the_release_before_is_no_lost_one(tmp_path):
    path = str(tmp_path / 'bundles.db')
    for looked_through in (True, False):
        book = Book(path)
        book.writer()
        if looked_through:
            book.looked_through()
        book.close()
        with sqlite3.connect(path) as old:
            old.execute("DELETE FROM facts WHERE name = 'regained'")
            old.execute('PRAGMA user_version = 1')
        old.close()
        book = Book(path)
        assert book.is_regained is looked_through
        book.close()
        os.unlink(path)


def test_a_new_cluster_has_nothing_to_regain(nodes):
    nodes.run(5)
    assert nodes.gateways[0].parts.book.is_regained
