"""Orders other than LRU, kept in the rows of the index.

Four columns of ``span`` hold the queue and place of a row; ``order_state``
holds the rest of an order's state (its hand, its age). Both change in the
transaction of their cause. Nothing of it is held in memory but that handful of
figures for each device and class, and a restart goes on where the last run
ended. Losing the index loses only the order: versions found again come in by
their last use.

A *group* has one order: a class, or all of a device where ``[tier]
eviction`` is blind to classes. When an order is exchanged, rows that were
placed by the old one count as not placed: those are placed a few thousand
at a time, in the order of their last use, and until then unplaced rows leave
last, in that order.

Call with the index's lock held, and change rows only inside one of its
transactions.
"""

from __future__ import annotations

import sqlite3
from typing import (
    Any, Collection, Dict, List, NamedTuple, Optional, Sequence,
    Set, Tuple)

from swift_dss.core.classes import ClassTable
from swift_dss.core.config import NodeConf
from swift_dss.strategy.eviction.rows.order import (
    GONE, Candidates, Entry, Memory, Place)
from swift_dss.tier.index.memories import ALL, EPOCH, LRU, Memories, is_of
from swift_dss.tier.inforce import InForce

#: Steps of one call to :meth:`Placing.victims`, and rows that one call to
#: :meth:`Placing.settle` looks at: tens of milliseconds of the index's lock.
STEPS = 2000
#: A queue's number in a row is that of its group's order, which changes
#: with each exchange, and its own.
_QUEUES = 4
_FETCH = 64
#: The name in :class:`Memory` that says that all rows of a class are placed.
_SETTLED = '.settled.%d'
#: A row's own place, as it is stored.
Stored = Tuple[Optional[int], float, int, int]
NOWHERE: Stored = (None, 0.0, 0, 0)
_COLUMNS = ('queue', 'place', 'turn', 'uses')
COLUMNS = ', '.join(_COLUMNS)
SET_PLACE = ', '.join('%s = ?' % name for name in _COLUMNS)
#: Microseconds that a byte, and a look for it, take on what is below the
#: SSD: an HDD of 129 MB/s (the laboratory's model). Only ratios count.
LOOK_MICROSECONDS, BYTES_PER_MICROSECOND = 12800.0, 129.0


class Victim(NamedTuple):
    """A row that is to leave: its keys and bytes."""

    version_id: int
    class_id: int
    length: int


class Placing:
    """See the module.

    :param in_force: names ``[tier] eviction``, and the order of each class
    """

    def __init__(self, in_force: Optional[InForce] = None) -> None:
        self._in_force = in_force or InForce(NodeConf(), ClassTable())
        self.memories = Memories(self._in_force)
        #: By device and class: how far :meth:`settle` has come.
        self._settled_to: Dict[Tuple[int, int], Tuple[float, int]] = {}

    def cost(self, size: int, class_id: int) -> float:
        """The cost of a miss: the class's weight times the microseconds that
        it takes.
        """
        return self._in_force.table.spec(class_id).weight * (
            LOOK_MICROSECONDS + size / BYTES_PER_MICROSECOND)

    # -- changes of a row ------------------------------------------------

    def came(self, db: sqlite3.Connection, device_id: int, class_id: int,
             size: int, before: Stored = NOWHERE,
             sequential: bool = False) -> Stored:
        """The place of a row whose bytes came to the SSD."""
        group, order, memory = self.memories.of(db, device_id, class_id)
        if order is None:
            return NOWHERE
        return _stored(memory, order.came(
            memory, _place(memory, before), size,
            self.cost(size, class_id), sequential))

    def read(self, db: sqlite3.Connection, device_id: int, class_id: int,
             size: int, stored: Stored, sequential: bool) -> Stored:
        """The place of a row after a read."""
        _, order, memory = self.memories.of(db, device_id, class_id)
        if order is None:
            return NOWHERE
        place = _place(memory, stored)
        cost = self.cost(size, class_id)
        if not size:
            order.missed(memory, sequential)
            return stored
        if place is None or place.queue == GONE:
            return _stored(memory, order.came(memory, place, size, cost,
                                              sequential))
        return _stored(memory, order.read(memory, place, size, cost,
                                          sequential))

    def left(self, db: sqlite3.Connection, device_id: int, class_id: int,
             size: int, stored: Stored) -> Stored:
        """The place of a row whose bytes left the SSD. Called while they
        are there still, as far as the row says."""
        group, order, memory = self.memories.of(db, device_id, class_id)
        place = _place(memory, stored)
        if order is None or place is None:
            return NOWHERE
        rows = Rows(db, device_id, self._classes(db, device_id, group),
                    memory, ())
        kept = order.left(memory, place, size, rows)
        rows.write()
        return NOWHERE if kept is None else _stored(memory, kept)

    def names_order(self, class_id: int) -> bool:
        """Whether rows of a class have places at all."""
        return self.memories.group(class_id)[1] != LRU

    # -- victims ---------------------------------------------------------

    def victims(self, db: sqlite3.Connection, device_id: int,
                class_ids: Sequence[int], wanted: int, limit: int,
                skipped: Collection[Tuple[int, int]], dirty: bool = False
                ) -> Tuple[List[Victim], bool]:
        """The next victims, and whether there may be more.

        :param dirty: as if all were clean
        :param class_ids: of one group
        :param wanted: bytes
        :param skipped: keys of rows that cannot leave now
        """
        group, order, memory = self.memories.of(db, device_id, class_ids[0])
        if order is None:
            return [], False
        rows = Rows(db, device_id, class_ids, memory, skipped, dirty)
        order.begin(memory, rows)
        victims: List[Victim] = []
        more = True
        for _ in range(STEPS):
            if wanted <= 0 or len(victims) >= limit:
                break
            choice = order.step(memory, rows)
            if choice is None:
                more = False
                break
            if choice.leaves:
                rows.choose(choice.entry)
                victims.append(Victim(*choice.entry.key,
                                      choice.entry.size))
                wanted -= choice.entry.size
        rows.write()
        return victims, more

    def ensure(self, db: sqlite3.Connection, device_id: int, class_id: int,
               size: int, stored: Stored) -> Stored:
        """The place of a row that may have been placed by another order,
        or by none."""
        _, order, memory = self.memories.of(db, device_id, class_id)
        if order is None or not size or _place(memory, stored) is not None:
            return stored
        return self.came(db, device_id, class_id, size)

    def to_settle(self, db: sqlite3.Connection, device_id: int,
                  class_ids: Collection[int]) -> List[int]:
        """Classes whose rows may not all be placed by the order in force.

        Changes only state in memory.
        """
        settled = []
        for class_id in class_ids:
            group, name = self.memories.group(class_id)
            memory = self.memories.load(db, (device_id, group))
            if not is_of(memory, name) or \
                    name != LRU and not memory.get(_SETTLED % class_id):
                settled.append(class_id)
        return settled

    def settle(self, db: sqlite3.Connection, device_id: int,
               class_id: int) -> None:
        """Look at some rows of a class, in the order of their last use,
        and place those that are not."""
        _, order, memory = self.memories.of(db, device_id, class_id)
        if order is None:
            return
        key = (device_id, class_id)
        rows = db.execute(
            'SELECT version_id, ssd - dirty, read_at, %s FROM span WHERE '
            'device_id = ? AND class_id = ? AND movable = 1 AND ssd > dirty '
            'AND warmth != 1 AND (read_at, version_id) > (?, ?) ORDER BY '
            'read_at, version_id LIMIT ?' % COLUMNS,
            key + self._settled_to.get(key, (-1.0, -1)) + (STEPS,)).fetchall()
        for version_id, size, _, *stored in rows:
            if _place(memory, tuple(stored)) is None:
                db.execute(
                    'UPDATE span SET %s WHERE version_id = ? AND '
                    'class_id = ?' % SET_PLACE,
                    self.came(db, device_id, class_id, size)
                    + (version_id, class_id))
        if len(rows) < STEPS:
            memory[_SETTLED % class_id] = 1.0
            self._settled_to.pop(key, None)
        else:
            self._settled_to[key] = rows[-1][2], rows[-1][0]

    def unsettle(self, db: sqlite3.Connection, device_id: int,
                 class_id: int) -> None:
        """Rows of a class became candidates that were none."""
        memory = self.memories.of(db, device_id, class_id)[2]
        memory.pop(_SETTLED % class_id, None)

    # -- memory of orders --------------------------------------------------

    def flush(self, db: sqlite3.Connection) -> None:
        """Write the memory of orders; before the transaction ends."""
        self.memories.flush(db)

    def forget(self) -> None:
        """A transaction was taken back, or the file is another one."""
        self.memories.forget()
        self._settled_to.clear()

    @staticmethod
    def _classes(db: sqlite3.Connection, device_id: int,
                 group: int) -> List[int]:
        return [group] if group != ALL else [row[0] for row in db.execute(
            'SELECT class_id FROM occupancy WHERE device_id = ?',
            (device_id,))]


def _place(memory: Memory, stored: Stored) -> Optional[Place]:
    """The place of a row, if the order in force set it."""
    if stored[0] is None or stored[0] // _QUEUES != int(memory[EPOCH]):
        return None
    return Place(stored[0] % _QUEUES, *stored[1:])


def _stored(memory: Memory, place: Place) -> Stored:
    return (int(memory[EPOCH]) * _QUEUES + place.queue,
            place.at, place.turn, place.uses)


class Rows(Candidates):
    """Rows of the classes of one group, as their order sees them.

    :param skipped: keys of rows that it does not see
    :param dirty: rows count that only the SSD has
    """

    def __init__(self, db: sqlite3.Connection, device_id: int,
                 class_ids: Sequence[int], memory: Memory,
                 skipped: Collection[Tuple[int, int]],
                 dirty: bool = False) -> None:
        self._db = db
        self._kinds = (_NEXT, _NEXT_DIRTY) if dirty else (_NEXT,)
        self._device_id = device_id
        self._class_ids = class_ids
        self._memory = memory
        self._hidden: Set[Tuple[int, int]] = set(skipped)
        #: By queue: what was fetched and not popped, where to go on, and
        #: whether that itself is included.
        self._ahead: Dict[int, List[Entry]] = {}
        self._from: Dict[int, Tuple[float, int]] = {}
        self._bytes: Dict[int, int] = {}
        self._moves: List[Tuple[Any, ...]] = []

    def pop(self, queue: int) -> Optional[Entry]:
        """See :meth:`Candidates.pop`."""
        entry = self.peek(queue)
        if entry is not None:
            self._ahead[queue].pop()
        return entry

    def peek(self, queue: int) -> Optional[Entry]:
        """See :meth:`Candidates.peek`."""
        ahead = self._ahead.setdefault(queue, [])
        if not ahead:
            self._fetch(queue, ahead)
        return ahead[-1] if ahead else None

    def rewind(self, queue: int, at: Optional[float] = None) -> None:
        """See :meth:`Candidates.rewind`."""
        self._ahead[queue] = []
        self._from[queue] = (float('-inf') if at is None else at, -1)

    def move(self, entry: Entry, place: Optional[Place]) -> None:
        """See :meth:`Candidates.move`."""
        self.used_bytes(entry.place.queue)
        self._bytes[entry.place.queue] -= entry.size
        if place is not None:
            self.used_bytes(place.queue)
            self._bytes[place.queue] += entry.size
        self._moves.append((NOWHERE if place is None else _stored(
            self._memory, place)) + entry.key)

    def choose(self, entry: Entry) -> None:
        """It leaves: it is not shown again."""
        self.used_bytes(entry.place.queue)
        self._bytes[entry.place.queue] -= entry.size
        self._hidden.add(entry.key)

    def used_bytes(self, queue: int) -> int:
        """See :meth:`Candidates.used_bytes`."""
        if queue not in self._bytes:
            self._bytes[queue] = self._sum(queue)
        return self._bytes[queue]

    def within(self, queue: int, length: int) -> float:
        """See :meth:`Candidates.within`."""
        last, start = float('-inf'), (float('-inf'), -1)
        while True:
            entries = self._walk(queue, start, _FETCH)
            for entry in entries:
                length -= entry.size
                if length < 0:
                    return last
                last = entry.place.at
            if not entries:
                return last
            start = entries[-1].place.at, entries[-1].place.turn

    def write(self) -> None:
        """Bring moves to the rows."""
        self._db.executemany(
            'UPDATE span SET %s WHERE version_id = ? AND class_id = ?'
            % SET_PLACE, self._moves)
        self._moves.clear()

    def _stored_queue(self, queue: int) -> int:
        return int(self._memory[EPOCH]) * _QUEUES + queue

    def _sum(self, queue: int) -> int:
        """Sums of all queues but the first are kept; that has the rest."""
        marks = ','.join('?' * len(self._class_ids))
        kept, = self._db.execute(
            'SELECT coalesce(sum(bytes), 0) FROM queue_bytes WHERE '
            'device_id = ? AND class_id IN (%s) AND queue = ?' % marks,
            (self._device_id, *self._class_ids,
             self._stored_queue(queue or 1))).fetchone()
        if queue:
            return int(kept)
        total, = self._db.execute(
            'SELECT coalesce(sum(evictable + cleanable - cold_evictable - '
            'cold_cleanable), 0) FROM occupancy WHERE device_id = ? AND '
            'class_id IN (%s)' % marks,
            (self._device_id, *self._class_ids)).fetchone()
        return int(total - kept)

    def _fetch(self, queue: int, ahead: List[Entry]) -> None:
        """The next of all classes, the first at the end of the list."""
        self.write()
        start = self._from.get(queue, (float('-inf'), -1))
        while not ahead:
            entries = self._walk(queue, start, _FETCH)
            if not entries:
                return
            start = entries[-1].place.at, entries[-1].place.turn
            self._from[queue] = start
            ahead += [entry for entry in reversed(entries)
                      if entry.key not in self._hidden]

    def _walk(self, queue: int, start: Tuple[float, int],
              limit: int) -> List[Entry]:
        """Up to ``limit`` entries after ``start``."""
        entries: List[Entry] = []
        kinds = (_NEXT_GONE,) if queue == GONE else self._kinds
        for class_id in self._class_ids:
            for kind in kinds:
                entries += [Entry((row[0], class_id), Place(
                    queue, row[1], row[2], row[3]), row[4])
                    for row in self._db.execute(kind, (
                        self._device_id, class_id,
                        self._stored_queue(queue), *start, limit))]
        entries.sort(key=lambda entry: (entry.place.at, entry.place.turn))
        return entries[:limit]


_SELECT = ('SELECT version_id, place, turn, uses, %s FROM span WHERE '
           'device_id = ? AND class_id = ? AND queue = ? AND %s AND '
           '(place, turn) > (?, ?) ORDER BY place, turn LIMIT ?')
_NEXT = _SELECT % ('ssd - dirty', 'movable = 1 AND ssd > dirty')
_NEXT_DIRTY = _SELECT % ('dirty', 'movable = 1 AND ssd = dirty AND dirty > 0')
_NEXT_GONE = _SELECT % ('total', 'ssd = 0')
