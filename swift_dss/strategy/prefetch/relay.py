"""A strategy made of others: it passes its reports on to them."""

from __future__ import annotations

from typing import Any, Dict, Hashable

from swift_dss.strategy.prefetch.base import Prefetch


class Relay(Prefetch):
    """Passes on all calls but reads, which subclasses implement; the contract
    is :class:`Prefetch`.

    :param others: at most one of them has something to save
    """

    def __init__(self, *others: Prefetch) -> None:
        self._others = others

    def on_arrival(self, account: str, object_id: Hashable, offset: int,
                   length: int, waited: bool, now: float) -> None:
        """See :meth:`Prefetch.on_arrival`."""
        for prefetcher in self._others:
            prefetcher.on_arrival(account, object_id, offset, length, waited,
                                  now)

    def on_dropped(self, account: str, object_id: Hashable, offset: int,
                   length: int, now: float) -> None:
        """See :meth:`Prefetch.on_dropped`."""
        for prefetcher in self._others:
            prefetcher.on_dropped(account, object_id, offset, length, now)

    def on_last_chance(self, account: str, object_id: Hashable, offset: int,
                       length: int, now: float) -> bool:
        """See :meth:`Prefetch.on_last_chance`: all are asked."""
        kept = [prefetcher.on_last_chance(account, object_id, offset, length,
                                          now)
                for prefetcher in self._others]
        return any(kept)

    def on_evict(self, account: str, object_id: Hashable, offset: int,
                 length: int, used: bool, now: float) -> None:
        """See :meth:`Prefetch.on_evict`."""
        for prefetcher in self._others:
            prefetcher.on_evict(account, object_id, offset, length, used, now)

    def state_bytes(self) -> int:
        """See :meth:`Prefetch.state_bytes`."""
        return sum(prefetcher.state_bytes() for prefetcher in self._others)

    def counts(self) -> Dict[str, float]:
        """See :meth:`Prefetch.counts`."""
        counts: Dict[str, float] = {}
        for prefetcher in self._others:
            counts.update(prefetcher.counts())
        return counts

    def save(self) -> Dict[str, Any]:
        """See :meth:`Prefetch.save`."""
        state: Dict[str, Any] = {}
        for prefetcher in self._others:
            state.update(prefetcher.save())
        return state

    def load(self, saved: Dict[str, Any]) -> None:
        """See :meth:`Prefetch.load`."""
        for prefetcher in self._others:
            prefetcher.load(saved)
