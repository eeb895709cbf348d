"""Turns of sending to S3, and of using the interpreter.

After an outage background work returns slowly. Work without requests to S3
need not wait: a bundle is packed first, waits here, and is ready when its turn
comes.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import contextmanager
from typing import Deque, Iterator

from swift_dss.gateway.link.breaker import Breaker, BreakerState

#: A request that waits asks this often if more may be sent at once.
_WIDER_SECONDS = 0.1


class Turns:
    """Thread-safe.

    :param most: senders at a time
    :param stopping: set when the daemon ends; ends all waits
    """

    def __init__(self, breaker: Breaker, most: int,
                 stopping: threading.Event) -> None:
        self._breaker = breaker
        self._most = most
        self._stopping = stopping
        self._free = threading.Condition()
        self._sending = 0

    @property
    def all_free(self) -> bool:
        """True if no thread sends."""
        with self._free:
            return not self._sending

    @contextmanager
    def take(self) -> Iterator[None]:
        """Wait until one more may send, and send in here.

        A breaker that is not closed says no at once, without a wait.
        """
        with self._free:
            while not self._stopping.is_set() and self._is_full():
                self._free.wait(_WIDER_SECONDS)
            self._sending += 1
        try:
            yield
        finally:
            with self._free:
                self._sending -= 1
                self._free.notify_all()

    def _is_full(self) -> bool:
        return self._breaker.state is BreakerState.CLOSED and \
            self._sending >= self._breaker.background_slots(self._most)


class Baton:
    """One at a time, in the order in which they came. Thread-safe.

    A thread that gives the interpreter away at each system call gets it back
    after another has used it for some milliseconds, so threads with many small
    files take much longer side by side than one after the other. A plain lock
    would mostly go to the thread that has just released it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_held = False
        self._waiting: Deque[threading.Lock] = deque()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Wait for it, and have it in here. It cannot be taken twice."""
        self.take()
        try:
            yield
        finally:
            self.give()

    def take(self, seconds: float = -1) -> bool:
        """Wait for it, for so long at most; whether it was taken. Then the
        caller MUST :meth:`give` it.

        :param seconds: -1 waits for ever
        """
        gate = threading.Lock()
        with self._lock:
            if self._is_held:
                gate.acquire()
                self._waiting.append(gate)
            self._is_held = True
        if gate.acquire(timeout=seconds):
            return True
        with self._lock:
            if gate in self._waiting:
                self._waiting.remove(gate)
                return False
        return True  # given just now

    def give(self) -> None:
        """Let the next one have it."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_held = False
