"""Where reads of versions ended, and which of them are one read.

A player or a download in parts sends many GETs for one read. GETs of a
version are one *pass* as long as they ask for bytes that the pass has not
asked for yet; the first byte that is asked for again begins another.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple

from swift_dss.core.version import VersionId
from swift_dss.wire.control import Event

#: Versions whose last pass is known, some 500 bytes each.
_VERSIONS = 10000
#: Pieces of a pass that are remembered apart; the nearest become one.
_PIECES = 8

#: (begin, end) of bytes, in their order.
_Pieces = List[Tuple[int, int]]


class Heard(NamedTuple):
    """Reads of a version.

    :param goes_on: one begins where the last one ended
    :param numbers: that of the pass of each. No other pass has or had it
    :param begun: passes that began with one of them
    """

    goes_on: bool
    numbers: List[int]
    begun: int


class _Last:
    """The last pass of a version.

    :ivar end: of its last read
    """

    __slots__ = ('end', 'number', 'pieces')

    def __init__(self) -> None:
        self.end = self.number = 0
        self.pieces: _Pieces = []


class Passes:
    """Of the versions that were read last. Called by one thread."""

    def __init__(self) -> None:
        self._heard: OrderedDict[VersionId, _Last] = OrderedDict()
        self._passes = 0

    def hear_all(self, reads: Mapping[VersionId, Sequence[Event]]
                 ) -> Dict[VersionId, Heard]:
        """Note reads, each in its order."""
        return {version: self.hear(version, events)
                for version, events in reads.items()}

    def hear(self, version: VersionId, events: Sequence[Event]) -> Heard:
        """Note reads of a version, in their order."""
        heard = self._heard.pop(version, None) or _Last()
        goes_on, numbers, before = False, [], self._passes
        for event in events:
            end = event.offset + event.length
            goes_on |= 0 < event.offset == heard.end
            heard.end = end
            if not heard.number or _overlaps(
                    heard.pieces, event.offset, end):
                self._passes += 1
                heard.number, heard.pieces = self._passes, []
            _add(heard.pieces, event.offset, end)
            numbers.append(heard.number)
        self._heard[version] = heard
        if len(self._heard) > _VERSIONS:
            self._heard.popitem(last=False)
        return Heard(goes_on, numbers, self._passes - before)


def _overlaps(pieces: _Pieces, begin: int, end: int) -> bool:
    return any(begin < piece[1] and piece[0] < end for piece in pieces)


def _add(pieces: _Pieces, begin: int, end: int) -> None:
    """Add a piece that overlaps none."""
    pieces.append((begin, end))
    pieces.sort()
    gaps = [after[0] - before[1]
            for before, after in zip(pieces, pieces[1:])]
    nearest = min(gaps, default=1)
    if nearest == 0 or len(pieces) > _PIECES:
        at = gaps.index(nearest)
        pieces[at:at + 2] = [(pieces[at][0], pieces[at + 1][1])]
