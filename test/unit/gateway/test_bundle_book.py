"""What waits is counted as it comes and goes, and not by counting."""

from __future__ import annotations

import random

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
