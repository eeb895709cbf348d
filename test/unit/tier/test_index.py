"""The index: sums that never count, candidates that never include dirt."""

from __future__ import annotations

import contextlib
import os
import sqlite3

import pytest

from swift_dss.core.version import VersionId
from swift_dss.tier.index import schema
from swift_dss.tier.index.file import (
    ASKED_AT_ONCE, IndexDamaged, IndexUnavailable)
from swift_dss.tier.index.filters import Filter
from swift_dss.tier.index.index import Index, open_or_replace
from swift_dss.tier.index.rows import SpanRow, VersionRow


@pytest.fixture
def index(tmp_path):
    made = Index(str(tmp_path / 'index.db'))
    yield made
    made.file.close()


def version(number, timestamp='1700000000.00000', frag=None, device='sda'):
    return VersionId(device, 0, '%032x' % number, timestamp, frag)


def row(number, class_id=1, dirty=0, movable=True, read_at=1.0, **options):
    span = SpanRow(class_id, 100, 100, 100 - dirty, 0, dirty, 0, movable)
    return VersionRow(version(number), '7', 100, '/a/c/o%d' % number,
                      put_at=read_at, read_at=read_at, spans=[span],
                      **options)


def sums(index, column, class_id=1):
    return index.occupancy('sda').get(class_id, {}).get(column, 0)


def test_sums_follow_every_change(index):
    index.put(row(1))
    index.put(row(2, dirty=100))
    assert (sums(index, 'objects'), sums(index, 'ssd')) == (2, 200)
    assert (sums(index, 'evictable'), sums(index, 'dirty')) == (100, 100)
    index.put(row(2))
    assert sums(index, 'evictable') == 200
    index.remove(version(1))
    assert (sums(index, 'objects'), sums(index, 'ssd')) == (1, 100)


def test_sums_equal_a_full_count_after_many_changes(index):
    for number in range(200):
        index.put(row(number % 60, class_id=number % 3,
                      dirty=number % 2 * 100, movable=number % 5 > 0))
        if number % 7 == 0:
            index.remove(version(number % 50))
    with sqlite3.connect(index.file.path) as db:
        for class_id in range(3):
            counted = db.execute(
                'SELECT count(*), total(ssd), total(dirty), total(movable * '
                '(ssd - dirty)) FROM span WHERE class_id = ?',
                (class_id,)).fetchone()
            assert tuple(sums(index, column, class_id) for column in (
                'objects', 'ssd', 'dirty', 'evictable')) == counted


def test_dirty_and_pinned_rows_are_no_candidates(index):
    index.put(row(1, dirty=100))
    index.put(row(2, movable=False))
    index.put(row(3))
    candidates = index.victims.least_recent('sda', [1], 10)
    assert [candidate.version for candidate in candidates] == [version(3)]


def test_candidates_come_least_recent_first_over_classes(index):
    index.put(row(1, class_id=1, read_at=30.0))
    index.put(row(2, class_id=2, read_at=10.0))
    index.put(row(3, class_id=1, read_at=20.0))
    assert [candidate.version for candidate in index.victims.least_recent(
        'sda', [1, 2], 2)] == [version(2), version(3)]


def test_an_access_makes_a_version_recent_but_never_older(index):
    index.put(row(1, read_at=10.0))
    index.put(row(2, read_at=20.0))
    for at in (30.0, 5.0):
        assert index.touch({version(1): (at, None)}) == {version(1): [1]}
    assert index.victims.least_recent('sda', [1], 1)[0].version == version(2)
    assert index.touch({version(9): (30.0, [1])}) == {}


def test_an_update_keeps_when_it_was_put_and_read(index):
    index.put(row(1, read_at=10.0))
    index.touch({version(1): (30.0, [1])})
    index.put(row(1, dirty=50, read_at=99.0))
    stored = index.get(version(1))
    assert (stored.put_at, stored.read_at) == (10.0, 30.0)
    assert stored.spans[0].dirty_bytes == 50


def test_a_class_that_left_a_version_leaves_the_index(index):
    index.put(row(1, class_id=1))
    index.put(row(1, class_id=2))
    assert sums(index, 'objects', 1) == 0
    assert sums(index, 'objects', 2) == 1


def test_only_older_versions_of_the_same_fragment_are_obsolete(index):
    for frag in (1, 2):
        for second in (1, 2):
            index.put(VersionRow(
                version(1, '170000000%d.00000' % second, frag), '7', 1))
    newer = version(1, '1700000002.00000', 1)
    assert [old.version for old in index.obsolete([newer])] == [
        version(1, '1700000001.00000', 1)]
    tombstone = version(1, '1700000009.00000', None)
    assert len(index.obsolete([newer, tombstone])) == 4


def test_a_batch_is_all_or_nothing(index):
    with pytest.raises(ZeroDivisionError), index.file.batch():
        index.put(row(1))
        raise ZeroDivisionError
    assert index.get(version(1)) is None
    assert sums(index, 'ssd') == 0


def test_pinning_a_class_takes_its_rows_from_the_candidates(index):
    index.put(row(1))
    assert index.pin_rows.set_movable(1, False, 0) == 1
    assert index.victims.least_recent('sda', [1], 10) == []
    assert sums(index, 'evictable') == 0
    assert index.pin_rows.set_movable(1, True, 0) == 1
    assert sums(index, 'evictable') == 100


def test_unpinning_a_class_leaves_pinned_and_small_versions(index):
    index.put(row(1, movable=False, pinned=True))
    index.put(row(2, movable=False))
    assert index.pin_rows.set_movable(1, True, min_demote_bytes=100) == 0


def test_everything_is_there_after_reopening(tmp_path):
    path = str(tmp_path / 'index.db')
    index = Index(path)
    index.put(row(1))
    index.file.close()
    two = Index(path)
    assert two.get(version(1)).name == '/a/c/o1'
    assert sums(two, 'ssd') == 100
    two.file.close()


def test_a_damaged_file_is_moved_aside(tmp_path):
    path = tmp_path / 'index.db'
    path.write_bytes(b'this is no database, whatever its name says' * 100)
    index, aside = open_or_replace(str(path))
    assert os.path.exists(aside)
    index.put(row(1))
    index.file.close()


def test_another_schema_is_damage(tmp_path):
    path = str(tmp_path / 'index.db')
    Index(path).file.close()
    with sqlite3.connect(path) as db:
        db.execute('PRAGMA user_version = %d' % (schema.VERSION + 1))
    with pytest.raises(IndexDamaged):
        Index(path)


def test_a_full_disk_is_unavailable_and_reads_go_on(index):
    index.put(row(1))
    pages, = index.file.db.execute('PRAGMA page_count').fetchone()
    index.file.db.execute('PRAGMA max_page_count = %d' % pages)
    with pytest.raises(IndexUnavailable):
        with index.file.batch():
            for number in range(10000):
                index.put(row(number))
    assert index.get(version(1)) is not None
    assert index.get(version(9999)) is None


def test_no_query_of_a_decision_scans_a_table(index):
    for where, order in (('movable = 1 AND ssd > dirty AND warmth = 1',
                          'read_at'),
                         ('movable = 1 AND ssd > dirty AND warmth != 1',
                          'read_at'),
                         ('movable = 1 AND dirty > 0 AND warmth = 1',
                          'read_at'),
                         ('movable = 1 AND dirty > 0', 'read_at'),
                         ('movable = 1 AND dirty > 0', 'put_at'),
                         ('spare > 0', 'read_at')):
        plan = ' '.join(str(step[3]) for step in index.file.db.execute(
            'EXPLAIN QUERY PLAN SELECT s.%s FROM span s JOIN version v ON '
            'v.id = s.version_id WHERE s.device_id = 1 AND s.class_id = 2 '
            'AND %s ORDER BY s.%s LIMIT 9' % (order, where, order)))
        assert 'SCAN' not in plan and 'TEMP B-TREE' not in plan, plan


def test_partitions_are_found_in_steps(index):
    for number in range(60):
        index.put(VersionRow(version(number), str(number % 7), 100))
    index.put(VersionRow(VersionId('sdb', 0, '%032x' % 1, '1.0'), '99', 1))
    index.put(VersionRow(VersionId('sda', 2, '%032x' % 1, '1.0'), '98', 1))
    assert index.leaving.partitions('sda', 0) == {str(number)
                                                  for number in range(7)}
    assert index.leaving.partitions('sdb', 0) == {'99'}
    assert index.leaving.partitions('sda', 2) == {'98'}
    assert index.leaving.partitions('sdc', 0) == set()
    page = index.leaving.ids_of_partitions('sda', 0, ['3', '4'], 5, 0)
    rest = index.leaving.ids_of_partitions('sda', 0, ['3', '4'], 50, page[-1])
    assert page + rest == sorted(page + rest)
    rows = index.leaving.departing('sda', 0, page + rest)
    assert sorted(row.partition for row in rows) == ['3'] * 9 + ['4'] * 8
    assert len({row.version for row in rows}) == 17
    assert index.leaving.departing('sdb', 0, page) == []
    assert index.leaving.departing('sda', 2, page) == []


def test_a_listing_of_a_class_reads_that_class_alone(index):
    index.add([VersionRow(version(number), '5', 100, spans=[
        SpanRow(number % 10, 100, 100)]) for number in range(50)])
    for plan in plans(index, lambda: index.pages.listing(
            Filter(class_id=3), 9)) + plans(
                index, lambda: index.pages.listing(
                    Filter('a/c', class_id=3), 9, 7)):
        assert 'TEMP B-TREE' not in plan and 'SCAN' not in plan, plan
        assert 'span_class (class_id=? AND version_id>? AND version_id<?)' \
            in plan or 'PRIMARY KEY (version_id=?)' in plan, plan


def test_a_first_page_comes_after_few_rows(index):
    """One device of fifty has few rows of the first thousands."""
    index.add([VersionRow(version(number, device='sd%d' % (number % 50)),
                          '5', 1) for number in range(5000)])
    sizes = [len(page) for page in index.pages.soon(
        Filter(device='sd7'), 500)]
    assert sizes == [20, 40, 40]


@pytest.fixture
def crowd(index):
    """Four chunks of rows of many containers; one has two rows."""
    count = 3 * schema.NAMED_ROWS + 100
    index.add([VersionRow(
        version(number), '5', 1, '/a/few/o' if number in (7, count - 200)
        else '/a/c%d/o%d' % (number % 300, number), spans=[SpanRow(0, 1, 1)])
        for number in range(count)])
    while index.pages.note_names():
        pass
    return index


def names(index, container):
    return [row.name for page in index.pages.soon(Filter(container), 5000)
            for row in page]


def test_a_small_container_is_found_in_few_looks(crowd, monkeypatch):
    looks, last = [], crowd.pages.last_id()
    listing = crowd.pages.listing
    monkeypatch.setattr(crowd.pages, 'listing', lambda *asked: (
        looks.append(min(asked[3], last) - asked[2]), listing(*asked))[1])
    assert names(crowd, 'a/few') == ['/a/few/o'] * 2
    # All but the chunk between the two.
    assert sum(looks) == 2 * schema.NAMED_ROWS + 100
    looks.clear()
    assert names(crowd, 'a/nobody') == [] and sum(looks) == 100
    assert len(names(crowd, 'a')) == 3 * schema.NAMED_ROWS + 100
    assert len(names(crowd, '/a/c5/')) == len(range(
        5, 3 * schema.NAMED_ROWS + 100, 300))


def test_a_row_that_comes_where_another_was_is_found(crowd):
    last = crowd.pages.last_id()
    crowd.remove_all(version(number) for number in range(
        schema.NAMED_ROWS - 1, last))
    crowd.add([VersionRow(version(last + 1), '5', 1, '/a/late/o')])
    assert crowd.pages.last_id() == schema.NAMED_ROWS
    assert names(crowd, 'a/late') == ['/a/late/o']
    assert crowd.pages.note_names()
    assert names(crowd, 'a/late') == ['/a/late/o']


def test_a_row_that_gets_its_name_later_is_found(crowd):
    crowd.put(VersionRow(version(9), '5', 1, '/b/late/o'))
    assert names(crowd, 'b/late') == ['/b/late/o']


def test_rows_of_a_scarce_class_are_found_in_few_looks(index, monkeypatch):
    monkeypatch.setattr('swift_dss.tier.index.pages._SCANNED_ROWS', 10)
    scarce = {300, 700, 701, 999}
    index.add([VersionRow(version(number), '5', 1, spans=[
        SpanRow(number in scarce, 1, 1)]) for number in range(1000)])
    looks = []
    listing = index.pages.listing
    monkeypatch.setattr(index.pages, 'listing', lambda *asked: (
        looks.append(asked), listing(*asked))[1])
    assert [row.version for page in index.pages.soon(Filter(class_id=1), 9)
            for row in page] == [version(number) for number in sorted(scarce)]
    assert len(looks) == 3


def test_a_page_comes_before_all_rows_were_looked_at(index, monkeypatch):
    """Two rows of a hundred are pinned, each in another part."""
    monkeypatch.setattr('swift_dss.tier.index.pages._SCANNED_ROWS', 10)
    index.add([VersionRow(version(number), '5', 1, pinned=number in (13, 77))
               for number in range(100)])
    pages = index.pages.soon(Filter(pinned=True), 5)
    index.remove(version(77))
    assert [row.version for row in next(pages)] == [version(13)]
    index.add([VersionRow(version(200), '5', 1, pinned=True)])
    assert [row.version for row in next(pages)] == [version(200)]
    assert list(pages) == []
    # A full page ends where it is full.
    assert [len(page) for page in index.pages.soon(Filter(), 7)] \
        == [7] * 14 + [2]


def test_departed_versions_go_but_not_what_took_their_row(index):
    index.put(VersionRow(version(1), '5', 100, spans=[
        SpanRow(0, 100, 100), SpanRow(9, 50, 0, 50)]))
    index.put(VersionRow(version(2), '5', 70, spans=[SpanRow(0, 70, 70)]))
    leaving = index.leaving
    first, second = leaving.departing('sda', 0, leaving.ids_of_partitions(
        'sda', 0, ['5'], 9, 0))
    assert (first.on_hdd, second.on_hdd) == (True, False)
    other = version(2, device='sdb')
    index.leaving.remove_departed([second._replace(partition='6'),
                           second._replace(version=version(1)),
                           second._replace(version=other)])
    assert index.get(version(2)).spans == [SpanRow(0, 70, 70)]
    index.leaving.remove_departed([first, first])
    assert index.get(version(1)) is None
    assert index.occupancy('sda')[0]['ssd'] == 70
    assert index.occupancy('sda')[9]['hdd'] == 0


def plans(index, work):
    """How SQLite goes about each statement of ``work``."""
    asked = []
    index.file.db.set_trace_callback(asked.append)
    real = index.file.reader

    @contextlib.contextmanager
    def reader():
        with real() as made:
            made.set_trace_callback(asked.append)
            yield made

    index.file.reader = reader
    work()
    index.file.db.set_trace_callback(None)
    return ['; '.join(row[3] for row in index.file.db.execute(
        'EXPLAIN QUERY PLAN ' + sql)) for sql in asked
        if sql.startswith(('SELECT', 'DELETE', 'WITH'))]


def test_departures_read_no_more_of_the_index_than_they_have_to(index):
    rows = [VersionRow(version(number), '5', 100, spans=[
        SpanRow(0, 100, 100)]) for number in range(ASKED_AT_ONCE)]
    index.add(rows)
    ids = index.leaving.ids_of_partitions('sda', 0, ['5'], 1000, 0)
    gone = index.leaving.departing('sda', 0, ids)
    assert len(gone) == ASKED_AT_ONCE
    step, = plans(index, lambda: index.leaving.partitions('sda', 0))
    assert 'SCAN version' not in step and 'version_partition' in step
    for_ids, = plans(index, lambda: index.leaving.ids_of_partitions(
        'sda', 0, ['5', '6'], 9, 0))
    assert 'COVERING INDEX version_partition (device_id=? AND policy=? ' \
        'AND partition=? AND rowid>?)' in for_ids, for_ids
    leaving = index.leaving
    for plan in plans(index, lambda: leaving.departing('sda', 0, ids)) + plans(
            index, lambda: leaving.remove_departed(gone[:1])):
        assert 'version_partition' not in plan and 'SCAN' not in plan, plan
        assert 'INTEGER PRIMARY KEY' in plan, plan


def test_a_file_of_an_older_daemon_gets_the_index_it_lacks(index):
    index.put(row(1))
    index.file.close()
    with sqlite3.connect(index.file.path) as db:
        db.execute('DROP INDEX version_partition')
        db.execute('DROP INDEX span_class')
    again = Index(index.file.path)
    assert again.get(version(1)) is not None
    again.file.close()
    with sqlite3.connect(index.file.path) as db:
        assert db.execute(
            "SELECT count(*) FROM sqlite_master WHERE name IN "
            "('version_partition', 'span_class')").fetchone() == (2,)


def test_the_file_shrinks_in_steps_after_many_left(index):
    rows = [VersionRow(version(number), '5', 100, '/a/c/%d' % number, spans=[
        SpanRow(0, 100, 100)]) for number in range(20000)]
    index.add(rows)
    full = size(index)
    assert not index.file.shrink(100), 'there is nothing to give back'
    index.remove_all(stored.version for stored in rows[:18000])
    steps = 0
    while index.file.shrink(100):
        steps += 1
    assert full / 4 / 4096 / 100 < steps < full / 4096 / 100
    assert size(index) < full / 3
    assert [stored.version for page in index.pages.all(Filter(), 999)
            for stored in page] == [stored.version for stored in rows[18000:]]
    assert index.occupancy('sda')[0]['ssd'] == 200000


def test_a_file_that_has_little_room_to_give_is_left_alone(index):
    rows = [VersionRow(version(number), '5', 100, '/a/c/%d' % number, spans=[
        SpanRow(0, 100, 100)]) for number in range(20000)]
    index.add(rows)
    index.remove_all(stored.version for stored in rows[:2000])
    full = size(index)
    assert not index.file.shrink(100)
    assert size(index) == full


def size(index):
    """Bytes of the file itself."""
    index.file.db.execute('PRAGMA wal_checkpoint(TRUNCATE)')
    return os.path.getsize(index.file.path)
