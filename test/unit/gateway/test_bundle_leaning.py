"""Stubs that a bundle's keeper does not know of stay readable."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_bundles_and_crashes import names_in_the_bucket
from test_bundles_of_others import NAMES, NEW, OLD, SMALL, Nodes

from swift_dss.gateway.collect.keys import Wish
from swift_dss.gateway.restore.catalog import Catalog
from swift_dss.strategy.agreement import Answer, Verdict, of_place
from swift_dss.wire.control import FetchRequest
from swift_dss.wire.records.proof import ProofRequest

DAY = 86400.0


@pytest.fixture
def nodes(tmp_path):
    made = Nodes(tmp_path)
    yield made
    made.stop()


class BothDrives:
    """What one hears of two drives of the first node, and of the second."""

    def __init__(self, disks):
        self.disks = disks

    def ask(self, wanted, records=False):
        return [[Answer(*disk.newest_record(
            replace(version, device=device), '7'))
            for disk, device in ((self.disks[0], 'sda'),
                                 (self.disks[0], 'sdb'),
                                 (self.disks[1], 'sda'))]
            for version, _ in wanted]


def test_a_stub_that_arrives_during_a_rewrite_stays_readable(nodes):
    nodes.gateways.pop(0).stop()
    nodes.views[0] = BothDrives(nodes.disks)
    gateway, disk = nodes.gateway(0), nodes.disks[0]
    versions = nodes.put(NAMES)
    first, body = versions[0], NAMES[0].encode() * 3000
    before = disk.residency(first).remote
    # It comes to another drive, whose object server asks first.
    here = replace(first, device='sdb')
    reply = gateway.prove_arrival(ProofRequest(
        version=here, partition='7', residency=disk.residency(first),
        etag=disk.describe(first, '7').etag))
    # Meanwhile half of the bundle dies, and it is written anew.
    for version in versions[3:]:
        disk.tombstone(replace(version, device='sdb'), NEW)
        nodes.delete(version)
    for _ in range(60):
        nodes.run(2)
        if disk.residency(first).remote.key != before.key:
            break
    # Only now the stub gets its name.
    disk.put(NAMES[0], body, OLD, device='sdb', class_map=SMALL)
    disk.record_remote(here, '7', reply.residency.remote)
    disk.drop_local(here)
    nodes.run(600, 10.0)
    assert before.key not in nodes.bundles()
    sink = _fetched(gateway, here, len(body))
    assert sink.data == body


def _fetched(gateway, version, length):
    from support.nodes.gateway_node import Collector
    sink = Collector()
    gateway.fetch(FetchRequest(version, '7', 0, length, 1, 5.0, False), sink)
    assert sink.reply.status == 200, sink.reply
    return sink


def test_a_stub_on_a_device_that_the_ring_left_stays_readable(
        nodes, tmp_path):
    from support.nodes.gateway_node import FolderVersions
    versions = nodes.put(NAMES)
    nodes.travel(versions[0], NAMES[0])
    old, = nodes.bundles()
    # The ring moves the second replicas to a drive that is still empty.
    third = FolderVersions(str(tmp_path / 'third'))
    for view in nodes.views:
        view.disks = [nodes.disks[0], third]
    for version in versions[3:]:
        third.tombstone(version, NEW)
        nodes.delete(version)
    nodes.run(200)
    assert old not in nodes.bundles()
    nodes.read(1, versions[0], NAMES[0])
    # What was sent apart for it goes with its version.
    for version in versions[:3]:
        third.tombstone(version, NEW)
        nodes.delete(version)
    nodes.run(3600, 30.0)
    nodes.gateways[0].collect(Wish(everything=True))
    assert not any(version.key in key for version in versions
                   for key in nodes.s3.keys)


def test_of_a_place_records_decide_and_who_lacks_the_version():
    key, newer = 'p/bundles/a', Answer(NEW)
    here, there = Answer(OLD, key), Answer(OLD, 'p/elsewhere')
    dirty, none = Answer(OLD), Answer('')
    for answers, verdict in (
            ([there, there], Verdict.DEAD), ([there, dirty], Verdict.OPEN),
            ([newer, dirty], Verdict.DEAD),
            ([there, newer], Verdict.DEAD), ([none, newer], Verdict.DEAD),
            ([there, here], Verdict.NEEDED), ([newer, here], Verdict.NEEDED),
            ([there, none], Verdict.NEEDED), ([None, none], Verdict.NEEDED),
            ([there, None], Verdict.OPEN), ([], Verdict.DEAD)):
        assert of_place(OLD, key, answers) is verdict, answers


def _what_the_bucket_says(gateway):
    held = {member.name: member.record.metadata.get('X-Object-Meta-Colour')
            for member in Catalog(gateway.parts.conf,
                                  gateway.parts.client).walk()}
    return held.get('/a/c/o0'), sorted(held)


@pytest.mark.parametrize('days', (0, 2))
def test_a_collector_takes_nothing_back_that_a_keeper_told(
        nodes, monkeypatch, days):
    versions = nodes.put(NAMES)
    for version, name in zip(versions, NAMES):
        nodes.travel(version, name)
    keeper, other = nodes.gateways[0], nodes.gateway(1)
    for disk in nodes.disks:  # and the keeper has not heard of it
        disk.tombstone(versions[5], NEW)
    nodes.now += days * DAY
    inner, meanwhile = nodes.views[1].ask, []

    def ask(wanted, *more):
        said = inner(wanted, *more)
        if not meanwhile and len(wanted) > 1:
            meanwhile.append(True)
            # A POST and a DELETE on the keeper's node.
            nodes.disks[0].post(versions[0],
                                {'X-Object-Meta-Colour': 'blue'})
            keeper.enqueue_renewals([(versions[0], '7')])
            nodes.delete(versions[1])
            del nodes.gateways[1]
            nodes.run(60)
            nodes.gateways[1] = other
        return said
    monkeypatch.setattr(nodes.views[1], 'ask', ask)
    other.collect(Wish(everything=True))
    monkeypatch.undo()
    assert meanwhile
    nodes.run(7200, 30.0)
    colour, names = _what_the_bucket_says(keeper)
    assert colour == 'blue' and '/a/c/o1' not in names
    assert '/a/c/o5' not in names


def test_a_collector_leaves_what_just_died_to_the_keeper(nodes):
    versions = nodes.put(NAMES)
    for version in versions[3:]:
        for disk in nodes.disks:
            disk.tombstone(version, '%016.5f' % (nodes.now - 5))
    other = nodes.gateway(1)
    del nodes.s3.asked[:]
    other.collect(Wish(everything=True))
    assert not any(verb == 'PUT' for verb, _ in nodes.s3.asked)
    nodes.now += 60
    other.collect(Wish(everything=True))
    assert names_in_the_bucket(other) == ['/a/c/' + name
                                          for name in NAMES[:3]]
