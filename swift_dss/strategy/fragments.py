"""Class maps of erasure-coded fragments. Pure.

A fragment archive holds, for every segment of the object, one fragment of
fixed size; only the last may be shorter. All bytes of a segment are needed
to make each fragment, so a fragment has one class: the highest-ranked
among the classes of its segment, that no byte be treated worse than asked.
"""

from __future__ import annotations

from typing import List, Tuple

from swift_dss.core.classes import ClassTable
from swift_dss.core.spans import ClassMap, Span


def fragment_map(class_map: ClassMap, segment_bytes: int,
                 fragment_bytes: int, table: ClassTable) -> ClassMap:
    """The map of a fragment archive of an object with ``class_map``.

    :param segment_bytes: ``ec_segment_size`` of the storage policy
    :param fragment_bytes: its ``fragment_size``, header included
    """
    if class_map.is_uniform:
        return class_map

    def outranks(class_id: int, other: int) -> bool:
        return (table.spec(class_id).rank, class_id) > (
            table.spec(other).rank, other)

    runs: List[Tuple[int, int, int]] = []  # first segment, end, class id
    tail = Span(class_map.end, 1, class_map.rest)
    for span in class_map.spans + (tail,):
        first = span.offset // segment_bytes
        end = (span.end - 1) // segment_bytes + 1
        if runs and runs[-1][1] > first:
            begun, _, class_id = runs[-1]
            if outranks(span.class_id, class_id):
                runs.pop()
                if begun < first:
                    runs.append((begun, first, class_id))
            else:
                first += 1
        if first < end:
            runs.append((first, end, span.class_id))
    return ClassMap.from_spans(
        (Span(first * fragment_bytes, (end - first) * fragment_bytes,
              class_id) for first, end, class_id in runs),
        class_map.rest)
