"""Replicas that name the bundle of another node, and go where it goes."""

from __future__ import annotations

import logging
import shutil

import pytest
from support.clocks import ClockOf, WallOf
from test_bundle_keys import write_keys
from test_bundles_of_others import (
    NAMES, NEW, OLD, SECRET, SMALL, TABLE, CountingMetrics, FixedRanks,
    FolderVersions, Nodes, conf_for)

from swift_dss.core.errors import VersionGone
from swift_dss.core.version import VersionId
from swift_dss.gateway.around import Around
from swift_dss.gateway.bundle import follow
from swift_dss.gateway.bundle.book import Book
from swift_dss.gateway.collect.keys import Wish
from swift_dss.gateway.link.breaker import Breaker, BreakerState
from swift_dss.gateway.link.retry import Backoff
from swift_dss.gateway.restore.catalog import Catalog
from swift_dss.gateway.peers.primaries import Peers
from swift_dss.gateway.peers.ranks import NoRing
from swift_dss.gateway.ports import Upload
from swift_dss.gateway.parts import Outside
from swift_dss.gateway.service import Gateway
from swift_dss.io.workers import World, inline
from swift_dss.strategy.agreement import Answer, leans_on



DAY = 86400.0
SENT = 'p/bundles/abc/%016.5f-a'


class Ranked(Nodes):
    """The second node has the second rank.

    :param conf: options of both gateways
    """

    def __init__(self, root, **conf):
        self.conf = conf
        super().__init__(root)

    def gateway(self, number, **conf):
        return super().gateway(number, **dict(self.conf, **conf))

    def second(self):
        self.breaker = Breaker(clock=ClockOf(self))
        made = self.gateways[1] = Gateway(
            conf_for(SECRET, str(self.root / '1'), bundle_age_seconds=1.0,
                     delete_delay_seconds=10.0, take_over_seconds=1000.0,
                     **self.conf),
            lambda: TABLE, self.disks[1], logging.getLogger('following'),
            CountingMetrics(),
            outside=Outside(
                ranks=FixedRanks({'sda': 1}), retry=Backoff(10.0, 10.0),
                world=World(WallOf(self), inline), connect=self.s3.connect,
                primaries=self.views[1], breaker=self.breaker))
        return made

    def replicate(self, names):
        """The second node gets bytes of what the first one has."""
        versions = [self.disks[1].put(
            name, name.encode() * 3000, OLD, class_map=SMALL)
            for name in names]
        self.gateways[1].enqueue_uploads(
            [Upload(version, '7', True, 1) for version in versions])
        return versions

    def keys(self, number, versions):
        return {disk.remote and disk.remote.key for disk in (
            self.disks[number].residency(version) for version in versions)}


@pytest.fixture
def nodes(tmp_path):
    made = Ranked(tmp_path)
    made.second()
    yield made
    made.stop()


def test_the_second_replica_names_the_bundle_of_the_first(nodes):
    versions = nodes.put(NAMES)
    nodes.replicate(NAMES)
    nodes.run(300)
    assert len(nodes.bundles()) == 1
    assert nodes.keys(1, versions) == set(nodes.bundles())
    for version, name in zip(versions, NAMES):
        nodes.disks[1].drop_local(version)
        nodes.read(1, version, name)


def test_who_leans_follows_a_bundle_that_is_written_anew(nodes):
    versions = nodes.put(NAMES)
    nodes.replicate(NAMES)
    nodes.run(300)
    old, = nodes.bundles()
    for version in versions[3:]:
        nodes.delete(version)
    nodes.run(200)
    new, = nodes.bundles()
    assert new != old and nodes.keys(1, versions[:3]) == {new}
    # Nothing had to be sent apart for it.
    assert not any(version.key in key for version in versions
                   for key in nodes.s3.keys)


def test_many_bundles_are_followed_some_at_a_time(nodes, monkeypatch):
    monkeypatch.setattr(follow, '_AT_ONCE', 2)
    live = []
    for letter in 'abcde':
        names = [letter + name for name in NAMES]
        versions = nodes.put(names)
        nodes.replicate(names)
        nodes.run(100)
        live += versions[:3]
        for version in versions[3:]:
            nodes.delete(version)
    nodes.run(200)
    assert len(nodes.bundles()) == 5
    assert nodes.keys(1, live) == set(nodes.bundles())
    assert not any(version.key in key for version in live
                   for key in nodes.s3.keys)


def test_a_bundle_that_s3_has_not_is_not_named(nodes):
    versions = nodes.put(NAMES)
    nodes.s3.keys.pop(nodes.bundles()[0])
    nodes.replicate(NAMES)
    nodes.run(100)
    assert nodes.keys(1, versions) == {None}


def test_another_node_packs_when_the_first_does_not(nodes):
    versions = nodes.replicate(NAMES)
    nodes.run(900, 20.0)
    assert nodes.keys(1, versions) == {None}
    nodes.run(1000, 20.0)
    assert None not in nodes.keys(1, versions)


def test_the_second_rank_waits_behind_the_age_of_an_upload(tmp_path):
    nodes = Ranked(tmp_path)
    nodes.conf['remote_after_seconds'] = 5500.0
    nodes.second()
    versions = nodes.replicate(NAMES)
    nodes.run(5800, 20.0)
    assert nodes.keys(1, versions) == {None}
    nodes.stop()


def test_the_time_without_s3_makes_nobody_take_over(nodes):
    versions = nodes.replicate(NAMES)
    nodes.breaker.failed('away', for_sure=True)
    nodes.s3.is_there = False
    nodes.run(5000, 20.0)
    assert nodes.breaker.state is not BreakerState.CLOSED
    nodes.s3.is_there = True
    nodes.run(900, 20.0)
    assert nodes.breaker.state is BreakerState.CLOSED
    assert nodes.keys(1, versions) == {None}
    nodes.run(1200, 20.0)
    assert None not in nodes.keys(1, versions)


def test_one_alone_has_a_key_of_its_own(nodes):
    version = nodes.disks[0].put('o', b'o' * 3000, OLD, class_map=SMALL)
    nodes.gateways[0].enqueue_uploads([Upload(version, '7', True, 1)])
    nodes.replicate(['o'])
    nodes.run(300)
    assert not nodes.bundles()
    key, = nodes.keys(0, [version])
    assert nodes.keys(1, [version]) == {key} and version.key in key


def test_what_is_followed_is_always_later():
    early, late, own = SENT % 1700000000, SENT % 1700000500, 'p/abc/0/h/1'
    said = [Answer(OLD, early), Answer(OLD, late), Answer(NEW, 'p/new'),
            None, Answer(OLD)]
    assert leans_on(OLD, '', said) == [late, early]
    assert leans_on(OLD, early, said) == [late]
    assert leans_on(OLD, late, said) == []
    assert leans_on(OLD, '', [Answer(OLD, own)]) == [own]


def test_a_book_of_the_release_before_is_read(tmp_path):
    import sqlite3
    path = str(tmp_path / 'bundles.db')
    with sqlite3.connect(path) as old:
        old.execute('CREATE TABLE holders (key TEXT NOT NULL, device TEXT '
                    'NOT NULL, partition TEXT NOT NULL, PRIMARY KEY (key, '
                    'device)) WITHOUT ROWID')
        old.execute("INSERT INTO holders VALUES ('0/h/1', 'sda', '7')")
    old.close()
    book = Book(path)
    assert list(book.leaned_on()) == []
    book.close()


def test_who_leans_gets_the_new_key_with_the_bundle(tmp_path):
    path = str(tmp_path / 'keys')
    write_keys(path, 'k1', 'k1')
    made = Ranked(tmp_path, key_file=path)
    made.second()
    versions = made.put(NAMES)
    made.replicate(NAMES)
    made.run(300)
    write_keys(path, 'k2', 'k1', 'k2')
    # The one that only leans is asked first, and says that it is not done.
    other = made.gateways[1]
    assert all(other.rekey(version, '7') for version in versions)
    other.rekey_bundles()
    made.run(60)
    assert other.bundles_to_rekey()
    for version in versions:
        made.gateways[0].rekey(version, '7')
    made.gateways[0].rekey_bundles()
    made.run(200)
    assert not other.bundles_to_rekey()
    assert not made.gateways[0].bundles_to_rekey()
    write_keys(path, 'k2', 'k2')
    made.run(100)
    for version, name in zip(versions, NAMES):
        made.disks[1].drop_local(version)
        made.read(1, version, name)
    made.stop()


@pytest.mark.parametrize('who', ['other', 'third'])
def test_a_bundle_outlives_the_node_that_packed_it(nodes, who):
    versions = nodes.put(NAMES)
    nodes.replicate(NAMES)
    nodes.run(300)
    key, = nodes.bundles()
    for version in versions:
        nodes.disks[1].drop_local(version)
    nodes.gateways.pop(0).stop()
    # Another one takes its place; stubs travel to it.
    shutil.rmtree(nodes.root / '0')
    nodes.disks[0] = FolderVersions(str(nodes.root / '0'))
    third = nodes.gateway(0)
    for version, name in zip(versions, NAMES):
        third.parts.book.hold(version, '7', key)
        nodes.disks[0].put(name, name.encode() * 3000, OLD, class_map=SMALL)
        nodes.disks[0].record_remote(
            version, '7', nodes.disks[1].residency(version).remote)
        nodes.disks[0].drop_local(version)
    if who == 'other':
        # It is none of these versions' first primary.
        third.parts.jobs.line.ranks.rank = lambda version: 2
    nodes.now += 2 * DAY
    nodes.run(20)
    assert third.status()['bundles']['bundles'] == (who == 'third')
    for version in versions[3:]:
        for disk in nodes.disks:
            disk.tombstone(version, NEW)
        for gateway in nodes.gateways.values():
            gateway.enqueue_deletes([(version, '7')])
    nodes.run(100)
    other = nodes.gateways[1]
    assert other.collect(Wish(everything=True)).adopted == (
        who == 'other')
    # One of them keeps it from now on, and writes it anew.
    nodes.run(1000, 20.0)
    assert sorted(member.name for member in Catalog(
        other.parts.conf, other.parts.client).walk()) == [
            '/a/c/' + name for name in NAMES[:3]]
    assert key not in nodes.bundles()
    for version, name in zip(versions[:3], NAMES):
        nodes.read(1, version, name)
        nodes.read(0, version, name)
    for version in versions[:3]:
        for disk in nodes.disks:
            disk.tombstone(version, NEW)
        for gateway in nodes.gateways.values():
            gateway.enqueue_deletes([(version, '7')])
    nodes.run(4000, 20.0)
    assert not nodes.bundles()


class Gone:
    """Disks without any version.

    :param newest: what is there of its object
    """

    def __init__(self, newest):
        self._newest = newest

    def describe(self, version, partition):
        raise VersionGone('%s is not here' % version.key)

    def newest(self, version, partition):
        return self._newest


class Ring:
    """Its primaries, of which the third one is here."""

    def __init__(self, has_ring=True):
        self._has_ring = has_ring

    def primaries(self, policy, object_hash):
        if not self._has_ring:
            raise NoRing('none')
        return '7', [{'ip': address} for address in 'abc']

    def is_here(self, node):
        return node['ip'] == 'c'


@pytest.mark.parametrize('frag_index, newest, has_ring, stays', [
    (2, None, True, True), (2, None, False, True),
    # It moved on, it was deleted, another fragment belongs here.
    (1, None, True, False), (2, NEW, True, False), (2, OLD, True, False),
    # Other replicas know where they are.
    (None, None, True, False)])
def test_the_book_knows_where_a_lost_fragment_is(
        tmp_path, frag_index, newest, has_ring, stays):
    version = VersionId('sda', 1, 'a' * 32, OLD, frag_index)
    bundle = SENT % 1.0
    book = Book(str(tmp_path / 'bundles.db'))
    book.hold(version, '7', bundle)
    follow.Follower(Around(
        conf_for(SECRET, str(tmp_path)).gateway, lambda: TABLE,
        CountingMetrics(), logging.getLogger('lost'), clock=WallOf(None)),
        Peers(Ring(has_ring), None), None, Gone(newest), book).keep_up()
    assert book.place_of(version.key) == (bundle if stays else '')
    book.close()
