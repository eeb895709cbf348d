"""Damage of what only we write: it is found, and never served."""

from __future__ import annotations

import os

import pytest
from support import quarantined, wait_until
from support.rigs import remote_stubs as stubs

from swift_dss.wire import names

pytestmark = [pytest.mark.cluster, pytest.mark.damage]


def _flip(copy, objects):
    """One bit of the record."""
    raw = bytearray(os.getxattr(copy.path, names.XATTR_RESIDENCY))
    raw[len(raw) // 2] ^= 1
    os.setxattr(copy.path, names.XATTR_RESIDENCY, bytes(raw))


def _remove(copy, objects):
    """No record at all."""
    os.removexattr(copy.path, names.XATTR_RESIDENCY)


def _swap(copy, objects):
    """The record of another object."""
    other = objects.make(stubs.HDD, size=stubs.SIZE + 1000)
    raw = os.getxattr(objects.copies(other)[0].path, names.XATTR_RESIDENCY)
    os.setxattr(copy.path, names.XATTR_RESIDENCY, raw)


def _stray(copy, objects):
    """The record of another node's HDD."""
    os.setxattr(copy.path, names.XATTR_CAPACITY_ID, b'0' * 32)


def _grow(copy, objects):
    """A size that neither a whole file nor a stub has."""
    os.truncate(copy.path, copy.content_length + 2)


DAMAGES = (_flip, _remove, _swap, _stray, _grow)


def test_a_damaged_record_fails_closed_and_is_healed(any_objects, cluster):
    made = any_objects.make_all([stubs.HDD] * len(DAMAGES))
    victims = []
    for obj, damage in zip(made, DAMAGES):
        victim = any_objects.copies(obj)[0]
        victims.append(victim)
        damage(victim, any_objects)
        before = set(quarantined(cluster))
        reply = any_objects.direct(obj, victim)
        assert reply.status >= 400, damage
        assert len(reply.body) < 4096 and obj.body[:64] not in reply.body
        # Of what the HDD should have, the tier daemon asks the other primaries
        # first.
        new = wait_until(lambda before=before: set(
            quarantined(cluster)) - before, 60, damage.__name__)
        assert all('/%s/' % victim.device in path for path in new)
        assert any_objects.get(obj) == obj.body
    any_objects.heal()
    for obj, victim in zip(made, victims):
        healed = any_objects.copy_on(obj, victim.device)
        assert healed is not None and healed.is_whole
        assert any_objects.direct(obj, healed).status == 200
    stubs.say('quarantine, %s: %d kinds of damage refused, served by '
              'others, healed' % (any_objects.policy_name, len(made)))


def test_a_damaged_record_of_a_whole_file_costs_nothing(
        any_objects, cluster):
    """All bytes are there: the file is served, and is not damage."""
    obj = any_objects.make(stubs.HDD)
    any_objects.promote(obj)
    before = set(quarantined(cluster))
    for copy in any_objects.copies(obj):
        _flip(copy, any_objects)
    for copy in any_objects.copies(obj):
        assert any_objects.direct(obj, copy).status == 200
    assert any_objects.get(obj) == obj.body
    cluster.run_once('object-auditor')
    assert set(quarantined(cluster)) == before
