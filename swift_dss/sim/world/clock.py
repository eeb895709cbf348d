"""Time and chance of a simulation: both come from the seed.

The product asks ``time`` and ``uuid`` directly. A process that simulates does
nothing else, so :func:`installed` exchanges those functions for the whole
process while a run lasts.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
import uuid
from typing import Any, Iterator, List, Optional, Tuple

#: Where every run begins, seconds since the epoch. Files carry the times of
#: the real clock, so all of them are old, and no age of a file decides.
START = 4000000000.0
_wait = threading.Event.wait


class Clock:
    """Simulated seconds; they pass only by :meth:`pass_`.

    :param dice: of the run
    """

    def __init__(self, dice: random.Random) -> None:
        self.now = START
        self._dice = dice
        self._skew = 0.0
        self._thread = threading.get_ident()

    def wall(self) -> float:
        """What ``time.time`` says on the node that works now."""
        return self.now + self._skew

    @contextlib.contextmanager
    def ahead(self, seconds: float) -> Iterator[None]:
        """A node works whose clock is so far ahead."""
        before, self._skew = self._skew, seconds
        try:
            yield
        finally:
            self._skew = before

    def monotonic(self) -> float:
        """What ``time.monotonic`` says."""
        return self.now - START + 1000.0

    def pass_(self, seconds: float) -> None:
        """Let time go by."""
        self.now += seconds

    def wait(self, event: threading.Event,
             seconds: Optional[float] = None) -> bool:
        """As ``threading.Event.wait``. Only this thread runs, so the event is
        not set during the wait.
        """
        if threading.get_ident() != self._thread or seconds is None:
            return _wait(event, seconds)
        if not event.is_set():
            self.pass_(max(0.0, seconds))
        return event.is_set()

    def uuid4(self) -> uuid.UUID:
        """What ``uuid.uuid4`` gives."""
        return uuid.UUID(int=self._dice.getrandbits(128), version=4)


@contextlib.contextmanager
def installed(clock: Clock) -> Iterator[None]:
    """Have the whole process live by ``clock``."""
    exchanged: List[Tuple[Any, str, Any]] = [
        (time, 'time', clock.wall), (time, 'monotonic', clock.monotonic),
        (time, 'sleep', clock.pass_), (threading.Event, 'wait',
                                       lambda *said: clock.wait(*said)),
        (uuid, 'uuid4', clock.uuid4)]
    before = [(module, name, getattr(module, name))
              for module, name, _ in exchanged]
    for module, name, value in exchanged:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)
