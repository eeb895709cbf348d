"""Does a disk fail as a whole, or is it a few of its places?

Versions that cannot be read say little about that: they are found by who
reads, and one that many ask for is met again and again. So the daemon that
met one reads others of the same disk that it draws at random, and the share
of these that fails is about that of all there are.

A disk fails as a whole once a quarter of the versions that were read last have
failed. That ends when hardly any does, or when for a whole window less than a
quarter have: of a disk with few versions the same bad ones are read each time.
A disk of which one version in a hundred is bad is called so by mistake once in
60,000 times; one of which half are bad nearly always.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, Hashable, NamedTuple, TypeVar

Key = TypeVar('Key', bound=Hashable)

#: Versions that count: those read last, none of them longer ago than this.
READS = 16
WINDOW_SECONDS = 600.0
#: It fails once so many of them have failed, and until so few have, or for
#: a window fewer than it begins with.
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
        #: When last so many had failed that a disk begins to fail.
        self._failed_at = 0.0

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
        if self.failures >= FAILURES:
            self.is_failing, self._failed_at = True, now
        elif self.failures <= FEW_FAILURES or \
                now > self._failed_at + WINDOW_SECONDS:
            self.is_failing = False
        return self.is_failing

    @property
    def failures(self) -> int:
        """Of the versions that count."""
        return sum(read.failed for read in self._reads.values())

    @property
    def reads(self) -> int:
        """How many versions count."""
        return len(self._reads)
