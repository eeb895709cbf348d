"""Drives that are lost, or not there for a while."""

from __future__ import annotations

import contextlib
import os
import subprocess

import pytest
from support import md5, quarantined, wait_until
from support.rigs import remote_stubs as stubs

from swift_dss.aio import storage
from swift_dss.core.residency import Tier
from swift_dss.io.capacity import Capacity

pytestmark = [pytest.mark.cluster, pytest.mark.root]
DEVICE = 'd2'


def test_a_lost_ssd_is_rebuilt_from_the_other_copies(any_objects, loops):
    """An empty file system takes its place, as after a swap of drives."""
    made = any_objects.make_all(('whole',) + stubs.ALL_STUBS)
    lost = [(obj, copy) for obj in made
            for copy in any_objects.copies(obj) if copy.device == DEVICE]
    assert lost, 'nothing lay on the lost device'
    before = set(quarantined(loops))
    _replace(loops, loops.conf.path('devices', DEVICE), 'ssd')
    for obj in made:
        assert any_objects.get(obj) == obj.body
    _heal_all(any_objects, loops)
    for obj, old in lost:
        fresh = any_objects.copy_on(obj, DEVICE)
        assert fresh is not None and fresh.etag == old.etag
        reply = any_objects.direct(obj, fresh)
        assert reply.status == 200 and md5(reply.body) == old.etag
    assert not set(quarantined(loops)) - before
    _settled(any_objects)
    stubs.say('lost SSD, %s: %d copies rebuilt, 0 false quarantines' % (
        any_objects.policy_name, len(lost)))


@pytest.mark.damage
def test_a_lost_hdd_is_rebuilt_from_the_other_copies(any_objects, loops):
    made = _made_with_a_leaning_copy(any_objects)
    on_ssd_too = any_objects.make(stubs.HDD)
    any_objects.promote(on_ssd_too)
    leaning = [(obj, copy) for obj in made
               for copy in any_objects.copies(obj)
               if copy.device == DEVICE and _leans(copy)]
    assert leaning, 'nothing lay on the lost HDD'
    mount = loops.conf.path('hdd', DEVICE)
    old_id = any_objects.capacity_id(DEVICE)
    _replace(loops, mount, 'hdd')
    Capacity(mount, DEVICE).initialise()
    assert any_objects.capacity_id(DEVICE) != old_id
    before = set(quarantined(loops))
    for obj in made + [on_ssd_too]:
        assert any_objects.get(obj) == obj.body
    loops.run_once('object-auditor')
    # The daemon asks the other primaries first.
    wait_until(lambda: all(any_objects.copy_on(obj, DEVICE) is None
                           for obj, _ in leaning), 60,
               'the daemon to put them aside')
    new = set(quarantined(loops)) - before
    assert all('/%s/' % DEVICE in path for path in new)
    # What has its bytes elsewhere has lost nothing and stays.
    for obj in made + [on_ssd_too]:
        if obj.name not in [each.name for each, _ in leaning]:
            assert len(any_objects.copies(obj)) == 3
    any_objects.heal()
    for obj, old in leaning:
        fresh = any_objects.copy_on(obj, DEVICE)
        assert fresh is not None and fresh.etag == old.etag
        assert fresh.capacity_id in ('', any_objects.capacity_id(DEVICE))
        reply = any_objects.direct(obj, fresh)
        assert reply.status == 200 and md5(reply.body) == old.etag
    any_objects.settle()
    any_objects.demote(on_ssd_too)
    assert any_objects.get(on_ssd_too) == on_ssd_too.body
    stubs.say('lost HDD, %s: %d copies quarantined and rebuilt, those with '
              'bytes elsewhere untouched' % (any_objects.policy_name,
                                             len(leaning)))


def test_an_unmounted_hdd_is_unavailable_and_comes_back(
        any_objects, loops):
    made = _made_with_a_leaning_copy(any_objects)
    # What S3 has as well is not missed.
    backed = any_objects.make(stubs.BACKED)
    while any_objects.copy_on(backed, DEVICE) is None:
        backed = any_objects.make(stubs.BACKED)
    made.append(backed)
    before = len(quarantined(loops))
    mount = loops.conf.path('hdd', DEVICE)
    asked = 0
    with _unmounted(loops, mount, 'hdd'):
        for obj in made:
            copy = any_objects.copy_on(obj, DEVICE)
            if copy is not None:
                leans = _leans(copy)
                asked += leans
                reply = any_objects.direct(obj, copy)
                assert reply.status == (507 if leans else 200), obj.name
            assert any_objects.get(obj) == obj.body
        assert asked, 'nothing lay on the unmounted HDD'
        for name in ('object-auditor', 'object-replicator',
                     'object-reconstructor'):
            loops.run_once(name)
        assert len(quarantined(loops)) == before
        _put_and_read(any_objects)
        assert os.listdir(mount) == [], 'written under the mount point'
    for obj in made:
        copy = any_objects.copy_on(obj, DEVICE)
        if copy is not None:
            reply = any_objects.direct(obj, copy)
            assert (reply.status, md5(reply.body)) == (
                200, copy.etag), obj.name
    _settled(any_objects)
    stubs.say('unmounted HDD, %s: %d copies answered 507, others served, 0 '
              'false quarantines' % (any_objects.policy_name, asked))


def _made_with_a_leaning_copy(objects):
    """An object of each kind, and more until one needs the HDD of
    ``DEVICE``: the ring, not we, says where copies go."""
    made = objects.make_all(('whole',) + stubs.ALL_STUBS)
    while not any(copy.device == DEVICE and _leans(copy)
                  for obj in made for copy in objects.copies(obj)):
        assert len(made) < 40, 'the ring gives nothing to %s' % DEVICE
        made.append(objects.make(stubs.HDD))
    return made


def _leans(copy):
    return any(extent.tiers == Tier.HDD for extent in copy.residency.extents)


def _put_and_read(objects):
    """Writes that belong on the HDD land on the SSD meanwhile."""
    objects.settle()
    name = 'meanwhile'
    objects.swift.put_object(objects.container, name, b'x' * 100000, headers={
        'X-DSS-Object-Class': 'slow'})
    assert objects.swift.get_object(objects.container, name)[1] == \
        b'x' * 100000


def _settled(objects):
    """The keeper sees the device again: moves work."""
    obj = objects.make('whole')

    def moved():
        counts = stubs.admin(objects.cluster, 'demote', object=obj.path)
        return not counts['failed']
    wait_until(moved, 30, 'demotion after the drive came back')
    assert objects.get(obj) == obj.body


def _heal_all(objects, cluster):
    for name in ('account-replicator', 'container-replicator'):
        cluster.run_once(name)
    objects.heal()


def _umount(mount):
    return subprocess.run(['umount', mount],
                          capture_output=True).returncode == 0


def _loop(cluster, kind):
    image = cluster.conf.path('images', '%s-%s.img' % (kind, DEVICE))
    return storage.loops(cluster.conf.root)[image]


def _replace(cluster, mount, kind):
    """A new, empty drive in the place of an old one."""
    device = _loop(cluster, kind)
    wait_until(lambda: _umount(mount), 30, mount + ' unmounted')
    storage.run('mkfs.xfs', '-q', '-f', device)
    storage.run('mount', '-t', 'xfs', '-o', 'noatime', device, mount)


@contextlib.contextmanager
def _unmounted(cluster, mount, kind):
    device = _loop(cluster, kind)
    wait_until(lambda: _umount(mount), 30, mount + ' unmounted')
    try:
        yield
    finally:
        storage.run('mount', '-t', 'xfs', '-o', 'noatime', device, mount)
