"""SEQ: a fixed number of units ahead of each sequential stream.

The classic method of file systems, and the base line of the others: a read
that begins where an earlier one ended is sequential. Degree and trigger
distance are fixed (the "fixed asynchronous" of Gill and Bathen, FAST'07,
section 2.3).

State: one entry for each place where a stream may go on, the least
recently used forgotten first.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Callable, Hashable, List, Tuple

from swift_dss.strategy.prefetch.base import (
    ITEM_BYTES, Access, Prefetch, Settings, Urgency, Want, clip)

#: Units fetched at a time, and how many are left when the next are asked
#: for: what filers ship with (8 tracks, half of them ahead).
DEGREE = 8
TRIGGER = 4
#: Reads one after another that make a stream.
STREAM_READS = 2

_Place = Tuple[str, Hashable, int]


class Stream:
    """One stream.

    :ivar reads: that followed one another
    :ivar until: where what was asked for ends
    """

    __slots__ = ('reads', 'until')

    def __init__(self) -> None:
        self.reads = 0
        self.until = 0


class Streams:
    """Places where a stream may go on. Bounded by count.

    :param make: a new stream
    """

    def __init__(self, limit: int,
                 make: Callable[[], Stream] = Stream) -> None:
        self._limit = max(1, limit)
        self._make = make
        self._by_place: OrderedDict[_Place, Stream] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_place)

    def follow(self, access: Access) -> Stream:
        """The stream that ``access`` goes on with, or a new one; it goes
        on at the end of ``access``."""
        place = (access.account, access.object_id, access.offset)
        stream = self._by_place.pop(place, None) or self._make()
        stream.reads += 1
        end = access.offset + access.length
        self._by_place[access.account, access.object_id, end] = stream
        if len(self._by_place) > self._limit:
            self._by_place.popitem(last=False)
        return stream

    def clear(self) -> None:
        """Forget them all."""
        self._by_place.clear()


class Seq(Prefetch):
    """See above; the contract is :class:`Prefetch`."""

    name = 'seq'

    def __init__(self, settings: Settings, degree: int = DEGREE,
                 trigger: int = TRIGGER) -> None:
        self._degree_bytes = min(
            degree, settings.max_degree) * settings.unit_bytes
        self._trigger_bytes = trigger * settings.unit_bytes
        self._streams = Streams(settings.state_bytes // ITEM_BYTES)

    def on_request(self, access: Access, room_bytes: int) -> List[Want]:
        """See :meth:`Prefetch.on_request`."""
        stream = self._streams.follow(access)
        end = access.offset + access.length
        if not access.hit or stream.until < end:
            # Whatever was asked for is not there (any more).
            stream.until = end
        if stream.reads < STREAM_READS or \
                stream.until - end > self._trigger_bytes:
            return []
        start = stream.until
        stop = min(start + self._degree_bytes, access.object_bytes,
                   start + room_bytes)
        if stop <= start:
            return []
        stream.until = stop
        urgency = Urgency.AHEAD if access.hit else Urgency.WITH_MISS
        return clip([Want(access.account, access.object_id, start,
                          stop - start, urgency, 1.0, self.name)],
                    room_bytes)

    def state_bytes(self) -> int:
        """See :meth:`Prefetch.state_bytes`."""
        return len(self._streams) * ITEM_BYTES
