"""A first primary that is late, and another that has packed in its stead."""

from __future__ import annotations

import pytest
from test_bundle_following import Ranked
from test_bundles_of_others import NAMES, NEW, OLD, SMALL

from swift_dss.core.errors import TierUnavailable
from swift_dss.gateway.ports import Upload


@pytest.fixture
def nodes(tmp_path):
    made = Ranked(tmp_path)
    made.second()
    yield made
    made.stop()


def late(nodes):
    """The first primary has the bytes, and does nothing; its second one
    takes over."""
    first = nodes.gateways.pop(0)
    versions = [nodes.disks[0].put(name, name.encode() * 3000, OLD,
                                   class_map=SMALL) for name in NAMES]
    first.enqueue_uploads(
        [Upload(version, '7', True, 1) for version in versions])
    nodes.replicate(NAMES)
    return first, versions


def run_alone(nodes, gateway, seconds):
    others, nodes.gateways = nodes.gateways, {0: gateway}
    nodes.run(seconds)
    nodes.gateways = others


def packed_twice(nodes):
    """Both have packed, as neither had a record when the other one looked;
    (versions, the earlier bundle, the later one)."""
    first, versions = late(nodes)
    for view in nodes.views:
        view.away = {0, 1}
    run_alone(nodes, first, 20)
    earlier, = nodes.bundles()
    # Its turn, and none of its rows waits any longer than others.
    nodes.now += 1100
    for version in versions:
        nodes.gateways[1].parts.queue.wait([(version, nodes.now)])
    nodes.run(20)
    for view in nodes.views:
        view.away = set()
    assert len(nodes.bundles()) == 2
    return first, versions, earlier, next(
        key for key in nodes.bundles() if key != earlier)


def test_a_late_first_primary_leans_on_who_took_over(nodes):
    first, versions = late(nodes)
    nodes.now += 1100
    nodes.run(100)
    taken, = nodes.bundles()
    run_alone(nodes, first, 200)
    assert nodes.bundles() == [taken]
    assert nodes.keys(0, versions) == nodes.keys(1, versions)
    assert first.status()['uploads'] == 0
    # It was said to be here, and whoever writes it anew knows of it.
    assert first.parts.book.counts()['waiting'] == 0


def test_of_two_bundles_the_later_one_is_kept(nodes):
    first, versions, earlier, later = packed_twice(nodes)
    nodes.gateways[0] = first
    nodes.run(4000, 20.0)
    assert nodes.keys(0, versions) == nodes.keys(1, versions) == {later}
    assert nodes.bundles() == [later]
    counters = [gateway.parts.around.metrics.counters
                for gateway in nodes.gateways.values()]
    assert sum(counts.get('gateway.bundle_twins', 0)
               for counts in counters) == len(NAMES)
    for version, name in zip(versions, NAMES):
        nodes.disks[0].drop_local(version)
        nodes.read(0, version, name)
    # It goes on where the other one goes, as anybody who leans on it.
    for version in versions[3:]:
        for disk in nodes.disks:
            disk.tombstone(version, NEW)
        nodes.gateways[1].enqueue_deletes([(version, '7')])
    nodes.run(1000, 20.0)
    assert later not in nodes.bundles()
    assert nodes.keys(0, versions[:3]) == nodes.keys(
        1, versions[:3]) == set(nodes.bundles())


def test_what_somebody_still_names_is_not_written_off(nodes):
    first, versions, earlier, later = packed_twice(nodes)
    third = nodes.disks[1].__class__(str(nodes.root / '2'))
    for version, name in zip(versions, NAMES):
        third.put(name, name.encode() * 3000, OLD, class_map=SMALL)
        third.record_remote(version, '7', nodes.disks[0].residency(
            version).remote)
    for view in nodes.views:
        view.disks = nodes.disks + [third]
    nodes.gateways[0] = first
    nodes.run(4000, 20.0)
    assert nodes.keys(0, versions) == {later}
    assert earlier in nodes.bundles()
    for version in versions:
        third.record_remote(version, '7', nodes.disks[0].residency(
            version).remote)
    nodes.run(20000, 60.0)
    assert nodes.bundles() == [later]


def test_who_is_in_time_asks_nobody(nodes):
    asked = []
    ask = nodes.views[0].ask
    nodes.views[0].ask = lambda *question: asked.append(1) or ask(*question)
    now = '%016.5f' % (nodes.now - 5)
    versions = [nodes.disks[0].put(name, name.encode() * 3000, now,
                                   class_map=SMALL) for name in NAMES]
    nodes.gateways[0].enqueue_uploads(
        [Upload(version, '7', True, 1) for version in versions])
    nodes.run(60)
    assert nodes.keys(0, versions) == set(nodes.bundles())
    assert not asked
    assert NEW


def test_who_becomes_late_while_it_sends_looks_too(nodes):
    nodes.now = float(OLD) + 985
    first, versions = late(nodes)
    inner = nodes.s3.put_object

    def slow(**options):
        if '/bundles/' in options['Key']:
            nodes.now += 100
        return inner(**options)
    nodes.s3.put_object = slow
    run_alone(nodes, first, 8)
    del nodes.s3.put_object
    assert nodes.bundles()
    (contested, _), = first.parts.book.contested(nodes.now + 1000)
    assert [contested.key] == nodes.bundles()


def test_what_fails_before_it_is_sent_waits_again(nodes, monkeypatch):
    first, versions = late(nodes)
    with monkeypatch.context() as patched:
        def fails(members):
            raise TierUnavailable('bundle book: disk is full')
        patched.setattr(first.parts.bundles.follower, 'lean', fails)
        run_alone(nodes, first, 20)
        assert not nodes.bundles()
    run_alone(nodes, first, 300)
    assert nodes.keys(0, versions) == set(nodes.bundles())


def test_empty_versions_are_asked_about_no_longer_than_others(nodes):
    first, versions = late(nodes)
    empty = nodes.disks[0].put('empty', b'', OLD, class_map=SMALL)
    first.enqueue_uploads([Upload(empty, '7', True, 1)])
    run_alone(nodes, first, 2000)
    assert nodes.keys(0, versions) == set(nodes.bundles())
    assert not first.parts.book.contested(nodes.now + 1e9)
