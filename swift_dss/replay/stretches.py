"""A run's figures by stretches of its requests.

A figure of a whole run does not say by how much chance moved it. Its stretches
do: they are drawn again and again, and halves of them are set against each
other (:mod:`swift_dss.replay.advice.confidence`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional, Tuple

from swift_dss.replay.plan import Plan
from swift_dss.replay.setup import Outcome
from swift_dss.replay.traces.model import Verb, numpy

#: Stretches of a run, with equally many requests each. The requests of one
#: stay together, so that they may depend on those just before them.
COUNT = 64
#: Requests that a run has at least to be cut.
LEAST_REQUESTS = 16 * COUNT
#: Waits are counted in bins, a hundred to a decade (2.3 % wide), from a
#: microsecond on.
BINS_A_DECADE = 100
FIRST_MS = 1e-3
BINS = 10 * BINS_A_DECADE


@dataclass(frozen=True)
class Stretches:
    """Sums of each stretch.

    :param class_ids: in the order of the rows of columns by class
    :param reads, hits: (class, stretch)
    :param asked_bytes, hit_bytes: of reads, by stretch
    :param dollars: of the cloud, by stretch; those of prefetches and of
        parts are shared out by what requests missed
    :param waits: (class, stretch, bin): reads by their wait
    """

    class_ids: Tuple[int, ...]
    reads: Any
    hits: Any
    asked_bytes: Any
    hit_bytes: Any
    dollars: Any
    waits: Any


def cut(plan: Plan, outcome: Outcome, dollars: float) -> Optional[Stretches]:
    """The stretches of a run.

    :param dollars: of the whole run
    :returns: None of a sample, whose requests are not in one line, and of a
        run that is too short
    """
    np = numpy()
    count = len(outcome.hits)
    if plan.sample is not None or count < LEAST_REQUESTS:
        return None
    stretch = np.arange(count) * COUNT // count
    reads = plan.trace.verbs == int(Verb.READ)

    def summed(which: Any, weights: Any = None) -> Any:
        return np.bincount(
            stretch[which], None if weights is None else weights[which],
            minlength=COUNT).astype(float)

    class_ids = tuple(plan.trace.classes())
    of_class = [reads & (plan.trace.class_ids == class_id)
                for class_id in class_ids]
    return Stretches(
        class_ids, np.array([summed(which) for which in of_class]),
        np.array([summed(which & outcome.hits) for which in of_class]),
        summed(reads, outcome.asked_bytes), summed(reads, outcome.hit_bytes),
        summed(slice(None), _dollars(plan, outcome, reads, dollars)),
        np.array([_waits(stretch[which], outcome.latency_ms[which])
                  for which in of_class]))


def _dollars(plan: Plan, outcome: Outcome, reads: Any, total: float) -> Any:
    """By request."""
    np = numpy()
    cloud, trace = outcome.setup.cloud, plan.trace
    missing = (outcome.asked_bytes - outcome.hit_bytes) * reads
    writes = trace.verbs == int(Verb.WRITE)
    spent = missing * cloud.out_dollars + (missing > 0) * cloud.get_dollars \
        + writes * (cloud.put_dollars + trace.lengths * cloud.in_dollars)
    known = float(spent.sum())
    return spent * (total / known) if known else np.zeros(len(spent))


def _waits(stretch: Any, waits_ms: Any) -> Any:
    """(stretch, bin)."""
    np = numpy()
    bins = np.log10(np.maximum(waits_ms, FIRST_MS) / FIRST_MS) \
        * BINS_A_DECADE
    bins = np.minimum(bins.astype('int64'), BINS - 1)
    return np.bincount(stretch * BINS + bins, minlength=COUNT * BINS
                       ).reshape(COUNT, BINS)
