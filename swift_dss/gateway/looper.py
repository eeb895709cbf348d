"""A thread that looks for work, and sleeps until there may be more."""

from __future__ import annotations

import threading
from typing import Callable


class Looper:
    """One thread that calls ``look`` again and again.

    :param look: does due work; seconds until there may be more, 0 for at once.
        MUST NOT raise
    :param stopping: set when the daemon ends
    """

    def __init__(self, name: str, look: Callable[[], float],
                 stopping: threading.Event) -> None:
        self._look = look
        self._stopping = stopping
        self._wake = threading.Condition()
        self._poked = False
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
        with self._wake:
            self._poked = True
            self._wake.notify_all()

    def _run(self) -> None:
        while not self._stopping.is_set():
            with self._wake:
                self._poked = False
            wait_seconds = self._look()
            with self._wake:
                if wait_seconds and not self._poked and \
                        not self._stopping.is_set():
                    self._wake.wait(wait_seconds)
