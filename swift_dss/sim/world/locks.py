"""Locks of a simulation, in which all threads of a daemon are one.

Where that would wait for itself, the other thread gives up instead, as if a
disk had failed just behind the lock: it cannot wait, and the product has to
bear that anyway.
"""

from __future__ import annotations

import contextlib
import threading
from types import TracebackType
from typing import Any, Iterator, List, Optional, Tuple, Type

from swift_dss.core.errors import TierUnavailable
from swift_dss.gateway.bundle import pack
from swift_dss.gateway.collect import keys
from swift_dss.gateway.down import flights
from swift_dss.gateway.link import turns, wan
from swift_dss.tier.local import departures, locks


class _Lock:
    """In place of ``threading.Lock``."""

    __slots__ = ('_held',)

    def __init__(self) -> None:
        self._held = False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """:raises TierUnavailable: it is held, however long one waits"""
        if not self._held:
            self._held = True
            return True
        if blocking:
            raise TierUnavailable('another thread is at it')
        return False

    def release(self) -> None:
        self._held = False

    def locked(self) -> bool:
        return self._held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, kind: Optional[Type[BaseException]],
                 error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.release()


class _Baton:
    """In place of the gateway's."""

    def __init__(self) -> None:
        self._lock = _Lock()

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """:raises TierUnavailable: it is held"""
        with self._lock:
            yield


class _Condition(threading.Condition):
    """In place of ``threading.Condition``."""

    def wait(self, timeout: Optional[float] = None) -> bool:
        """:raises TierUnavailable: always, as nobody would end the wait"""
        raise TierUnavailable('another thread is at it')


class _Threading:
    """In place of the module."""

    Lock = _Lock
    Condition = _Condition

    def __getattr__(self, name: str) -> Any:
        return getattr(threading, name)


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Have locks that threads hold at a named step be of this kind."""
    exchanged: List[Tuple[Any, str, Any]] = [
        (module, 'threading', _Threading())
        for module in (locks, departures, keys, pack, turns, wan, flights)] + [
            (pack, 'Baton', _Baton)]
    before = [(where, name, getattr(where, name))
              for where, name, _ in exchanged]
    for where, name, value in exchanged:
        setattr(where, name, value)
    try:
        yield
    finally:
        for where, name, value in before:
            setattr(where, name, value)
