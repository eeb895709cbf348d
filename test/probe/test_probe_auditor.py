"""Swift's object auditor over versions whose bytes lie elsewhere."""

from __future__ import annotations

import os

import pytest
from support import md5, quarantined, wait_until
from support.rigs import remote_stubs as stubs

from swift_dss.core.residency import Tier

pytestmark = pytest.mark.cluster


def test_stubs_are_neither_quarantined_nor_recalled(any_objects, cluster):
    made = any_objects.make_all(('whole',) + stubs.ALL_STUBS)
    before = {copy.path: copy.residency for obj in made
              for copy in any_objects.copies(obj)}
    quarantines, recalls = len(quarantined(cluster)), \
        stubs.cloud_reads(cluster)
    cluster.run_once('object-auditor')
    assert len(quarantined(cluster)) == quarantines
    assert stubs.cloud_reads(cluster) == recalls
    after = {copy.path: copy.residency for obj in made
             for copy in any_objects.copies(obj)}
    assert after == before
    stubs.say('auditor, %s: %d stubs of %d files, '
              '0 false quarantines, 0 recalls' % (
                  any_objects.policy_name,
                  sum(residency.is_stub for residency in before.values()),
                  len(before)))
    for obj in made:
        assert any_objects.get(obj) == obj.body
    # The judge can see: a client's read does go to the cloud.
    assert stubs.cloud_reads(cluster) > recalls


@pytest.mark.damage
def test_rot_on_the_hdd_is_found_and_healed(any_objects, cluster):
    made = any_objects.make_all(stubs.LOCAL_STUBS)
    victims = [any_objects.copies(obj)[0] for obj in made]
    for victim in victims:
        _flip_a_bit(any_objects.capacity_path(victim),
                    victim.content_length // 2)
    before = set(quarantined(cluster))
    cluster.run_once('object-auditor')

    def hashes():
        return {path.split(os.sep)[-2]
                for path in set(quarantined(cluster)) - before}
    # The daemon asks the other primaries first.
    wait_until(lambda: len(hashes()) == len(victims), 60,
               'the daemon to put them aside')
    for obj, victim in zip(made, victims):
        assert any_objects.copy_on(obj, victim.device) is None
        assert len(any_objects.copies(obj)) == 2
        assert any_objects.get(obj) == obj.body
    any_objects.heal()
    for obj, victim in zip(made, victims):
        healed = any_objects.copy_on(obj, victim.device)
        assert healed is not None and healed.etag == victim.etag
        reply = any_objects.direct(obj, healed)
        assert (reply.status, md5(reply.body)) == (200, victim.etag)
    stubs.say('auditor, %s: %d flipped bits on HDDs, %d quarantined, '
              'healed from the others' % (
                  any_objects.policy_name, len(made), len(victims)))


@pytest.mark.damage
def test_rot_on_the_hdd_is_found_behind_a_sound_ssd(any_objects, cluster):
    obj = any_objects.make('whole')
    any_objects.demote(obj)
    any_objects.promote(obj)
    victim = any_objects.copies(obj)[0]
    path = any_objects.capacity_path(victim)
    _flip_a_bit(path, victim.content_length // 2)
    before = quarantined(cluster)
    cluster.run_once('object-auditor')
    assert quarantined(cluster) == before
    wait_until(lambda: not os.path.exists(path), 10, 'the copy to go')
    # What the SSD's bytes are evicted to is a new copy of them.
    any_objects.demote(obj)
    copy = any_objects.copy_on(obj, victim.device)
    assert copy.residency.is_stub
    reply = any_objects.direct(obj, copy)
    assert (reply.status, md5(reply.body)) == (200, victim.etag)


@pytest.mark.damage
def test_what_an_hdd_lost_comes_from_the_cloud(any_objects, cluster):
    made = any_objects.make_all((stubs.BACKED, stubs.BACKED))
    victims = [any_objects.copies(obj)[0] for obj in made]
    for victim in victims:
        os.unlink(any_objects.capacity_path(victim))
    before = quarantined(cluster)
    # One is found by a reader, one by the auditor.
    reply = any_objects.direct(made[0], victims[0])
    assert (reply.status, md5(reply.body)) == (200, victims[0].etag)
    cluster.run_once('object-auditor')
    assert quarantined(cluster) == before
    for obj, victim in zip(made, victims):
        wait_until(lambda obj=obj, victim=victim: not any_objects.copy_on(
            obj, victim.device).residency.tiers & Tier.HDD, 10,
            'the record of %s' % obj.name)
        assert any_objects.get(obj) == obj.body


def _flip_a_bit(path, offset):
    with open(path, 'r+b') as target:
        target.seek(offset)
        byte = target.read(1)
        target.seek(offset)
        target.write(bytes([byte[0] ^ 0x10]))
        target.flush()
        os.fsync(target.fileno())
