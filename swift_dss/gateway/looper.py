"""A thread that looks for work, and sleeps until there may be more."""

from __future__ import annotations

import math
import threading
from typing import Callable, Optional

from swift_dss.io.workers import Clock


class Bell:
    """Wakes one thread that sleeps until there is work. Any thread may ring.

    A thread that works, or is about to sleep, may have just missed a row: any
    ring has it look once more.
    """

    def __init__(self, clock: Optional[Clock] = None) -> None:
        self._clock = clock or Clock()
        self._wake = threading.Condition()
        self._rung = False
        self._wakes_at = math.inf

    def ring(self, due: float = 0.0) -> None:
        """Wake the sleeper, unless it wakes by itself by ``due`` (wall
        clock)."""
        with self._wake:
            if due < self._wakes_at:
                self._rung = True
                self._wake.notify_all()

    def is_awaited(self) -> bool:
        """True while a thread sleeps."""
        with self._wake:
            return self._wakes_at < math.inf

    def begin(self) -> None:
        """Forget rings: the caller looks at everything from now on."""
        with self._wake:
            self._rung = False

    def sleep(self, seconds: float, stopping: threading.Event) -> None:
        """Sleep for so long, or until it rings. Do not sleep if it rang since
        :meth:`begin`, or if the daemon ends."""
        with self._wake:
            if seconds and not self._rung and not stopping.is_set():
                self._wakes_at = self._clock.wall() + seconds
                self._wake.wait(seconds)
            self._wakes_at = math.inf


class Looper:
    """One thread that calls ``look`` again and again.

    :param look: does due work; seconds until there may be more, 0 for at once.
        MUST NOT raise
    :param stopping: set when the daemon ends
    :param bell: for parts that ring before this thread is made
    """

    def __init__(self, name: str, look: Callable[[], float],
                 stopping: threading.Event,
                 bell: Optional[Bell] = None) -> None:
        self._look = look
        self._stopping = stopping
        self._bell = bell or Bell()
        self._thread = threading.Thread(
            target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin; the first look is at once."""
        self._thread.start()

    def stop(self) -> None:
        """Let the look under way end. ``stopping`` MUST be set."""
        self.kick()
        if self._thread.is_alive():
            self._thread.join()

    def kick(self) -> None:
        """Have it look now, or once more if it is at it."""
        self._bell.ring()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._bell.begin()
            self._bell.sleep(self._look(), self._stopping)
