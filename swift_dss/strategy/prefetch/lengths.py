"""How far streams go on, learnt from those of the same kind before them.

A stream is known by its second read. So many streams of a kind went on for
one unit after it, so many for two, and so on. The next units of a stream are
worth fetching as far as half of those went that had come as far as it has:
further on more bytes would come in vain than in use.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from typing import List, Tuple

#: Distances that are counted, units after the second read: each up to 32,
#: then an eighth of an octave apart. A stream that is said to go on for a
#: unit more than it does brings that unit in vain.
STEPS = (*range(1, 32), *range(32, 64, 4), *range(64, 128, 8),
         *range(128, 257, 16))
#: Share of the streams that must have gone on so far.
LIKELY = 0.5
#: Streams that are remembered: at twice as many all counts are halved, so
#: that a kind that changes is believed after as many of its streams.
REMEMBERED = 32.0
#: Other streams that must have come as far before they tell something.
TELLING = 4.0
#: Of a limit that nothing is known of.
ENDLESS = 1 << 40

Kind = Tuple[str, int]


class Lengths:
    """Counts by kind (account and class id).

    :param first: units that a stream is taken to go on for until other
        streams of its kind say otherwise
    :param limit: kinds that are remembered; the least recently used is
        forgotten
    """

    def __init__(self, first: int, limit: int) -> None:
        self._first = first
        self._limit = limit
        #: Kind to the streams that began, and that reached each step.
        self._counts: OrderedDict[Kind, List[float]] = OrderedDict()

    def began(self, kind: Kind) -> None:
        """A stream was found."""
        counts = self._of(kind)
        counts[0] += 1
        if counts[0] >= 2 * REMEMBERED:
            counts[:] = [count / 2 for count in counts]

    def went_on(self, kind: Kind, before: float, now: float) -> None:
        """A stream that had gone on for ``before`` units has for ``now``."""
        first, last = bisect_right(STEPS, before), bisect_right(STEPS, now)
        if first < last:
            counts = self._of(kind)
            for step in range(first, last):
                counts[step + 1] += 1

    def ahead(self, kind: Kind, gone_on: float) -> int:
        """Units that a stream will likely go on for from here; ENDLESS if
        too few have come as far. The stream itself is one that has."""
        counts = self._of(kind)
        at = bisect_right(STEPS, gone_on)
        others = counts[at] - 1
        if others < TELLING:
            return ENDLESS if at else self._first
        for step in range(at, len(STEPS)):
            if counts[step + 1] < LIKELY * others:
                # It ends somewhere before this step.
                return max(0, int(STEPS[step] - 1 - gone_on))
        return ENDLESS

    def _of(self, kind: Kind) -> List[float]:
        counts = self._counts.pop(kind, None)
        if counts is None:
            counts = [0.0] * (len(STEPS) + 1)
            if len(self._counts) >= self._limit:
                self._counts.popitem(last=False)
        self._counts[kind] = counts
        return counts
