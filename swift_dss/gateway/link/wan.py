"""The link to S3, shared by class: bytes of transfers under way.

One of the two mechanisms for the decision of ``strategy.wan``; the other is
:mod:`~swift_dss.gateway.link.fair_pool`. A :class:`Lane`, one a direction,
passes pieces of transfers: a flow that is ahead of the others waits, at most
for :data:`PATIENCE_SECONDS`, because a slow flow must not delay the rest. It
also limits the size of a request while the top class is at work.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Callable, Dict, Iterator, List, Optional

from swift_dss.core.classes import ClassTable
from swift_dss.io.workers import CLOCK, Clock
from swift_dss.strategy.wan import Flow, Work, shares, top_flow

#: A flow may be this many bytes ahead of its share: less wakes threads in
#: vain, more delays a reader of the top class.
SLACK_BYTES = 128 * 1024
#: A flow that moved nothing for this long is not held against others.
PATIENCE_SECONDS = 0.25
#: The share of the link that the top class's demand reads have at least.
RESERVE = 0.8
#: Time after its last read in which the top class still counts as at work: a
#: client that reads one object after another must not meet a full link each
#: time.
LINGER_SECONDS = 1.0

#: While the top class is at work others ask for this much at a time: a server
#: cannot be held back, and a reader of the top class waits for all that it
#: sends. 20 ms of 100 Mbit/s.
SLICE_BYTES = 256 * 1024

#: Of such requests one is under way at a time. One that hangs holds up the
#: next for so long.
TURN_SECONDS = 2.0

_TableSource = Callable[[], ClassTable]
#: The flow for which the running thread uses the link.
_flow: ContextVar[Optional[Flow]] = ContextVar('dss_wan_flow', default=None)


@contextmanager
def working_for(flow: Flow) -> Iterator[None]:
    """Account the thread's transfers in this block to ``flow``."""
    token = _flow.set(flow)
    try:
        yield
    finally:
        _flow.reset(token)


def current_flow() -> Optional[Flow]:
    """The flow of the running thread; None if it said none."""
    return _flow.get()


class _Progress:
    """A flow on a lane."""

    __slots__ = ('transfers', 'served', 'moved_at')

    def __init__(self, served: float, now: float) -> None:
        self.transfers = 0
        self.served = served
        self.moved_at = now


class Lane:
    """One direction of the link. Thread-safe.

    :param table: the class table in force
    """

    def __init__(self, table: _TableSource,
                 clock: Clock = CLOCK) -> None:
        self._table = table
        self._clock = clock
        self._moved = threading.Condition()
        self._flows: Dict[Flow, _Progress] = {}
        self._shares: Dict[Flow, float] = {}
        self._top_at = -LINGER_SECONDS
        self._slices = 0
        self.waited_seconds = 0.0

    @contextmanager
    def transfer(self) -> Iterator[None]:
        """A transfer of the running thread's flow is under way."""
        flow = self.begin()
        try:
            yield
        finally:
            self.end(flow)

    def begin(self) -> Optional[Flow]:
        """Begin a transfer. Pass the result to :meth:`end`."""
        flow = current_flow()
        if flow is not None:
            self._enter(flow)
        return flow

    def end(self, flow: Optional[Flow]) -> None:
        """A transfer that had begun is over."""
        if flow is not None:
            self._leave(flow)

    def let_through(self, length: int) -> None:
        """Wait until the flow of the running thread may move ``length``
        bytes more.

        Never longer than :data:`PATIENCE_SECONDS` for one piece.
        """
        flow = current_flow()
        if flow is None:
            return
        with self._moved:
            mine = self._flows.get(flow)
            if mine is None:
                return
            until = self._clock.monotonic() + PATIENCE_SECONDS
            began = self._clock.monotonic()
            while True:
                now = self._clock.monotonic()
                if now >= until or not self._is_ahead(flow, mine, now):
                    break
                self._moved.wait(until - now)
            self.waited_seconds += max(0.0, self._clock.monotonic() - began)
            mine.served += length / max(self._shares[flow], 1e-6)
            mine.moved_at = self._clock.monotonic()
            self._moved.notify_all()

    def most_at_once(self) -> Optional[int]:
        """Bytes that the flow of the running thread may ask for in one
        request; None: any number."""
        flow = current_flow()
        if flow is None:
            return None
        with self._moved:
            return SLICE_BYTES if self._gives_way(flow) else None

    def take_turn(self) -> None:
        """Wait until such a request may go out; :meth:`end_turn` MUST
        follow. Never longer than :data:`TURN_SECONDS`."""
        flow = current_flow()
        with self._moved:
            until = self._clock.monotonic() + TURN_SECONDS
            while self._slices and flow is not None and \
                    self._gives_way(flow):
                left = until - self._clock.monotonic()
                if left <= 0:
                    break
                self._moved.wait(min(left, LINGER_SECONDS))
            self._slices += 1

    def end_turn(self) -> None:
        """It was answered, or given up."""
        with self._moved:
            self._slices -= 1
            self._moved.notify_all()

    def _gives_way(self, flow: Flow) -> bool:
        table = self._table()
        at_work = self._clock.monotonic() - self._top_at < LINGER_SECONDS or \
            top_flow(self._flows, table) is not None
        return at_work and top_flow([flow], table) is None

    def flows(self) -> List[Flow]:
        """Flows with a transfer under way."""
        with self._moved:
            return list(self._flows)

    def _is_ahead(self, flow: Flow, mine: _Progress, now: float) -> bool:
        others = [progress.served for other, progress in self._flows.items()
                  if other != flow
                  and now - progress.moved_at < PATIENCE_SECONDS]
        return bool(others) and \
            (mine.served - min(others)) * self._shares[flow] > SLACK_BYTES

    def _enter(self, flow: Flow) -> None:
        with self._moved:
            if flow not in self._flows:
                # It begins where the one that is furthest behind is.
                self._flows[flow] = _Progress(min(
                    (ahead.served for ahead in self._flows.values()),
                    default=0.0), self._clock.monotonic())
                self._share()
            self._flows[flow].transfers += 1

    def _leave(self, flow: Flow) -> None:
        with self._moved:
            mine = self._flows[flow]
            mine.transfers -= 1
            if top_flow([flow], self._table()) is not None:
                self._top_at = self._clock.monotonic()
            if not mine.transfers:
                del self._flows[flow]
                self._share()
                self._moved.notify_all()

    def _share(self) -> None:
        self._shares = shares(self._flows, self._table(), RESERVE)


class Sent:
    """Bytes on their way up, given to the link piece by piece.

    A file for an S3 client: it can be read, measured and rewound. Signing
    reads it too: only bytes read after :attr:`sending` was set go over the
    link.
    """

    def __init__(self, data: bytes, lane: Lane,
                 alive: Callable[[], None] = lambda: None) -> None:
        self._alive = alive
        self._data = memoryview(data)
        self._lane = lane
        self._at = 0
        self.sending = False

    def __len__(self) -> int:
        return len(self._data)

    def read(self, length: int = -1) -> bytes:
        """Some bytes; none at the end."""
        end = len(self._data) if length is None or length < 0 else min(
            len(self._data), self._at + length)
        piece = self._data[self._at:end]
        if len(piece) and self.sending:
            # The link took what came before.
            self._alive()
            self._lane.let_through(len(piece))
        self._at = end
        return bytes(piece)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a byte."""
        base = (0, self._at, len(self._data))[whence]
        self._at = max(0, min(base + offset, len(self._data)))
        return self._at

    def tell(self) -> int:
        """The byte that is read next."""
        return self._at

    def seekable(self) -> bool:
        """It is."""
        return True


def is_highest(flow: Flow, table: ClassTable) -> bool:
    """Is it of the highest class, and are there lower ones?"""
    ranks = {spec.rank for spec in table.specs.values()}
    return len(ranks) > 1 and \
        table.spec(flow.class_id).rank >= max(ranks)


def fill(class_id: int) -> Flow:
    """A demand read."""
    return Flow(Work.FILL, class_id)


def prefetch(class_id: int) -> Flow:
    """A read ahead of readers."""
    return Flow(Work.PREFETCH, class_id)


def scrub(class_id: int) -> Flow:
    """A copy that is read to prove it."""
    return Flow(Work.SCRUB, class_id)


def bundle(class_id: int) -> Flow:
    """Small versions that go up together."""
    return Flow(Work.BUNDLE, class_id)


def upload(class_id: int) -> Flow:
    """A version that goes up."""
    return Flow(Work.UPLOAD, class_id)
