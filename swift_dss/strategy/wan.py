"""Share the link to S3. Pure.

A **flow** is one kind of work for one class. Flows that have something to
send share the link by weight (kind times the class's ``wan_share``), after
three promises are kept:

- each kind that wants it has its **floor**, so that reads do not starve
  uploads for ever, nor the other way round;
- demand reads of the **top class** that is at work have the **reserve**:
  at least that share of the link, however many others there are;
- nothing is left idle: other flows take the share that a flow does not use.

The order inside a pool of workers is start-time fair queueing (Goyal, Vin
and Cheng 1996): a flow that comes back after a rest neither has saved up
time nor has to make up for it.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import (
    Collection, Deque, Dict, FrozenSet, Generic, Iterable, Mapping,
    NamedTuple, Optional, TypeVar)

from swift_dss.core.classes import ClassTable


class Work(Enum):
    """Why bytes go over the link."""

    FILL = 'fill'
    UPLOAD = 'upload'
    BUNDLE = 'bundle'
    PREFETCH = 'prefetch'
    SCRUB = 'scrub'


#: Weight of each kind beside the others.
WEIGHTS = {Work.FILL: 16.0, Work.UPLOAD: 8.0, Work.BUNDLE: 8.0,
           Work.PREFETCH: 1.0, Work.SCRUB: 1.0}
#: Share of the link that a kind has when it wants it.
FLOORS = {Work.FILL: 0.1, Work.UPLOAD: 0.1, Work.BUNDLE: 0.05,
          Work.PREFETCH: 0.0, Work.SCRUB: 0.01}
#: Work that waits until the link is idle.
SPARE = frozenset((Work.PREFETCH, Work.SCRUB))


class Flow(NamedTuple):
    """One kind of work for one class."""

    work: Work
    class_id: int


_Ticket = TypeVar('_Ticket')


def top_flow(flows: Iterable[Flow], table: ClassTable,
             top_rank: Optional[int] = None) -> Optional[Flow]:
    """The demand read of the highest class, if one is there.

    :param top_rank: only of this rank and above; None: of the highest in
        the table, so that a lone bulk reader does not count as the top
    """
    if top_rank is None:
        top_rank = max((spec.rank for spec in table.specs.values()),
                       default=0)
        if len({spec.rank for spec in table.specs.values()}) < 2:
            return None  # with one class, none is above another
    fills = [flow for flow in flows if flow.work is Work.FILL
             and table.spec(flow.class_id).rank >= top_rank]
    return max(fills, key=lambda flow: table.spec(flow.class_id).rank,
               default=None)


def shares(flows: Iterable[Flow], table: ClassTable,
           reserve: float) -> Dict[Flow, float]:
    """The share of each flow that has something to send; together 1.

    :param reserve: share that the top class's demand reads have at least
    """
    active = set(flows)
    if not active:
        return {}
    weights = {flow: WEIGHTS[flow.work] * table.spec(
        flow.class_id).wan_share for flow in active}
    fractions = _with_floors(weights)
    top = top_flow(active, table)
    if top is not None and fractions[top] < reserve and len(fractions) > 1:
        rest = 1.0 - fractions[top]
        fractions = {flow: reserve if flow == top else
                     share * (1.0 - reserve) / rest
                     for flow, share in fractions.items()}
    return fractions


def _with_floors(weights: Mapping[Flow, float]) -> Dict[Flow, float]:
    total = sum(weights.values())
    kinds: Dict[Work, float] = {}
    for flow, weight in weights.items():
        kinds[flow.work] = kinds.get(flow.work, 0.0) + weight / total
    # All floors together are far below 1, so raising some kinds takes from
    # kinds above their floors, in proportion to their surplus.
    raised = {work: max(share, FLOORS[work])
              for work, share in kinds.items()}
    surplus = sum(raised.values()) - 1.0
    spare = sum(raised[work] - FLOORS[work] for work in raised)
    if surplus > 0 and spare > 0:
        raised = {work: share - surplus * (share - FLOORS[work]) / spare
                  for work, share in raised.items()}
    return {flow: raised[flow.work] * (weight / total) / kinds[flow.work]
            for flow, weight in weights.items()}


class Turns:
    """Turns of flows, start-time fair. Not thread-safe; owns no clock."""

    def __init__(self) -> None:
        self._start: Dict[Flow, float] = {}
        self._active: FrozenSet[Flow] = frozenset()
        self._virtual = 0.0

    def next(self, flows: Collection[Flow], table: ClassTable,
             reserve: float, cost: float = 1.0,
             among: Optional[Collection[Flow]] = None) -> Flow:
        """The flow that goes now; it is charged for it.

        :param flows: all that have something to send, at least one
        :param among: those of them that may go now
        """
        for flow in flows:
            if flow not in self._active:
                # After a rest a flow begins where the others are now.
                self._start[flow] = max(
                    self._start.get(flow, 0.0), self._virtual)
        self._active = frozenset(flows)
        share = shares(flows, table, reserve)
        flow = min(flows if among is None else among, key=lambda flow: (
            self._start[flow], -share[flow], flow.work.value, flow.class_id))
        self._virtual = max(self._virtual, self._start[flow])
        self._start[flow] += cost / max(share[flow], 1e-6)
        return flow

    def rest(self) -> None:
        """Reset all flows while none has anything to send, so nothing grows
        for ever.
        """
        self._start.clear()
        self._active = frozenset()
        self._virtual = 0.0


class FairQueue(Generic[_Ticket]):
    """Tickets of flows, in fair order. Not thread-safe; owns no clock."""

    def __init__(self) -> None:
        self._waiting: Dict[Flow, Deque[_Ticket]] = {}
        self._turns = Turns()

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def put(self, flow: Flow, ticket: _Ticket) -> None:
        """One more ticket, behind its flow's others."""
        self._waiting.setdefault(flow, deque()).append(ticket)

    def take(self, table: ClassTable, reserve: float,
             only_top: bool = False, may_spare: bool = True
             ) -> Optional[_Ticket]:
        """The next ticket.

        :param only_top: all but the reserved workers are busy: give only
            a demand read of the top class
        :param may_spare: if no other work waits, work without a waiting client
            may begin
        :returns: None if nothing may go now
        """
        flows = list(self._waiting)
        if only_top:
            top = top_flow(flows, table)
            may = [top] if top is not None else []
        else:
            may = [flow for flow in flows if flow.work not in SPARE]
            may = may or (flows if may_spare else [])
        if not may:
            return None
        flow = self._turns.next(flows, table, reserve, among=may)
        ticket = self._waiting[flow].popleft()
        if not self._waiting[flow]:
            del self._waiting[flow]
            if not self._waiting:
                self._turns.rest()
        return ticket


def plenty(waiting: int, running: int, workers: int,
           answers: bool) -> bool:
    """True if speculative work may begin.

    :param waiting: tickets of demand reads and due uploads
    :param answers: S3 does
    """
    return answers and not waiting and running * 2 < workers
