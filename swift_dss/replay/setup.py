"""The set-up of a replay, and what comes of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Callable, Dict, Optional

from swift_dss.core.classes import ClassTable
from swift_dss.core.config import Admit
from swift_dss.replay import latency
from swift_dss.replay.latency import Cloud, Disk, Times
from swift_dss.replay.prices import Prices
from swift_dss.replay.traces.spool import numpy, slices
from swift_dss.strategy.eviction.objects import orders
from swift_dss.strategy.eviction.objects.doorkeeper import SecondTouch
from swift_dss.strategy.eviction.objects.learned import Learned
from swift_dss.strategy.eviction.objects.verbs import ObjectCache
from swift_dss.strategy.tuning.cache import TunedCache
from swift_dss.strategy.tuning.choices import configured
from swift_dss.strategy.tuning.shadows import Penalty

#: Before the name of the strategy that a tuner begins with, and may leave.
TUNED = 'tuned-'
#: Accesses between two calls for progress.
PROGRESS_EVERY = 65536

#: Costs of a miss that GDSF may weigh.
COSTS = LATENCY, DOLLARS = 'latency', 'dollars'
#: Of a dollar: a byte's price and a microsecond are then of like size.
_PRICE_UNITS = 1e12


@lru_cache(maxsize=64)
def _middle(times: Times) -> float:
    return times.middle


@dataclass(frozen=True)
class Setup:
    """The set-up of a replay.

    :param strategy: see ``strategy.eviction.objects``
    :param cache_bytes: room on the SSD
    :param hdd_bytes: room of the HDD below it; 0: there is none
    :param write: ``back``, ``through`` or ``around``
    :param upload_seconds: with write-back, from a write to its copy in the
        cloud
    :param metadata_entries: objects whose metadata is in memory; 0: all
    :param prefetch: name of a prefetch strategy
    :param prefetch_bytes: on their way ahead of demand, at most
    :param think_seconds: clients wait for an answer, and so long, before they
        ask again (a closed loop); None: requests come when the trace says
    :param link_bytes_per_second: of all that comes from the cloud together;
        0: each request has the rate of one
    :param prices: of room; those of requests and bytes are the cloud's
    :param weights: of classes: for weighted order, and for the cost of GDSF
    :param admit: of missed objects
    :param cost: of a miss for GDSF, one of COSTS
    :param cut: the figures of the stretches of the run are kept, too
    """

    strategy: str
    cache_bytes: int
    table: ClassTable
    cloud: Cloud = latency.S3
    ssd: Disk = latency.SSD
    hdd: Disk = latency.HDD
    hdd_bytes: int = 0
    write: str = 'through'
    upload_seconds: float = 60.0
    metadata_entries: int = 0
    prefetch: str = 'none'
    prefetch_bytes: int = 64 * 1024 * 1024
    prefetch_unit_bytes: int = 0
    weights: Dict[int, float] = field(default_factory=dict)
    seed: int = 1
    prices: Optional[Prices] = None
    think_seconds: Optional[float] = None
    link_bytes_per_second: float = 0.0
    cut: bool = False
    admit: Admit = Admit()
    cost: str = LATENCY

    @property
    def name(self) -> str:
        """The strategy, and who comes in if not all do: ``lru+second:4``."""
        return self.strategy if self.admit == Admit() else \
            '%s+%s' % (self.strategy, self.admit)

    def penalty(self, size: int, class_id: int) -> float:
        """The cost of a miss for GDSF: class weight times the median latency
        in microseconds, or times the price.
        """
        return self.weights.get(class_id, 1.0) * (
            self.penalty_us + size / self.penalty_bytes_per_second * 1e6)

    @property
    def penalty_us(self) -> float:
        """The median time to a first byte from the cloud; or the price of a
        GET, in millionths of a millionth of a dollar, at least 1."""
        if self.cost == DOLLARS:
            return max(1.0, self.cloud.get_dollars * _PRICE_UNITS)
        return _middle(self.cloud.get) * 1000.0

    @property
    def tunes(self) -> bool:
        """Whether a tuner chooses the order."""
        return self.strategy.startswith(TUNED)

    @property
    def asks_sequential(self) -> bool:
        """Whether a cache asks which accesses go on where the last ended:
        only SARC does, and the column costs time."""
        return 'sarc' in self.strategy or any(
            spec.inner == 'sarc' for spec in self.table.specs.values())

    @property
    def penalty_bytes_per_second(self) -> float:
        """The rate at which bytes make a miss dearer; infinite for free
        ones."""
        if self.cost != DOLLARS:
            return self.cloud.bytes_per_second
        price = self.cloud.out_dollars * _PRICE_UNITS
        return 1e6 / price if price else math.inf

    def make_cache(self) -> ObjectCache:
        """An empty cache."""
        if self.tunes:
            return TunedCache(
                configured(self.strategy[len(TUNED):]), self.cache_bytes,
                self.table, Penalty(
                    self.weights, self.penalty_us,
                    self.penalty_bytes_per_second))
        uses_cost = 'gdsf' in self.strategy or any(
            spec.inner == 'gdsf' for spec in self.table.specs.values())

        def make(room: int) -> ObjectCache:
            return orders.make(self.strategy, room, self.table, self.weights,
                               self.penalty if uses_cost else None)

        cache = make(self.cache_bytes)
        if self.admit.learns:
            cache.doorkeeper = Learned(self.cache_bytes, make, self.weights)
        elif self.admit.window:
            cache.doorkeeper = SecondTouch(
                self.admit.window * self.cache_bytes)
        return cache


@dataclass
class Outcome:
    """The result of a replay; columns have a row a request.

    :param latency_ms: of each request
    :param hits: True for reads that found all their bytes in the cache; bytes
        that an earlier miss is still bringing count as found (``delayed``),
        those of a prefetch do not
    :param asked_bytes: of the units that a request is for
    :param found_bytes: of those that were in the cache; None: all of the
        hits' and no others, as of whole objects
    :param counts: the figures that are sums
    :param seconds: of processor time, for the cache and for all
    :param span_ms: from the first request to the last; 0: as in the trace
    """

    setup: Setup
    latency_ms: Any
    hits: Any
    found_bytes: Any
    asked_bytes: Any
    counts: Dict[str, float]
    cache_seconds: float
    seconds: float
    span_ms: float = 0.0

    @property
    def hit_bytes(self) -> Any:
        """By request."""
        return self.asked_bytes * self.hits if self.found_bytes is None \
            else self.found_bytes

    def asked_of(self, which: Any) -> float:
        """Bytes that some requests are for.

        :param which: a mask
        """
        return _sum(self.asked_bytes, which)

    def found_of(self, which: Any) -> float:
        """Bytes of theirs that were in the cache."""
        return _sum(self.asked_bytes, which & self.hits) \
            if self.found_bytes is None else _sum(self.found_bytes, which)


def _sum(column: Any, which: Any) -> float:
    np = numpy()
    return float(sum(int(np.sum(column[rows], where=which[rows]))
                     for rows in slices(len(column))))


Progress = Callable[[int, int], None]
