"""A walk over a device beside those that move what it reads."""

from __future__ import annotations

import hashlib
import os
import time

import pytest
from support.nodes.sample_node import PARTITION
from support.nodes.tier_node import KIB, Rig

from swift_dss.core.errors import TierUnavailable
from swift_dss.core.residency import RemoteCopy
from swift_dss.tier.walk.survey import ORPHAN_SECONDS, Survey


@pytest.fixture
def rig(tmp_path):
    made = Rig(tmp_path, with_hdd=False)
    yield made
    made.close()


def _walk(rig):
    survey = Survey(rig.local, rig.ledger, rig.metrics)
    return survey.device(rig.local.devices.get('sda'), 0, False,
                         lambda said: None)


def _upload_after_look(rig, monkeypatch, place, times=1):
    """S3 gets the version right after somebody has read its files."""
    look, left = rig.local.mover.row, [times]

    def row(*args, **kwargs):
        answer = look(*args, **kwargs)
        if left[0]:
            left[0] -= 1
            rig.local.record_remote(
                place.version, place.partition,
                RemoteCopy('s3', 'key', 'e%d' % left[0], 1.0))
        return answer

    monkeypatch.setattr(rig.local.mover, 'row', row)
    return left


@pytest.mark.parametrize('known', [True, False])
def test_a_walk_does_not_undo_what_was_told_meanwhile(
        rig, monkeypatch, known):
    place = rig.put('one', b'x' * KIB)
    if not known:
        rig.index.remove(place.version)
    left = _upload_after_look(rig, monkeypatch, place)
    assert _walk(rig).versions == 1
    said = rig.index.get(place.version)
    assert not left[0] and said.on_remote
    assert [span.dirty_bytes for span in said.spans] == [0]


def test_an_upload_that_ended_during_a_walk_is_looked_at_now(
        rig, monkeypatch):
    """What the walk queues for it would wait for the version's age."""
    place = rig.put('one', b'x' * KIB)
    del rig.gateway.uploads[:]
    _walk(rig)
    assert rig.gateway.uploads == [(place.version, False)]
    _upload_after_look(rig, monkeypatch, place)
    _walk(rig)
    assert rig.gateway.uploads[1:] == [
        (place.version, False), (place.version, True)]


def test_a_walk_believes_nothing_of_a_device_that_has_gone(
        rig, monkeypatch):
    """Under the name of a device that is not mounted may lie anything."""
    place = rig.put('one', b'x' * KIB)
    rig.index.remove(place.version)
    look = rig.local.mover.row

    def row(*args, **kwargs):
        answer = look(*args, **kwargs)
        os.rename(rig.node.device_path, rig.node.device_path + '.gone')
        return answer

    monkeypatch.setattr(rig.local.mover, 'row', row)
    with pytest.raises(TierUnavailable):
        _walk(rig)
    assert rig.index.get(place.version) is None


def test_nothing_is_missing_on_a_device_that_has_gone(rig):
    place = rig.put('one', b'x' * KIB)
    asked = place.version, place.partition
    assert rig.local.mover.exists(*asked)
    os.unlink(place.data_file())
    assert not rig.local.mover.exists(*asked)
    os.rename(rig.node.device_path, rig.node.device_path + '.gone')
    with pytest.raises(TierUnavailable):
        rig.local.mover.exists(*asked)


def test_tracking_does_not_undo_what_was_told_meanwhile(rig, monkeypatch):
    place = rig.put('one', b'x' * KIB)
    left = _upload_after_look(rig, monkeypatch, place)
    rig.local.mover.track(place.version, place.partition)
    assert not left[0] and rig.index.get(place.version).on_remote


def test_a_walk_corrects_what_the_index_says(rig):
    place = rig.put('one', b'x' * KIB)
    row = rig.index.get(place.version)
    row.spans[0].dirty_bytes, row.on_remote = 0, True
    rig.index.put(row)
    _walk(rig)
    said = rig.index.get(place.version)
    assert not said.on_remote and said.spans[0].dirty_bytes == KIB
    assert said.put_at == row.put_at


def test_bytes_of_what_cannot_be_read_are_no_orphans(tmp_path):
    """The walk knows the file, and not what is in it."""
    rig = Rig(tmp_path)
    try:
        # Of the partition that it lies in, by a ring of 256.
        name = next(name for name in map(str, range(10000)) if hashlib.md5(
            name.encode()).digest()[0] == int(PARTITION))
        place = rig.put(name, b'x' * 64 * KIB)
        rig.local.demote(place.version, place.partition)
        rig.index.remove(place.version)
        os.setxattr(place.data_file(), 'user.dss.residency', b'rotted')
        path = place.capacity.file_path(place.version)
        old = time.time() - 2 * ORPHAN_SECONDS
        os.utime(path, (old, old))
        survey = Survey(rig.local, rig.ledger, rig.metrics)
        counts = survey.device(rig.local.devices.get('sda'), 0, True,
                               lambda said: None)
        assert (counts.unreadable, counts.orphans) == (1, 0)
        assert os.path.exists(path)
    finally:
        rig.close()


@pytest.mark.parametrize('known', [True, False])
def test_a_walk_keeps_no_row_of_what_left_meanwhile(rig, monkeypatch, known):
    """The event of the delete was applied before the walk's row came."""
    place = rig.put('one', b'x' * KIB)
    if not known:
        rig.index.remove(place.version)
    look = rig.local.mover.row

    def row(*args, **kwargs):
        answer = look(*args, **kwargs)
        os.unlink(place.data_file())
        return answer

    monkeypatch.setattr(rig.local.mover, 'row', row)
    _walk(rig)
    assert rig.index.get(place.version) is None


def test_a_walk_forgets_what_left_and_nothing_else(rig):
    places = [rig.put('o%d' % number, b'x' * KIB) for number in range(6)]
    for place in places[::2]:
        os.unlink(place.data_file())
    counts = _walk(rig)
    assert (counts.versions, counts.forgotten) == (3, 3)
    assert [rig.index.get(place.version) is None for place in places] == [
        True, False] * 3
