"""An order that knows every request beforehand, as a real cache could run it.

Belady's rule, for sizes and worths: where room is short, that reuse goes whose
worth for a byte, less the rents until its end, is the least. All reuses pay
the same rent for the time that they are both there, so that this does not
change while they wait. With equal sizes and worths that is the reuse which
ends last (Belady, "A Study of Replacement Algorithms", IBM Systems Journal
1966). At no access do the kept reuses have more than the room.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any, Iterator, List, Tuple

from swift_dss.replay.bounds.rents import Market, Rents
from swift_dss.replay.traces.model import numpy

_SLICE = 1 << 16
#: States of a reuse. One that is waiting and is not sent away is kept.
_NOT_KEPT, _WAITING, _KEPT = 0, 1, 2
#: Entries of the heap that may be of reuses long over.
_STALE = 1024


def kept(market: Market, rents: Rents) -> Any:
    """By reuse, whether the order keeps it; the room is always enough."""
    np = numpy()
    state = bytearray(len(market.reuses))
    leaving = _leaving(market)
    end, leaver, leaver_size = next(leaving)
    heap: List[Tuple[float, int, int]] = []
    used, waiting, room = 0, 0, int(market.room)
    for begin, number, size, priority in _coming(market, rents):
        while end <= begin:
            if state[leaver] == _WAITING:
                state[leaver] = _KEPT
                used -= leaver_size
                waiting -= 1
            end, leaver, leaver_size = next(leaving)
        state[number] = _WAITING
        used += size
        waiting += 1
        heappush(heap, (priority, -number, size))
        while used > room:
            # Of two alike, the one that ends last goes.
            _, victim, victim_size = heappop(heap)
            if state[-victim] == _WAITING:
                state[-victim] = _NOT_KEPT
                used -= victim_size
                waiting -= 1
        if len(heap) > 2 * waiting + _STALE:
            heap = [entry for entry in heap if state[-entry[1]] == _WAITING]
            heapify(heap)
    return np.frombuffer(bytes(state), dtype='uint8') != _NOT_KEPT


def _leaving(market: Market) -> Iterator[Tuple[int, int, int]]:
    """(end, number, bytes) of each reuse, in their order."""
    reuses = market.reuses
    for begin in range(0, len(reuses), _SLICE):
        rows = slice(begin, begin + _SLICE)
        yield from zip(reuses.ends[rows].tolist(),
                       range(begin, begin + _SLICE),
                       reuses.sizes[rows].tolist())
    yield reuses.accesses + 1, -1, 0


def _coming(market: Market, rents: Rents
            ) -> Iterator[Tuple[int, int, int, float]]:
    """(begin, number, bytes, priority) of each reuse, by their begins."""
    reuses, each = market.reuses, market.worth.each
    order = numpy().argsort(reuses.begins, kind='stable')
    for begin in range(0, len(reuses), _SLICE):
        rows = order[begin:begin + _SLICE]
        sizes = reuses.sizes[rows]
        priorities = each[rows] / sizes - rents.until(
            reuses.ends[rows].astype('int64'))
        yield from zip(reuses.begins[rows].tolist(), rows.tolist(),
                       sizes.tolist(), priorities.tolist())
