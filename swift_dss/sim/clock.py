"""Time and chance of a simulation: both come from the seed.

The product asks ``time`` and ``uuid`` directly. A process that simulates does
nothing else, so :func:`installed` exchanges those functions for the whole
process while a run lasts.
"""

from __future__ import annotations

import contextlib
import random
import time
import uuid
from typing import Any, Iterator, List, Tuple

#: Where every run begins, seconds since the epoch. Files carry the times of
#: the real clock, so all of them are old, and no age of a file decides.
START = 4000000000.0


class Clock:
    """Simulated seconds; they pass only by :meth:`pass_`.

    :param dice: of the run
    """

    def __init__(self, dice: random.Random) -> None:
        self.now = START
        self._dice = dice
        self._skew = 0.0

    def wall(self) -> float:
        """What ``time.time`` says on the node that works now."""
        return self.now + self._skew

    @contextlib.contextmanager
    def ahead(self, seconds: float) -> Iterator[None]:
        """A node works whose clock is so far ahead."""
        self._skew = seconds
        try:
            yield
        finally:
            self._skew = 0.0

    def monotonic(self) -> float:
        """What ``time.monotonic`` says."""
        return self.now - START + 1000.0

    def pass_(self, seconds: float) -> None:
        """Let time go by."""
        self.now += seconds

    def uuid4(self) -> uuid.UUID:
        """What ``uuid.uuid4`` gives."""
        return uuid.UUID(int=self._dice.getrandbits(128), version=4)


@contextlib.contextmanager
def installed(clock: Clock) -> Iterator[None]:
    """Have the whole process live by ``clock``."""
    exchanged: List[Tuple[Any, str, Any]] = [
        (time, 'time', clock.wall), (time, 'monotonic', clock.monotonic),
        (time, 'sleep', clock.pass_), (uuid, 'uuid4', clock.uuid4)]
    before = [(module, name, getattr(module, name))
              for module, name, _ in exchanged]
    for module, name, value in exchanged:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)
