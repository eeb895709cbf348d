"""Keys that nothing needs are found by what is there, and only by that."""

from __future__ import annotations

import os
import random
from dataclasses import replace

import pytest

from test_bundles_of_others import NAMES, Nodes
from test_gateway_deletes import DAY, NEW, OLD, Cluster

from swift_dss.core.errors import BadConfig, TierUnavailable
from swift_dss.core.residency import RemoteCopy
from swift_dss.gateway.bundle import since
from swift_dss.gateway.collect.keys import Wish
from swift_dss.gateway.collect.parts import PARTS, Parts
from swift_dss.gateway.link.client import S3Listed
from swift_dss.gateway.restore.catalog import Catalog
from swift_dss.strategy.agreement import Answer, is_absent, is_quarantined
from swift_dss.wire.layout import parse_remote_key, remote_key

ALL = Wish(everything=True)


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


def lose_queue(trio, number, root):
    """Its disk is gone; the daemon starts with a new one."""
    trio.gateways[number].stop()
    for name in os.listdir(str(root / str(number))):
        if name.startswith('gateway.db'):
            os.unlink(str(root / str(number) / name))
    trio.gateways[number] = trio.gateway(root, number)


def collect(trio, wish=ALL, number=0):
    return trio.gateways[number].collect(wish)


def test_what_all_primaries_have_something_newer_of_goes(trio, tmp_path):
    kept, gone = trio.put('kept'), trio.put('gone')
    trio.delete(gone, [0, 1, 2])
    for number in range(3):
        lose_queue(trio, number, tmp_path)
    trio.s3.keys['p/%s.meta' % remote_key('', gone)] = b'x', {}
    counts = collect(trio, Wish(dry_run=True, everything=True))
    assert (counts.live, counts.dead, counts.removed) == (1, 1, 0)
    assert trio.has(gone)
    counts = collect(trio)
    assert (counts.live, counts.dead, counts.removed) == (1, 1, 1)
    assert not trio.has(gone) and trio.has(kept)
    assert collect(trio).dead == 0


def test_a_new_queue_learns_what_the_old_one_knew(trio, tmp_path):
    version = trio.put('o')
    trio.delete(version, [0])
    lose_queue(trio, 0, tmp_path)
    trio.run(100)
    assert trio.deletes() == [0, 0, 0]
    gateway = trio.gateways[0]
    assert not gateway.status()['collect']['reconciled']
    trio.now += 100
    gateway.parts.rounds.look()
    assert gateway.status()['collect']['reconciled']
    assert trio.has(version) and trio.deletes() == [1, 0, 0]
    for number in (1, 2):
        trio.disks[number].tombstone(version, NEW)
    trio.run(200)
    assert not trio.has(version)


def test_a_pass_is_made_now_and_then(trio):
    gateway = trio.gateways[0]
    trio.now += 100
    gateway.parts.rounds.look()
    version = trio.put('o')
    for disk in trio.disks:
        disk.tombstone(version, NEW)
    gateway.parts.rounds.look()
    assert trio.has(version)
    trio.now += 4 * DAY
    gateway.parts.rounds.look()
    assert not trio.has(version)


def test_passes_that_cannot_be_noted_wait_longer_and_longer(
        trio, monkeypatch):
    trio.put('o')
    gateway = trio.gateways[0]

    def full(name, value):
        raise TierUnavailable('the disk is full')
    monkeypatch.setattr(gateway.parts.queue, 'mark', full)
    passes = []
    inner = gateway.parts.collector.run
    monkeypatch.setattr(gateway.parts.collector, 'run',
                        lambda wish: passes.append(wish) or inner(wish))
    trio.now += 100
    until = trio.now + 3600
    while trio.now < until:
        trio.now += gateway.parts.rounds.look()
    assert 3 <= len(passes) <= 7


def test_a_wiped_cluster_keeps_its_backup(trio):
    versions = [trio.put('o%d' % number) for number in range(9)]
    for disk in trio.disks:
        for version in versions:
            disk.unlink(version)
    trio.now += 30 * DAY
    counts = collect(trio)
    assert (counts.absent, counts.removed, counts.requeued) == (9, 0, 0)
    counts = collect(trio, ALL._replace(absent=True))
    assert counts.removed == 0 and counts.failed == 1
    assert 'restore' in counts.said[0]
    assert all(map(trio.has, versions))


def test_what_is_absent_goes_if_asked_for_and_old_enough(trio):
    kept = [trio.put('o%d' % number) for number in range(3)]
    gone = trio.put('gone')
    for disk in trio.disks:
        disk.unlink(gone)
    wish = ALL._replace(absent=True)
    assert collect(trio, wish).removed == 0
    assert collect(trio).absent == 1
    trio.now += 8 * DAY
    trio.primaries.away = {1}
    counts = collect(trio, wish)
    assert (counts.silent, counts.absent, counts.removed) == (1, 0, 0)
    trio.primaries.away = set()
    assert collect(trio, wish).removed == 1
    assert not trio.has(gone) and all(map(trio.has, kept))


@pytest.mark.parametrize('older', [False, True])
def test_what_only_a_quarantine_names_is_kept(trio, older):
    """Stock Swift was started by mistake, and took the stubs away."""
    kept = [trio.put('o%d' % number) for number in range(3)]
    hidden = trio.put('hidden')
    for disk in trio.disks:
        disk.unlink(hidden)
        if older:
            disk.put('hidden', b'older', '1600000000.00000')
    trio.disks[1].quarantine(hidden)
    wish = ALL._replace(absent=True)
    trio.now += 8 * DAY
    counts = collect(trio, wish)
    assert (counts.quarantined, counts.absent, counts.removed) == (1, 0, 0)
    assert counts.quarantined_bytes == 4
    assert trio.has(hidden)
    # An operator has removed it, as nobody needs it.
    trio.disks[1].empty_quarantine()
    assert collect(trio, wish).removed == 1
    assert not trio.has(hidden) and all(map(trio.has, kept))


def test_what_was_deleted_since_goes_though_it_is_in_quarantine(trio):
    version = trio.put('o')
    trio.disks[1].quarantine(version)
    for disk in trio.disks:
        disk.tombstone(version, NEW)
    counts = collect(trio)
    assert (counts.dead, counts.quarantined, counts.removed) == (1, 0, 1)


def test_who_cannot_say_what_is_in_quarantine_does_not_call_it_absent():
    """A stock server, or one of a version before."""
    none, mute = Answer(''), Answer('', '', False, None)
    assert is_absent(OLD, [none, none])
    assert not is_absent(OLD, [none, mute])
    assert not is_absent(OLD, [none, Answer('', '', False, OLD)])
    assert not is_quarantined(OLD, [none, mute])
    assert is_quarantined(OLD, [none, mute, Answer('', '', False, OLD)])
    assert is_quarantined(OLD, [none, None, Answer('', '', False, NEW)])
    assert not is_quarantined(NEW, [none, Answer('', '', False, OLD)])
    assert not is_quarantined(OLD, [Answer(NEW), Answer('', '', False, OLD)])


def test_a_refused_write_that_is_lost_is_absent_beside_an_older_version(
        trio):
    """One primary took an overwrite, sent it up and was lost: the client was
    refused, and the others have what was acknowledged."""
    acknowledged = trio.put('o')
    refused = replace(acknowledged, timestamp=NEW)
    key = 'p/' + remote_key('', refused)
    trio.s3.keys[key] = trio.s3.keys['p/' + remote_key('', acknowledged)]
    trio.now += 8 * DAY
    assert collect(trio).absent == 1 and key in trio.s3.keys
    assert collect(trio, ALL._replace(absent=True)).removed == 1
    assert key not in trio.s3.keys and trio.has(acknowledged)


def test_nothing_absent_goes_while_a_restore_is_under_way(trio, tmp_path):
    (tmp_path / '0' / 'restore.json').write_text('{}')
    with pytest.raises(BadConfig):
        collect(trio, ALL._replace(absent=True))
    collect(trio)


def test_a_silent_primary_holds_what_another_has_replaced(trio):
    version = trio.put('o')
    trio.delete(version, [0, 1, 2])
    trio.primaries.away = {2}
    counts = collect(trio)
    assert (counts.held, counts.removed) == (1, 0)
    assert trio.has(version)


def test_keys_of_others_are_counted_and_left(trio):
    for key in ('p/ab', 'p/abc/0/%s/1' % ('f' * 32), 'p/accounts/ab',
                'p/abc/0/%s/%s' % ('a' * 32, OLD)):
        trio.s3.keys[key] = b'', {}
    counts = collect(trio)
    assert counts.foreign == 3 and counts.versions == 0
    assert len(trio.s3.keys) == 4


def test_a_pass_over_a_small_bucket_lists_it_once(trio):
    for number in range(3):
        trio.put('o%d' % number)
    del trio.s3.asked[:]
    assert collect(trio).live == 3
    assert [verb for verb, _ in trio.s3.asked].count('LIST') <= 3


class Pages:
    """A listing of these keys, some a page, and what was asked for."""

    def __init__(self, keys):
        self.keys = sorted(keys)
        self.asked = []

    def page(self, prefix, after=''):
        self.asked.append(after)
        rest = [key for key in self.keys
                if key.startswith(prefix) and key > after]
        return ([S3Listed(key, 1, '') for key in rest[:5]],
                rest[:5][-1] if rest else after, len(rest) <= 5)


def test_parts_have_their_keys_whatever_lies_between():
    dice = random.Random(7)
    for _ in range(300):
        keys = {'p/%02x%d' % (dice.randrange(6), dice.randrange(30))
                for _ in range(dice.randrange(60))} | {
                    'p/bundles/%d' % number for number in range(9)}
        pages = Pages(keys)
        parts = Parts(pages, 'p/')
        wanted = [part for part in PARTS[:8] + ['b9', 'ff']
                  if dice.randrange(2)]
        for part in wanted:
            assert [listed.key for listed in parts.listing(part)] == sorted(
                key for key in keys if key.startswith('p/' + part))


def test_an_empty_part_costs_no_request_and_has_no_key():
    dice = random.Random(8)
    known = 0
    for _ in range(300):
        pages = Pages('p/%02x%d' % (dice.randrange(9), number)
                      for number in range(dice.randrange(30)))
        parts = Parts(pages, 'p/')
        for part in PARTS[:12]:
            asked = len(pages.asked)
            is_empty = parts.is_empty(part)
            assert len(pages.asked) == asked
            assert bool(list(parts.listing(part))) == any(
                key.startswith('p/' + part) for key in pages.keys)
            if is_empty:
                known += 1
                assert len(pages.asked) == asked
                assert not any(key.startswith('p/' + part)
                               for key in pages.keys)
    assert known > 1000


def test_parts_of_others_are_not_listed():
    pages = Pages('p/%s%02d' % (part, number)
                  for part in PARTS[:9] for number in range(20))
    parts = Parts(pages, 'p/')
    assert len(list(parts.listing('00'))) == 20
    assert len(list(parts.listing('08'))) == 20
    assert len(pages.asked) <= 10


def test_one_pass_at_a_time(trio):
    trio.put('o')
    again = []

    def progress(counts):
        with pytest.raises(TierUnavailable):
            collect(trio)
        again.append(counts)
    trio.gateways[0].collect(ALL, progress)
    assert again


def test_a_member_that_moved_away_dies_with_its_version(nodes):
    versions = nodes.put(NAMES)
    gateway = nodes.gateways[0]
    for version, name in zip(versions, NAMES):
        nodes.travel(version, name)
        nodes.disks[0].unlink(version)
    # In the ring's place of the first node another one has it.
    counts = gateway.collect(ALL)
    assert counts.members == 0
    for version in versions[:3]:
        for disk in nodes.disks:
            disk.tombstone(version, NEW)
    counts = gateway.collect(ALL)
    # The first node has a tombstone: nobody told its daemon.
    assert (counts.members, counts.requeued) == (0, 3)
    for version in versions[3:]:
        nodes.disks[1].tombstone(version, NEW)
        nodes.disks[0].put('x' + version.object_hash, b'', OLD)
        nodes.views[0].disks = [nodes.disks[1]]
    counts = gateway.collect(ALL)
    assert counts.members == 3
    nodes.run(100)
    assert not nodes.bundles()


@pytest.mark.parametrize('dry_run', [False, True])
def test_a_note_that_s3_lost_is_written_again(nodes, dry_run):
    nodes.delete(nodes.put(NAMES)[0])
    nodes.run(300)
    key, = nodes.bundles()
    path = since.path_of(key)
    before = since.decode(nodes.s3.keys[path][0])
    assert len(before.dead) == 1
    del nodes.s3.keys[path]
    nodes.gateways[0].collect(Wish(dry_run=dry_run, everything=True))
    nodes.run(300)
    assert (path in nodes.s3.keys) is not dry_run
    if not dry_run:
        assert since.decode(nodes.s3.keys[path][0]) == before


def test_a_bundle_of_nobody_is_told_of_its_dead_and_goes_with_the_last(
        nodes):
    versions = nodes.put(NAMES)
    for version, name in zip(versions, NAMES):
        nodes.travel(version, name)
    # The packer is gone for good; its replicas with it.
    nodes.gateways.pop(0).stop()
    view = nodes.views[1]
    view.disks = [nodes.disks[1]]
    other = nodes.gateway(1)
    key, = nodes.bundles()
    assert other.collect(ALL).bundles_dead == 0
    for version in versions[:2]:
        nodes.disks[1].tombstone(version, NEW)
    counts = other.collect(Wish(dry_run=True, everything=True))
    assert (counts.members, counts.removed) == (2, 0)
    assert not any('.since' in name for name in nodes.s3.keys)
    other.collect(ALL)
    path, = (name for name in nodes.s3.keys
             if name.startswith(key + '.since.'))
    assert len(since.decode(nodes.s3.keys[path][0]).dead) == 2
    held = [member.name for member in Catalog(
        other.parts.conf, other.parts.client).walk()]
    assert sorted(held) == ['/a/c/' + name for name in NAMES[2:]]
    for version in versions[2:]:
        nodes.disks[1].tombstone(version, NEW)
    counts = other.collect(ALL)
    assert (counts.bundles_dead, counts.removed) == (1, 1)
    assert not nodes.s3.listed_keys()


def test_a_bundle_of_nobody_that_is_mostly_dead_gets_a_keeper(nodes):
    versions = nodes.put(NAMES)
    for version, name in zip(versions, NAMES):
        nodes.travel(version, name)
    nodes.gateways.pop(0).stop()
    view = nodes.views[1]
    view.disks = [nodes.disks[1]]
    other = nodes.gateway(1)
    old, = nodes.bundles()
    for version in versions[2:]:
        nodes.disks[1].tombstone(version, NEW)
    assert other.collect(ALL).adopted == 0, 'it may be a new one'
    nodes.now += 2 * DAY
    assert other.collect(ALL).adopted == 1
    nodes.run(100)
    new, = nodes.bundles()
    assert new != old
    for version, name in list(zip(versions, NAMES))[:2]:
        assert nodes.disks[1].residency(replace(
            version, device='sda')).remote.key == new
        nodes.read(1, version, name)


def test_a_young_bundle_of_nobody_is_left_to_its_packer(nodes):
    """Records that are to name it may not be written yet."""
    versions = nodes.put(NAMES)
    for version, name in zip(versions, NAMES):
        nodes.travel(version, name)
    nodes.gateways.pop(0).stop()
    view = nodes.views[1]
    view.disks = [nodes.disks[1]]
    other = nodes.gateway(1)
    nodes.disks[1].record_remote(versions[0], '7', RemoteCopy(
        's3', 'p/elsewhere', 'e', 1.0))
    assert other.collect(ALL).members == 0
    nodes.now += 2 * DAY
    assert other.collect(ALL).members == 1


def without_packer(nodes, names=NAMES):
    """Its stubs are on the other node alone, which knows no bundle."""
    versions = nodes.put(names)
    for version, name in zip(versions, names):
        nodes.travel(version, name)
    nodes.gateways.pop(0).stop()
    nodes.views[1].disks = [nodes.disks[1]]
    return versions, nodes.gateway(1).parts.collector


def test_members_that_are_absent_go_if_asked_for_and_old_enough(nodes):
    """Writes that the lost packer's node had alone."""
    versions, collector = without_packer(nodes)
    wish = ALL._replace(absent=True)
    for number in range(4):
        kept = nodes.disks[1].put('kept%d' % number, b'k', OLD)
        nodes.s3.keys['p/' + remote_key('', kept)] = b'k', {}
    for version in versions[:3]:
        nodes.disks[1].unlink(version)
    nodes.now += 2 * DAY
    assert collector.run(wish).members == 0, 'reclaim_age is 7 days'
    nodes.now += 6 * DAY
    counts = collector.run(ALL)
    assert (counts.members_absent, counts.members_live, counts.removed) == (
        3, 3, 0)
    for version in versions[3:]:
        nodes.disks[1].tombstone(version, NEW)
    bundle, = nodes.bundles()
    assert bundle in collector.run(wish._replace(dry_run=True)).said
    nodes.views[1].away = {0}
    assert collector.run(wish).removed == 0
    nodes.views[1].away = set()
    assert collector.run(wish).removed == 1
    assert not nodes.bundles()


def test_members_that_only_a_quarantine_names_are_kept(nodes):
    versions, collector = without_packer(nodes)
    for number in range(9):
        kept = nodes.disks[1].put('kept%d' % number, b'k', OLD)
        nodes.s3.keys['p/' + remote_key('', kept)] = b'k', {}
    for version in versions:
        nodes.disks[1].unlink(version)
    nodes.disks[1].quarantine(versions[2])
    nodes.now += 8 * DAY
    counts = collector.run(ALL._replace(absent=True))
    assert (counts.members_quarantined, counts.members_absent) == (1, 5)
    assert counts.quarantined_bytes > 0
    assert counts.bundles_dead == 0 and nodes.bundles()


def test_members_of_ones_own_that_only_a_quarantine_names_are_kept(nodes):
    versions = nodes.put(NAMES)
    collector = nodes.gateways[0].parts.collector
    for version in versions[:3]:
        nodes.disks[0].unlink(version)
    nodes.disks[0].quarantine(versions[0])
    nodes.now += 8 * DAY
    counts = collector.run(ALL._replace(absent=True))
    assert (counts.members_quarantined, counts.members_absent,
            counts.members) == (1, 2, 2)


def test_a_wiped_cluster_keeps_its_bundles(nodes):
    versions, collector = without_packer(nodes)
    for version in versions:
        nodes.disks[1].unlink(version)
    nodes.now += 30 * DAY
    counts = collector.run(ALL._replace(absent=True))
    assert (counts.members_absent, counts.removed, counts.failed) == (6, 0, 1)
    assert 'restore' in counts.said[0]
    assert nodes.bundles()


def test_members_of_ones_own_that_are_absent_go_if_asked_for(nodes):
    """This node packed them, and lost its drive before others had them."""
    versions = nodes.put(NAMES)
    collector = nodes.gateways[0].parts.collector
    nodes.travel(versions[0], NAMES[0])
    for version in versions[:3]:
        nodes.disks[0].unlink(version)
    nodes.now += 8 * DAY
    counts = collector.run(ALL)
    assert (counts.members, counts.members_absent, counts.members_live) == (
        0, 2, 4)
    old, = nodes.bundles()
    nodes.views[0].away = {1}
    assert collector.run(ALL._replace(absent=True)).members == 0
    nodes.views[0].away = set()
    assert collector.run(ALL._replace(absent=True)).members == 2
    nodes.run(100)
    new, = nodes.bundles()
    assert new != old
    nodes.read(0, versions[3], NAMES[3])


def test_a_member_that_its_record_has_elsewhere_dies_when_nobody_leans_on_it(
        nodes):
    """Two nodes packed it, and a restore took the other's bundle."""
    versions = nodes.put(NAMES)
    collector = nodes.gateways[0].parts.collector
    for version, name in zip(versions, NAMES):
        nodes.travel(version, name)
    elsewhere = RemoteCopy('s3', 'p/elsewhere', 'e', 1.0)
    for version in versions:
        nodes.disks[0].record_remote(version, '7', elsewhere)
    counts = collector.run(ALL)
    assert (counts.members, counts.members_live) == (0, 6), 'stubs name it'
    for version in versions:
        nodes.disks[1].record_remote(version, '7', elsewhere)
    nodes.views[0].away = {1}
    assert collector.run(ALL).members == 0
    nodes.views[0].away = set()
    assert collector.run(ALL).members == 6
    nodes.run(100)
    assert not nodes.bundles()


def test_the_name_of_a_key_says_what_it_is(trio):
    version = replace(trio.put('o'), device='', frag_index=3)
    key = remote_key('p/', version)
    assert parse_remote_key('p/', key) == (version, '')
    assert parse_remote_key('p/', key + '.meta') == (version, '.meta')
    assert parse_remote_key('q/', key) is None
    assert parse_remote_key('p/', 'p/000' + key[5:]) is None
    assert parse_remote_key('p/', key + '/x') is None
