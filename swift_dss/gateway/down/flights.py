"""Single flight: one read of a part from S3, however many want it.

A flight is one part of one version on its way. Its leader publishes
verified blocks in order; readers join, read blocks as they come and leave
when they like. A flight that failed is forgotten before its readers hear
of it, so an error is never cached. The number of flights whose bytes are
in memory is bounded; flights that are stored locally give their memory up
first, and their readers go on from local disk.
"""

from __future__ import annotations

import threading
import time
from typing import Callable, Dict, List, Optional, Tuple

from swift_dss.core.errors import DssError
from swift_dss.core.version import VersionId

#: Version (with its device) and offset of the part.
FlightKey = Tuple[VersionId, int]
#: Interval in which a waiting reader checks if S3 still answers.
LOOK_SECONDS = 0.25


class Flight:
    """One part on its way.

    :param offset: of the part in the version
    :param ahead: fetched ahead of readers
    """

    def __init__(self, key: FlightKey, offset: int,
                 ahead: bool = False) -> None:
        self.key = key
        self.offset = offset
        self.ahead = ahead
        self.readers = 0
        self.stored = False
        self._ready = threading.Condition()
        self._blocks: List[bytes] = []
        self._published = 0
        self._finished = False
        self._cleared = False
        self._error: Optional[DssError] = None

    @property
    def finished(self) -> bool:
        """True once the leader is through."""
        with self._ready:
            return self._finished

    def publish(self, block: bytes) -> None:
        """The leader: the next verified bytes."""
        with self._ready:
            self._blocks.append(block)
            self._published += len(block)
            self._ready.notify_all()

    def finish(self, error: Optional[DssError], stored: bool) -> None:
        """The leader: nothing more comes."""
        with self._ready:
            self._finished = True
            self._error = error
            self.stored = stored
            self._ready.notify_all()

    def wait(self, deadline: float) -> bool:
        """True once the leader has finished, and has stored the part if it
        could.

        :param deadline: ``time.monotonic`` until which to wait
        """
        with self._ready:
            return self._ready.wait_for(
                lambda: self._finished, max(0.0, deadline - time.monotonic()))

    def clear(self) -> None:
        """Let the bytes go; readers turn to local disk."""
        with self._ready:
            self._cleared = True
            self._blocks = []

    def read(self, offset: int, length: int, deadline: float,
             look: Callable[[], None] = lambda: None) -> Optional[bytes]:
        """Some bytes (1 to ``length``) from ``offset`` of the *version*;
        None if they must be looked for again: the flight gave its memory
        up (local disk has them) or is of a part that ends before them.

        :param deadline: ``time.monotonic`` to wait for the first of them
        :param look: called now and then; its exception ends the wait
        :raises DssError: the leader failed before these bytes
        :raises TimeoutError: the deadline passed
        """
        at = offset - self.offset
        with self._ready:
            while at >= self._published and not self._finished:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError('no verified byte in time')
                look()
                self._ready.wait(min(left, LOOK_SECONDS))
            if self._cleared:
                return None
            for block in self._blocks:
                if at < len(block):
                    return block[at:at + length]
                at -= len(block)
            if self._error is not None:
                raise self._error
        return None


class Flights:
    """All flights of the node. Thread-safe.

    :param limit: most flights whose bytes are in memory
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._changed = threading.Condition()
        self._current: Dict[FlightKey, Flight] = {}
        self._held: List[Flight] = []

    def join(self, key: FlightKey, deadline: float,
             lead: Callable[[Flight], None],
             ahead: bool = False, keep_free: int = 0,
             look: Callable[[], None] = lambda: None) -> Optional[Flight]:
        """The flight of ``key``, begun with ``lead`` if there is none.

        The caller MUST :meth:`leave` it. Waits for room in memory.

        :param lead: hands the flight to a leader; MUST NOT block
        :param ahead: the caller does not read; a flight with only such callers
            may be given up
        :param keep_free: begin none with less room than this left
        :param look: called now and then; its exception ends the wait
        :returns: None if there was no room by ``deadline``
        """
        with self._changed:
            while True:
                flight = self._current.get(key)
                if flight is not None:
                    flight.readers += 1
                    flight.ahead = flight.ahead and ahead
                    return flight
                if len(self._held) < self._limit - keep_free or \
                        self._reclaim():
                    break
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                look()
                self._changed.wait(min(left, LOOK_SECONDS))
            flight = Flight(key, key[1], ahead)
            flight.readers = 1
            self._current[key] = flight
            self._held.append(flight)
            try:
                lead(flight)
            except BaseException:
                del self._current[key]
                self._held.remove(flight)
                raise
            return flight

    def leave(self, flight: Flight) -> None:
        """A reader is through with ``flight``."""
        with self._changed:
            flight.readers -= 1
            self._release(flight)

    def given_up(self, flight: Flight) -> bool:
        """True if a flight that was begun ahead of readers is not wanted any
        more. It cannot be joined then, and its leader MUST land it.
        """
        with self._changed:
            if not flight.ahead or flight.readers:
                return False
            if self._current.get(flight.key) is flight:
                del self._current[flight.key]
            return True

    def land(self, flight: Flight, error: Optional[DssError],
             stored: bool) -> None:
        """End a flight: the next caller begins a new one."""
        with self._changed:
            if self._current.get(flight.key) is flight:
                del self._current[flight.key]
            flight.finish(error, stored)
            self._release(flight)

    def abandon(self) -> None:
        """Let no caller join the flights under way, because their bytes do not
        come. Callers that have joined stay.
        """
        with self._changed:
            self._current.clear()

    def counts(self) -> Tuple[int, int]:
        """(flights on their way, flights in memory)."""
        with self._changed:
            return len(self._current), len(self._held)

    def _release(self, flight: Flight) -> None:
        if flight.finished and not flight.readers and flight in self._held:
            self._held.remove(flight)
            self._changed.notify_all()

    def _reclaim(self) -> bool:
        for flight in self._held:
            if flight.finished and flight.stored:
                flight.clear()
                self._held.remove(flight)
                return True
        return False
