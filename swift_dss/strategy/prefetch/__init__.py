"""What is fetched before it is asked for. One strategy, one file."""

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

    :param settings: the bound of the state is for all of them together
    :param hint: of a class id
    :returns: what is told of everything, and what is told of manifests
    :raises KeyError: there is no strategy of that name
    """
    small = replace(settings, state_bytes=settings.state_bytes // 16)
    manifests = Manifests(small, STRATEGIES[name](replace(
        settings, state_bytes=settings.state_bytes // 16 * 14)))
    return Hinted(small, manifests, hint), manifests
