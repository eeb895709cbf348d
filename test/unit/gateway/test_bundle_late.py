"""A node that is late finds its versions where the others have them, and no
second copy of them stays."""

from __future__ import annotations

import pytest
from test_bundle_following import Ranked
from test_bundles_of_others import NAMES, NEW, OLD, SMALL

from swift_dss.core.errors import RemoteCorrupt
from swift_dss.gateway.bundle import since
from swift_dss.gateway.collect.keys import Wish
from swift_dss.gateway.ports import NotProven
from swift_dss.gateway.ports import Upload
from swift_dss.strategy.agreement import Answer, agreed_key
from swift_dss.wire.records.proof import ProofRequest


@pytest.fixture
def nodes(tmp_path):
    made = Ranked(tmp_path)
    made.second()
    yield made
    made.stop()


def proven(nodes, version):
    """The copy in S3 that lets the late node drop its bytes."""
    return nodes.gateways[1].parts.mend.witness.proven(
        nodes.disks[1].describe(version, '7'))


def own_keys(nodes, versions):
    return {key for key in nodes.s3.keys
            for version in versions if version.key in key}


def late(nodes):
    """The bundle that the second node leans on was rewritten and dropped
    while it did nothing; (versions that live, its gateway)."""
    versions = nodes.put(NAMES)
    nodes.replicate(NAMES)
    nodes.run(300)
    old, = nodes.bundles()
    assert nodes.keys(1, versions) == {old}
    second = nodes.gateways.pop(1)
    for version in versions[3:]:
        nodes.delete(version)
    nodes.run(200)
    assert old not in nodes.bundles() and len(nodes.bundles()) == 1
    assert nodes.keys(1, versions[:3]) == {old}
    assert len(own_keys(nodes, versions)) == 3
    nodes.gateways[1] = second
    return versions[:3], second


def puts(nodes):
    """Keys that are sent from now on."""
    keys = []
    put = nodes.s3.put_object

    def noted(**options):
        keys.append(options['Key'])
        return put(**options)

    nodes.s3.put_object = noted
    return keys


def test_who_is_late_names_the_new_bundle_and_sends_nothing(nodes):
    versions, second = late(nodes)
    sent = puts(nodes)
    new, = nodes.bundles()
    for version in versions:
        copy = proven(nodes, version)
        assert copy.key == new
        nodes.disks[1].drop_local(version)
    nodes.run(100)
    assert not sent
    counters = second.parts.around.metrics.counters
    assert 'gateway.proof_sent_again' not in counters
    for version, name in zip(versions, NAMES):
        nodes.read(1, version, name)
    # It follows that one as well.
    nodes.disks[0].tombstone(versions[0], NEW)
    nodes.disks[1].tombstone(versions[0], NEW)
    for gateway in nodes.gateways.values():
        gateway.enqueue_deletes([(versions[0], '7')])
    nodes.run(400)
    assert new not in nodes.bundles()
    assert nodes.keys(1, versions[1:]) == set(nodes.bundles())


def test_who_is_late_names_a_key_of_its_own_where_nobody_says_more(nodes):
    versions, second = late(nodes)
    nodes.views[1].away = {0}
    sent = puts(nodes)
    for version in versions:
        copy = proven(nodes, version)
        assert version.key in copy.key
        nodes.disks[1].drop_local(version)
    nodes.run(20)
    assert not sent


def test_a_member_that_is_wrong_in_the_new_bundle_is_not_named(nodes):
    versions, second = late(nodes)
    new, = nodes.bundles()
    data, metadata = nodes.s3.keys[new]
    at = nodes.disks[0].residency(versions[0]).remote.offset
    nodes.s3.keys[new] = (data[:at] + bytes((data[at] ^ 1,))
                          + data[at + 1:]), metadata
    copy = proven(nodes, versions[0])
    assert versions[0].key in copy.key


def test_what_nobody_has_is_sent_again(nodes):
    versions, second = late(nodes)
    for key in (*nodes.bundles(), *own_keys(nodes, versions)):
        del nodes.s3.keys[key]
    with pytest.raises(NotProven):
        proven(nodes, versions[0])
    for version in versions[1:]:
        nodes.disks[1].drop_local(version)
    with pytest.raises((NotProven, RemoteCorrupt)):
        proven(nodes, versions[1])
    nodes.run(100)
    assert nodes.disks[1].residency(versions[0]).remote.key in nodes.s3.keys


def test_of_two_copies_one_goes(nodes):
    versions, second = late(nodes)
    bundle, = nodes.bundles()
    for version, name in zip(versions, NAMES):
        nodes.disks[1].drop_local(version)
        nodes.read(1, version, name)
        # In the meantime.
        assert version.key in nodes.disks[1].residency(version).remote.key
    gateway = nodes.gateways[0]
    gateway.collect(Wish(everything=True))
    assert len(own_keys(nodes, versions)) == 3
    nodes.run(1300, 20.0)
    assert nodes.keys(1, versions) == {bundle}
    counts = gateway.collect(Wish(everything=True))
    assert counts.doubled == 3 and counts.removed == 3
    assert not own_keys(nodes, versions)
    for version, name in zip(versions, NAMES):
        nodes.disks[1].drop_local(version)
        nodes.read(1, version, name)


def settled(nodes):
    """All name the new bundle, and keys of their own are there too."""
    versions, second = late(nodes)
    for version in versions:
        proven(nodes, version)
    assert nodes.keys(1, versions) == set(nodes.bundles())
    assert len(own_keys(nodes, versions)) == 3
    return versions, nodes.gateways[0].parts.collector


@pytest.mark.parametrize('why', ['silent', 'lost', 'wrong', 'lacking',
                                 'told', 'just gone'])
def test_both_copies_stay_while_one_may_be_needed(nodes, why):
    versions, collector = settled(nodes)
    bundle, = nodes.bundles()
    first = versions[0]
    if why == 'silent':
        nodes.views[0].away = {1}
    elif why == 'lost':
        del nodes.s3.keys[bundle]
    elif why == 'wrong':
        # Its key has other bytes than the bundle.
        key = nodes.disks[0].put(NAMES[0], b'other', NEW)
        for kind in own_keys(nodes, [first]):
            del nodes.s3.keys[kind]
        nodes.disks[0].unlink(key)
        nodes.s3.keys['p/%s/0/%s/%s' % (
            first.object_hash[-3:], first.object_hash, OLD)] = b'other', {}
    elif why == 'told':
        # Its keeper is about to remove the bundle.
        since.write(nodes.gateways[0].parts.client, since.path_of(bundle),
                    since.Since(set(range(3))), since.Since())
    elif why == 'just gone':
        collector.run(Wish(everything=True, dry_run=True))
        del nodes.s3.keys[bundle]
    else:
        nodes.disks[1].unlink(first)
    before = own_keys(nodes, [first])
    collector.run(Wish(everything=True))
    assert own_keys(nodes, [first]) == before != set()


def test_a_look_removes_nothing(nodes):
    versions, collector = settled(nodes)
    counts = collector.run(Wish(everything=True, dry_run=True))
    assert counts.doubled == 3 and not counts.removed
    assert len(own_keys(nodes, versions)) == 3


def test_large_versions_are_not_asked_about_twice(nodes):
    settled(nodes)
    asked = []
    ask = nodes.views[0].ask
    nodes.views[0].ask = lambda wanted, records=False: asked.append(
        len(wanted)) if records else None or ask(wanted, records)
    nodes.gateways[0].stop()
    counts = nodes.gateway(0, bundle_member_bytes=1).collect(
        Wish(everything=True))
    assert not asked and not counts.doubled and counts.live == 3


def test_a_key_that_all_name_is_nothing_to_ask_about(nodes):
    version = nodes.disks[0].put('o', b'o' * 3000, OLD, class_map=SMALL)
    nodes.gateways[0].enqueue_uploads([Upload(version, '7', True, 1)])
    nodes.replicate(['o'])
    nodes.run(300)
    assert nodes.keys(0, [version]) == nodes.keys(1, [version]) == \
        own_keys(nodes, [version])
    counts = nodes.gateways[0].collect(Wish(everything=True))
    assert counts.live == 1 and not counts.failed
    assert len(own_keys(nodes, [version])) == 1


def test_who_was_sent_apart_is_not_led_back(nodes):
    """S3 had it wrong in the bundle that all others name."""
    versions = nodes.put(NAMES)
    nodes.replicate(NAMES)
    nodes.run(300)
    bundle, = nodes.bundles()
    data, metadata = nodes.s3.keys[bundle]
    at = nodes.disks[0].residency(versions[0]).remote.offset
    nodes.s3.keys[bundle] = (data[:at] + bytes((data[at] ^ 1,))
                             + data[at + 1:]), metadata
    nodes.gateways[1].repair([(versions[0], '7')])
    own = nodes.disks[1].residency(versions[0]).remote
    assert not own.in_bundle
    nodes.run(4000, 20.0)
    assert nodes.disks[1].residency(versions[0]).remote == own


def test_a_stub_that_comes_late_goes_to_the_new_bundle(nodes):
    versions, second = late(nodes)
    bundle, = nodes.bundles()
    disk = nodes.disks[1]
    for version in versions:
        disk.drop_local(version)
    # Its book never heard of them: they come from a handoff.
    for version in versions:
        second.parts.book.let_go(version)
        reply = second.prove_arrival(ProofRequest(
            version, '7', disk.describe(version, '7').etag,
            disk.residency(version)))
        assert version.key in reply.residency.remote.key
        disk.record_remote(version, '7', reply.residency.remote)
    nodes.run(1300, 20.0)
    assert nodes.keys(1, versions) == {bundle}


def test_the_key_that_all_name():
    here, there = Answer(OLD, 'p/a'), Answer(OLD, 'p/b')
    for answers, key in (
            ([here, here], 'p/a'), ([here], 'p/a'), ([here, there], ''),
            ([here, None], ''), ([None], ''), ([], ''),
            ([here, Answer(OLD)], ''), ([Answer(OLD)], ''),
            ([here, Answer('')], ''), ([Answer(NEW, 'p/a')], ''),
            ([here, Answer(OLD, 'p/a', True)], 'p/a')):
        assert agreed_key(OLD, answers) == key, answers
