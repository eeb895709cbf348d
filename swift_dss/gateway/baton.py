"""Who may run, among threads that would only keep one another waiting."""

from __future__ import annotations

import threading
from collections import deque
from typing import Deque


class Baton:
    """A lock that those who wait for it get in the order of their coming.

    For work that asks the kernel little things all the time. At each of
    them a thread gives the interpreter's lock up, another takes it, and the
    first waits until that one asks something itself: side by side, they
    take a third more of the processor and end no sooner. Held for a slice
    of work and never over one that waits for S3.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: Deque[threading.Lock] = deque()
        self._is_held = False

    def __enter__(self) -> None:
        with self._guard:
            if not self._is_held:
                self._is_held = True
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        # Who lets it go has it pass to this thread.
        turn.acquire()

    def __exit__(self, *_: object) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_held = False
