"""Strategies of fetching ahead of readers. One strategy, one file.

Holds SEQ, AMP, GRAPH, manifests, and their combination.
In: reads, and the spare rate of the link.
Never: a part of another account's object.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Dict, Tuple

from swift_dss.core.classes import PrefetchHint
from swift_dss.strategy.prefetch.amp import Amp
from swift_dss.strategy.prefetch.base import NoPrefetch, Prefetch, Settings
from swift_dss.strategy.prefetch.combined import Combined
from swift_dss.strategy.prefetch.graph import Graph
from swift_dss.strategy.prefetch.hinted import Hinted
from swift_dss.strategy.prefetch.manifest import Manifests
from swift_dss.strategy.prefetch.seq import Seq

#: By the name that ``[tier] prefetch`` gives them.
STRATEGIES: Dict[str, Callable[[Settings], Prefetch]] = {
    'none': NoPrefetch,
    'seq': Seq,
    'amp': Amp,
    'graph': Graph,
    'combined': Combined,
}


def build(name: str, settings: Settings,
          hint: Callable[[int], PrefetchHint]) -> Tuple[Hinted, Manifests]:
    """A strategy with hints and manifests before it: what a node runs.

    :param settings: all strategies together share the bound of the state
    :param hint: of a class id
    :returns: the strategy to tell of all reads, and the one to tell of
        manifests
    :raises KeyError: there is no strategy of that name
    """
    small = replace(settings, state_bytes=settings.state_bytes // 16)
    manifests = Manifests(small, STRATEGIES[name](replace(
        settings, state_bytes=settings.state_bytes // 16 * 14)))
    return Hinted(small, manifests, hint), manifests
