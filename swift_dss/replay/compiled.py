"""Caches in C (``strategy/eviction/objects/fast.c``), where they say all that
a run asks of a cache: accesses, and removals of whole objects or blocks.

Their decisions are those of the Python forms, some twenty times as fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Tuple

from swift_dss.replay.plan import Plan
from swift_dss.replay.setup import PROGRESS_EVERY, Progress, Setup
from swift_dss.replay.traces.model import Verb, numpy
from swift_dss.strategy.eviction.objects import compiled

if TYPE_CHECKING:
    from swift_dss.strategy.eviction.objects import fast

_RENEW, _REMOVE, _WRITE = 1, 2, 3
#: Beside HIT, MISS and BYPASS: the cache was not asked.
NOT_ASKED = 3


def cache(setup: Setup) -> Optional[fast.Cache]:
    """An empty cache in C; None: this set-up has only a Python form."""
    if setup.tunes or setup.admit.learns:
        return None
    return compiled.make(
        setup.strategy, setup.cache_bytes, setup.table, setup.weights,
        setup.penalty_us, setup.penalty_bytes_per_second,
        setup.admit.window * setup.cache_bytes)


def play(plan: Plan, setup: Setup, progress: Optional[Progress] = None
         ) -> Optional[Tuple[Any, Any, float]]:
    """(result of each access, the access that brought in what it hit, bytes
    that are in the cache in the end); None: it takes the Python form.
    """
    np = numpy()
    made = cache(setup)
    if made is None or plan.unit_bytes and plan.renewed.any():
        # C does not know which units an object has there.
        return None
    total = plan.accesses
    keys = np.ascontiguousarray(plan.keys, dtype='int64')
    sizes = np.ascontiguousarray(plan.sizes, dtype='int64')
    class_ids = np.ascontiguousarray(plan.class_ids, dtype='uint8')
    verbs = _verbs(plan, setup)
    results = np.empty(total, dtype='uint8')
    came = np.empty(total, dtype='uint32')
    for begin in range(0, total, PROGRESS_EVERY):
        end = min(begin + PROGRESS_EVERY, total)
        rows = slice(begin, end)
        made.play(keys[rows], sizes[rows], class_ids[rows], verbs[rows],
                  results[rows], came[rows], begin)
        if progress is not None:
            progress(end, total)
    return results, came, float(made.used_bytes)


def _verbs(plan: Plan, setup: Setup) -> Any:
    """By access, what C is to do; empty: only accesses."""
    np = numpy()
    verbs = plan.trace.verbs
    removes = verbs == int(Verb.DELETE)
    if setup.write == 'around':
        removes |= verbs == int(Verb.WRITE)
    by_request = np.where(removes, _REMOVE, np.where(
        plan.renewed, _RENEW, 0)).astype('uint8')
    if setup.admit.window:
        # A client's bytes pass the doorkeeper: WRITE, or RENEW and WRITE.
        by_request[(verbs == int(Verb.WRITE)) & ~removes] += _WRITE
    if not by_request.any():
        return np.empty(0, dtype='uint8')
    return np.repeat(by_request, np.diff(plan.first))
