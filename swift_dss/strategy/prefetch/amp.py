"""AMP: as many units ahead as each stream needs, as early as it needs them.

Gill and Bathen, "AMP: Adaptive Multi-stream Prefetching in a Shared Cache",
FAST'07, sections 4 and 5. A stream has a degree ``p`` (units fetched at a
time) and a trigger distance ``g`` (how many of them are left when the next are
requested). The rules, by the numbers that the comments below use:

1. A miss right after a known unit is sequential: ``p`` units come with it.
2. A new read set takes over ``p`` and ``g`` of the one before it, where
   ``p`` is at least ``g + 1``; the unit ``g`` before its last is tagged. The
   first set of a stream has ``g = p / 2``.
3. Only with ``p > 4`` are units fetched ahead of a hit.
4. A hit on a tagged unit asks for the ``p`` units after its set.
5. A hit on the last unit of a set, unless it is old: ``p`` grows by the
   size of the request. The stream uses all that it gets.
6. An unread prefetched unit that is about to leave is kept once if its stream
   goes on, marked old, loses its tag, and ``p`` falls by one.
7. A reader that waits for the first unit of a set as it comes: ``g`` grows by
   one. The unit was requested too late.
8. When ``p`` falls, ``g`` becomes ``min(p - 1, g - 1)``; always ``g < p``.

Differences from the paper: all sets of a stream share one object with ``p``
and ``g``. The paper keeps them in the last unit of each set; but a set that
was requested before the last unit of its predecessor was hit would never see
that increment. Units of S3 are larger than reads, so "after a known unit" is
judged by bytes. The time of a fetch and the speed of a stream are measured (by
class, moving average). A first set starts with the trigger distance that
follows from them, and rule 7 may double it up to there: S3 takes as long as a
thousand reads, and with one step for each late unit a stream would end before
it reached that distance. A stream that ends before its set does costs bytes
in vain, and the paper's caches do not pay for bytes: here no set goes further
than most streams of its account and class went
(:mod:`~swift_dss.strategy.prefetch.lengths`).

There is no table of streams: state hangs on units, the least recently used
forgotten first.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Hashable, List, Optional, Tuple

from swift_dss.strategy.prefetch.base import (
    Access, Prefetch, Settings, Urgency, Want)
from swift_dss.strategy.prefetch.lengths import Kind, Lengths

#: Degree of a stream's first set, units: just enough for the second set to
#: come ahead (rule 3).
FIRST_DEGREE = 5
#: Rule 3: no fetching ahead of hits at or below it.
ASYNC_ABOVE = 4
#: Pairs of account and class whose fetches are timed, and whose streams'
#: lengths are known.
TIMED_KINDS = 256
#: Bytes of a unit's state and its share of a stream's: where streams are
#: short each has few units (``replay --measure``, CPython 3.11).
UNIT_STATE_BYTES = 576
#: Weight of the newest of the measured times.
_NEWEST = 0.25

_Key = Tuple[str, Hashable, int]


class Run:
    """A stream, as its units see it.

    :ivar degree: ``p``
    :ivar trigger: ``g``
    :ivar until: the unit after the last that was asked for
    :ivar unit_seconds: in which it reads one unit while it does not have
        to wait; 0 if not known yet
    :ivar read_at: when it was read last
    :ivar waited: its last read had to
    :ivar class_id: when it was found
    :ivar since: where the read ended by which it was found, bytes
    :ivar gone_on: how far it was read from there, units
    """

    __slots__ = ('class_id', 'degree', 'gone_on', 'read_at', 'since',
                 'trigger', 'unit_seconds', 'until', 'waited')

    def __init__(self, degree: int, trigger: int, class_id: int,
                 since: int, read_at: float) -> None:
        self.degree = degree
        self.trigger = trigger
        self.class_id = class_id
        self.since = since
        self.read_at = read_at
        self.gone_on = 0.0
        self.until = 0
        self.unit_seconds = 0.0
        self.waited = True


class Unit:
    """The state of a unit.

    :ivar run: whose set it came with; None if it came on demand
    :ivar reached: where the last read of it ended, bytes from the
        beginning of the object
    :ivar at: when that was; of an unread unit, when it was requested
    :ivar place: its place in its set
    """

    __slots__ = ('arrived', 'at', 'old', 'place', 'reached', 'run', 'tag',
                 'used')

    FIRST = 1
    LAST = 2
    NEVER = -1 << 62

    def __init__(self, run: Optional[Run], place: int = 0) -> None:
        self.run = run
        self.place = place
        self.reached = self.NEVER
        self.at = 0.0
        self.tag = self.old = self.used = self.arrived = False


class Amp(Prefetch):
    """See above; the contract is :class:`Prefetch`."""

    name = 'amp'

    def __init__(self, settings: Settings,
                 first_degree: int = FIRST_DEGREE) -> None:
        self._first_degree = min(first_degree, settings.max_degree - 1)
        self._unit_bytes = settings.unit_bytes
        self._max_degree = settings.max_degree
        self._limit = max(1, settings.state_bytes // UNIT_STATE_BYTES)
        self._units: OrderedDict[_Key, Unit] = OrderedDict()
        #: Account and class id to the seconds that a fetch takes.
        self._fetch_seconds: OrderedDict[Tuple[str, int], float] = \
            OrderedDict()
        self._lengths = Lengths(self._first_degree, TIMED_KINDS)

    # -- what it is told -------------------------------------------------

    def on_request(self, access: Access, room_bytes: int) -> List[Want]:
        """See :meth:`Prefetch.on_request`."""
        before = self.before(access)
        if before is not None and before.run is not None:
            self._pace(before.run, access, before.at)
        first, last = self._span(access.offset, access.length)
        lost = not access.hit and not self._is_coming(access, first, last)
        tagged = None if lost else self._use(access, first, last)
        run = tagged
        if lost and before is not None:
            run = self._run_after(before, access)
        self._remember(access, last, run or (
            before.run if before is not None else None))
        if run is None or run is tagged and run.degree <= ASYNC_ABOVE:
            return []  # rule 3
        if run is tagged:
            return self._ask(access, run, run.until,
                             run.until * self._unit_bytes, room_bytes)
        return self._ask(access, run, last + 1,
                         access.offset + access.length, room_bytes)

    def before(self, access: Access) -> Optional[Unit]:
        """The unit that ``access`` goes on after, if it is sequential:
        it begins where a read ended, or no more than its own length
        beyond."""
        unit = access.offset // self._unit_bytes
        for number in (unit, unit - 1):
            stream = self._units.get(
                (access.account, access.object_id, number))
            if stream is not None and \
                    0 <= access.offset - stream.reached <= access.length:
                return stream
        return None

    def on_arrival(self, account: str, object_id: Hashable, offset: int,
                   length: int, waited: bool, now: float) -> None:
        """See :meth:`Prefetch.on_arrival`."""
        for number in self._numbers(offset, length):
            unit = self._units.get((account, object_id, number))
            if unit is None or unit.run is None or unit.arrived:
                continue
            unit.arrived = True
            run = unit.run
            if unit.place & Unit.FIRST:
                if not unit.used:
                    self._time((account, run.class_id), now - unit.at)
                if waited:
                    self._too_late(account, run)

    def on_dropped(self, account: str, object_id: Hashable, offset: int,
                   length: int, now: float) -> None:
        """See :meth:`Prefetch.on_dropped`."""
        for number in self._numbers(offset, length):
            unit = self._units.get((account, object_id, number))
            if unit is not None and not unit.used:
                del self._units[account, object_id, number]
                if unit.run is not None:
                    unit.run.until = min(unit.run.until, number)

    def on_last_chance(self, account: str, object_id: Hashable, offset: int,
                       length: int, now: float) -> bool:
        """See :meth:`Prefetch.on_last_chance`."""
        spare = False
        for number in self._numbers(offset, length):
            unit = self._units.get((account, object_id, number))
            if unit is None or unit.used or unit.old or unit.run is None:
                continue
            run = unit.run
            # Rule 6; a stream goes on that was read after half of the time.
            spare |= now - run.read_at <= run.read_at - unit.at
            unit.old = True
            unit.tag = False
            run.degree = max(1, run.degree - 1)
            run.trigger = max(0, min(run.degree - 1, run.trigger - 1))
        return spare

    def on_evict(self, account: str, object_id: Hashable, offset: int,
                 length: int, used: bool, now: float) -> None:
        """See :meth:`Prefetch.on_evict`."""
        for number in self._numbers(offset, length):
            self._units.pop((account, object_id, number), None)

    def state_bytes(self) -> int:
        """See :meth:`Prefetch.state_bytes`."""
        return len(self._units) * UNIT_STATE_BYTES

    # -- inside ----------------------------------------------------------

    def _span(self, offset: int, length: int) -> Tuple[int, int]:
        """First and last unit; of a long range only its last units."""
        last = (offset + length - 1) // self._unit_bytes
        first = offset // self._unit_bytes
        return max(first, last - self._max_degree + 1), last

    def _numbers(self, offset: int, length: int) -> range:
        first, last = self._span(offset, length)
        return range(first, last + 1)

    def _is_coming(self, access: Access, first: int, last: int) -> bool:
        """True if the reader is waiting for a unit that this strategy already
        requested (not for one it failed to predict).
        """
        return all(unit is not None and unit.run is not None
                   and not unit.arrived for unit in (
                       self._units.get(
                           (access.account, access.object_id, number))
                       for number in range(first, last + 1)))

    def _use(self, access: Access, first: int, last: int) -> Optional[Run]:
        """Note a hit; the run of a tagged unit, if one was hit."""
        tagged = None
        for number in range(first, last + 1):
            unit = self._units.get(
                (access.account, access.object_id, number))
            if unit is None or unit.run is None:
                continue
            if unit.tag:
                unit.tag = False
                tagged = unit.run  # rule 4
            if unit.place & Unit.LAST and not unit.used and not unit.old:
                unit.run.degree = min(  # rule 5
                    self._max_degree - 1,
                    unit.run.degree + self._units_of(access))
            unit.used = True
        return tagged

    def _units_of(self, access: Access) -> int:
        return -(-access.length // self._unit_bytes)

    def _remember(self, access: Access, last: int,
                  run: Optional[Run]) -> None:
        """The last unit of a read is where a stream would go on."""
        key = (access.account, access.object_id, last)
        unit = self._units.pop(key, None)
        if unit is None:
            unit = Unit(None)
            unit.arrived = True
        if unit.run is None:
            unit.run = run
        unit.used = True
        unit.reached = access.offset + access.length
        unit.at = access.now
        self._keep(key, unit)

    def _run_after(self, before: Unit, access: Access) -> Run:
        """The stream that a sequential miss belongs to (rule 1)."""
        if before.run is not None:
            return before.run
        kind = access.account, access.class_id
        self._lengths.began(kind)
        degree = max(self._first_degree, self._units_of(access))
        trigger = max(degree // 2, self._measured_trigger(before, access))
        degree = max(1, min(max(degree, trigger + 1), self._max_degree - 1,
                            self._likely(kind, 0.0, access)))
        return Run(degree, min(trigger, degree - 1), access.class_id,
                   access.offset + access.length, access.now)

    def _likely(self, kind: Kind, gone_on: float, access: Access) -> int:
        """Units that a stream will likely read from here; if any, then as
        many as it reads at a time."""
        ahead = self._lengths.ahead(kind, gone_on)
        return ahead and max(ahead, self._units_of(access))

    def _too_late(self, account: str, run: Run) -> None:
        """Rule 7; up to twice as much at once where measured times say
        that it needs that."""
        fetch = self._fetch_seconds.get((account, run.class_id), 0.0)
        needed = int(fetch / run.unit_seconds) if run.unit_seconds else 0
        run.trigger = min(max(run.trigger + 1,
                              min(needed, 2 * run.trigger)),
                          self._max_degree - 2)
        run.degree = max(run.degree, run.trigger + 1)

    def _pace(self, run: Run, access: Access, before: float) -> None:
        units = access.length / self._unit_bytes
        run.read_at = access.now
        gone_on = self._gone_on(run, access)
        if gone_on > run.gone_on:
            self._lengths.went_on((access.account, run.class_id),
                                  run.gone_on, gone_on)
            run.gone_on = gone_on
        if not run.waited:
            seconds = (access.now - before) / units
            known = run.unit_seconds or seconds
            run.unit_seconds = known + (seconds - known) * _NEWEST
        run.waited = not access.hit

    def _gone_on(self, run: Run, access: Access) -> float:
        return (access.offset + access.length - run.since) / self._unit_bytes

    def _measured_trigger(self, before: Unit, access: Access) -> int:
        """The distance at which a fetch would come in time, if the stream
        goes on as fast as it did: ``t(p) <= (g + 1) / r``."""
        fetch = self._fetch_seconds.get(
            (access.account, access.class_id))
        passed = access.now - before.at
        if fetch is None or passed <= 0:
            return 0
        units = access.length / self._unit_bytes
        return min(self._max_degree, int(fetch * units / passed))

    def _ask(self, access: Access, run: Run, start: int, offset: int,
             room_bytes: int) -> List[Want]:
        """A new read set of ``p`` units from ``start`` (rule 2).

        :param offset: of the first byte: on a miss, the rest of the unit
            that was read is wanted too
        """
        unit_bytes = self._unit_bytes
        account, object_id = access.account, access.object_id
        known = self._units.get((account, object_id, start))
        if known is not None and not known.used:
            return []  # it was asked for before
        run.degree = max(run.degree, run.trigger + 1)
        stop = min((start + run.degree) * unit_bytes, access.object_bytes,
                   offset + room_bytes)
        ahead = self._likely((account, run.class_id),
                             self._gone_on(run, access), access)
        stop = min(stop, access.offset + access.length + ahead * unit_bytes)
        if stop <= offset:
            return []
        last = (stop - 1) // unit_bytes
        tag = last - run.trigger
        for number in range(start, last + 1):
            unit = Unit(run, (Unit.FIRST if number == start else 0)
                        | (Unit.LAST if number == last else 0))
            unit.tag = number == max(tag, start)
            unit.at = access.now
            self._keep((account, object_id, number), unit)
        run.until = last + 1
        urgency = Urgency.AHEAD if access.hit else Urgency.WITH_MISS
        return [Want(account, object_id, offset, stop - offset, urgency,
                     1.0, self.name)]

    def _keep(self, key: _Key, unit: Unit) -> None:
        self._units.pop(key, None)
        self._units[key] = unit
        if len(self._units) > self._limit:
            self._units.popitem(last=False)

    def _time(self, kind: Tuple[str, int], seconds: float) -> None:
        known = self._fetch_seconds.pop(kind, seconds)
        self._fetch_seconds[kind] = \
            known + (max(0.0, seconds) - known) * _NEWEST
        if len(self._fetch_seconds) > TIMED_KINDS:
            self._fetch_seconds.popitem(last=False)
