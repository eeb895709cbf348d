"""Class maps in the offsets of fragment archives."""

from __future__ import annotations

import random

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.spans import ClassMap, Span
from swift_dss.strategy.fragments import fragment_map

TABLE = ClassTable.of(
    [ClassSpec(number, 'n%d' % number, (number * 7) % 32)
     for number in range(32)])


def test_each_fragment_has_the_top_class_of_its_segment() -> None:
    seed = random.randrange(10 ** 9)
    print('seed %d' % seed)
    dice = random.Random(seed)
    for _ in range(300):
        size = dice.randrange(1, 200)
        cuts = sorted(dice.sample(range(1, 200), dice.randrange(1, 40)))
        spans = [Span(first, end - first, dice.randrange(32))
                 for first, end in zip(cuts, cuts[1:])
                 if dice.random() < 0.8]
        class_map = ClassMap.from_spans(spans, dice.randrange(32))
        segment, fragment = dice.randrange(1, 30), dice.randrange(1, 50)
        fragments_map = fragment_map(class_map, segment, fragment, TABLE)
        for number in range(size // segment):
            classes = {class_map.class_at(at) for at in range(
                number * segment, (number + 1) * segment)}
            top = max(classes, key=lambda class_id: (TABLE.spec(class_id).rank,
                                                     class_id))
            for at in (number * fragment, (number + 1) * fragment - 1):
                assert fragments_map.class_at(at) == top


def test_a_uniform_map_stays_as_it_is() -> None:
    assert fragment_map(ClassMap.uniform(3), 10, 7, TABLE) == \
        ClassMap.uniform(3)
