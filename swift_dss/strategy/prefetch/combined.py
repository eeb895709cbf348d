"""AMP where a read belongs to a stream, GRAPH where it does not.

Tombolo's combination (Yang and others, MSST'16): the graph is traversed only
outside of streams, so it holds only reads that streams do not predict, and no
range is fetched by both. The limits of GRAPH apply here too (see there, the
patents included).
"""

from __future__ import annotations

from dataclasses import replace
from typing import List

from swift_dss.strategy.prefetch.amp import Amp
from swift_dss.strategy.prefetch.base import Access, Settings, Want
from swift_dss.strategy.prefetch.graph import Graph
from swift_dss.strategy.prefetch.relay import Relay

#: AMP's share of the state: it must know the cached units, and GRAPH all past
#: reads.
_AMP_SHARE = 0.25


class Combined(Relay):
    """See above; the contract is :class:`Prefetch`. Only GRAPH has something
    to save: streams are found again at once."""

    name = 'combined'

    def __init__(self, settings: Settings) -> None:
        amp_bytes = int(settings.state_bytes * _AMP_SHARE)
        self.amp = Amp(replace(settings, state_bytes=amp_bytes))
        self.graph = Graph(replace(
            settings, state_bytes=settings.state_bytes - amp_bytes))
        super().__init__(self.amp, self.graph)

    def on_request(self, access: Access, room_bytes: int) -> List[Want]:
        """See :meth:`Prefetch.on_request`."""
        wants = self.amp.on_request(access, room_bytes)
        # The graph hears of streams, too: their first reads are in it. It gets
        # no room where a stream predicts the next read.
        guessed = self.graph.on_request(access, 0 if wants else room_bytes)
        return wants or guessed
