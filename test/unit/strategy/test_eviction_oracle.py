"""The pure strategy against two oracles, and the numbers written down."""

from __future__ import annotations

import json
import os
import random
from collections import OrderedDict
from dataclasses import replace

import pytest

from swift_dss.core.classes import Allocate, ClassSpec, ClassTable
from swift_dss.strategy.eviction import STRATEGIES
from swift_dss.strategy.eviction.bytes.verbs import Occupancy
from swift_dss.strategy.eviction.objects import orders
from swift_dss.strategy.eviction.objects.verbs import BYPASS, HIT, MISS
from swift_dss.strategy.promotion import admit

CHUNKS = 1000
CLASSES = (1, 2, 3)
TABLE = ClassTable.of([
    ClassSpec(0, 'plain', 0), ClassSpec(1, 'low', 10),
    ClassSpec(2, 'middle', 20), ClassSpec(3, 'high', 30)])
FLOORED = ClassTable.of([
    ClassSpec(0, 'plain', 0), ClassSpec(1, 'low', 10, floor=0.2),
    ClassSpec(2, 'middle', 20), ClassSpec(3, 'high', 30)])
WEIGHTED = ClassTable.of([
    ClassSpec(0, 'plain', 0), ClassSpec(1, 'low', 10, weight=3),
    ClassSpec(2, 'middle', 20), ClassSpec(3, 'high', 30, weight=2)])
_GOLDEN = os.path.join(os.path.dirname(__file__), os.pardir, os.pardir,
                       'golden', 'eviction.json')


def trace(seed, length=40000):
    """(class, block) accesses: each class has its own popularity curve."""
    draw = random.Random(seed)
    for _ in range(length):
        class_id = draw.choices(CLASSES, (0.3, 0.3, 0.4))[0]
        population = {1: 4000, 2: 900, 3: 500}[class_id]
        yield class_id, int(population * draw.random() ** 2)


class Oracle:
    """Strict selective caching: a free chunk, else the LRU of the lowest
    class that has any, unless that ranks above the newcomer."""

    def __init__(self):
        self.queues = {class_id: OrderedDict() for class_id in CLASSES}

    def access(self, class_id, block):
        queue = self.queues[class_id]
        if block in queue:
            queue.move_to_end(block)
            return 'hit'
        if sum(map(len, self.queues.values())) >= CHUNKS:
            victim = next(queue for queue in sorted(CLASSES)
                          if self.queues[queue])
            if victim > class_id:
                return 'bypass'
            self.queues[victim].popitem(last=False)
        queue[block] = True
        return 'miss'


class Enforcer:
    """The strategy's answers carried out on the same queues."""

    def __init__(self, strategy, table):
        self.order = OrderedDict()
        self.used = dict.fromkeys(CLASSES, 0)
        self.strategy = strategy
        self.table = table

    def access(self, class_id, block, size=1):
        if (class_id, block) in self.order:
            self.order.move_to_end((class_id, block))
            return 'hit'
        occupancies = {used_class: Occupancy(used, used)
                       for used_class, used in self.used.items()}
        used = sum(self.used.values())
        entry = admit(self.strategy, occupancies, self.table, CHUNKS, used,
                      CHUNKS, CHUNKS, class_id, size)
        if entry.is_refused:
            return 'bypass'
        giver = entry.next()
        while giver is not None:
            gone = self.evict(giver.class_ids)
            giver.gave(gone)
            entry.left(giver, gone)
            giver = entry.next()
        self.order[class_id, block] = size
        self.used[class_id] += size
        return 'miss'

    def evict(self, class_ids):
        victim = next(key for key in self.order if key[0] in class_ids)
        size = self.order.pop(victim)
        self.used[victim[0]] -= size
        return size


def play(cache, seed):
    counts = {}
    for class_id, block in trace(seed):
        key = '%s %d' % (cache.access(class_id, block), class_id)
        counts[key] = counts.get(key, 0) + 1
    return counts


@pytest.mark.parametrize('seed', [1, 2, 3])
def test_class_ordered_makes_the_oracles_every_decision(seed):
    oracle = Oracle()
    ours = Enforcer(STRATEGIES['class_ordered'], TABLE)
    for at, (class_id, block) in enumerate(trace(seed)):
        assert ours.access(class_id, block) == \
            oracle.access(class_id, block), 'access %d, seed %d' % (at, seed)


@pytest.mark.parametrize('seed', [1, 2, 3])
def test_lru_makes_every_decision_of_one_queue(seed):
    queue = OrderedDict()
    ours = Enforcer(STRATEGIES['lru'], TABLE)
    for class_id, block in trace(seed):
        hit = (class_id, block) in queue
        if not hit and len(queue) >= CHUNKS:
            queue.popitem(last=False)
        queue[class_id, block] = True
        queue.move_to_end((class_id, block))
        assert (ours.access(class_id, block) == 'hit') == hit


def _with(**options):
    """The table with other options of one class."""
    specs = dict(TABLE.specs)
    for name, values in options.items():
        spec, = (spec for spec in specs.values() if spec.name == name)
        specs[spec.class_id] = replace(spec, **values)
    return ClassTable.of(list(specs.values()))


@pytest.mark.parametrize('most', [1, 60], ids=['alike', 'of many sizes'])
@pytest.mark.parametrize('name, kind', [
    ('class_ordered', 'class-lru'), ('weighted', 'weighted-lru')])
@pytest.mark.parametrize('table', [
    TABLE, FLOORED, WEIGHTED, _with(middle={'cap': 0.3}),
    _with(low={'allocate': Allocate.ROOM}),
    _with(middle={'allocate': Allocate.NEVER}),
    _with(low={'floor': 0.1, 'cap': 0.2}, high={'cap': 0.5, 'weight': 3}),
    _with(middle={'pin': True, 'cap': 0.3})])
def test_the_daemon_and_a_replay_decide_the_same(name, kind, table, most):
    """Sums of bytes on the one side, objects on the other."""
    ours = Enforcer(STRATEGIES[name], table)
    other = orders.make(kind, CHUNKS, table)
    words = {HIT: 'hit', MISS: 'miss', BYPASS: 'bypass'}
    sizes, draw = {}, random.Random(7)
    for at, (class_id, block) in enumerate(trace(4, 12000)):
        size = sizes.setdefault((class_id, block), 1 + int(
            most * draw.random() ** 4))
        assert ours.access(class_id, block, size) == words[other.access(
            class_id * 100000 + block, size, class_id)], 'access %d' % at


def figures():
    """What is written down, as it is now."""
    return {
        'class_ordered': play(Enforcer(STRATEGIES['class_ordered'], TABLE),
                              1),
        'class_ordered, low has a floor of 0.2': play(
            Enforcer(STRATEGIES['class_ordered'], FLOORED), 1),
        'lru': play(Enforcer(STRATEGIES['lru'], TABLE), 1)}


def test_counts_are_those_written_down():
    with open(_GOLDEN, encoding='ascii') as source:
        assert figures() == json.load(source)


def test_classes_help_the_high_and_a_floor_helps_the_low():
    by_setup = figures()

    def ratio(name, class_id):
        counts = by_setup[name]
        return counts.get('hit %d' % class_id, 0) / sum(
            count for key, count in counts.items()
            if key.endswith(' %d' % class_id))

    assert ratio('class_ordered', 3) > ratio('lru', 3)
    assert ratio('class_ordered', 1) < 0.01
    assert ratio('class_ordered, low has a floor of 0.2', 1) > 0.01


if __name__ == '__main__':
    with open(_GOLDEN, 'w', encoding='ascii') as target:
        json.dump(figures(), target, indent=1, sort_keys=True)
        target.write('\n')
