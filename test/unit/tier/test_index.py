"""The index: sums that never count, candidates that never include dirt."""

from __future__ import annotations

import os
import sqlite3

import pytest

from swift_dss.core.version import VersionId
from swift_dss.tier.index import schema
from swift_dss.tier.index.index import (
    ASKED_AT_ONCE, Index, IndexDamaged, IndexUnavailable, open_or_replace)
from swift_dss.tier.index.rows import SpanRow, VersionRow


@pytest.fixture
def index(tmp_path):
    made = Index(str(tmp_path / 'index.db'))
    yield made
    made.close()


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
    with sqlite3.connect(index.path) as db:
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
    found = index.least_recent('sda', [1], 10)
    assert [one.version for one in found] == [version(3)]


def test_candidates_come_least_recent_first_over_classes(index):
    index.put(row(1, class_id=1, read_at=30.0))
    index.put(row(2, class_id=2, read_at=10.0))
    index.put(row(3, class_id=1, read_at=20.0))
    assert [one.version for one in index.least_recent('sda', [1, 2], 2)] \
        == [version(2), version(3)]


def test_an_access_makes_a_version_recent_but_never_older(index):
    index.put(row(1, read_at=10.0))
    index.put(row(2, read_at=20.0))
    for at in (30.0, 5.0):
        assert index.touch({version(1): (at, None)}) == {version(1): [1]}
    assert index.least_recent('sda', [1], 1)[0].version == version(2)
    assert index.touch({version(9): (30.0, [1])}) == {}


def test_an_update_keeps_when_it_was_put_and_read(index):
    index.put(row(1, read_at=10.0))
    index.touch({version(1): (30.0, [1])})
    index.put(row(1, dirty=50, read_at=99.0))
    found = index.get(version(1))
    assert (found.put_at, found.read_at) == (10.0, 30.0)
    assert found.spans[0].dirty_bytes == 50


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
    assert [one.version for one in index.obsolete([newer])] == [
        version(1, '1700000001.00000', 1)]
    tombstone = version(1, '1700000009.00000', None)
    assert len(index.obsolete([newer, tombstone])) == 4


def test_a_batch_is_all_or_nothing(index):
    with pytest.raises(ZeroDivisionError), index.batch():
        index.put(row(1))
        raise ZeroDivisionError
    assert index.get(version(1)) is None
    assert sums(index, 'ssd') == 0


def test_pinning_a_class_takes_its_rows_from_the_candidates(index):
    index.put(row(1))
    assert index.set_movable(1, False, 0) == 1
    assert index.least_recent('sda', [1], 10) == []
    assert sums(index, 'evictable') == 0
    assert index.set_movable(1, True, 0) == 1
    assert sums(index, 'evictable') == 100


def test_unpinning_a_class_leaves_pinned_and_small_versions(index):
    index.put(row(1, movable=False, pinned=True))
    index.put(row(2, movable=False))
    assert index.set_movable(1, True, min_demote_bytes=100) == 0


def test_everything_is_there_after_reopening(tmp_path):
    path = str(tmp_path / 'index.db')
    one = Index(path)
    one.put(row(1))
    one.close()
    two = Index(path)
    assert two.get(version(1)).name == '/a/c/o1'
    assert sums(two, 'ssd') == 100
    two.close()


def test_a_damaged_file_is_moved_aside(tmp_path):
    path = tmp_path / 'index.db'
    path.write_bytes(b'this is no database, whatever its name says' * 100)
    index, aside = open_or_replace(str(path))
    assert os.path.exists(aside)
    index.put(row(1))
    index.close()


def test_another_schema_is_damage(tmp_path):
    path = str(tmp_path / 'index.db')
    Index(path).close()
    with sqlite3.connect(path) as db:
        db.execute('PRAGMA user_version = %d' % (schema.VERSION + 1))
    with pytest.raises(IndexDamaged):
        Index(path)


def test_a_full_disk_is_unavailable_and_reads_go_on(index):
    index.put(row(1))
    pages, = index._db.execute('PRAGMA page_count').fetchone()
    index._db.execute('PRAGMA max_page_count = %d' % pages)
    with pytest.raises(IndexUnavailable):
        with index.batch():
            for number in range(10000):
                index.put(row(number))
    assert index.get(version(1)) is not None
    assert index.get(version(9999)) is None


def test_no_query_of_a_decision_scans_a_table(index):
    for where, order in (('movable = 1 AND ssd > dirty', 'read_at'),
                         ('movable = 1 AND dirty > 0', 'read_at'),
                         ('movable = 1 AND dirty > 0', 'put_at'),
                         ('spare > 0', 'read_at')):
        plan = ' '.join(str(one[3]) for one in index._db.execute(
            'EXPLAIN QUERY PLAN SELECT s.%s FROM span s JOIN version v ON '
            'v.id = s.version_id WHERE s.device_id = 1 AND s.class_id = 2 '
            'AND %s ORDER BY s.%s LIMIT 9' % (order, where, order)))
        assert 'SCAN' not in plan and 'TEMP B-TREE' not in plan, plan


def test_partitions_are_found_in_steps(index):
    for number in range(60):
        index.put(VersionRow(version(number), str(number % 7), 100))
    index.put(VersionRow(VersionId('sdb', 0, '%032x' % 1, '1.0'), '99', 1))
    index.put(VersionRow(VersionId('sda', 2, '%032x' % 1, '1.0'), '98', 1))
    assert index.partitions('sda', 0) == {str(one) for one in range(7)}
    assert index.partitions('sdb', 0) == {'99'}
    assert index.partitions('sda', 2) == {'98'}
    assert index.partitions('sdc', 0) == set()
    page = index.ids_of_partitions('sda', 0, ['3', '4'], 5, 0)
    rest = index.ids_of_partitions('sda', 0, ['3', '4'], 50, page[-1])
    assert page + rest == sorted(page + rest)
    rows = index.departing('sda', 0, page + rest)
    assert sorted(row.partition for row in rows) == ['3'] * 9 + ['4'] * 8
    assert len({row.version for row in rows}) == 17
    assert index.departing('sdb', 0, page) == []
    assert index.departing('sda', 2, page) == []


def test_departed_versions_go_but_not_what_took_their_row(index):
    index.put(VersionRow(version(1), '5', 100, spans=[
        SpanRow(0, 100, 100), SpanRow(9, 50, 0, 50)]))
    index.put(VersionRow(version(2), '5', 70, spans=[SpanRow(0, 70, 70)]))
    one, two = index.departing('sda', 0, index.ids_of_partitions(
        'sda', 0, ['5'], 9, 0))
    assert (one.on_hdd, two.on_hdd) == (True, False)
    other = version(2, device='sdb')
    index.remove_departed([two._replace(partition='6'),
                           two._replace(version=version(1)),
                           two._replace(version=other)])
    assert index.get(version(2)).spans == [SpanRow(0, 70, 70)]
    index.remove_departed([one, one])
    assert index.get(version(1)) is None
    assert index.occupancy('sda')[0]['ssd'] == 70
    assert index.occupancy('sda')[9]['hdd'] == 0


def plans(index, work):
    """How SQLite goes about each statement of ``work``."""
    asked = []
    index._db.set_trace_callback(asked.append)
    real = index.reader

    def reader():
        made = real()
        made.set_trace_callback(asked.append)
        return made

    index.reader = reader
    work()
    index._db.set_trace_callback(None)
    return ['; '.join(row[3] for row in index._db.execute(
        'EXPLAIN QUERY PLAN ' + sql)) for sql in asked
        if sql.startswith(('SELECT', 'DELETE', 'WITH'))]


def test_departures_read_no_more_of_the_index_than_they_have_to(index):
    rows = [VersionRow(version(number), '5', 100, spans=[
        SpanRow(0, 100, 100)]) for number in range(ASKED_AT_ONCE)]
    index.add(rows)
    ids = index.ids_of_partitions('sda', 0, ['5'], 1000, 0)
    gone = index.departing('sda', 0, ids)
    assert len(gone) == ASKED_AT_ONCE
    step, = plans(index, lambda: index.partitions('sda', 0))
    assert 'SCAN version' not in step and 'version_partition' in step
    for_ids, = plans(index, lambda: index.ids_of_partitions(
        'sda', 0, ['5', '6'], 9, 0))
    assert 'COVERING INDEX version_partition (device_id=? AND policy=? ' \
        'AND partition=? AND rowid>?)' in for_ids, for_ids
    for one in plans(index, lambda: index.departing('sda', 0, ids)) + plans(
            index, lambda: index.remove_departed(gone[:1])):
        assert 'version_partition' not in one and 'SCAN' not in one, one
        assert 'INTEGER PRIMARY KEY' in one, one


def test_a_file_of_an_older_daemon_gets_the_index_it_lacks(index):
    index.put(row(1))
    index.close()
    with sqlite3.connect(index.path) as db:
        db.execute('DROP INDEX version_partition')
    again = Index(index.path)
    assert again.get(version(1)) is not None
    again.close()
    with sqlite3.connect(index.path) as db:
        assert db.execute("SELECT count(*) FROM sqlite_master WHERE name = "
                          "'version_partition'").fetchone() == (1,)
