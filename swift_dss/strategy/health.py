"""Does a disk fail as a whole, or is it a few of its places?

Versions that cannot be read say little about that: they are found by who
reads, and one that many ask for is met again and again. So the daemon that
met one reads others of the same disk that it draws at random, and the share
of these that fails is about that of all there are.

A disk fails as a whole once a quarter of the versions that were read last have
failed, and until hardly any does. A disk of which one version in a hundred is
bad is called so by mistake once in 60,000 times; one of which half are bad
nearly always.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, Hashable, NamedTuple, TypeVar

Key = TypeVar('Key', bound=Hashable)

#: Versions that count: those read last, none of them longer ago than this.
READS = 16
WINDOW_SECONDS = 600.0
#: It fails once so many of them have failed, and until so few have.
FAILURES = 4
FEW_FAILURES = 1


class _Read(NamedTuple):
    at: float
    failed: bool


class Health(Generic[Key]):
    """The last reads of one disk. Not thread-safe.

    Reads MUST be of versions drawn at random, and MUST have come from the
    disk itself.
    """

    def __init__(self) -> None:
        self._reads: OrderedDict[Key, _Read] = OrderedDict()
        #: True while the disk fails as a whole, by the last :meth:`judge`.
        self.is_failing = False

    def read(self, key: Key, failed: bool, now: float) -> None:
        """A version was read. One that is read again counts once.

        :param failed: it gave no bytes, or other ones than were written
        """
        self._reads.pop(key, None)
        self._reads[key] = _Read(now, failed)
        while len(self._reads) > READS:
            self._reads.popitem(last=False)

    def forget(self) -> None:
        """Nothing that was read is there any more: it is another disk, or
        an empty one."""
        self._reads.clear()

    def judge(self, now: float) -> bool:
        """True if the disk fails as a whole."""
        while self._reads and next(iter(
                self._reads.values())).at < now - WINDOW_SECONDS:
            self._reads.popitem(last=False)
        self.is_failing = self.failures > FEW_FAILURES if self.is_failing \
            else self.failures >= FAILURES
        return self.is_failing

    @property
    def failures(self) -> int:
        """Of the versions that count."""
        return sum(read.failed for read in self._reads.values())

    @property
    def reads(self) -> int:
        """How many versions count."""
        return len(self._reads)
