"""Members of bundles that other nodes lean on, or that left their node."""

from __future__ import annotations

import logging
from dataclasses import replace
from types import SimpleNamespace

import pytest
from support.clocks import WallOf
from support.edges.memory_s3 import MemoryS3

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.spans import ClassMap
from swift_dss.gateway.bundle import since
from swift_dss.gateway.link.retry import Backoff
from swift_dss.gateway.mend.repair import Repaired
from swift_dss.gateway.peers.primaries import Primaries, looks_at
from swift_dss.gateway.ports import Upload
from swift_dss.gateway.parts import Outside
from swift_dss.gateway.service import Gateway
from swift_dss.io.workers import World, inline
from swift_dss.strategy.agreement import (
    Answer, Verdict, of_buried, of_member)
from swift_dss.wire.control import FetchRequest

from support.nodes.gateway_node import (
    Collector, CountingMetrics, FixedRanks, FolderVersions, conf_for)

SECRET = SimpleNamespace(url='https://s3', access_key='a', secret_key='s')
TABLE = ClassTable.of([ClassSpec(0, 'plain', 0),
                       ClassSpec(1, 'small', 1, bundle=True)])
SMALL = ClassMap.uniform(1)
OLD, NEW = '1700000000.00000', '1700000100.00000'


class View(Primaries):
    """What one node hears of all disks."""

    def __init__(self, disks):
        self.disks = disks
        self.away = set()

    def ask(self, wanted, records=False):
        return [[self._say(number, disk, version)
                 for number, disk in enumerate(self.disks)]
                for version, _ in wanted]

    def _say(self, number, disk, version):
        if number in self.away:
            return None
        return looks_at(disk)(replace(version, device='sda'), '7', True)


class Nodes:
    """Two nodes; only the first one has a gateway until asked."""

    def __init__(self, root):
        self.now = float(NEW) + 1000
        self.root = root
        self.s3 = MemoryS3()
        self.disks = [FolderVersions(str(root / str(n))) for n in (0, 1)]
        self.views = [View(self.disks) for _ in (0, 1)]
        self.gateways = {}
        self.gateway(0)

    def gateway(self, number, **conf):
        options = dict({
            'bundle_age_seconds': 1.0, 'delete_delay_seconds': 10.0,
            'take_over_seconds': 1000.0, 'bundle_dead_share': 0.3,
            'bundle_put_bytes': 0}, **conf)
        self.gateways[number] = Gateway(
            conf_for(SECRET, str(self.root / str(number)), **options),
            lambda: TABLE, self.disks[number],
            logging.getLogger('bundles-of-others'), CountingMetrics(),
            outside=Outside(
                ranks=FixedRanks({'sda': number}), retry=Backoff(10.0, 10.0),
                world=World(WallOf(self), inline), connect=self.s3.connect,
                primaries=self.views[number]))
        return self.gateways[number]

    def put(self, names):
        """In one bundle of the first node, and stubs there."""
        versions = [self.disks[0].put(
            name, name.encode() * 3000, OLD, class_map=SMALL)
            for name in names]
        self.gateways[0].enqueue_uploads(
            [Upload(version, '7', True, 1) for version in versions])
        self.run(20)
        for version in versions:
            assert self.disks[0].residency(version).remote.in_bundle
            self.disks[0].drop_local(version)
        return versions

    def travel(self, version, name):
        """The stub as it is, to the other node."""
        self.disks[1].put(name, name.encode() * 3000, OLD, class_map=SMALL)
        self.disks[1].record_remote(
            version, '7', self.disks[0].residency(version).remote)
        self.disks[1].drop_local(version)

    def delete(self, version, nodes=(0, 1)):
        for number in nodes:
            self.disks[number].tombstone(version, NEW)
        self.gateways[0].enqueue_deletes([(version, '7')])

    def run(self, seconds, step=2.0):
        until = self.now + seconds
        while self.now < until:
            for gateway in self.gateways.values():
                gateway.look()
                gateway.look()
            self.now += step

    def bundles(self):
        return sorted(key for key in self.s3.keys if '/bundles/' in key
                      and '.since' not in key)

    def read(self, number, version, name):
        sink = Collector()
        body = name.encode() * 3000
        gateway = self.gateways.get(number) or self.gateway(number)
        assert gateway.fetch(FetchRequest(
            replace(version, device='sda'), '7', 0, len(body), 1, 5.0,
            False), sink), sink.reply
        assert sink.data == body

    def stop(self):
        for gateway in self.gateways.values():
            gateway.stop()


@pytest.fixture
def nodes(tmp_path):
    made = Nodes(tmp_path)
    yield made
    made.stop()


NAMES = ['o%d' % number for number in range(6)]


def test_a_member_dies_when_all_primaries_have_something_newer(nodes):
    versions = nodes.put(NAMES)
    nodes.travel(versions[0], NAMES[0])
    for version in versions[1:]:
        nodes.disks[1].tombstone(version, NEW)
    for version in versions:
        nodes.delete(version, [0])
    nodes.run(400)
    key, = nodes.bundles()
    raw = nodes.s3.keys[key + '.since'][0]
    assert len(since.decode(raw).dead) == 5
    nodes.read(1, versions[0], NAMES[0])
    nodes.disks[1].tombstone(versions[0], NEW)
    nodes.run(400)
    assert not nodes.bundles()


def test_a_bundle_that_another_node_names_is_not_written_away(nodes):
    versions = nodes.put(NAMES)
    # Both nodes have it: the first one's record will name a new bundle.
    nodes.travel(versions[0], NAMES[0])
    old, = nodes.bundles()
    for version in versions[3:]:
        nodes.delete(version)
    nodes.run(100)
    assert old not in nodes.bundles()
    assert nodes.disks[0].residency(versions[0]).remote.key != old
    assert nodes.disks[1].residency(versions[0]).remote.key == old
    nodes.read(1, versions[0], NAMES[0])
    assert not nodes.disks[1].residency(versions[0]).remote.in_bundle
    nodes.read(1, versions[0], NAMES[0])


def test_a_member_that_left_stays_readable_where_it_went(nodes):
    versions = nodes.put(NAMES)
    nodes.travel(versions[0], NAMES[0])
    nodes.disks[0].unlink(versions[0])
    old, = nodes.bundles()
    for version in versions[3:]:
        nodes.delete(version)
    nodes.run(100)
    assert old not in nodes.bundles()
    nodes.read(1, versions[0], NAMES[0])


def sent_apart(nodes):
    """A member that left, and has a key of its own, as its bundle is to go;
    (version, the bundle)."""
    versions = nodes.put(NAMES)
    bundle, = nodes.bundles()
    nodes.travel(versions[0], NAMES[0])
    nodes.disks[0].unlink(versions[0])
    for version in versions[1:]:
        nodes.delete(version)
    nodes.run(15, 1.0)
    assert nodes.bundles() == [bundle] and any(
        versions[0].key in key for key in nodes.s3.keys)
    return versions[0], bundle


def test_who_still_names_a_bundle_has_a_key_before_it_goes(nodes):
    version, bundle = sent_apart(nodes)
    # As the search for second copies did: all named the bundle.
    for key in [key for key in nodes.s3.keys if version.key in key]:
        del nodes.s3.keys[key]
    nodes.run(100)
    assert bundle not in nodes.bundles()
    nodes.read(1, version, NAMES[0])


def test_who_is_away_for_too_long_finds_a_key_of_its_own(nodes):
    version, bundle = sent_apart(nodes)
    nodes.views[0].away = {1}
    nodes.run(610000, 3600.0)
    assert bundle not in nodes.bundles()
    nodes.read(1, version, NAMES[0])


def test_others_are_told_before_a_bundle_goes_that_some_name(nodes):
    """So that nobody takes the key of its own for a second copy."""
    version, bundle = sent_apart(nodes)
    kept = nodes.s3.delete_object
    gone = []

    def delete(**options):
        gone.append((options['Key'], nodes.now, since.path_of(bundle)
                     in nodes.s3.keys))
        return kept(**options)

    nodes.s3.delete_object = delete
    told = []
    put = nodes.s3.put_object

    def sent(**options):
        if options['Key'] == since.path_of(bundle):
            told.append(nodes.now)
        return put(**options)

    nodes.s3.put_object = sent
    nodes.run(100)
    keys = [key for key, _, _ in gone]
    assert keys.index(bundle) < keys.index(since.path_of(bundle))
    _, at, is_there = gone[keys.index(bundle)]
    assert is_there and at - told[0] >= 10.0


def test_what_records_name_decides_of_buried_members():
    def judged(*answers):
        return of_buried(OLD, 'b', answers)

    assert judged(Answer(OLD, 'b'), Answer(NEW)) is Verdict.NEEDED
    assert judged(Answer(OLD, 'b'), None) is Verdict.NEEDED
    assert judged(Answer(OLD, 'c'), Answer(OLD, 'own')) is Verdict.DEAD
    assert judged(Answer(NEW), None) is Verdict.DEAD
    # A tombstone may be reclaimed by now.
    assert judged(Answer(), Answer()) is Verdict.DEAD
    assert judged(Answer(), None) is Verdict.OPEN
    assert judged(Answer(OLD, 'c'), None) is Verdict.OPEN


def test_a_silent_node_holds_a_bundle_for_reclaim_age(nodes):
    versions = nodes.put(NAMES)
    old, = nodes.bundles()
    for version in versions[3:]:
        nodes.delete(version)
    nodes.run(14)
    nodes.views[0].away = {1}
    nodes.run(3000, 20.0)
    assert old in nodes.bundles() and len(nodes.bundles()) == 2
    nodes.run(610000, 3600.0)
    assert old not in nodes.bundles() and len(nodes.bundles()) == 1


def test_a_post_to_a_stub_outlives_a_rewrite(nodes):
    from swift_dss.gateway.restore.catalog import Catalog
    versions = nodes.put(NAMES)
    nodes.disks[0].post(versions[0], {'X-Object-Meta-Colour': 'blue'})
    for version in versions[3:]:
        nodes.delete(version)
    nodes.run(100)
    gateway = nodes.gateways[0]
    held = {member.name: member for member in Catalog(
        gateway.parts.conf, gateway.parts.client).walk()}
    assert held['/a/c/o0'].record.metadata['X-Object-Meta-Colour'] == 'blue'


def test_what_the_primaries_name_decides():
    key, newer = 'p/bundles/a', Answer(NEW)
    here, there = Answer(OLD, key), Answer(OLD, 'p/elsewhere')
    dirty, none = Answer(OLD), Answer('')
    for answers, fragment, verdict in (
            ([newer, newer], False, Verdict.DEAD),
            ([there, there], False, Verdict.DEAD),
            ([there, newer], False, Verdict.DEAD),
            ([there, here], False, Verdict.NEEDED),
            ([there, dirty], False, Verdict.OPEN),
            ([there, none], False, Verdict.OPEN),
            ([there, None], False, Verdict.OPEN),
            ([none, none], False, Verdict.OPEN),
            ([], False, Verdict.OPEN),
            # Others have other fragments of it.
            ([there, dirty], True, Verdict.DEAD),
            ([dirty, dirty], True, Verdict.OPEN),
            ([there, here], True, Verdict.NEEDED)):
        assert of_member(OLD, key, answers, float(NEW), 604800.0,
                         fragment) is verdict, answers


def test_what_was_said_to_be_dead_stays_so(nodes):
    """Also by who knows nothing of it: a book may be younger than the
    bundle."""
    versions = nodes.put(NAMES)
    key, = nodes.bundles()
    first = min(versions, key=lambda version: nodes.disks[0].residency(
        version).remote.offset)
    nodes.s3.keys[key + '.since'] = since.encode(
        since.Since({5})), {}
    nodes.delete(first)
    nodes.run(100)
    assert since.decode(
        nodes.s3.keys[key + '.since'][0]).dead == {0, 5}


def test_the_newest_version_is_not_dead_whoever_says_so(nodes):
    versions = nodes.put(NAMES)
    key, = nodes.bundles()
    for version in versions:
        nodes.gateways[0].enqueue_deletes([(version, '7')])
    nodes.run(200)
    assert nodes.bundles() == [key]
    assert key + '.since' not in nodes.s3.keys
    assert nodes.gateways[0].status()['deletes'] == 0


def test_another_device_of_the_node_goes_along_with_a_rewrite(nodes):
    versions = nodes.put(NAMES)
    old, = nodes.bundles()
    disk = nodes.disks[0]
    second = disk.put(NAMES[0], NAMES[0].encode() * 3000, OLD,
                      device='sdb', class_map=SMALL)
    nodes.gateways[0].enqueue_uploads([Upload(second, '7', True, 1)])
    nodes.run(20)
    assert disk.residency(second).remote.key == old
    for version in versions[3:]:
        nodes.delete(version)
    nodes.run(100)
    new, = nodes.bundles()
    assert new != old
    assert {disk.residency(version).remote.key
            for version in (second, versions[0])} == {new}


def test_rotted_bytes_go_into_no_bundle(nodes):
    versions = [nodes.disks[0].put(
        name, name.encode() * 3000, OLD, class_map=SMALL)
        for name in NAMES]
    nodes.disks[0].corrupt(versions[0])
    nodes.gateways[0].enqueue_uploads(
        [Upload(version, '7', True, 1) for version in versions])
    nodes.run(20)
    assert [nodes.disks[0].residency(version).remote is None
            for version in versions] == [True] + 5 * [False]


@pytest.mark.parametrize('is_lost', [True, False])
def test_a_bundle_that_s3_does_not_hold_is_named_by_nobody(nodes, is_lost):
    put = nodes.s3.put_object

    def lie(**options):
        said, key = put(**options), options['Key']
        if '/bundles/' in key:
            data, metadata = nodes.s3.keys.pop(key)
            if not is_lost:
                nodes.s3.keys[key] = bytes(len(data)), metadata
        return said

    nodes.s3.put_object = lie
    versions = [nodes.disks[0].put(name, b'x' * 100, OLD, class_map=SMALL)
                for name in NAMES]
    nodes.gateways[0].enqueue_uploads(
        [Upload(version, '7', True, 1) for version in versions])
    nodes.run(20)
    assert not any(nodes.disks[0].residency(version).remote
                   for version in versions)
    del nodes.s3.put_object
    nodes.run(100)
    assert all(nodes.disks[0].residency(version).remote.in_bundle
               for version in versions)


def test_wrong_bytes_are_not_written_anew(nodes):
    versions = nodes.put(NAMES)
    key, = nodes.bundles()
    data, metadata = nodes.s3.keys[key]
    at = nodes.disks[0].residency(versions[0]).remote.offset
    nodes.s3.keys[key] = (data[:at] + bytes((data[at] ^ 1,))
                          + data[at + 1:]), metadata
    for version in versions[3:]:
        nodes.delete(version)
    nodes.run(200)
    assert nodes.bundles() == [key]
    assert {nodes.disks[0].residency(version).remote.key
            for version in versions[:3]} == {key}


def test_a_stub_whose_bundle_is_lost_names_that_of_another_node(nodes):
    """This node's book has it in the lost one."""
    versions = nodes.put(NAMES)
    lost, = nodes.bundles()
    del nodes.s3.keys[lost]
    for name in NAMES:
        nodes.disks[1].put(name, name.encode() * 3000, OLD, class_map=SMALL)
    nodes.gateway(1, take_over_seconds=1.0).enqueue_uploads(
        [Upload(version, '7', True, 1) for version in versions])
    nodes.run(40)
    key, = nodes.bundles()
    assert key != lost
    assert nodes.gateways[0].repair([(versions[0], '7')]) is Repaired.FOUND
    assert nodes.disks[0].residency(versions[0]).remote.key == key
    nodes.read(0, versions[0], NAMES[0])
    assert nodes.gateways[0].repair([(versions[0], '7')]) is Repaired.RIGHT
