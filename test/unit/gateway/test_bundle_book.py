"""What waits is counted as it comes and goes, and not by counting."""

from __future__ import annotations

import random
import sqlite3

import pytest

from swift_dss.core.version import VersionId
from swift_dss.gateway.bundle_book import Book, Parked


def _parked(number, group):
    return Parked(VersionId('sda', 0, '%032x' % number, '1700000000.00000'),
                  '7', group, 100 + number, 'e' * 32)


@pytest.fixture
def book(tmp_path):
    made = Book(str(tmp_path / 'bundles.db'))
    yield made
    made.close()


def _counted(book):
    seen = {one.group: one for one in book.waiting()}
    book._recount_all()
    assert seen == {one.group: one for one in book.waiting()}
    return seen


def test_a_book_of_an_earlier_release_learns_what_it_lacks(tmp_path):
    path = str(tmp_path / 'bundles.db')
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
        assert [one.record for one in members] == [b'', b'said']
        book.give_up(bundle_id)
        book.close()


def test_a_record_is_kept_until_the_bundle_is_proven(book):
    book.park([_parked(1, 'a')._replace(record=b'said')], 1.0)
    bundle_id, _ = book.plan('a', 'one', 10000, 9, 2.0)
    book.give_up(bundle_id)
    bundle_id, members = book.plan('a', 'two', 10000, 9, 3.0)
    assert [one.record for one in members] == [b'said']
    book.seal(bundle_id, '', 500, [(members[0].version.key, 0, 60, 101)])
    assert book._read('SELECT record FROM members', ()) == [(b'',)]


@pytest.mark.parametrize('seed', range(5))
def test_whatever_happens_the_sums_are_those_of_the_rows(book, seed):
    dice = random.Random(seed)
    number = 0
    planned = []
    for step in range(60):
        verb = dice.choice(('park', 'park', 'plan', 'bury', 'give_up',
                            'unpark'))
        if verb == 'park':
            some = [_parked(number + n, dice.choice('ab'))
                    for n in range(dice.randrange(1, 9))]
            number += len(some)
            book.park(some, float(step))
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
        _counted(book)


def test_a_plan_takes_those_that_wait_longest_and_leaves_the_rest(book):
    for number in range(6):
        book.park([_parked(number, 'a')], float(number))
    bundle_id, members = book.plan('a', 'key', 310, 16384, 9.0)
    assert [one.version for one in members] == [
        _parked(number, 'a').version for number in range(3)]
    left, = book.waiting()
    assert (left.count, left.length, left.oldest_at) == (3, 312, 3.0)
    book.seal(bundle_id, '', 1000, [
        (one.version.key, at, 50 + at, one.size)
        for at, one in enumerate(members)])
    member, where = book.find(members[2].version.key)
    assert (where.id, member.number, member.offset) == (bundle_id, 2, 52)


def test_what_is_written_anew_is_in_the_new_bundle(book):
    book.park([_parked(number, 'a') for number in range(3)], 1.0)
    old, members = book.plan('a', 'old', 10000, 16384, 2.0)
    placed = [(one.version.key, at, 50 + at, one.size)
              for at, one in enumerate(members)]
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
