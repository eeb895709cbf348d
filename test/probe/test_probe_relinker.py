"""Increasing the partition power over whole objects and stubs."""

from __future__ import annotations

import os

import pytest
from support import quarantined
from support.rigs import remote_stubs as stubs
from swift.common.ring.builder import RingBuilder

from swift_dss.aio import processes
from swift_dss.core.residency import Tier

pytestmark = pytest.mark.cluster


def test_a_partition_power_increase_keeps_every_byte(
        any_objects, cluster, swift):
    made = _made(any_objects)
    recalls = stubs.cloud_reads(cluster)
    quarantines = len(quarantined(cluster))
    ring = _Ring(cluster, any_objects.policy)
    links = _links(any_objects, made)
    assert links == 3 * len(made)
    _read_local(any_objects, made)

    ring.change('prepare_increase_partition_power')
    _relink(cluster, any_objects, 'relink')
    assert _links(any_objects, made) == 2 * links
    _read_local(any_objects, made)
    _move_some(cluster, any_objects, made, refused=True)
    _read_local(any_objects, made)

    ring.change('increase_partition_power')
    cluster.restart('proxy-server')
    _read_local(any_objects, made)
    _move_some(cluster, any_objects, made, refused=True)
    _relink(cluster, any_objects, 'cleanup')
    _read_local(any_objects, made)

    ring.change('finish_increase_partition_power')
    cluster.restart('proxy-server')
    # One name each, all in the new partitions; moves work again.
    assert _links(any_objects, made) == links
    _move_some(cluster, any_objects, made, refused=False)
    _read_local(any_objects, made)
    assert stubs.cloud_reads(cluster) == recalls
    cluster.run_once('object-auditor')
    any_objects.heal()
    assert stubs.cloud_reads(cluster) == recalls
    assert len(quarantined(cluster)) == quarantines
    for obj in made:
        assert any_objects.get(obj) == obj.body
    stubs.say('relinker, %s: %d data files relinked and cleaned, moves '
              'refused meanwhile, 0 false quarantines, 0 recalls' % (
                  any_objects.policy_name, links))


def _made(objects):
    """Objects that the increase moves: those of the first half of
    partition 0 stay where they are, with one name."""
    states = ('whole', 'whole') + stubs.ALL_STUBS + stubs.LOCAL_STUBS
    made = objects.make_all(states)
    for at, state in enumerate(states):
        while objects.copies(made[at])[0].partition == '0':
            made[at] = objects.make(state)
    return made


class _Ring:
    """The builder of one storage policy's ring."""

    def __init__(self, cluster, policy):
        self._base = cluster.conf.path(
            'etc', 'object-%d' % policy if policy else 'object')

    def change(self, step):
        """Take one step of the increase and write the ring."""
        builder = RingBuilder.load(self._base + '.builder')
        assert getattr(builder, step)(), step
        builder.save(self._base + '.builder')
        builder.get_ring().save(self._base + '.ring.gz')


def _relink(cluster, objects, action):
    conf = cluster.conf
    log = os.path.join(conf.log, 'object-relinker.log')
    child = processes.spawn(
        conf.root, 'object-relinker-once', log,
        ['-m', 'swift_dss.aio.run', conf.etc, 'object-relinker', action,
         '--swift-dir', conf.etc, '--devices', conf.path('devices'),
         '--skip-mount-check', '--policy', str(objects.policy)])
    assert child.wait(120) == 0, processes.tail(log)


def _links(objects, made):
    """How many names all data files of some objects have together."""
    links = {}
    for obj in made:
        for copy in objects.copies(obj):
            stat = os.stat(copy.path)
            # An inode's number is unique on its own device only.
            links[stat.st_dev, stat.st_ino] = stat.st_nlink
    return sum(links.values())


def _read_local(objects, made):
    """What lies on this node reads fine, without going to the cloud."""
    for obj in made:
        if not objects.all_remote(obj):
            assert objects.get(obj) == obj.body, obj.name
        else:
            head = objects.swift.head_object(obj.container, obj.name)
            assert int(head['content-length']) == len(obj.body)


def _move_some(cluster, objects, made, refused):
    """Demote a whole object and promote a stub, if that is allowed."""
    whole, stub = made[1], made[-2]
    for verb, obj, tiers in (('demote', whole, Tier.HDD),
                             ('promote', stub, Tier.SSD | Tier.HDD)):
        counts = stubs.admin(cluster, verb, object=obj.path)
        assert bool(counts['failed']) == refused, counts
        for copy in objects.copies(obj):
            assert refused or copy.residency.tiers == tiers
