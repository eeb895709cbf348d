"""Swift's object auditor over versions whose bytes lie elsewhere."""

from __future__ import annotations

import os

import pytest
import stubs
from support import quarantined

pytestmark = pytest.mark.cluster


def test_stubs_are_neither_quarantined_nor_recalled(any_objects, cluster):
    made = any_objects.make_all(('whole',) + stubs.ALL_STUBS)
    before = {copy.path: copy.residency for one in made
              for copy in any_objects.copies(one)}
    quarantines, recalls = len(quarantined(cluster)), \
        stubs.cloud_reads(cluster)
    cluster.run_once('object-auditor')
    assert len(quarantined(cluster)) == quarantines
    assert stubs.cloud_reads(cluster) == recalls
    after = {copy.path: copy.residency for one in made
             for copy in any_objects.copies(one)}
    assert after == before
    stubs.say('auditor, %s: %d stubs of %d files, '
              '0 false quarantines, 0 recalls' % (
                  any_objects.policy_name,
                  sum(one.is_stub for one in before.values()), len(before)))
    for one in made:
        assert any_objects.get(one) == one.body
    # The judge can see: a client's read does go to the cloud.
    assert stubs.cloud_reads(cluster) > recalls


@pytest.mark.damage
@pytest.mark.parametrize('state', stubs.LOCAL_STUBS)
def test_rot_on_the_hdd_is_found_and_healed(any_objects, cluster, state):
    one = any_objects.make(state)
    victim = any_objects.copies(one)[0]
    damaged = any_objects.capacity_path(victim)
    middle = victim.content_length // 2
    with open(damaged, 'r+b') as target:
        target.seek(middle)
        byte = target.read(1)
        target.seek(middle)
        target.write(bytes([byte[0] ^ 0x10]))
        os.fsync(target.fileno())
    before = set(quarantined(cluster))
    cluster.run_once('object-auditor')
    new = set(quarantined(cluster)) - before
    assert new, 'the auditor did not see a flipped bit'
    assert all('/%s/' % victim.device in path for path in new)
    assert any_objects.copy_on(one, victim.device) is None
    assert any_objects.get(one) == one.body
    any_objects.heal()
    healed = any_objects.copy_on(one, victim.device)
    assert healed is not None and healed.is_whole
    assert any_objects.get(one) == one.body
    stubs.say('auditor, %s, %s: 1 flipped bit on the HDD, 1 quarantined, '
              'healed from the others' % (any_objects.policy_name, state))
