"""Versions of policies that are not ours are nobody's of the daemon."""

from __future__ import annotations

import operator
import os
import time

import pytest
from support.nodes.daemon_node import write, write_policies
from support.nodes.tier_node import KIB, Rig

from swift_dss.core.errors import BadConfig
from swift_dss.tier.policies import NotOurs, Policies
from swift_dss.tier.walk.survey import ORPHAN_SECONDS, Survey
from swift_dss.wire.control import EventKind

OURS, STOCK = 0, 2


@pytest.fixture
def rig(tmp_path):
    made = Rig(tmp_path)
    yield made
    made.close()


def _walk(rig):
    survey = Survey(rig.local, rig.ledger, rig.metrics)
    return survey.device(rig.local.devices.get('sda'), 0, True,
                         lambda said: None)


def _row_from_before(rig, place):
    """A row that a daemon wrote when the policy was ours, or by mistake."""
    write_policies(rig.node.root, (OURS, STOCK), ())
    rig.local.devices.policies.load()
    row = rig.local.mover.track(place.version, place.partition)
    write_policies(rig.node.root)
    rig.local.devices.policies.load()
    return row


def test_events_of_another_policy_are_not_taken(rig):
    mine = rig.put('mine', b'x' * KIB)
    theirs = rig.put('theirs', b'x' * KIB, policy=STOCK)
    for kind in EventKind:
        rig.tell(kind, theirs)
    assert rig.index.get(theirs.version) is None
    assert rig.index.get(mine.version) is not None
    assert not rig.gateway.deletes and not rig.gateway.renewals
    assert [version for version, _ in rig.gateway.uploads] == [mine.version]


def test_walks_pass_other_policies_by(rig):
    rig.put('mine', b'x' * KIB)
    rig.put('theirs', b'x' * KIB, policy=STOCK)
    assert _walk(rig).versions == 1


def test_capacity_files_of_another_policy_are_no_orphans(rig):
    kept, gone = (rig.put(name, b'x' * KIB, policy=policy)
                  for name, policy in (('theirs', STOCK), ('mine', OURS)))
    for place in (kept, gone):
        fd = place.capacity.create()
        os.write(fd, b'x' * KIB)
        place.capacity.publish(fd, place.version)
        os.close(fd)
        old = time.time() - 2 * ORPHAN_SECONDS
        os.utime(place.capacity.file_path(place.version), (old, old))
        os.unlink(place.data_file())
        rig.index.remove(place.version)
    assert _walk(rig).orphans == 1
    assert os.path.exists(kept.capacity.file_path(kept.version))
    assert not os.path.exists(gone.capacity.file_path(gone.version))


@pytest.mark.parametrize('verb', [
    'clean', 'demote', 'promote', 'drop_capacity', 'release', 'mover.track',
    'forget_remote', 'newest', 'mover.exists'])
def test_no_verb_touches_a_version_that_is_not_ours(rig, verb):
    place = rig.put('theirs', b'x' * KIB, policy=STOCK)
    before = os.stat(place.data_file()), os.listxattr(place.data_file())
    with pytest.raises(NotOurs, match='p2.*swift.conf'):
        operator.attrgetter(verb)(rig.local)(place.version, place.partition)
    after = os.stat(place.data_file()), os.listxattr(place.data_file())
    assert before[0].st_ino == after[0].st_ino and before[1] == after[1]


def test_pressure_takes_nothing_of_a_row_from_before(rig):
    theirs = rig.put('theirs', b'x' * KIB * 900, policy=STOCK)
    _row_from_before(rig, theirs)
    rig.now += 100
    rig.keeper.round()
    assert os.stat(theirs.data_file()).st_size == KIB * 900
    assert not os.path.exists(theirs.capacity.file_path(theirs.version))


def test_rows_of_other_policies_are_forgotten_in_pages(rig, monkeypatch):
    monkeypatch.setattr('swift_dss.tier.index.leaving.CHUNK_ROWS', 2)
    mine = rig.put('mine', b'x' * KIB)
    for number in range(5):
        _row_from_before(rig, rig.put('t%d' % number, b'x' * KIB,
                                      policy=STOCK))
    assert rig.ssd(0) == 6 * KIB
    assert rig.index.leaving.keep_policies({OURS, 1}) == {STOCK}
    assert rig.ssd(0) == KIB and rig.index.get(mine.version)
    assert rig.index.leaving.keep_policies(frozenset()) == {OURS}
    assert rig.ssd(0) == 0


def test_a_swift_conf_that_is_missing_says_where_it_was_looked_for(tmp_path):
    with pytest.raises(BadConfig, match='swift_dir.*swift.conf'):
        Policies(str(tmp_path)).load()


def test_a_bad_swift_conf_changes_nothing(tmp_path):
    write_policies(str(tmp_path))
    policies = Policies(str(tmp_path))
    assert policies.ours == {0, 1} and not policies.is_changed()
    write(os.path.join(str(tmp_path), 'swift.conf'), 'rubbish')
    assert policies.is_changed()
    with pytest.raises(BadConfig):
        policies.load()
    assert policies.ours == {0, 1}
