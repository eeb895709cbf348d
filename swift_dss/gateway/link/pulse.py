"""When S3 last showed that it lives: see
:mod:`swift_dss.gateway.link.alarm`."""

from __future__ import annotations

import time
from typing import Callable, Optional

#: Time-outs of the question: to connect, and to the first byte.
ASK_CONNECT_SECONDS = 2.0
ASK_READ_SECONDS = 2.0


class Pulse:
    """When S3 last showed that it lives. Thread-safe, costs nothing.

    :param clock: seconds; a jump only asks S3 too early or too late
    """

    def __init__(self,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.now = clock
        self._last = clock()

    def alive(self) -> None:
        """There was a sign of life."""
        self._last = self.now()

    def is_silent_since(self, since: float) -> bool:
        """True if there was none after ``since``."""
        return self._last <= since

    def silent_seconds(self, since: Optional[float] = None) -> float:
        """How long there was none, at most since ``since``."""
        last = self._last
        return self.now() - (last if since is None else max(since, last))
