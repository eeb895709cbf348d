"""What waits is counted as it comes and goes, and not by counting."""

from __future__ import annotations

import random
import sqlite3

import pytest
from support.sqlite_files import SqliteFiles, rows_of

from swift_dss.core.version import VersionId
from swift_dss.gateway.bundle.book import Book, Member, Parked


def _parked(number, group):
    return Parked(VersionId('sda', 0, '%032x' % number, '1700000000.00000'),
                  '7', group, 100 + number, 'e' * 32)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / 'bundles.db')


@pytest.fixture
def files(monkeypatch):
    return SqliteFiles(monkeypatch)


@pytest.fixture
def book(files, path):
    made = Book(path)
    yield made
    made.close()


def _by_group(book):
    return {waiting.group: waiting for waiting in book.waiting()}


def test_a_book_of_an_earlier_release_learns_what_it_lacks(path):
    with sqlite3.connect(path) as before:
        before.execute(
            'CREATE TABLE members (key TEXT PRIMARY KEY, state TEXT NOT '
            'NULL, device TEXT NOT NULL, policy INTEGER NOT NULL, hash TEXT '
            'NOT NULL, timestamp TEXT NOT NULL, frag INTEGER, partition '
            'TEXT NOT NULL, grp TEXT NOT NULL, size INTEGER NOT NULL, etag '
            'TEXT NOT NULL, parked_at REAL NOT NULL, bundle INTEGER NOT '
            'NULL, number INTEGER NOT NULL, offset INTEGER NOT NULL, stored '
            'INTEGER NOT NULL, renew INTEGER NOT NULL DEFAULT 0) '
            'WITHOUT ROWID')
        before.execute(
            "INSERT INTO members VALUES ('k', 'waiting', 'sda', 0, 'h', "
            "'t', NULL, '7', 'a', 10, 'e', 1.0, 0, 0, 0, 0, 0)")
    for key in ('one', 'two'):
        book = Book(path)
        book.park([_parked(1, 'a')._replace(record=b'said')], 2.0)
        bundle_id, members = book.plan('a', key, 10000, 9, 3.0)
        assert [member.record for member in members] == [b'', b'said']
        book.give_up(bundle_id)
        book.close()


def test_a_record_is_kept_until_the_bundle_is_proven(book, path):
    book.park([_parked(1, 'a')._replace(record=b'said')], 1.0)
    bundle_id, _ = book.plan('a', 'one', 10000, 9, 2.0)
    book.give_up(bundle_id)
    bundle_id, members = book.plan('a', 'two', 10000, 9, 3.0)
    assert [member.record for member in members] == [b'said']
    book.seal(bundle_id, '', 500, [(members[0].version.key, 0, 60, 101)])
    assert rows_of(path, 'SELECT record FROM members') == [(b'',)]


def test_a_version_is_nowhere_before_its_bundle_is_proven(book):
    book.park([_parked(1, 'a')], 1.0)
    bundle_id, members = book.plan('a', 'one', 10000, 9, 2.0)
    key = members[0].version.key
    assert book.place_of(key) == ''
    book.seal(bundle_id, '', 500, [(key, 0, 60, 101)])
    assert book.place_of(key) == 'one'


@pytest.mark.parametrize('seed', range(5))
def test_whatever_happens_the_sums_are_those_of_the_rows(
        book, path, seed):
    dice = random.Random(seed)
    number = 0
    planned = []
    for step in range(60):
        verb = dice.choice(('park', 'park', 'plan', 'bury', 'give_up',
                            'unpark'))
        if verb == 'park':
            parked = [_parked(number + n, dice.choice('ab'))
                      for n in range(dice.randrange(1, 9))]
            number += len(parked)
            book.park(parked, float(step))
        elif verb == 'plan':
            bundle_id, members = book.plan(
                dice.choice('ab'), 'key-%d' % step,
                dice.choice((150, 700, 100000)), 16384, float(step))
            planned += [bundle_id] if members else []
        elif verb == 'give_up' and planned:
            book.give_up(planned.pop(dice.randrange(len(planned))))
        elif number:
            key = _parked(dice.randrange(number), 'a').version.key
            if verb == 'unpark':
                book.unpark(key)
            else:
                book.bury([key, key, 'no/such/key'])
        waiting = _by_group(book)
        # A book that is opened counts its rows.
        other = Book(path)
        assert waiting == _by_group(other)
        other.close()


def test_a_plan_takes_those_that_wait_longest_and_leaves_the_rest(book):
    for number in range(6):
        book.park([_parked(number, 'a')], float(number))
    bundle_id, members = book.plan('a', 'key', 310, 16384, 9.0)
    assert [member.version for member in members] == [
        _parked(number, 'a').version for number in range(3)]
    left, = book.waiting()
    assert (left.count, left.length, left.oldest_at) == (3, 312, 3.0)
    book.seal(bundle_id, '', 1000, [
        (member.version.key, at, 50 + at, member.size)
        for at, member in enumerate(members)])
    member, where = book.find(members[2].version.key)
    assert (where.id, member.number, member.offset) == (bundle_id, 2, 52)


def test_what_is_written_anew_is_in_the_new_bundle(book):
    book.park([_parked(number, 'a') for number in range(3)], 1.0)
    old, members = book.plan('a', 'old', 10000, 16384, 2.0)
    placed = [(member.version.key, at, 50 + at, member.size)
              for at, member in enumerate(members)]
    book.seal(old, '', 1000, placed)
    book.bury([members[0].version.key])
    new = book.plan_anew('a', 'new', 3.0)
    book.seal(new, '', 600, [(key, at, 90 + at, stored) for at, (
        key, _, _, stored) in enumerate(placed[1:])], replaces=old)
    for at, (key, *_) in enumerate(placed[1:]):
        member, where = book.find(key)
        assert (where.id, member.number, member.offset) == (
            new, at, 90 + at)
    assert book.find(placed[0][0]) is None
    assert book.bundle(old).state == 'replaced'


class Died(BaseException):
    """A process that was killed."""


def _adopt(book):
    book.adopt('p/bundles/x', 'a', '', 900, [Member(
        _parked(number, 'a').version, '7', 'live', 'a', 100, 'e' * 32,
        0, number, 60 + number, 100) for number in (7, 8)], 5.0)


#: What may be under way when a process dies, and whether it went through.
WORK = {
    'plan': lambda book, keys: book.plan('b', 'next', 1000, 9, 5.0),
    'seal': lambda book, keys: book.seal(2, '', 700, [
        (keys[4], 0, 60, 104)]),
    'rewrite': lambda book, keys: book.seal(3, '', 300, [
        (keys[0], 0, 60, 100)], replaces=1),
    'bury': lambda book, keys: book.bury([keys[0], keys[4]]),
    'renew': lambda book, keys: book.renew(keys[0]),
    'tell': lambda book, keys: book.tell(1, [3], [1]),
    'adopt': lambda book, keys: _adopt(book),
}


@pytest.mark.parametrize('work', sorted(WORK))
def test_killed_at_any_write_a_book_has_all_of_it_or_nothing(
        tmp_path, files, path, work):
    for number in range(1, 9):
        for name in tmp_path.iterdir():
            name.unlink()
        book = Book(path)
        keys = _three_bundles(book)
        before = _all_rows(path)
        files.fail_commit('bundles.db', number, Died())
        try:
            WORK[work](book, keys)
            died = False
        except Died:
            died = True
        files.end_failing()
        book.close()
        Book(path).close()
        after = _all_rows(path)
        assert not _wrong_sums(path), (work, number)
        if not died:
            assert after != before
            return
        assert after == before, (work, number)
    raise AssertionError('it never ended')


def _three_bundles(book):
    """One that is sealed, with a member that died and one with a newer
    record; one that is planned; one that is to replace the first."""
    parked = [_parked(number, 'a') for number in range(5)]
    book.park(parked, 1.0)
    book.park([_parked(9, 'b')], 1.0)
    keys = [member.version.key for member in parked]
    bundle_id, _ = book.plan('a', 'one', 420, 9, 2.0)
    book.seal(bundle_id, '', 1000, [
        (key, at, 60 + at, 100 + at) for at, key in enumerate(keys[:4])])
    book.recorded(keys[:4])
    book.renew(keys[1])
    book.bury([keys[3]])
    assert book.plan('a', 'two', 1000, 9, 3.0)[0] == 2
    assert book.plan_anew('a', 'three', 4.0) == 3
    return keys


def _all_rows(path):
    return [rows_of(path, 'SELECT * FROM %s ORDER BY 1' % table)
            for table in ('bundles', 'members', 'holders')]


def _wrong_sums(path):
    """Bundles whose row says something else than those of their members."""
    members = rows_of(
        path, 'SELECT bundle, state, stored, renew FROM members')
    wrong = []
    for bundle_id, dead, untold, live in rows_of(
            path, "SELECT id, dead, untold, live FROM bundles WHERE "
            "state = 'sealed'"):
        here = [row[1:] for row in members if row[0] == bundle_id]
        if (dead, untold, live) != (
                sum(max(stored, 1) for state, stored, _ in here
                    if state in ('dead', 'told')),
                sum(state == 'dead' or renew == 1
                    and state in ('there', 'live')
                    for state, _, renew in here),
                sum(state in ('there', 'live', 'packed')
                    for state, _, _ in here)):
            wrong.append((bundle_id, dead, untold, live, here))
    return wrong


def test_a_delete_and_its_sums_are_on_disk_together(book, files):
    _three_bundles(book)
    said = files.said['bundles.db']
    del said[:]
    book.bury([_parked(0, 'a').version.key])
    # After a power cut S3 must be told of all that the book has as dead.
    assert said.count('COMMIT') == 1
    assert 'PRAGMA synchronous=FULL' in said


def test_sums_that_an_earlier_release_left_wrong_are_put_right(path):
    book = Book(path)
    keys = _three_bundles(book)
    book.bury(keys[:1])
    book.close()
    with sqlite3.connect(path) as before:
        before.execute('UPDATE bundles SET dead = 0, untold = 0')
        before.execute('PRAGMA user_version = 0')
    book = Book(path)
    assert [bundle.key for bundle in book.untold()] == ['one']
    assert not _wrong_sums(path)
    book.close()


def test_a_sealed_bundle_is_never_given_up(book):
    book.park([_parked(1, 'a')], 1.0)
    bundle_id, members = book.plan('a', 'one', 10000, 9, 2.0)
    book.seal(bundle_id, '', 500, [(members[0].version.key, 0, 60, 101)])
    book.bury([members[0].version.key])
    book.give_up(bundle_id)
    assert book.bundle(bundle_id).state == 'sealed'
    assert [bundle.key for bundle in book.untold()] == ['one']


@pytest.mark.parametrize('seals', (False, True))
def test_a_bundle_of_s3_that_a_crash_left_planned_is_adopted(
        book, path, seals):
    book.park([_parked(7, 'a'), _parked(8, 'a')], 1.0)
    bundle_id, _ = book.plan('a', 'p/bundles/x', 10000, 9, 2.0)
    book.bury([_parked(8, 'a').version.key])
    _adopt(book)
    if seals:
        # It was no crash: a daemon that runs goes on where it was.
        book.seal(bundle_id, '', 900, [
            (_parked(number, 'a').version.key, number, 60 + number, 100)
            for number in (7, 8)])
    assert book.bundle(bundle_id).state == 'sealed'
    member, where = book.find(_parked(7, 'a').version.key)
    assert (where.id, member.state, member.offset) == (
        bundle_id, 'there', 67)
    dead, = book.members(bundle_id, ('dead',))
    assert (dead.version, dead.number) == (_parked(8, 'a').version, 8)
    assert not _wrong_sums(path)


def test_who_died_before_the_bundle_had_it_is_none_of_its_members(
        book, path):
    book.park([_parked(number, 'a') for number in (1, 2)], 1.0)
    bundle_id, _ = book.plan('a', 'one', 10000, 9, 2.0)
    book.bury([_parked(1, 'a').version.key])
    book.seal(bundle_id, '', 500, [(_parked(2, 'a').version.key, 0, 60, 9)])
    assert book.members(bundle_id, ('dead', 'told')) == []
    assert book.untold() == [] and not _wrong_sums(path)


def test_who_died_before_a_bundle_was_adopted_is_none_of_its_members(
        book, path):
    book.park([_parked(9, 'a')], 1.0)
    bundle_id, _ = book.plan('a', 'p/bundles/x', 10000, 9, 2.0)
    book.bury([_parked(9, 'a').version.key])
    _adopt(book)
    assert book.members(bundle_id, ('dead', 'told')) == []
    assert not _wrong_sums(path)


def test_a_book_of_an_earlier_release_says_again_that_a_member_lives(path):
    book = Book(path)
    book.park([_parked(number, 'a') for number in (1, 2, 3)], 1.0)
    bundle_id, _ = book.plan('a', 'one', 10000, 9, 2.0)
    book.seal(bundle_id, '', 500, [
        (_parked(number, 'a').version.key, number - 2, 60 * number, 9)
        for number in (2, 3)])
    # The third is none of a proven bundle: it may be placed yet.
    book.park([_parked(4, 'a')], 3.0)
    book.plan('a', 'two', 10000, 9, 4.0)
    book.bury([_parked(4, 'a').version.key])
    book.close()
    with sqlite3.connect(path) as before:
        before.execute("UPDATE members SET state = 'told', number = 0, "
                       'offset = 0, bundle = ? WHERE key = ?',
                       (bundle_id, _parked(1, 'a').version.key))
        before.execute('PRAGMA user_version = 2')
    for _ in range(2):
        book = Book(path)
        assert [member.number for member in book.renewed(bundle_id)] == [0]
        assert [bundle.key for bundle in book.untold()] == ['one']
        assert book.members(bundle_id, ('dead', 'told')) == []
        assert book.knows(_parked(4, 'a').version.key)
        assert not _wrong_sums(path)
        book.close()
