"""Cut what is written into segments, each with the classes of its bytes."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Iterator, List, Optional, Tuple

from swift_dss.client.fs.writing.bodies import Body
from swift_dss.core.spans import Span


class Segment(Body):
    """Bytes that go up as one object.

    :param offset: of its first byte in what is written
    :param before: the segment that comes before
    """

    def __init__(self, offset: int, before: Optional[Segment] = None) -> None:
        super().__init__(before)
        self.offset = offset
        #: Sorted ranges of a class of their own, offsets from byte 0 of the
        #: segment; the bytes between have the object's class.
        self.ranges: List[Span] = []

    def add(self, piece: memoryview, class_id: Optional[int]) -> None:
        """Append bytes of one class; None: of the object's class."""
        if class_id is not None and len(piece):
            length = len(self)
            last = self.ranges[-1] if self.ranges else None
            if last and last.end == length and last.class_id == class_id:
                self.ranges[-1] = Span(last.offset,
                                       last.length + len(piece), class_id)
            else:
                self.ranges.append(Span(length, len(piece), class_id))
        self.append(piece)

    def takes(self, class_id: Optional[int], max_ranges: int) -> bool:
        """Will one more piece keep to the limit of ranges?"""
        if class_id is None or len(self.ranges) < max_ranges:
            return True
        last = self.ranges[-1]
        return last.end == len(self) and last.class_id == class_id


class Cutter:
    """Cuts a stream of bytes into segments.

    A segment is handed out when a byte comes that it has no room for: what
    fits into one is an object, and needs no manifest.

    :param segment_bytes: of each
    :param max_ranges: of each
    """

    def __init__(self, segment_bytes: int, max_ranges: int) -> None:
        self._segment_bytes = segment_bytes
        self._max_ranges = max_ranges
        self.last = Segment(0)

    def take_last(self) -> Segment:
        """The last segment. Nothing is added any more, and no memory kept.
        """
        last, self.last = self.last, Segment(0)
        return last

    def add(self, data: memoryview,
            class_id: Optional[int]) -> Iterator[Segment]:
        """Take bytes of one class; the iterator must be run to its end.

        :param data: of bytes (format ``B``)
        """
        at = 0
        while at < len(data):
            room = self._segment_bytes - len(self.last)
            if not room or not self.last.takes(class_id, self._max_ranges):
                full, self.last = self.last, Segment(
                    self.last.offset + len(self.last), self.last)
                yield full
                continue
            self.last.add(data[at:at + room], class_id)
            at += room

    def cut(self, pieces: Iterable[Tuple[memoryview, Optional[int]]],
            noted: Callable[[int], Any]) -> Iterator[Segment]:
        """All segments of a file but the last one.

        :param pieces: bytes and their class
        :param noted: is told the bytes of each piece
        """
        for piece, class_id in pieces:
            yield from self.add(piece, class_id)
            noted(len(piece))
