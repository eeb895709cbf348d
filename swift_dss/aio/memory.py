"""A cache in the proxy's own memory, where memcached would be.

Without a cache Swift asks for the account and the container on every request,
which doubles the S3 cloud's load on the machine. Right for one proxy process
only: others would not see its changes.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterable, Mapping, Tuple

_MAX_KEYS = 10000


class Memory:
    """The part of Swift's ``MemcacheRing`` that a proxy calls."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: Dict[str, Tuple[float, Any]] = {}

    def get(self, key: str, **_options: Any) -> Any:
        """The value, or None if there is none or it is too old."""
        until, value = self._kept.get(key, (0.0, None))
        if until and until <= self._clock():
            del self._kept[key]
            return None
        return value

    def set(self, key: str, value: Any, time: float = 0,
            **_options: Any) -> None:
        """Keep a value for ``time`` seconds; 0 is for ever."""
        if len(self._kept) >= _MAX_KEYS:
            self._kept.clear()
        self._kept[key] = (self._clock() + time if time else 0.0, value)

    def delete(self, key: str, **_options: Any) -> None:
        """Forget a value."""
        self._kept.pop(key, None)

    def incr(self, key: str, delta: int = 1, time: float = 0,
             **_options: Any) -> int:
        """Add to a counter that starts at 0."""
        total = max(0, int(self.get(key) or 0) + int(delta))
        self.set(key, total, time)
        return total

    def decr(self, key: str, delta: int = 1, time: float = 0,
             **_options: Any) -> int:
        """Take from a counter."""
        return self.incr(key, -delta, time)

    def set_multi(self, mapping: Mapping[str, Any], server_key: str,
                  time: float = 0, **_options: Any) -> None:
        """Several :meth:`set`."""
        for key, value in mapping.items():
            self.set(key, value, time)

    def get_multi(self, keys: Iterable[str], server_key: str,
                  **_options: Any) -> Any:
        """Several :meth:`get`."""
        return [self.get(key) for key in keys]


def filter_factory(global_conf: Any, **local_conf: Any) -> Any:
    """For paste: puts one :class:`Memory` where proxies look for it."""
    memory = Memory()

    def wrap(app: Any) -> Any:
        def handle(env: Dict[str, Any], start_response: Any) -> Any:
            env['swift.cache'] = memory
            return app(env, start_response)
        return handle
    return wrap
