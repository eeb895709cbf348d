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

from swift_dss.io import workers

#: Where every run begins, seconds since the epoch. Files carry the times of
#: the real clock, so all of them are old, and no age of a file decides.
START = 4000000000.0
_wait = threading.Event.wait


class Clock(workers.Clock):
    """Simulated seconds; they pass only by :meth:`pass_`.

    :param dice: of the run
    """

    def __init__(self, dice: random.Random) -> None:
        self.now = START
        self._dice = dice
        self._skew = 0.0
        self._thread = threading.get_ident()

    def wall(self) -> float:
        """``time.time`` on the node that works now."""
        return self.now + self._skew

    def set_ahead(self, seconds: float) -> float:
        """Set the skew of the working node's clock; returns the one before."""
        before, self._skew = self._skew, seconds
        return before

    def monotonic(self) -> float:
        """A replacement of ``time.monotonic``."""
        return self.now - START + 1000.0

    def pass_(self, seconds: float) -> None:
        """Let time go by."""
        self.now += seconds

    def sleep(self, seconds: float) -> None:
        """As ``time.sleep``."""
        if seconds < 0.0:
            raise ValueError('sleep length must be non-negative')
        self.pass_(seconds)

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
        """A replacement of ``uuid.uuid4``."""
        return uuid.UUID(int=self._dice.getrandbits(128), version=4)


@contextlib.contextmanager
def installed(clock: Clock) -> Iterator[None]:
    """Have the whole process live by ``clock``."""
    exchanged: List[Tuple[Any, str, Any]] = [
        (time, 'time', clock.wall), (time, 'monotonic', clock.monotonic),
        (time, 'sleep', clock.sleep), (threading.Event, 'wait',
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
