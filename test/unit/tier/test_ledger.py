"""Batches of events: nothing lost, nothing stale, few transactions."""

from __future__ import annotations

import dataclasses
import os

import pytest
from support.nodes.sample_node import sample_bytes
from support.nodes.tier_node import KIB, Rig
from swift.obj.diskfile import write_metadata

from swift_dss.core.classes import ClassSpec, ClassTable, RemoteMode
from swift_dss.core.errors import TierUnavailable
from swift_dss.core.residency import Tier
from swift_dss.core.spans import ClassMap, Span
from swift_dss.core.version import VersionId
from swift_dss.tier.index.file import IndexDamaged, IndexUnavailable
from swift_dss.tier.walk.survey import Survey
from swift_dss.wire import classmap
from swift_dss.wire.control import Event, EventKind

SIZE = 100 * KIB


@pytest.fixture
def rig(tmp_path):
    made = Rig(tmp_path)
    yield made
    made.close()


def stored(rig, number, second=0, class_map=None):
    return rig.node.put('o%d' % number, sample_bytes(SIZE, number),
                        '%010d.00000' % (1700000000 + second),
                        class_map or ClassMap.uniform(0))


def walked(rig):
    Survey(rig.local, rig.ledger, rig.metrics).device(
        rig.local.devices.get('sda'), 0, False, lambda progress: None)


def post(place):
    """What a POST leaves beside a version, without its event."""
    with open(os.path.join(place.hash_dir, '1700000001.00000.meta'),
              'wb') as target:
        write_metadata(target, {
            'name': '/a/c/o1', 'X-Timestamp': '1700000001.00000',
            'X-Object-Meta-Colour': 'blue'})


def said(place, kind=EventKind.PUT, **options):
    return Event(kind, place.version, place.partition, SIZE, **options)


def put_event(rig, place, **options):
    """As an object server sends it, of a version that is on the SSD."""
    row = rig.local.mover.row(place.version, place.partition)
    local_version = rig.local.describe(place.version, place.partition)
    return said(place, name=row.name, at=row.put_at,
                map_text=classmap.encode(local_version.class_map), **options)


@pytest.mark.parametrize('class_map', [
    ClassMap.uniform(0), ClassMap.uniform(2),
    ClassMap.from_spans([Span(0, 1000, 2), Span(50000, 9, 1)], 0)])
def test_a_put_says_what_its_files_say(rig, class_map):
    place = stored(rig, 1, class_map=class_map)
    event = put_event(rig, place)
    row = rig.local.mover.row_of_put(event)
    assert row == rig.local.mover.row(place.version, place.partition, event.at,
                                event.at)
    assert row.name and row.spans
    rig.ledger.apply([event])
    assert rig.index.get(place.version) == row


def test_where_a_put_does_not_say_all_the_files_are_asked(rig):
    place = stored(rig, 1)
    event = put_event(rig, place)
    meta = os.path.join(place.hash_dir, '1700000001.00000.meta')
    assert rig.local.mover.row_of_put(dataclasses.replace(
        event, name='')) is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rig.local.mover.pins, 'rule', object)
        assert rig.local.mover.row_of_put(event) is None
    open(meta, 'w').close()
    assert rig.local.mover.row_of_put(event) is None
    os.unlink(meta)
    assert rig.local.mover.row_of_put(event) is not None
    rig.ledger.apply([event])
    rig.local.demote(place.version, place.partition)
    assert rig.local.mover.row_of_put(event) is None
    # A late event leaves what the index has learnt of it.
    rig.ledger.apply([event])
    assert not rig.index.get(place.version).spans[0].ssd_bytes
    os.unlink(place.data_file())
    assert rig.local.mover.row_of_put(event) is None


def replaced(rig, number):
    """Places of a version that is on the HDD too, and of its successor."""
    old = stored(rig, number)
    rig.ledger.apply([said(old)])
    rig.local.demote(old.version, old.partition)
    os.unlink(old.data_file())
    return old, stored(rig, number, 1)


def test_a_batch_is_one_transaction_of_the_index(rig):
    events = []
    for number in range(20):
        _, new = replaced(rig, number)
        events += [said(new), said(new, EventKind.READ, length=SIZE,
                                   tier_bits=1, at=9e9)]
    begun = []
    rig.index.file.db.set_trace_callback(
        lambda text: begun.append(text) if 'BEGIN' in text[:6] else None)
    changed = rig.ledger.apply(events)
    assert len(begun) == 1
    assert changed == {'sda': 20 * SIZE}
    assert rig.index.occupancy('sda')[0]['objects'] == 20
    assert len(rig.gateway.deletes) == 20
    assert rig.metrics.snapshot()['tier.events.put'] == 40
    assert rig.ledger.hits.snapshot()[0]['reads'] == 20


def test_one_bad_event_does_not_lose_the_others(rig, caplog):
    good = [stored(rig, number) for number in range(3)]
    bad = Event(EventKind.PUT, VersionId(
        'sda', 0, 'no hash at all', '1700000000.00000'), '37', SIZE)
    rig.ledger.apply([said(good[0]), said(good[1]), bad, said(good[2])])
    assert all(rig.index.get(place.version) for place in good)
    assert rig.metrics.snapshot()['tier.events_failed'] == 1
    assert rig.due.missed
    assert 'no hash at all' in caplog.text


def test_a_damaged_index_is_told_at_once(rig, monkeypatch):
    def damaged(rows):
        raise IndexDamaged('not a database')

    monkeypatch.setattr(rig.index, 'add', damaged)
    with pytest.raises(IndexDamaged):
        rig.ledger.apply([said(stored(rig, number)) for number in range(3)])


def test_an_index_without_room_drops_the_batch_and_counts_it(
        rig, monkeypatch):
    def full(rows):
        raise IndexUnavailable('no room')

    monkeypatch.setattr(rig.index, 'add', full)
    rig.ledger.apply([said(stored(rig, number)) for number in range(3)])
    assert rig.metrics.snapshot()['tier.events_dropped'] == 3
    assert rig.due.missed


def test_what_was_read_of_a_version_that_moved_since_is_read_again(
        rig, monkeypatch):
    place = stored(rig, 1)
    rig.ledger.apply([said(place)])
    read = rig.local.mover.row
    stale = []

    def slow(*args):
        answer = read(*args)
        if not stale:
            stale.append(answer)
            rig.local.clean(place.version, place.partition)
        return answer

    monkeypatch.setattr(rig.local.mover, 'row', slow)
    rig.ledger.apply([said(place)])
    assert stale[0].spans[0].dirty_bytes == SIZE
    assert rig.index.get(place.version).spans[0].dirty_bytes == 0


@pytest.mark.parametrize('deleted', [False, True])
def test_a_version_that_was_replaced_unseen_leaves_nothing_on_the_hdd(
        rig, deleted):
    old, new = replaced(rig, 1)
    rig.index.remove(old.version)
    path = old.capacity.file_path(old.version)
    assert os.path.exists(path)
    rig.ledger.apply([said(old), said(
        new, EventKind.DELETE if deleted else EventKind.PUT)])
    assert not os.path.exists(path)
    assert rig.index.get(old.version) is None


@pytest.mark.parametrize('deleted', [False, True])
def test_a_put_heard_of_after_what_overtook_it_leaves_nothing(rig, deleted):
    old, new = replaced(rig, 1)
    rig.index.remove(old.version)
    if deleted:
        os.rename(new.data_file(), new.data_file()[:-len('.data')] + '.ts')
    rig.ledger.apply([said(
        new, EventKind.DELETE if deleted else EventKind.PUT)])
    rig.ledger.apply([said(old)])
    assert not os.path.exists(old.capacity.file_path(old.version))
    assert rig.index.get(old.version) is None


def test_a_version_that_only_went_away_keeps_its_hdd_bytes(rig):
    old, new = replaced(rig, 1)
    os.unlink(new.data_file())
    rig.index.remove(old.version)
    rig.ledger.apply([said(old)])
    assert os.path.exists(old.capacity.file_path(old.version))


def test_a_delete_that_cannot_be_queued_leaves_the_row_to_the_sweep(
        rig, monkeypatch):
    def full(obsolete):
        raise TierUnavailable('gateway queue: no room')

    old, new = replaced(rig, 1)
    monkeypatch.setattr(rig.gateway, 'enqueue_deletes', full)
    rig.ledger.apply([said(new)])
    assert rig.due.missed
    assert rig.index.get(old.version).wants_remote
    assert rig.index.get(new.version)


def test_an_upload_that_cannot_be_queued_makes_a_sweep_due(
        rig, monkeypatch):
    def full(wanted):
        raise TierUnavailable('gateway queue: no room')

    place = stored(rig, 1)
    monkeypatch.setattr(rig.gateway, 'enqueue_uploads', full)
    rig.ledger.apply([said(place)])
    assert rig.due.missed
    assert rig.index.get(place.version).wants_remote


def test_a_read_touches_the_classes_that_it_names(rig):
    mapped = ClassMap.from_spans([Span(0, SIZE // 2, 9)], 0)
    place = stored(rig, 1, class_map=mapped)
    whole = stored(rig, 2)
    rig.ledger.apply([said(place, at=5.0), said(whole, at=5.0)])
    rig.ledger.apply([
        said(place, EventKind.READ, map_text=classmap.encode(mapped),
             offset=0, length=10, tier_bits=1, at=8.0),
        said(whole, EventKind.READ, length=7, tier_bits=1, at=6.0),
        said(whole, EventKind.READ, length=SIZE, tier_bits=2, at=7.0)])
    assert [candidate.version
            for candidate in rig.index.victims.least_recent_dirty(
        'sda', [0], 9)] == [place.version, whole.version]
    assert rig.ledger.hits.snapshot() == {
        0: {'reads': 2, 'hits': 1, 'bytes': SIZE + 7, 'hit_bytes': 7},
        9: {'reads': 1, 'hits': 1, 'bytes': 10, 'hit_bytes': 10}}
    assert len(rig.keeper.duties.wishes) == 1


def test_several_ranges_of_one_read_are_one_read(rig, monkeypatch):
    seen = []
    real = rig.index.touch

    def touch(reads, sequential=(), again=()):
        seen.append(len(again))
        return real(reads, sequential, again)
    monkeypatch.setattr(rig.index, 'touch', touch)
    place = stored(rig, 1)
    rig.ledger.apply([said(place, at=5.0)])
    rig.ledger.apply([
        said(place, EventKind.READ, offset=offset, length=1, tier_bits=1,
             at=at) for offset, at in ((0, 6.0), (9, 6.0))])
    rig.ledger.apply([
        said(place, EventKind.READ, offset=offset, length=1, tier_bits=1,
             at=at) for offset, at in ((0, 7.0), (9, 8.0))])
    assert seen[-2:] == [0, 1]


def test_a_read_of_a_version_that_nobody_told_of_tracks_it(rig):
    place = stored(rig, 1)
    rig.ledger.apply([said(place, EventKind.READ, length=SIZE,
                           tier_bits=int(Tier.HDD), at=6.0)])
    assert rig.index.get(place.version).spans[0].ssd_bytes == SIZE
    assert len(rig.keeper.duties.wishes) == 1


def test_an_hdd_copy_that_differs_is_given_up_and_written_again(rig):
    place = stored(rig, 1)
    rig.ledger.apply([said(place)])
    rig.local.demote(place.version, place.partition)
    rig.local.promote(place.version, place.partition)
    rig.local.mover.track(place.version, place.partition)
    copy = place.capacity.file_path(place.version)
    assert os.path.exists(copy) and not list(
        rig.index.victims.least_recent_dirty('sda', [0], 9))
    rig.ledger.apply([said(place, EventKind.HDD_DIFFERS)])
    assert not os.path.exists(copy)
    assert [candidate.version
            for candidate in rig.index.victims.least_recent_dirty(
        'sda', [0], 9)] == [place.version]
    # Said twice, or of a version that is gone: no harm.
    rig.ledger.apply([said(place, EventKind.HDD_DIFFERS)])
    os.unlink(place.data_file())
    rig.ledger.apply([said(place, EventKind.HDD_DIFFERS)])
    assert rig.metrics.snapshot()['tier.hdd_copies_given_up'] == 2


def test_what_comes_beneath_a_post_is_told_of_once(rig):
    """By its event, or by the sweep where that was lost."""
    rig.due.walked()
    rig.table = ClassTable.of([
        ClassSpec(0, 'plain', 0, remote=RemoteMode.THROUGH)])
    for number, beside in enumerate((False, True)):
        place = stored(rig, number)
        if beside:
            post(place)
        event = said(place)
        for _ in range(2):
            rig.ledger.apply([event])
            walked(rig)
    assert rig.gateway.renewals == [place.version]
    rig.index.remove(place.version)
    walked(rig)
    assert rig.gateway.renewals == 2 * [place.version]


def test_a_walk_after_lost_events_tells_of_posts(rig):
    """That of the POST was among them, and the version is known."""
    rig.table = ClassTable.of([
        ClassSpec(0, 'plain', 0, remote=RemoteMode.THROUGH)])
    place = stored(rig, 1)
    rig.ledger.apply([said(place)])
    post(place)
    assert rig.due.unclean
    walked(rig)
    assert rig.gateway.renewals == [place.version]
