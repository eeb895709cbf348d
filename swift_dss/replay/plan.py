"""A trace prepared for a cache: keys, sizes and classes of its units.

A cache keeps whole objects, or units of ``unit_bytes`` of them. A request
for several units is a hit only if all of them are there. Objects that come in
parts (``part_bytes`` of the trace) are kept by these parts.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import repeat
from typing import Any, Deque, Dict, Iterator, List, Optional, Tuple

from swift_dss.core.errors import BadConfig
from swift_dss.core.limits import MAX_REPLAY_ACCESSES
from swift_dss.replay.traces import spool
from swift_dss.replay.traces.model import Trace, Verb, numpy
from swift_dss.replay.traces.sampling import Sample
from swift_dss.replay.traces.spool import drop, slices

#: A key is an object's number and a unit's, in one whole number.
UNIT_BITS = 32
#: Requests that are Python's numbers at a time.
_ASKED_ROWS = 1 << 14


@dataclass
class Accesses:
    """Those of some requests, one a unit, in columns.

    :param begin, end: the requests
    :param before: accesses of earlier requests
    :param keys: an object's number, and a unit's
    :param first: by request, and once more: its first access, counted from
        that of ``begin``
    """

    begin: int
    end: int
    before: int
    keys: Any
    sizes: Any
    class_ids: Any
    first: Any


class Plan:
    """The accesses of a trace, one a unit. They are worked out some at a
    time; whole columns are made for those who ask, and kept.

    :ivar unit_bytes: 0: whole objects
    :ivar accesses: how many there are
    :ivar most_asked_bytes: no request is for more
    :ivar footprint_bytes: of all that is ever asked for
    :ivar renewed: by request: the object's bytes are others than at the
        last one (overwritten, deleted, or of another size)
    :ivar sample: the trace is one of a larger one, whose footprint this is
    """

    def __init__(self, trace: Trace, unit_bytes: int,
                 sample: Optional[Sample] = None) -> None:
        self.trace, self.unit_bytes, self.sample = trace, unit_bytes, sample
        self.accesses, self.most_asked_bytes = _count(trace, unit_bytes)
        self.footprint_bytes = int(
            _footprint(self) / (sample.share if sample else 1))
        self.renewed = _renewed(trace)
        self._whole: Optional[Accesses] = None
        self._sequential: Any = None

    @property
    def parted(self) -> bool:
        """Whether units are parts of the gateway: each is a GET of its own."""
        return bool(self.unit_bytes) and \
            self.unit_bytes == self.trace.part_bytes

    @property
    def bytes_kind(self) -> str:
        """Type code of a column of a request's bytes."""
        return 'I' if self.most_asked_bytes < 1 << 32 else 'q'

    @property
    def requests(self) -> int:
        return len(self.trace)

    @property
    def whole(self) -> Accesses:
        """All accesses: some 25 bytes each."""
        if self._whole is None:
            self._whole = self.accesses_of(0, self.requests, 0)
        return self._whole

    @property
    def keys(self) -> Any:
        return self.whole.keys

    @property
    def sizes(self) -> Any:
        return self.whole.sizes

    @property
    def class_ids(self) -> Any:
        return self.whole.class_ids

    @property
    def first(self) -> Any:
        """By request its first access, and at the end how many there are."""
        return self.whole.first

    @property
    def sequential(self) -> Any:
        """By access: it goes on where the one before it on the same object
        ended."""
        if self._sequential is None:
            self._sequential = _sequential(self.trace, self.first)
        return self._sequential

    @property
    def largest_bytes(self) -> int:
        """Of what a cache keeps as one."""
        return max(int(part.sizes.max())
                   for part in self.slices(spool.MEMORY_ROWS))

    def slices(self, count: int) -> Iterator[Accesses]:
        """All accesses, those of ``count`` requests at a time."""
        before = 0
        for begin in range(0, self.requests, count):
            part = self.accesses_of(
                begin, min(begin + count, self.requests), before)
            yield part
            before += len(part.keys)
            if part.end % spool.MEMORY_ROWS == 0:
                drop()

    def accesses_of(self, begin: int, end: int, before: int) -> Accesses:
        """Those of requests ``begin`` to ``end``, which is not one of them.

        :param before: accesses of earlier requests
        """
        np = numpy()
        trace, unit, rows = self.trace, self.unit_bytes, slice(begin, end)
        objects, sizes = trace.objects[rows].astype('int64'), trace.sizes[rows]
        class_ids = trace.class_ids[rows]
        if not unit:
            return Accesses(begin, end, before, objects, sizes, class_ids,
                            np.arange(end - begin + 1))
        low, many = _units(trace, rows, unit)
        first = np.concatenate(([0], np.cumsum(many)))
        request = np.repeat(np.arange(end - begin), many)
        units = np.arange(first[-1]) - first[request] + low[request]
        return Accesses(
            begin, end, before, objects[request] << UNIT_BITS | units,
            # The last unit of an object ends with it.
            np.minimum(unit, np.maximum(1, sizes[request] - units * unit)),
            class_ids[request], first)


class Asked:
    """Requests one by one: verb, object, class, account, client, start,
    length, size, whether it is another object now, and a list of (key, size,
    class, whether it goes on where the last ended) of its units.

    :param sequential: whether a cache asks which units go on
    :param in_order: requests are taken one after the other; any others are
        all in memory
    """

    def __init__(self, plan: Plan, sequential: bool, in_order: bool) -> None:
        self._plan, self._sequential = plan, sequential
        self._next = self._requests()
        self._rows = None if in_order else list(self._next)

    def take(self, row: int) -> Tuple[Any, ...]:
        """A request by its number."""
        return next(self._next) if self._rows is None else self._rows[row]

    def _requests(self) -> Iterator[Tuple[Any, ...]]:
        plan, trace = self._plan, self._plan.trace
        for part in plan.slices(_ASKED_ROWS):
            rows = slice(part.begin, part.end)
            first = part.first.tolist()
            goes_on = plan.sequential[
                part.before:part.before + len(part.keys)].tolist() \
                if self._sequential else repeat(False)
            units = list(zip(part.keys.tolist(), part.sizes.tolist(),
                             part.class_ids.tolist(), goes_on))
            columns = (trace.verbs, trace.objects, trace.class_ids,
                       trace.accounts, trace.clients, trace.starts,
                       trace.lengths, trace.sizes, plan.renewed)
            for at, fields in enumerate(zip(*(
                    column[rows].tolist() for column in columns))):
                yield (*fields, units[first[at]:first[at + 1]])


class Turns:
    """Requests in the order in which they are made.

    In an open loop each is made when the trace says. In a closed loop a client
    waits for its answer, thinks, and makes its next request of the trace; its
    first is made when the trace says.

    :param think_seconds: None: an open loop
    """

    def __init__(self, trace: Trace, think_seconds: Optional[float]) -> None:
        self._trace = trace
        self._think_ms: Optional[float] = None
        if think_seconds is None:
            return
        at_ms: List[float] = trace.at_ms.tolist()
        self._think_ms = 1000.0 * think_seconds
        self._clients: List[int] = trace.clients.tolist()
        self._queues: Dict[int, Deque[int]] = {}
        for row, client in enumerate(self._clients):
            self._queues.setdefault(client, deque()).append(row)
        self._due = [(at_ms[queue[0]], queue.popleft())
                     for queue in self._queues.values()]
        heapify(self._due)

    def __iter__(self) -> Iterator[Tuple[int, float]]:
        """(row, milliseconds); call :meth:`answered` before the next."""
        if self._think_ms is None:
            yield from enumerate(
                at_ms for rows in slices(len(self._trace))
                for at_ms in self._trace.at_ms[rows].tolist())
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
    unit = unit_bytes
    if unit < 0:
        unit = trace.unit_bytes or trace.part_bytes
    return Plan(trace, unit, sample)


def _units(trace: Trace, rows: slice, unit: int) -> Tuple[Any, Any]:
    """(number of the first unit, how many units there are) of requests."""
    starts = trace.starts[rows]
    low = starts // unit
    return low, (starts + trace.lengths[rows] - 1) // unit - low + 1


def _count(trace: Trace, unit: int) -> Tuple[int, int]:
    """(accesses, bytes that no request exceeds)."""
    if not unit:
        return len(trace), max(int(trace.sizes[rows].max())
                               for rows in slices(len(trace)))
    count, most = 0, 0
    for rows in slices(len(trace)):
        many = _units(trace, rows, unit)[1]
        count, most = count + int(many.sum()), max(most, int(many.max()))
    _refuse_too_many(unit, count)
    return count, most * unit


def _refuse_too_many(unit: int, accesses: int) -> None:
    if accesses > MAX_REPLAY_ACCESSES:
        raise BadConfig(
            'replay: %d accesses of units of %d byte%s are more than %d: say '
            'a larger --unit, or --limit' % (
                accesses, unit, '' if unit == 1 else 's',
                MAX_REPLAY_ACCESSES))


def _footprint(plan: Plan) -> int:
    np = numpy()
    # The largest of each key so far, and those of slices after it.
    known: List[Tuple[Any, Any]] = []
    come = 0
    for part in plan.slices(spool.MEMORY_ROWS):
        known.append(_largest(part.keys, part.sizes))
        come += len(known[-1][0])
        if come > max(spool.MEMORY_ROWS, len(known[0][0])):
            known, come = [_joined(known)], 0
    return int(np.sum(_joined(known)[1]))


def _joined(parts: List[Tuple[Any, Any]]) -> Tuple[Any, Any]:
    np = numpy()
    return _largest(*(np.concatenate(columns) for columns in zip(*parts)))


def _largest(keys: Any, sizes: Any) -> Tuple[Any, Any]:
    """(keys, each once; the largest size of each)."""
    np = numpy()
    unique, inverse = np.unique(keys, return_inverse=True)
    most = np.zeros(len(unique), dtype='int64')
    np.maximum.at(most, inverse.reshape(-1), sizes)
    return unique, most


def _renewed(trace: Trace) -> Any:
    """Blocks are written in place; objects are replaced."""
    np = numpy()
    renewed = np.zeros(len(trace), dtype=bool)
    if trace.unit_bytes:
        return renewed
    last = np.full(max(int(trace.objects[rows].max())
                       for rows in slices(len(trace))) + 1, -1)
    for rows in slices(len(trace)):
        order = np.argsort(trace.objects[rows], kind='stable')
        objects, sizes = trace.objects[rows][order], trace.sizes[rows][order]
        begins = np.concatenate(([True], objects[1:] != objects[:-1]))
        before = np.where(begins, last[objects],
                          np.concatenate((sizes[:1], sizes[:-1])))
        last[objects[np.roll(begins, -1)]] = sizes[np.roll(begins, -1)]
        other = trace.verbs[rows] != int(Verb.READ)
        other[order] |= (before >= 0) & (before != sizes)
        renewed[rows] = other
    return renewed


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
