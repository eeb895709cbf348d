"""Orders kept in the daemon's index against those of a replay."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from support.rigs.indexed_order import CLASS, IndexedOrder, row_of, version_of
from test_object_contract import CALLS, order_keeps_its_contract

from swift_dss.strategy.eviction.objects import orders
from swift_dss.strategy.eviction.objects.s3fifo import S3FifoOrder
from swift_dss.strategy.eviction.rows.orders import ROW_ORDERS
from swift_dss.strategy.eviction.rows.sieve import RowSieve

NAMES = ['lru'] + list(ROW_ORDERS)
LENGTH = 1500


@pytest.fixture
def made(tmp_path):
    """Makes indexed orders, each with a file of its own."""
    opened = []

    def make(name, blind=False):
        opened.append(IndexedOrder(
            str(tmp_path / ('%d.db' % len(opened))), name, blind))
        return opened[-1]
    yield make
    for order in opened:
        order.close()


@pytest.mark.parametrize('name', NAMES)
@given(calls=CALLS)
@settings(max_examples=10, deadline=None, suppress_health_check=[
    HealthCheck.function_scoped_fixture])
def test_an_order_in_the_index_keeps_the_contract_of_all_orders(
        made, name, calls):
    order = made(name)
    with order.index.file.batch():
        order_keeps_its_contract(order, calls)


class LateGhost(S3FifoOrder):
    """Takes a newcomer for known if it is when it comes in, and not when
    it was missed: the index hears of it only then."""

    def miss(self, key, size, sequential=False, asked=True):
        return True

    def insert(self, key, size, cost=1.0, sequential=False):
        super().miss(key, size)
        super().insert(key, size, cost, sequential)


def accesses(seed, length=LENGTH):
    """(key, size, goes on where the last read ended)"""
    dice = random.Random(seed)
    sizes = [1 + int(200 * dice.random() ** 4) for _ in range(2000)]
    scan = 1000
    while length > 0:
        if dice.random() < 0.03:
            # A scan: many objects once, one after the other.
            for _ in range(dice.randint(5, 30)):
                scan = 1000 + (scan - 999) % 1000
                length -= 1
                yield scan, sizes[scan], True
        else:
            key = int(400 * dice.random() ** 2.5)
            length -= 1
            yield key, sizes[key], False


def play(order, requests, room, cost):
    """What happened to each access, and who left for it."""
    used, told = 0, []
    for key, size, sequential in requests:
        if order.touch(key, sequential):
            told.append('hit')
            continue
        order.miss(key, size, sequential)
        gone = []
        while used + size > room:
            victim, length = order.evict()
            used -= length
            gone.append(victim)
        order.insert(key, size, cost(size), sequential)
        used += size
        told.append(gone)
    return told


def reference(name, room=0):
    return LateGhost() if name == 's3fifo' else orders.ORDERS[name](room)


@pytest.mark.parametrize('name, blind', [
    ('lru', False), ('s3fifo', False), ('sieve', False), ('gdsf', False),
    ('sieve', True)])
def test_it_sends_away_what_the_order_of_a_replay_does_over_a_restart(
        made, name, blind):
    order = made(name, blind)
    requests = list(accesses(7))
    room = 3000

    def cost(size):
        return order.placing.cost(size, CLASS)
    wanted = play(reference(name), requests, room, cost)
    assert LENGTH / 10 < wanted.count('hit') < LENGTH
    other = Resumed(order)
    assert play(other, requests, room, cost) == wanted
    assert other.restarts == 3


class Resumed:
    """An indexed order whose daemon is restarted now and then."""

    def __init__(self, order):
        self.order = order
        self.turn = self.restarts = 0
        self._batch = order.index.file.batch()
        self._batch.__enter__()

    def touch(self, key, sequential):
        self.turn += 1
        if self.turn % (LENGTH // 3) == 0:
            self._batch.__exit__(None, None, None)
            self.order.close()
            self.order.open()
            self._batch = self.order.index.file.batch()
            self._batch.__enter__()
            self.restarts += 1
        return self.order.touch(key, sequential)

    def __getattr__(self, name):
        return getattr(self.order, name)


def test_sarc_hits_about_what_the_order_of_a_replay_hits(made):
    """Its watched ends are found anew now and then, not at once."""
    requests = [(key, 1 + size // 10, sequential)
                for key, size, sequential in accesses(12)]
    room = 1500
    order = made('sarc')
    with order.index.file.batch():
        for key, size, _ in requests:
            # As in a daemon: what is read was there before, on the HDD.
            order.index.put(row_of(key, size, 0, 1.0))
        hits = play(order, requests, room, lambda size: 1.0).count('hit')
    wanted = play(reference('sarc'), requests, room,
                  lambda size: 1.0).count('hit')
    lru = play(reference('lru'), requests, room, lambda size: 1.0).count('hit')
    assert lru < hits
    assert abs(hits - wanted) < 0.02 * LENGTH
    file = order.index.file
    desired = order.placing.memories.load(
        file.db, (file.device_id('sda'), CLASS))['desired']
    assert desired > 0, 'it never adapted'


def test_a_twin_whose_hand_does_not_move_is_seen(made, monkeypatch):
    class Stuck(RowSieve):
        def begin(self, memory, candidates):
            candidates.rewind(0)
    monkeypatch.setitem(ROW_ORDERS, 'sieve', Stuck())
    order, requests = made('sieve'), list(accesses(7))
    with order.index.file.batch():
        outcomes = play(order, requests, 3000, lambda size: 1.0)
    assert outcomes != play(reference('sieve'), requests, 3000,
                            lambda size: 1.0)


@pytest.mark.parametrize('name', list(ROW_ORDERS))
def test_an_exchanged_order_starts_from_the_order_of_use(made, name):
    order = made('lru')
    with order.index.file.batch():
        for key in range(50):
            order.insert(key, 10)
        for key in range(0, 50, 2):
            order.touch(key)
    order.set_inner(name)
    assert not order.index.victims.settle_orders('sda')
    assert order.index.victims.settle_orders('sda')
    left = [order.evict()[0] for _ in range(50)]
    assert left[:25] == list(range(1, 50, 2))
    assert sorted(left) == list(range(50))


def test_what_no_order_has_placed_leaves_last_and_by_its_last_use(made):
    order = made('lru')
    for key in range(4):
        order.insert(key, 10)
    order.set_inner('sieve')
    order.insert(9, 10)
    assert [order.evict()[0] for _ in range(5)] == [9, 0, 1, 2, 3]


@pytest.mark.parametrize('name', list(ROW_ORDERS))
def test_what_is_skipped_or_dirty_is_not_chosen(made, name):
    order = made(name)
    for key in range(6):
        order.insert(key, 10)
    dirty = row_of(3, 10, 10, 50.0)
    dirty.spans[0].hdd_bytes, dirty.spans[0].dirty_bytes = 0, 10
    order.index.put(dirty)
    victims = order.index.victims.next('sda', [CLASS], 1000, 64,
                                {version_of(0), version_of(1)})
    assert {int(victim.version.object_hash, 16)
            for victim in victims} == {2, 4, 5}
    order.index.put(row_of(3, 10, 10, 60.0))
    victims = order.index.victims.next('sda', [CLASS], 1000, 64)
    assert {int(victim.version.object_hash, 16) for victim in victims} == set(
        range(6))
