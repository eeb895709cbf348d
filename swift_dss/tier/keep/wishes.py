"""What readers wish to have on a device's SSD, and whom it lets in.

A version that was read from a slower tier is a *wish*. With ``[tier] admit``
at ``all`` each is granted as far as the class rule has room for it. With
``second:N`` the first read of a version is only noted, so that what is read
once is never written to the SSD.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import NamedTuple, Optional, Tuple

from swift_dss.core.config import Admit
from swift_dss.core.limits import MAX_KEPT_OUT
from swift_dss.core.version import VersionId
from swift_dss.strategy.eviction.objects.doorkeeper import SecondTouch
from swift_dss.tier.metrics import Metrics

#: Versions that wait for promotion; later wishes are dropped.
_MAX_WISHES = 10000
#: Reads that a wish names: with two of them it is granted.
_READS = 2


class Wish(NamedTuple):
    """Classes of a version that its readers had to take from a slower tier.

    :param reads: numbers of the reads, see ``hear.passes``; none of a wish
        that no reader made
    """

    version: VersionId
    partition: str
    class_ids: Tuple[int, ...]
    reads: Tuple[int, ...] = ()


class Wishes:
    """Those of one device, oldest first. Thread-safe."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._guard = threading.Lock()
        self._waiting: OrderedDict[VersionId, Wish] = OrderedDict()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, wish: Wish) -> None:
        """A wish takes the place of an older one of its version, and has
        its reads, too."""
        with self._guard:
            if len(self._waiting) >= _MAX_WISHES:
                self._metrics.count('tier.wishes_dropped')
                return
            older = self._waiting.get(wish.version)
            if older is not None:
                wish = wish._replace(reads=tuple(dict.fromkeys(
                    older.reads + wish.reads))[-_READS:])
            self._waiting[wish.version] = wish

    def take(self) -> Optional[Wish]:
        """The oldest, which is none any more; None: there is none."""
        with self._guard:
            if not self._waiting:
                return None
            return self._waiting.popitem(last=False)[1]


class Newcomer(NamedTuple):
    """Bytes of one class of a version that may come in.

    :param length: bytes that the SSD lacks, at least 1
    :param is_known: the SSD has other bytes of it, or it is hot
    """

    wish: Wish
    class_id: int
    length: int
    is_known: bool


class Doorkeeper:
    """Says which newcomers a device's SSD lets in. Called by one thread.

    A restart forgets whom it kept out: each of them has its first read once
    more.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._admit = Admit()
        self._rule: Optional[SecondTouch] = None

    def __len__(self) -> int:
        """First reads that are remembered."""
        return 0 if self._rule is None else len(self._rule)

    def lets_in(self, newcomer: Newcomer, admit: Admit, room_bytes: int,
                free_bytes: int) -> bool:
        """Judge a newcomer; count it if it stays out.

        :param admit: the option in force; another one takes over at once
        :param room_bytes: of the SSD
        :param free_bytes: below its low watermark: they are for all
        """
        rule = self._in_force(admit, room_bytes)
        if rule is None or newcomer.is_known:
            return True
        if not newcomer.wish.reads:
            # Nobody has read it: that is no first read, either.
            is_in = newcomer.length <= free_bytes
        else:
            key = hash((newcomer.wish.version, newcomer.class_id))
            is_in = any(rule.admits(key, newcomer.length, free_bytes, read)
                        for read in newcomer.wish.reads)
        if not is_in:
            self._metrics.count('tier.promotions_kept_out')
            self._metrics.count('tier.kept_out_bytes', newcomer.length)
        return is_in

    def _in_force(self, admit: Admit,
                  room_bytes: int) -> Optional[SecondTouch]:
        window_bytes = max(1, admit.window * room_bytes)
        if admit != self._admit:
            self._admit = admit
            self._rule = SecondTouch(
                window_bytes, MAX_KEPT_OUT) if admit.window else None
        if self._rule is not None:
            self._rule.window_bytes = window_bytes
        return self._rule
