"""Hot ranges of a format to ranges that a server takes.

Ranges that touch, or nearly, become one. More than a server's limit of
ranges are joined over the smallest gaps between them, which are hot then;
of the optional ranges every second, third ... is taken, until they fit.

Servers check bytes of the SSD by blocks, and read the rest of a block from the
HDD for that. So ranges become whole blocks, where the share allows it.
"""

from __future__ import annotations

import heapq
from typing import Iterable, List, NamedTuple, Tuple

from swift_dss.client.formats.contract import BadFile, Hot
from swift_dss.core.limits import DEFAULT_MAX_SPANS
from swift_dss.wire.records.blocks import BLOCK_BYTES, blocks_of

#: A gap of less is read with its neighbours: disks read whole blocks.
_NEAR_BYTES = 4096
#: Ranges of one file while they are collected: 32 MiB of memory.
_MAX_RANGES = 1 << 18
#: Part of a file that may become hot only because ranges were joined.
_MAX_JOINED_SHARE = 0.1
#: Files have this share of their bytes hot, if what opens them is no more.
DEFAULT_SHARE = 0.02

#: (offset, bytes).
Range = Tuple[int, int]


class Limits(NamedTuple):
    """The limits of a plan.

    :param spans: changes of class that the server takes for one object
    :param share: of the file's bytes, that optional ranges and whole blocks
        fill
    """

    spans: int = DEFAULT_MAX_SPANS
    share: float = DEFAULT_SHARE

    @property
    def ranges(self) -> int:
        """Hot ranges: each is a span, and so is each gap."""
        return max(1, (self.spans - 1) // 2)


class Plan(NamedTuple):
    """The ranges of one file.

    :param ranges: sorted, none touches another, all in the file
    :param hot_bytes: how many bytes they have
    :param left_out: optional ranges for which there was no room
    """

    ranges: List[Range]
    hot_bytes: int
    left_out: int


def plan(hots: Iterable[Hot], size: int, limits: Limits) -> Plan:
    """The best ranges within limits.

    :param size: bytes of the file
    :raises BadFile: there are too many ranges to be joined
    """
    needed, optional = _collected(hots, size)
    ranges = joined(needed)
    before = _bytes_of(ranges)
    if len(ranges) > limits.ranges:
        count = len(ranges)
        ranges = coarsened(ranges, limits.ranges)
        if _bytes_of(ranges) - before > size * _MAX_JOINED_SHARE:
            raise BadFile(
                'index', 'lies in %d places, and the server takes %d ranges; '
                'joined they would be %d %% of the file' % (
                    count, limits.ranges, 100 * _bytes_of(ranges) // size))
    nice = joined(optional)
    room = int(size * limits.share)
    blocks = in_blocks(ranges, size)
    if _bytes_of(blocks) <= room:
        ranges, nice = blocks, in_blocks(nice, size)
    taken = _thinned(nice, limits.ranges - len(ranges),
                     room - _bytes_of(ranges))
    ranges = joined(ranges + taken)
    return Plan(ranges, _bytes_of(ranges), len(nice) - len(taken))


def joined(ranges: Iterable[Range]) -> List[Range]:
    """Sorted, with ranges joined that overlap or nearly touch."""
    made: List[Range] = []
    for offset, length in sorted(ranges):
        if not _append(made, offset, length):
            made.append((offset, length))
    return made


def in_blocks(ranges: Iterable[Range], size: int) -> List[Range]:
    """The whole blocks of these ranges, as servers check them.

    :param size: bytes of the file: its last block is shorter
    """
    made = []
    for offset, length in ranges:
        start = offset // BLOCK_BYTES * BLOCK_BYTES
        end = min(size, blocks_of(offset + length) * BLOCK_BYTES)
        made.append((start, end - start))
    return joined(made)


def coarsened(ranges: List[Range], count: int) -> List[Range]:
    """At most ``count`` ranges that cover these, with the fewest bytes more.

    :param ranges: sorted, without overlaps
    """
    if len(ranges) <= count:
        return ranges
    cuts = sorted(heapq.nlargest(
        count - 1, range(1, len(ranges)),
        key=lambda at: ranges[at][0] - sum(ranges[at - 1])))
    return [(ranges[first][0], sum(ranges[last - 1]) - ranges[first][0])
            for first, last in zip([0, *cuts], [*cuts, len(ranges)])]


def _collected(hots: Iterable[Hot],
               size: int) -> Tuple[List[Range], List[Range]]:
    needed: List[Range] = []
    optional: List[Range] = []
    for hot in hots:
        offset = max(0, hot.offset)
        length = min(size, hot.offset + hot.length) - offset
        ranges = needed if hot.is_needed else optional
        if length <= 0 or _append(ranges, offset, length):
            continue
        if len(ranges) >= _MAX_RANGES:
            raise BadFile('index', 'lies in more than %d places'
                          % _MAX_RANGES, offset)
        ranges.append((offset, length))
    return needed, optional


def _append(made: List[Range], offset: int, length: int) -> bool:
    """Join with the last range, if it is near."""
    if not made:
        return False
    last, last_length = made[-1]
    end = last + last_length
    if not last <= offset <= end + _NEAR_BYTES:
        return False
    made[-1] = (last, max(end, offset + length) - last)
    return True


def _thinned(ranges: List[Range], count: int, room: int) -> List[Range]:
    if not ranges or count <= 0 or room <= 0:
        return []
    step = max(1, -(-len(ranges) // count), -(-_bytes_of(ranges) // room))
    while step <= len(ranges):
        taken = ranges[::step]
        if _bytes_of(taken) <= room:
            return taken
        step += max(1, step // 8)
    return []


def _bytes_of(ranges: Iterable[Range]) -> int:
    return sum(length for _, length in ranges)
