"""Caches in C (``strategy/eviction/objects/fast.c``), where they say all that
a run asks of a cache: accesses, and removals of whole objects or blocks.

Their decisions are those of the Python forms, some twenty times as fast.
"""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from swift_dss.core.classes import Allocate
from swift_dss.core.limits import CLASS_ID_MAX
from swift_dss.replay.plan import Plan
from swift_dss.replay.setup import PROGRESS_EVERY, Progress, Setup
from swift_dss.replay.traces.model import Verb, numpy
from swift_dss.strategy.eviction.objects import doorkeeper, orders

try:
    from swift_dss.strategy.eviction.objects import fast
except ImportError:  # There was no compiler.
    fast = None  # type: ignore[assignment]

#: By their numbers in C.
_KINDS = ('lru', 'sieve', 's3fifo', 'gdsf')
_ALLOCATE = (Allocate.ALWAYS, Allocate.ROOM, Allocate.NEVER)
_RENEW, _REMOVE = 1, 2
#: Beside HIT, MISS and BYPASS: the cache was not asked.
NOT_ASKED = 3
#: C has products of bytes and weights as floating-point numbers, which are
#: exact up to here.
_MOST_WEIGHED = 1 << 53


def cache(setup: Setup) -> Optional[fast.Cache]:
    """An empty cache in C; None: this set-up has only a Python form."""
    kind, _, inner = setup.strategy.partition('-')
    is_plain = kind in orders.ORDERS
    names = [kind if is_plain else inner or setup.table.spec(class_id).inner
             for class_id in range(CLASS_ID_MAX + 1)]
    if setup.admit != doorkeeper.ALL:
        return None
    if fast is None or not set(names) <= set(_KINDS):
        return None
    rows: List[Tuple[int, int, int, int, float, int, int, float]] = []
    for class_id, name in enumerate(names):
        spec = setup.table.spec(class_id)
        weight = float(setup.weights.get(class_id, spec.weight))
        if weight * setup.cache_bytes > _MOST_WEIGHED:
            return None
        rows.append((
            _KINDS.index(name), 0 if is_plain else spec.rank,
            int(spec.floor * setup.cache_bytes),
            int(spec.cap * setup.cache_bytes), weight,
            0 if is_plain else _ALLOCATE.index(spec.allocate),
            int(spec.pin and not is_plain),
            setup.weights.get(class_id, 1.0)))
    return fast.Cache(
        setup.cache_bytes, is_plain, kind == orders.WEIGHTED,
        setup.penalty_us, setup.cloud.bytes_per_second, tuple(rows))


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
    if not by_request.any():
        return np.empty(0, dtype='uint8')
    return np.repeat(by_request, np.diff(plan.first))
