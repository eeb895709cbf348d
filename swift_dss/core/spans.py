"""The class map: which class each byte of one object has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Iterable, Iterator, List, Optional, Set, Tuple

from swift_dss.core.limits import CLASS_ID_MAX, UNCLASSIFIED


@dataclass(frozen=True)
class Span:
    """``length`` bytes from ``offset`` that share ``class_id``."""

    offset: int
    length: int
    class_id: int

    @property
    def end(self) -> int:
        """First byte after the span."""
        return self.offset + self.length


@dataclass(frozen=True)
class ClassMap:
    """The sorted, gap-free spans of one object, then one class for ever.

    ``spans`` start at byte 0, touch each other, are never empty and
    neighbours differ in class; ``rest`` is the class of every byte after
    the last span (the length of a chunked upload is not known in advance).
    Build one with :meth:`uniform` or :meth:`from_spans`, which make it so.
    """

    spans: Tuple[Span, ...]
    rest: int

    @classmethod
    def uniform(cls, class_id: int) -> ClassMap:
        """The map of an object of one class."""
        return cls((), class_id)

    @classmethod
    def from_spans(cls, spans: Iterable[Span],
                   rest: int = UNCLASSIFIED) -> ClassMap:
        """Make a map from spans that may leave gaps but never overlap.

        :param spans: in any order; gaps and the tail become ``rest``
        :raises ValueError: a span is empty, negative, has a class id out
            of range, or overlaps another; the text says which
        """
        _check_class_id(rest)
        pieces: List[Span] = []
        cursor = 0
        for span in sorted(spans, key=lambda item: item.offset):
            _check_class_id(span.class_id)
            if span.length <= 0 or span.offset < 0:
                raise ValueError('span %d+%d is empty or negative'
                                 % (span.offset, span.length))
            if span.offset < cursor:
                raise ValueError('span %d+%d overlaps the one before it'
                                 % (span.offset, span.length))
            _append(pieces, cursor, span.offset - cursor, rest)
            _append(pieces, span.offset, span.length, span.class_id)
            cursor = span.end
        while pieces and pieces[-1].class_id == rest:
            pieces.pop()
        return cls(tuple(pieces), rest)

    @property
    def is_uniform(self) -> bool:
        """True if every byte has the same class."""
        return not self.spans

    @property
    def end(self) -> int:
        """First byte after the last explicit span."""
        return self.spans[-1].end if self.spans else 0

    def class_ids(self, size: Optional[int] = None) -> Set[int]:
        """The classes that occur in an object of ``size`` bytes; an empty
        one has that of the tail.

        With ``size`` None the tail counts as present.
        """
        if size is None:
            return {span.class_id for span in self.spans} | {self.rest}
        if not self.spans or not size:
            return {self.rest}
        return {span.class_id for span in self.split(0, size)}

    def class_at(self, offset: int) -> int:
        """The class of one byte."""
        for span in self.split(offset, 1):
            return span.class_id
        return self.rest

    def split(self, offset: int, length: int) -> Iterator[Span]:
        """Cut ``length`` bytes from ``offset`` on span borders, in order.

        The pieces cover the range exactly; nothing is yielded for an
        empty range. Cost: O(log spans + pieces).
        """
        end = offset + length
        index = self._index_of(offset)
        while offset < end and index < len(self.spans):
            span = self.spans[index]
            stop = min(end, span.end)
            yield Span(offset, stop - offset, span.class_id)
            offset = stop
            index += 1
        if offset < end:
            yield Span(offset, end - offset, self.rest)

    def bytes_by_class(self, offset: int, length: int) -> Dict[int, int]:
        """How many of ``length`` bytes from ``offset`` each class has.

        Cost: as :meth:`split`, at a fraction of it.
        """
        totals: Dict[int, int] = {}
        left = length
        for index in range(self._index_of(offset), len(self.spans)):
            if not left:
                return totals
            span = self.spans[index]
            taken = min(span.offset + span.length - offset, left)
            totals[span.class_id] = totals.get(span.class_id, 0) + taken
            offset += taken
            left -= taken
        if left:
            totals[self.rest] = totals.get(self.rest, 0) + left
        return totals

    def clip(self, size: int) -> ClassMap:
        """The same map for an object of exactly ``size`` bytes."""
        return ClassMap.from_spans(
            (piece for piece in self.split(0, min(size, self.end))),
            self.rest)

    def _index_of(self, offset: int) -> int:
        low, high = 0, len(self.spans)
        while low < high:
            middle = (low + high) // 2
            if self.spans[middle].end <= offset:
                low = middle + 1
            else:
                high = middle
        return low


def _check_class_id(class_id: int) -> None:
    if not 0 <= class_id <= CLASS_ID_MAX:
        raise ValueError('class id %d is not in 0..%d'
                         % (class_id, CLASS_ID_MAX))


def _append(pieces: List[Span], offset: int, length: int,
            class_id: int) -> None:
    if not length:
        return
    if pieces and pieces[-1].class_id == class_id:
        last = pieces.pop()
        offset, length = last.offset, last.length + length
    pieces.append(Span(offset, length, class_id))


UNCLASSIFIED_MAP = ClassMap.uniform(UNCLASSIFIED)
