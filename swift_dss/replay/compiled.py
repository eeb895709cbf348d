"""Caches in C (``strategy/eviction/objects/fast.c``), where they say all that
a run asks of a cache: accesses, and removals of whole objects or blocks.

Their decisions are those of the Python forms, some twenty times as fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Optional, Tuple

from swift_dss.replay.plan import Accesses, Plan
from swift_dss.replay.setup import Setup
from swift_dss.replay.traces.model import Verb, numpy
from swift_dss.strategy.eviction.objects import compiled

if TYPE_CHECKING:
    from swift_dss.strategy.eviction.objects import fast

_RENEW, _REMOVE, _WRITE = 1, 2, 3
#: Beside HIT, MISS and BYPASS: the cache was not asked.
NOT_ASKED = 3
#: Some accesses, the result of each, and the access that brought in what it
#: hit: its own number of any other.
Step = Tuple[Accesses, Any, Any]


def cache(setup: Setup, plan: Optional[Plan] = None
          ) -> Optional[fast.Cache]:
    """An empty cache in C; None: this set-up has only a Python form.

    :param plan: that it is for; it may take the Python form, too
    """
    if setup.tunes or setup.admit.learns:
        return None
    if plan is not None and plan.unit_bytes and plan.renewed.any():
        # C does not know which units an object has there.
        return None
    return compiled.make(
        setup.strategy, setup.cache_bytes, setup.table, setup.weights,
        setup.penalty_us, setup.penalty_bytes_per_second,
        setup.admit.window * setup.cache_bytes)


def play(plan: Plan, setup: Setup, made: fast.Cache,
         requests: int) -> Iterator[Step]:
    """All accesses, those of some requests at a time.

    :param made: by :func:`cache`, for this plan
    :param requests: at a time
    """
    np = numpy()
    for part in plan.slices(requests):
        count = len(part.keys)
        results = np.empty(count, dtype='uint8')
        came = np.empty(count, dtype='uint32')
        made.play(
            np.ascontiguousarray(part.keys),
            np.ascontiguousarray(part.sizes, dtype='int64'),
            np.ascontiguousarray(part.class_ids, dtype='uint8'),
            _verbs(plan, setup, part), results, came, part.before)
        yield part, results, came


def _verbs(plan: Plan, setup: Setup, part: Accesses) -> Any:
    """By access, what C is to do; empty: only accesses."""
    np = numpy()
    rows = slice(part.begin, part.end)
    verbs = plan.trace.verbs[rows]
    removes = verbs == int(Verb.DELETE)
    if setup.write == 'around':
        removes |= verbs == int(Verb.WRITE)
    by_request = np.where(removes, _REMOVE, np.where(
        plan.renewed[rows], _RENEW, 0)).astype('uint8')
    if setup.admit.window:
        # A client's bytes pass the doorkeeper: WRITE, or RENEW and WRITE.
        by_request[(verbs == int(Verb.WRITE)) & ~removes] += _WRITE
    if not by_request.any():
        return np.empty(0, dtype='uint8')
    return np.repeat(by_request, np.diff(part.first))
