"""AMP where a read belongs to a stream, GRAPH where it does not.

Tombolo's combination (Yang and others, MSST'16): the graph is traversed
only where no stream says what comes next, so it holds only what it alone
knows, and neither fetches what the other has. What GRAPH is bound by holds
here too (see there, the patents included).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Hashable, List

from swift_dss.strategy.prefetch.amp import Amp
from swift_dss.strategy.prefetch.base import (
    Access, Prefetch, Settings, Want)
from swift_dss.strategy.prefetch.graph import Graph

#: AMP's share of the state: it needs to know what is cached, and GRAPH all
#: that was.
_AMP_SHARE = 0.25


class Combined(Prefetch):
    """See above; the contract is :class:`Prefetch`."""

    name = 'combined'

    def __init__(self, settings: Settings) -> None:
        amp_bytes = int(settings.state_bytes * _AMP_SHARE)
        self.amp = Amp(replace(settings, state_bytes=amp_bytes))
        self.graph = Graph(replace(
            settings, state_bytes=settings.state_bytes - amp_bytes))

    def on_request(self, access: Access, room_bytes: int) -> List[Want]:
        """See :meth:`Prefetch.on_request`."""
        wants = self.amp.on_request(access, room_bytes)
        # The graph hears of streams, too: their first reads are in it. It
        # is given no room where a stream says what comes next.
        guessed = self.graph.on_request(access, 0 if wants else room_bytes)
        return wants or guessed

    def on_arrival(self, account: str, object_id: Hashable, offset: int,
                   length: int, waited: bool, now: float) -> None:
        """See :meth:`Prefetch.on_arrival`."""
        for one in (self.amp, self.graph):
            one.on_arrival(account, object_id, offset, length, waited, now)

    def on_dropped(self, account: str, object_id: Hashable, offset: int,
                   length: int, now: float) -> None:
        """See :meth:`Prefetch.on_dropped`."""
        for one in (self.amp, self.graph):
            one.on_dropped(account, object_id, offset, length, now)

    def on_last_chance(self, account: str, object_id: Hashable, offset: int,
                       length: int, now: float) -> bool:
        """See :meth:`Prefetch.on_last_chance`."""
        where = (account, object_id, offset, length, now)
        kept = [one.on_last_chance(*where) for one in (self.amp, self.graph)]
        return any(kept)

    def on_evict(self, account: str, object_id: Hashable, offset: int,
                 length: int, used: bool, now: float) -> None:
        """See :meth:`Prefetch.on_evict`."""
        for one in (self.amp, self.graph):
            one.on_evict(account, object_id, offset, length, used, now)

    def state_bytes(self) -> int:
        """See :meth:`Prefetch.state_bytes`."""
        return self.amp.state_bytes() + self.graph.state_bytes()

    def counts(self) -> Dict[str, float]:
        """See :meth:`Prefetch.counts`."""
        return self.graph.counts()

    def save(self) -> Dict[str, Any]:
        """See :meth:`Prefetch.save`: streams are found again at once."""
        return self.graph.save()

    def load(self, saved: Dict[str, Any]) -> None:
        """See :meth:`Prefetch.load`."""
        self.graph.load(saved)
