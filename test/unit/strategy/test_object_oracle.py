"""Class order over objects against the chunk reference's own figures.

The reference decided a million classed requests once (``chunks.json``);
objects of one byte on as many bytes are the same problem.
"""

import json
import pathlib

import pytest
from support.chunk_oracle import chunk_traces

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.strategy.eviction.objects import orders
from swift_dss.strategy.eviction.objects.verbs import BYPASS, HIT, MISS

GOLDEN = json.loads((pathlib.Path(__file__).parents[2] / 'golden'
                     / 'chunks.json').read_text())


@pytest.fixture(scope='module')
def trace():
    return chunk_traces.generated()


def table(**changes):
    return ClassTable.of([
        ClassSpec(number, 'c%d' % number, 10 * number,
                  **changes.get('c%d' % number, {}))
        for number in (1, 2, 3)])


def counts(cache, trace):
    outcomes = bytes(map(cache.access, trace.oblocks,
                         [1] * len(trace), trace.class_ids))
    by_class = {}
    for class_id, outcome in zip(trace.class_ids, outcomes):
        row = by_class.setdefault(str(class_id), {})
        row[outcome] = row.get(outcome, 0) + 1
    return by_class


def check(name, cache, trace):
    wanted = GOLDEN['%s, 1000000 requests' % name]
    for class_id, row in counts(cache, trace).items():
        theirs = wanted[class_id]
        assert row.get(HIT, 0) == theirs.get('hits', 0)
        assert row.get(MISS, 0) == theirs.get('takes', 0)
        assert row.get(BYPASS, 0) == theirs['misses'] - theirs.get(
            'takes', 0)


def test_strict_order_decides_a_million_requests_as_the_oracle(trace):
    check('strict', orders.make('class-lru', trace.slots, table()), trace)


def test_lru_decides_a_million_requests_as_the_oracle(trace):
    check('lru', orders.make('lru', trace.slots, table()), trace)


def test_floors_and_caps_do(trace):
    check('shares', orders.make('class-lru', trace.slots, table(
        c1={'floor': 0.05}, c2={'cap': 0.5})), trace)


def test_weights_do(trace):
    check('weighted', orders.make(
        'weighted-lru', trace.slots, table(), {1: 1, 2: 2, 3: 4}), trace)
