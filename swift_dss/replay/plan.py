"""A trace prepared for a cache: keys, sizes and classes of its units.

A cache keeps whole objects, or units of ``unit_bytes`` of them. A request
for several units is a hit only if all of them are there. Objects that come in
parts (``part_bytes`` of the trace) are kept by these parts.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any, Deque, Dict, Iterator, List, Optional, Tuple

from swift_dss.core.errors import BadConfig
from swift_dss.core.limits import MAX_REPLAY_ACCESSES
from swift_dss.replay.traces.model import Trace, Verb, numpy
from swift_dss.replay.traces.sampling import Sample

#: A key is an object's number and a unit's, in one whole number.
UNIT_BITS = 32


@dataclass
class Plan:
    """Accesses, one a unit, in columns; ``first[i]`` is the first access
    of request ``i`` and ``first[i + 1]`` the first of the next.

    :param unit_bytes: 0: whole objects
    :param footprint_bytes: of all that is ever asked for
    :param renewed: by request: the object's bytes are others than at the
        last one (overwritten, deleted, or of another size)
    :param sample: the trace is one of a larger one, whose footprint this is
    """

    trace: Trace
    unit_bytes: int
    keys: Any
    sizes: Any
    class_ids: Any
    sequential: Any
    first: Any
    footprint_bytes: int
    renewed: Any
    sample: Optional[Sample] = None

    @property
    def parted(self) -> bool:
        """Whether units are parts of the gateway: each is a GET of its own."""
        return bool(self.unit_bytes) and \
            self.unit_bytes == self.trace.part_bytes

    @property
    def requests(self) -> int:
        return len(self.trace)

    @property
    def accesses(self) -> int:
        return len(self.keys)


class Turns:
    """Requests in the order in which they are made.

    In an open loop each is made when the trace says. In a closed loop a client
    waits for its answer, thinks, and makes its next request of the trace; its
    first is made when the trace says.

    :param think_seconds: None: an open loop
    """

    def __init__(self, trace: Trace, think_seconds: Optional[float]) -> None:
        self._at_ms: List[float] = trace.at_ms.tolist()
        self._think_ms: Optional[float] = None
        if think_seconds is None:
            return
        self._think_ms = 1000.0 * think_seconds
        self._clients: List[int] = trace.clients.tolist()
        self._queues: Dict[int, Deque[int]] = {}
        for row, client in enumerate(self._clients):
            self._queues.setdefault(client, deque()).append(row)
        self._due = [(self._at_ms[queue[0]], queue.popleft())
                     for queue in self._queues.values()]
        heapify(self._due)

    def __iter__(self) -> Iterator[Tuple[int, float]]:
        """(row, milliseconds); call :meth:`answered` before the next."""
        if self._think_ms is None:
            yield from enumerate(self._at_ms)
            return
        while self._due:
            at_ms, row = heappop(self._due)
            yield row, at_ms

    def answered(self, row: int, at_ms: float) -> None:
        """A client has its answer."""
        if self._think_ms is None:
            return
        queue = self._queues[self._clients[row]]
        if queue:
            heappush(self._due, (at_ms + self._think_ms, queue.popleft()))


def plan(trace: Trace, unit_bytes: int = -1,
         sample: Optional[Sample] = None) -> Plan:
    """Ready for replay.

    :param unit_bytes: 0 keeps whole objects; -1: as the trace wants
    :param sample: what the trace is one of
    :raises BadConfig: more accesses than MAX_REPLAY_ACCESSES
    """
    np = numpy()
    unit = unit_bytes
    if unit < 0:
        unit = trace.unit_bytes or trace.part_bytes
    objects = trace.objects.astype('int64')
    if not unit:
        count = len(trace)
        first = np.arange(count + 1)
        keys, sizes = objects, trace.sizes
        class_ids = trace.class_ids
    else:
        low = trace.starts // unit
        many = (trace.starts + trace.lengths - 1) // unit - low + 1
        _refuse_too_many(unit, int(many.sum()))
        first = np.concatenate(([0], np.cumsum(many)))
        request = np.repeat(np.arange(len(trace)), many)
        units = np.arange(first[-1]) - first[request] + low[request]
        keys = (objects[request] << UNIT_BITS) | units
        # The last unit of an object ends with it.
        sizes = np.minimum(unit, np.maximum(
            1, trace.sizes[request] - units * unit))
        class_ids = trace.class_ids[request]
    footprint = int(_footprint(keys, sizes) / (sample.share if sample else 1))
    return Plan(trace, unit, keys, sizes, class_ids, _sequential(trace, first),
                first, footprint, _renewed(trace), sample)


def _refuse_too_many(unit: int, accesses: int) -> None:
    if accesses > MAX_REPLAY_ACCESSES:
        raise BadConfig(
            'replay: %d accesses of units of %d byte%s are more than %d: say '
            'a larger --unit, or --limit' % (
                accesses, unit, '' if unit == 1 else 's',
                MAX_REPLAY_ACCESSES))


def _footprint(keys: Any, sizes: Any) -> int:
    np = numpy()
    unique, inverse = np.unique(keys, return_inverse=True)
    most = np.zeros(len(unique), dtype='int64')
    np.maximum.at(most, inverse.reshape(-1), sizes)
    return int(most.sum())


def _renewed(trace: Trace) -> Any:
    """Blocks are written in place; objects are replaced."""
    np = numpy()
    if trace.unit_bytes:
        return np.zeros(len(trace), dtype=bool)
    order = np.argsort(trace.objects, kind='stable')
    objects, sizes = trace.objects[order], trace.sizes[order]
    again = np.concatenate(([False], objects[1:] == objects[:-1]))
    other = np.concatenate(([False], sizes[1:] != sizes[:-1]))
    renewed = np.empty(len(trace), dtype=bool)
    renewed[order] = again & other
    return renewed | (trace.verbs != int(Verb.READ))


def _sequential(trace: Trace, first: Any) -> Any:
    """By access: its request begins where the one before it on the same
    object ended, or goes on inside a request of several units."""
    np = numpy()
    order = np.argsort(trace.objects, kind='stable')
    objects, starts = trace.objects[order], trace.starts[order]
    ends = starts + trace.lengths[order]
    goes_on = np.concatenate((
        [False], (objects[1:] == objects[:-1]) & (starts[1:] == ends[:-1])))
    by_request = np.empty(len(trace), dtype=bool)
    by_request[order] = goes_on
    many = np.diff(first)
    sequential = np.repeat(by_request, many)
    inside = np.ones(len(sequential), dtype=bool)
    inside[first[:-1]] = False
    return sequential | inside
