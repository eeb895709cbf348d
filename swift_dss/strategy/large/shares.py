"""The class of a large object is the class of its data.

A large object is a row of *uses*: bytes of other objects. Its class map is
cut over them (:func:`cut`). A segment that several manifests use gets, for
each byte, the class of the highest rank that one of them claims
(:func:`highest`); bytes that none claims keep their class (:func:`laid_over`).
Bytes then have what :func:`composed` says, which is what the manifest shows.
"""

from __future__ import annotations

from typing import (
    Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence,
    Tuple)

from swift_dss.core.classes import ClassTable
from swift_dss.core.spans import ClassMap, Span

#: Sorted, without overlaps; there may be gaps.
Spans = Tuple[Span, ...]


class Use(NamedTuple):
    """Bytes of a segment that a large object consists of.

    :param path: of the segment; '' for bytes that a manifest holds itself
    :param start: first byte of the segment
    :param length: bytes
    :param offset: of its first byte in the large object
    :param is_manifest: the segment is a large object; its own segments are
        uses of the same bytes
    """

    path: str
    start: int
    length: int
    offset: int
    is_manifest: bool = False


def cut(uses: Iterable[Use], class_map: ClassMap,
        table: ClassTable) -> Dict[str, Spans]:
    """The claims of a large object of these classes on each segment.

    A byte of a segment that it uses twice gets the class of higher rank.
    """
    claimed: Dict[str, Spans] = {}
    for use in uses:
        if not use.path or not use.length:
            continue
        spans = _joined(
            Span(span.offset - use.offset + use.start, span.length,
                 span.class_id)
            for span in class_map.split(use.offset, use.length))
        before = claimed.get(use.path)
        claimed[use.path] = spans if before is None else \
            _higher(before, spans, table)
    return claimed


def highest(claims: Iterable[Spans], table: ClassTable) -> Spans:
    """For each byte the claimed class of the highest rank; of two of one
    rank, the one that is claimed first."""
    merged: Spans = ()
    for spans in claims:
        merged = _higher(merged, spans, table) if merged else spans
    return merged


def laid_over(spans: Spans, before: Optional[ClassMap],
              size: int) -> ClassMap:
    """The map of a segment of ``size`` bytes: ``spans``, and between them
    its map ``before``."""
    under = before or ClassMap.uniform(0)
    pieces = _joined(_filled(spans, under, size))
    rest = under.rest
    if pieces and spans and spans[0].offset <= 0 and \
            spans[-1].end >= size and _is_gapless(spans):
        # Nothing of the old map is left, its class for the end neither.
        rest = _commonest(pieces)
    return ClassMap.from_spans(pieces, rest)


def composed(uses: Sequence[Use], maps: Mapping[str, Optional[ClassMap]],
             wanted: ClassMap) -> ClassMap:
    """The classes that the bytes of a large object have.

    :param uses: without those that are manifests
    :param maps: of the segments, by path; one that is missing has what is
        wanted
    :param wanted: the classes that it was to have
    :returns: ``wanted`` itself where all bytes have that
    """
    pieces: List[Span] = []
    end = 0
    for use in uses:
        known = use.path in maps
        class_map = maps.get(use.path) or ClassMap.uniform(0)
        end = use.offset + use.length
        pieces += (Span(use.offset + span.offset - use.start, span.length,
                        span.class_id)
                   for span in class_map.split(use.start, use.length)
                   ) if known else wanted.split(use.offset, use.length)
    joined = _joined(pieces)
    if joined == _joined(wanted.split(0, end)):
        return wanted
    return ClassMap.from_spans(joined, wanted.rest)


def _filled(spans: Spans, under: ClassMap, size: int) -> Iterator[Span]:
    cursor = 0
    for span in spans:
        if span.offset >= size:
            break
        yield from under.split(cursor, span.offset - cursor)
        end = min(span.end, size)
        yield Span(span.offset, end - span.offset, span.class_id)
        cursor = end
    yield from under.split(cursor, max(0, size - cursor))


def _is_gapless(spans: Spans) -> bool:
    return all(span.end == next_span.offset
               for span, next_span in zip(spans, spans[1:]))


def _commonest(pieces: Spans) -> int:
    totals: Dict[int, int] = {}
    for span in pieces:
        totals[span.class_id] = totals.get(span.class_id, 0) + span.length
    return max(totals, key=lambda class_id: totals[class_id])


def _higher(preferred: Spans, other: Spans, table: ClassTable) -> Spans:
    """Both together; where they overlap the higher rank, or ``preferred``."""
    borders = sorted({edge for spans in (preferred, other) for span in spans
                      for edge in (span.offset, span.end)})
    first, second = _Cursor(preferred), _Cursor(other)
    pieces: List[Span] = []
    for start, end in zip(borders, borders[1:]):
        mine, theirs = first.at(start), second.at(start)
        if mine is None and theirs is None:
            continue
        if mine is None or theirs is not None and \
                table.spec(theirs).rank > table.spec(mine).rank:
            mine = theirs
        assert mine is not None
        pieces.append(Span(start, end - start, mine))
    return _joined(pieces)


class _Cursor:
    """Looks up bytes of spans, in rising order."""

    def __init__(self, spans: Spans) -> None:
        self._spans = spans
        self._index = 0

    def at(self, offset: int) -> Optional[int]:
        while self._index < len(self._spans) and \
                self._spans[self._index].end <= offset:
            self._index += 1
        if self._index == len(self._spans) or \
                self._spans[self._index].offset > offset:
            return None
        return self._spans[self._index].class_id


def _joined(spans: Iterable[Span]) -> Spans:
    """Neighbours of one class as one span."""
    pieces: List[Span] = []
    for span in spans:
        if pieces and pieces[-1].end == span.offset and \
                pieces[-1].class_id == span.class_id:
            last = pieces.pop()
            span = Span(last.offset, last.length + span.length,
                        span.class_id)
        pieces.append(span)
    return tuple(pieces)
