"""Replicator (ssync) and reconstructor with nothing but stubs to copy."""

from __future__ import annotations

import pytest
from support import md5, quarantined
from support.rigs import remote_stubs as stubs
from swift.obj.diskfile import read_metadata

from swift_dss.core.residency import Tier
from swift_dss.wire import names

pytestmark = pytest.mark.cluster


def test_emptied_devices_are_filled_from_stubs(any_objects, cluster):
    made = any_objects.make_all(stubs.ALL_STUBS)
    lost = [any_objects.copies(obj)[0] for obj in made]
    before = len(quarantined(cluster))
    for copy in lost:
        any_objects.lose(copy)
    any_objects.heal()
    for obj, victim in zip(made, lost):
        fresh = any_objects.copy_on(obj, victim.device)
        assert fresh is not None, 'nothing came back of %s' % obj.name
        _judge(any_objects, obj, victim, fresh)
        for copy in any_objects.copies_but(obj, victim.device):
            assert copy.residency.is_stub, 'a source was warmed by a copy'
        assert any_objects.get(obj) == obj.body
        stubs.say('%s of %s: whole copy rebuilt from stubs, class kept' % (
            'reconstructor' if any_objects.policy_name == 'dss-ec'
            else 'ssync', obj.name.rpartition('-')[0]))
    assert len(quarantined(cluster)) == before


def _judge(objects, obj, lost, fresh):
    """The new copy is the old one, byte for byte, class and all."""
    assert (fresh.content_length, fresh.etag) == (
        lost.content_length, lost.etag)
    # Written here by class, so an HDD that it leans on is its own.
    assert fresh.is_whole or fresh.residency.is_stub
    assert fresh.capacity_id == (
        objects.capacity_id(fresh.device)
        if fresh.residency.tiers & Tier.HDD else '')
    assert _map(fresh) == _map(objects.copies_but(obj, fresh.device)[0])
    answer = objects.direct(obj, fresh)
    assert answer.status == 200 and not answer.cut
    assert md5(answer.body) == lost.etag
    head = objects.direct(obj, fresh, 'HEAD')
    assert any(name.startswith(names.SYSMETA_MAP.lower())
               for name in head.headers)


def _map(copy):
    with open(copy.path, 'rb') as source:
        return {name: value for name, value
                in read_metadata(source).items()
                if name.startswith(names.SYSMETA_MAP)}


def test_a_whole_round_of_daemons_moves_nothing(
        objects, ec_objects, cluster):
    """Replicas may lie on different tiers and still be in sync."""
    made = [(kind, obj) for kind in (objects, ec_objects)
            for obj in kind.make_all(stubs.ALL_STUBS)]
    before = _residencies(made)
    recalls = stubs.cloud_reads(cluster)
    quarantines = len(quarantined(cluster))
    for name in ('object-replicator', 'object-reconstructor',
                 'object-updater', 'object-auditor'):
        cluster.run_once(name)
    assert _residencies(made) == before
    assert stubs.cloud_reads(cluster) == recalls
    assert len(quarantined(cluster)) == quarantines
    stubs.say('replicator, reconstructor, updater, auditor: %d stubs, 0 '
              'false quarantines, 0 recalls' % len(before))
    for kind, obj in made:
        assert kind.get(obj) == obj.body


def _residencies(made):
    return {copy.path: copy.residency for kind, obj in made
            for copy in kind.copies(obj)}
