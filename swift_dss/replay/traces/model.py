"""A trace in memory: one row a request, in columns.

Objects and accounts are numbers in the order of their first request, so
that a replay needs no names. A volume of a block trace is one object.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Callable, Dict, List, Optional

from swift_dss.core.errors import BadConfig, DssError
from swift_dss.replay.traces import spool
# Exported: every reader of traces takes it from here.
from swift_dss.replay.traces.spool import numpy as numpy  # noqa: PLC0414

#: Of a volume of a trace; the ends of requests stay far below 64 bits.
MAX_VOLUME_BYTES = 1 << 60
#: Of a trace: an array each, a row a request.
COLUMNS = ('at_ms', 'verbs', 'objects', 'starts', 'lengths', 'sizes',
           'class_ids', 'accounts', 'clients')


class BadTrace(DssError):
    """The trace is missing, damaged, or in the wrong format.

    :param place: ``line 7``, ``record 12``; '' if it is the whole file
    :param field: the one at fault; '' if no field is
    """

    exit_code = 65
    counter = 'bad_traces'

    def __init__(self, source: str, place: str, field: str,
                 reason: str) -> None:
        super().__init__(': '.join(
            part for part in (source, place, field, reason) if part))


class Verb(IntEnum):
    """The verb of a request."""

    READ = 0
    WRITE = 1
    DELETE = 2


@dataclass
class Trace:
    """Requests, one a row of the columns (numpy arrays of one length).

    :param at_ms: never falls
    :param objects: numbers from 0
    :param starts: first byte
    :param lengths: bytes; at least 1
    :param sizes: bytes of the whole object at that time
    :param accounts: numbers from 0; no account knows of another
    :param clients: numbers; requests of one follow one another
    :param object_names: by number; may be empty if unused
    :param timed: False if ``at_ms`` is only the order of requests
    :param unit_bytes: of volumes, whose blocks are written in place: unit
        of a cache of them; 0: objects
    :param part_bytes: of objects: they come from the cloud in such parts; 0:
        as whole objects
    :param ranked: classes from the lowest to the highest, if the trace's
        author ranks them otherwise than by number
    """

    name: str
    at_ms: Any
    verbs: Any
    objects: Any
    starts: Any
    lengths: Any
    sizes: Any
    class_ids: Any
    accounts: Any
    clients: Any
    object_names: List[str] = field(default_factory=list)
    account_names: List[str] = field(default_factory=list)
    timed: bool = True
    unit_bytes: int = 0
    part_bytes: int = 0
    ranked: List[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.objects)

    def classes(self) -> List[int]:
        """The class ids that occur, sorted."""
        return sorted({class_id for rows in spool.slices(len(self))
                       for class_id in numpy().unique(
                           self.class_ids[rows]).tolist()})


class Builder:
    """Rows one after another, to a :class:`Trace`.

    :param keep_names: of objects; they take most of the memory
    """

    def __init__(self, name: str, timed: bool = True, unit_bytes: int = 0,
                 keep_names: bool = False) -> None:
        self._name = name
        self._timed = timed
        self._unit_bytes = unit_bytes
        self._keep_names = keep_names
        self._objects: Dict[Any, int] = {}
        self._accounts: Dict[str, int] = {}
        self._columns = {name: spool.Column(kind) for name, kind in (
            ('at_ms', 'd'), ('verbs', 'B'), ('objects', 'I'),
            ('starts', 'q'), ('lengths', 'q'), ('sizes', 'q'),
            ('class_ids', 'B'), ('accounts', 'I'))}
        self._add: List[Callable[[Any], None]] = [
            column.rows.append for column in self._columns.values()]
        self._verbs = self._columns['verbs'].rows
        self._spilled = 0

    def __len__(self) -> int:
        return self._spilled + len(self._verbs)

    def add(self, at_ms: float, verb: int, object_id: Any, start: int,
            length: int, size: int, class_id: int = 0,
            account: str = '') -> None:
        """One request more."""
        objects, accounts = self._objects, self._accounts
        number = objects.get(object_id)
        if number is None:
            number = objects[object_id] = len(objects)
        owner = accounts.get(account)
        if owner is None:
            owner = accounts[account] = len(accounts)
        for append, value in zip(self._add, (
                at_ms, verb, number, start, length, size, class_id, owner)):
            append(value)
        if len(self._verbs) == spool.MEMORY_ROWS:
            self._spilled += len(self._verbs)
            for column in self._columns.values():
                column.spill()

    def build(self, clients: Optional[spool.Column] = None) -> Trace:
        """The trace; volumes end where their last request ends.

        :param clients: one a row; None: those of an account are one

        :raises BadTrace: it has no request
        """
        np = numpy()
        if not len(self):
            raise BadTrace(self._name, '', '', 'no requests in it')
        made = {name: column.whole()
                for name, column in self._columns.items()}
        made['clients'] = made['accounts'] if clients is None \
            else clients.whole()
        at_ms = made['at_ms']
        names = [str(object_name) for object_name in self._objects] \
            if self._keep_names else []
        trace = Trace(name=self._name, object_names=names,
                      account_names=list(self._accounts),
                      timed=self._timed, unit_bytes=self._unit_bytes,
                      **made)
        if any((at_ms[rows.start + 1:rows.stop + 1]
                < at_ms[rows.start:rows.stop][:len(at_ms) - rows.start - 1]
                ).any() for rows in spool.slices(len(at_ms))):
            # Lines of several writers may be a little out of order.
            order = np.argsort(at_ms, kind='stable')
            trace = renumbered(replace(trace, **{
                name: column[order] for name, column in made.items()}))
        if self._unit_bytes:
            trace.sizes = _volume_sizes(trace)
        return trace


def renumbered(trace: Trace) -> Trace:
    """Objects and accounts numbered in the order of their first request.

    A copy of a trace is numbered so too, and rules of classes look at
    the numbers.
    """
    objects, old = _first_come(trace.objects)
    names = [trace.object_names[number] for number in old.tolist()] \
        if trace.object_names else []
    accounts, old = _first_come(trace.accounts)
    owners = [trace.account_names[number] for number in old.tolist()] \
        if trace.account_names else []
    clients = accounts if trace.clients is trace.accounts or \
        (trace.clients == trace.accounts).all() else trace.clients
    return replace(trace, objects=objects, object_names=names,
                   accounts=accounts, account_names=owners, clients=clients)


def _first_come(numbers: Any) -> Any:
    """(new numbers, the old one of each), in the order of appearance."""
    np = numpy()
    unique, first, inverse = np.unique(
        numbers, return_index=True, return_inverse=True)
    order = np.argsort(first, kind='stable')
    place = np.empty(len(order), dtype='int64')
    place[order] = np.arange(len(order))
    return place[inverse.reshape(-1)], unique[order]


def _volume_sizes(trace: Trace) -> Any:
    np = numpy()
    ends = np.zeros(int(trace.objects.max()) + 1, dtype='int64')
    for rows in spool.slices(len(trace)):
        np.maximum.at(ends, trace.objects[rows],
                      trace.starts[rows] + trace.lengths[rows])
    return spool.made('q', len(trace), lambda rows: ends[trace.objects[rows]])


def spread(trace: Trace, rate: float) -> Trace:
    """A trace without times gets ``rate`` requests a second."""
    if not trace.timed:
        trace.at_ms = spool.made('d', len(trace), lambda rows: (
            numpy().arange(rows.start, rows.stop) * (1000.0 / rate)))
    return trace


def beginning(trace: Trace, count: int) -> Trace:
    """The first ``count`` requests.

    :raises BadConfig: that is none
    """
    if count < 1:
        raise BadConfig('--limit: %d is not at least 1' % count)
    return replace(trace, **{
        column: getattr(trace, column)[:count] for column in COLUMNS})


def joined(traces: List[Trace], name: Optional[str] = None) -> Trace:
    """Several traces at the same time, each with accounts of its own.

    :raises BadConfig: some keep whole objects and some do not
    """
    if len(traces) == 1:
        return traces[0]
    np = numpy()
    if len({bool(trace.unit_bytes) for trace in traces}) > 1:
        raise BadConfig('traces of objects and traces of blocks cannot be '
                        'replayed together')
    columns = {}
    for column in ('at_ms', 'verbs', 'starts', 'lengths', 'sizes',
                   'class_ids'):
        columns[column] = np.concatenate(
            [getattr(trace, column) for trace in traces])
    for column in ('objects', 'accounts', 'clients'):
        shift, parts = 0, []
        for trace in traces:
            part = getattr(trace, column).astype('int64')
            parts.append(part + shift)
            shift += int(part.max()) + 1
        columns[column] = np.concatenate(parts)
    columns['at_ms'] = np.concatenate(
        [trace.at_ms - trace.at_ms[0] for trace in traces])
    order = np.argsort(columns['at_ms'], kind='stable')
    return Trace(
        name=name or '+'.join(trace.name for trace in traces),
        object_names=sum((trace.object_names for trace in traces), [])
        if all(trace.object_names for trace in traces) else [],
        account_names=sum((trace.account_names for trace in traces), []),
        timed=all(trace.timed for trace in traces),
        unit_bytes=max(trace.unit_bytes for trace in traces),
        part_bytes=max(trace.part_bytes for trace in traces),
        **{column: values[order] for column, values in columns.items()})
