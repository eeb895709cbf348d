"""What is fetched before it is asked for. One strategy, one file."""

from __future__ import annotations

from typing import Callable, Dict

from swift_dss.strategy.prefetch.amp import Amp
from swift_dss.strategy.prefetch.base import NoPrefetch, Prefetch, Settings
from swift_dss.strategy.prefetch.combined import Combined
from swift_dss.strategy.prefetch.graph import Graph
from swift_dss.strategy.prefetch.seq import Seq

#: By the name that ``[tier] prefetch`` gives them.
STRATEGIES: Dict[str, Callable[[Settings], Prefetch]] = {
    'none': NoPrefetch,
    'seq': Seq,
    'amp': Amp,
    'graph': Graph,
    'combined': Combined,
}
