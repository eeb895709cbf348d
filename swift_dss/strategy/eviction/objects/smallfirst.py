"""Small objects come in at their first miss, and others at the second.

Where sizes differ most reads are of small objects, and most bytes belong to
large ones: to let the small ones in costs few writes, and saves them the
second miss. *Small* are those sizes, by powers of two, that together have at
most a quarter of the bytes of first misses. Where all sizes are alike none
is small. They pass as long as no more than six tenths of all bytes that were
missed or written come in.
"""

from __future__ import annotations

from swift_dss.strategy.eviction.objects.doorkeeper import ANY, SecondTouch

#: Of the bytes of first misses.
_SMALL = 0.25
#: Of the bytes that were missed or written.
_MOST = 0.6


class SmallFirst(SecondTouch):
    """See the module.

    :param capacity_bytes: of the cache; larger objects do not count
    :param window_bytes: see :class:`SecondTouch`; older misses count half
    """

    def __init__(self, capacity_bytes: int, window_bytes: int,
                 most_keys: int = ANY) -> None:
        super().__init__(window_bytes, most_keys)
        self._capacity_bytes = capacity_bytes
        self._asked = self._came = 0.0
        #: Of first misses, by the number of bits of their sizes.
        self._first = [0.0] * 64

    def hear(self, key: int, size: int, class_id: int, sequential: bool,
             is_written: bool) -> None:
        """See :meth:`SecondTouch.hear`."""
        if is_written and size <= self._capacity_bytes:
            self._count(size)
            self._came += size

    def admits(self, key: int, size: int, room_bytes: int,
               read: int = 0) -> bool:
        """See :meth:`SecondTouch.admits`."""
        if size > self._capacity_bytes:
            return True
        self._count(size)
        comes = super().admits(key, size, room_bytes, read)
        if not comes:
            self._first[size.bit_length()] += size
            comes = self._is_small(size)
            if comes:
                self._forget(key)
        self._came += size * comes
        return comes

    def _count(self, size: int) -> None:
        self._asked += size
        if self._asked > self.window_bytes:
            self._asked /= 2
            self._came /= 2
            self._first = [sum_bytes / 2 for sum_bytes in self._first]

    def _is_small(self, size: int) -> bool:
        return self._came + size <= _MOST * self._asked and \
            sum(self._first[:size.bit_length() + 1]) <= \
            _SMALL * sum(self._first)
