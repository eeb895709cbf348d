"""A bundle stays while sending members apart costs more than it frees."""

from __future__ import annotations

import pytest
from test_bundle_keys import write_keys
from test_bundles_of_others import NAMES, NEW, Nodes

from swift_dss.gateway.collect.keys import Wish

DAY = 86400.0
MANY = ['o%d' % number for number in range(12)]


class Paying(Nodes):
    """A PUT costs as much as 20,000 bytes."""

    def gateway(self, number, **conf):
        return super().gateway(number, **dict(
            {'bundle_put_bytes': 20000}, **conf))

    def own_keys(self, versions):
        return {key for key in self.s3.keys
                for version in versions if version.key in key}

    def move(self, version, name):
        """Only the other node has it from now on."""
        self.travel(version, name)
        self.disks[0].unlink(version)


@pytest.fixture
def nodes(tmp_path):
    made = Paying(tmp_path)
    yield made
    made.stop()


def test_a_bundle_is_not_rewritten_for_less_than_that_costs(nodes):
    versions = nodes.put(MANY)
    key, = nodes.bundles()
    # 48,000 bytes are dead, and three PUTs cost 60,000.
    for version, name in zip(versions[:3], MANY):
        nodes.move(version, name)
    for version in versions[5:]:
        nodes.delete(version)
    nodes.run(2 * DAY, 600.0)
    assert nodes.bundles() == [key]
    assert not nodes.own_keys(versions)
    for version, name in zip(versions[:3], MANY):
        nodes.read(1, version, name)
    # One is needed no more: two PUTs cost 40,000.
    for disk in nodes.disks:
        disk.tombstone(versions[0], NEW)
    nodes.run(DAY, 600.0)
    assert nodes.own_keys(versions[:3]) == nodes.own_keys(versions[1:3])
    assert len(nodes.own_keys(versions[1:3])) == 2
    assert nodes.bundles() and key not in nodes.bundles()
    # Those two are in one place alone.
    assert nodes.gateways[0].status()['bundles']['live'] == 2
    for version, name in zip(versions[1:3], MANY[1:]):
        nodes.read(1, version, name)


def test_a_bundle_that_was_too_dear_goes_with_the_last_of_its_members(nodes):
    versions = nodes.put(MANY)
    key, = nodes.bundles()
    for version, name in zip(versions[:3], MANY):
        nodes.move(version, name)
    for version in versions[5:]:
        nodes.delete(version)
    nodes.run(60)
    assert nodes.bundles() == [key]
    for version in versions[:5]:
        nodes.delete(version)
    nodes.run(60)
    assert not nodes.s3.listed_keys()


def half_dead(nodes):
    """A bundle that is to be rewritten, and the other node, which knows
    nothing of a new one: it has no gateway.

    :returns: the versions, the first six alive; the key
    """
    versions = nodes.put(MANY)
    key, = nodes.bundles()
    for version, name in zip(versions[:6], MANY):
        nodes.travel(version, name)
    for version in versions[6:]:
        nodes.delete(version)
    return versions, key


def held(nodes):
    """The same, where a rewrite is too dear."""
    nodes.gateways.pop(0).stop()
    # Six PUTs: less than all of its bytes, more than those that go for good.
    nodes.gateway(0, bundle_put_bytes=12000)
    return half_dead(nodes)


def test_who_is_late_holds_the_old_bundle(nodes):
    versions, old = held(nodes)
    nodes.run(DAY, 600.0)
    assert old in nodes.bundles() and len(nodes.bundles()) == 2
    assert not nodes.own_keys(versions)
    # All but one follow.
    for version in versions[1:6]:
        nodes.disks[1].record_remote(
            version, '7', nodes.disks[0].residency(version).remote)
    nodes.run(DAY, 600.0)
    assert old not in nodes.bundles()
    assert nodes.own_keys(versions) == nodes.own_keys(versions[:1]) != set()
    for version, name in zip(versions[:6], MANY):
        nodes.read(1, version, name)


def test_a_bundle_that_was_held_goes_with_the_last_of_its_members(nodes):
    versions, old = held(nodes)
    nodes.run(100)
    assert old in nodes.bundles() and len(nodes.bundles()) == 2
    wish = Wish(everything=True)
    # It is this node's to say and to write anew, and it is too dear.
    keys = set(nodes.s3.keys)
    assert nodes.gateways[0].collect(wish).bundles_dead == 0
    assert nodes.s3.keys.keys() == keys
    for version in versions[1:6]:
        nodes.delete(version)
    assert nodes.gateways[0].collect(wish).bundles_dead == 0
    nodes.delete(versions[0])
    counts = nodes.gateways[0].collect(wish)
    assert (counts.bundles_dead, counts.removed) == (1, 1)
    assert old not in nodes.bundles()
    nodes.run(100)
    assert not nodes.s3.listed_keys()


def test_nobody_is_waited_for_longer_than_for_one_that_is_silent(nodes):
    versions, old = half_dead(nodes)
    nodes.run(8 * DAY, 3600.0)
    assert old not in nodes.bundles()
    for version, name in zip(versions[:6], MANY):
        nodes.read(1, version, name)


def test_who_does_not_answer_has_nothing_sent_for_others(nodes):
    """The old bundle stays for it: they may follow until then."""
    versions = nodes.put(MANY)
    old, = nodes.bundles()
    for version, name in zip(versions[:2], MANY):
        nodes.travel(version, name)
    for version in versions[2:]:
        nodes.delete(version)
    nodes.run(14)
    second = nodes.disks[1]
    second.record_remote(versions[1], '7', nodes.disks[0].residency(
        versions[1]).remote)
    assert second.residency(versions[1]).remote.key != old
    for view in nodes.views:
        view.disks = nodes.disks + [second]
        view.away = {2}
    nodes.run(DAY, 600.0)
    assert old in nodes.bundles() and not nodes.own_keys(versions)
    for view in nodes.views:
        view.away = set()
    nodes.run(DAY, 600.0)
    assert nodes.own_keys(versions) == nodes.own_keys(versions[:1]) != set()
    assert old not in nodes.bundles()


def test_a_new_key_is_had_at_any_cost(tmp_path):
    path = str(tmp_path / 'keys')
    write_keys(path, 'k1', 'k1')
    made = Paying(tmp_path)
    made.gateways.pop(0).stop()
    gateway = made.gateway(0, key_file=path)
    versions = made.put(NAMES)
    old, = made.bundles()
    for version, name in zip(versions[:3], NAMES):
        made.move(version, name)
    write_keys(path, 'k2', 'k1', 'k2')
    assert gateway.rekey(versions[5], '7')
    gateway.rekey_bundles()
    made.run(200)
    # The old one is held for those that the other node lacks.
    assert len(made.bundles()) == 2 and old in made.bundles()
    assert made.own_keys(versions) == made.own_keys(versions[:3])
    assert len(made.own_keys(versions)) == 3
    assert not gateway.bundles_to_rekey()
    made.stop()
