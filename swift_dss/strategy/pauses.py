"""How long to leave something alone that was tried and did not work.

Readers ask for the same broken version again and again; each try costs
requests to other nodes, or a read of the whole version. The first try is at
once. Each one that follows waits twice as long as the one before, up to a
cap. The memory is bounded: of too many keys the one that was tried longest
ago is forgotten, and may be tried once too early.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, Hashable, NamedTuple, TypeVar

Key = TypeVar('Key', bound=Hashable)


class _Tried(NamedTuple):
    until: float
    pause_seconds: float


class Pauses(Generic[Key]):
    """Pauses between the tries of each key. Not thread-safe: the caller
    holds a lock where several threads ask.

    :param first_seconds: the pause after the first try
    :param cap_seconds: the longest pause
    :param most: keys that are remembered
    """

    def __init__(self, first_seconds: float, cap_seconds: float,
                 most: int) -> None:
        self._first_seconds = first_seconds
        self._cap_seconds = cap_seconds
        self._most = most
        self._tried: OrderedDict[Key, _Tried] = OrderedDict()

    def may_try(self, key: Key, now: float) -> bool:
        """True if no pause of a key is running; its next one begins now.

        :param now: monotonic seconds
        """
        before = self._tried.get(key)
        if before is not None and now < before.until:
            return False
        seconds = self._first_seconds if before is None else \
            min(self._cap_seconds, 2 * before.pause_seconds)
        self._tried[key] = _Tried(now + seconds, seconds)
        self._tried.move_to_end(key)
        while len(self._tried) > self._most:
            self._tried.popitem(last=False)
        return True

    def worked(self, key: Key) -> None:
        """The next try of a key is at once, and its next pause short."""
        self._tried.pop(key, None)

    def __len__(self) -> int:
        """Keys that are remembered."""
        return len(self._tried)
