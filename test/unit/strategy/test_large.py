"""The classes of a large object over its segments, against bytes one by one.
"""

from __future__ import annotations

import random

import pytest

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.spans import ClassMap, Span
from swift_dss.strategy.large import shares
from swift_dss.strategy.large.shares import Use

TABLE = ClassTable.of(ClassSpec(class_id, 'c%d' % class_id, rank)
                      for class_id, rank in ((0, 0), (1, 5), (2, 9), (3, 5)))
RANK = {0: 0, 1: 5, 2: 9, 3: 5}
SIZE = 40


def random_map(rng, size=SIZE):
    borders = sorted(rng.sample(range(size + 1), rng.randrange(2, 7)))
    return ClassMap.from_spans(
        (Span(begin, end - begin, rng.randrange(4))
         for begin, end in zip(borders, borders[1:])
         if rng.random() < 0.7), rng.randrange(4))


def by_byte(spans, size=SIZE):
    classes = [None] * size
    for span in spans:
        for at in range(span.offset, min(span.end, size)):
            assert classes[at] is None
            classes[at] = span.class_id
    return classes


def classes(class_map, size):
    return [class_map.class_at(at) for at in range(size)]


@pytest.mark.parametrize('seed', range(200))
def test_cut_gives_each_byte_the_highest_rank_of_its_uses(seed):
    rng = random.Random(seed)
    uses, offset = [], 0
    for _ in range(rng.randrange(1, 6)):
        start = rng.randrange(SIZE)
        length = rng.randrange(1, SIZE - start + 1)
        uses.append(Use(rng.choice(['/c/a', '/c/b', '']), start, length,
                        offset))
        offset += length
    class_map = random_map(rng, offset + 8)
    wanted = {}
    for use in uses:
        for at in range(use.length):
            if not use.path:
                continue
            classes = wanted.setdefault(use.path, [None] * SIZE)
            class_id = class_map.class_at(use.offset + at)
            old = classes[use.start + at]
            if old is None or RANK[class_id] > RANK[old]:
                classes[use.start + at] = class_id
    assert {path: by_byte(spans) for path, spans
            in shares.cut(uses, class_map, TABLE).items()} == wanted


@pytest.mark.parametrize('seed', range(200))
def test_claims_laid_over_a_map(seed):
    rng = random.Random(seed)
    before = random_map(rng)
    claims = [tuple(span for span in random_map(rng).split(0, SIZE)
                    if rng.random() < 0.6)
              for _ in range(rng.randrange(4))]
    wanted = classes(before, SIZE)
    for at in range(SIZE):
        said = [class_id
                for class_id in (by_byte(spans)[at] for spans in claims)
                if class_id is not None]
        if said:
            wanted[at] = max(said, key=lambda class_id: RANK[class_id])
    merged = shares.highest(claims, TABLE)
    assert classes(shares.laid_over(merged, before, SIZE), SIZE) == wanted


def test_a_claim_on_every_byte_leaves_one_class():
    assert shares.laid_over((Span(0, SIZE, 2),), random_map(
        random.Random(1)), SIZE) == ClassMap.uniform(2)


def test_the_whole_shows_what_its_bytes_have():
    uses = [Use('/c/a', 0, 10, 0), Use('', 0, 5, 10), Use('/c/b', 5, 5, 15)]
    wanted = ClassMap.from_spans([Span(8, 4, 2)], 1)
    had = {'/c/a': ClassMap.from_spans([Span(8, 2, 2)], 1),
           '/c/b': ClassMap.uniform(1)}
    assert shares.composed(uses, had, wanted) is wanted
    had['/c/b'] = ClassMap.uniform(2)
    assert shares.composed(uses, had, wanted) == ClassMap.from_spans(
        [Span(8, 4, 2), Span(15, 5, 2)], 1)
    had['/c/b'] = None
    assert classes(shares.composed(uses, had, wanted), 20)[14:] == [1] + \
        [0] * 5
