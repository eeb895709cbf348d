"""The reads of a trace that a cache could answer, and their worth.

A *reuse* is a read of a unit together with the access of the same unit before
it. The read is a hit only if the unit stays from that access on, over all the
accesses between (Berger, Beckmann and Harchol-Balter, "Practical Bounds on
Optimal Caching with Variable Object Sizes", SIGMETRICS 2018, section 4). A
write makes its unit present for nothing, unless writes go around the cache. No
unit outlives a delete, an overwrite or another size of its object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Tuple

from swift_dss.replay.latency import Cloud
from swift_dss.replay.plan import Plan
from swift_dss.replay.traces.model import Verb, numpy


@dataclass(frozen=True)
class Reuses:
    """A row a reuse, in the order of ``ends``.

    :param begins, ends: accesses
    :param sizes: bytes
    :param accesses: of the whole plan
    """

    begins: Any
    ends: Any
    sizes: Any
    accesses: int

    def __len__(self) -> int:
        return len(self.ends)


@dataclass(frozen=True)
class Worth:
    """A goal, by reuse.

    :param each: the gain of a hit: dollars that are not paid, or a share of
        a read that hits; the gain of all units of a request together is at
        most that of the request
    :param without: the dollars of a replay without any hit, or the reads
    """

    each: Any
    without: float


def find(plan: Plan, write: str) -> Reuses:
    """All reuses of a plan.

    :param write: mode of writes, as in the set-up
    """
    np = numpy()
    order = np.argsort(plan.keys, kind='stable')
    keys = plan.keys[order]
    again = np.flatnonzero(keys[1:] == keys[:-1])
    del keys
    begins, ends = order[again], order[again + 1]
    del order
    request = requests(plan)
    verbs = plan.trace.verbs
    first, last = verbs[request[begins]], verbs[request[ends]]
    possible = (last == int(Verb.READ)) & (first != int(Verb.DELETE))
    if write == 'around':
        possible &= first == int(Verb.READ)
    if plan.renewed.any():
        version = _versions(plan)
        possible &= version[request[begins]] == version[request[ends]]
    begins, ends = begins[possible], ends[possible]
    order = np.argsort(ends, kind='stable')
    return Reuses(begins[order].astype('uint32'),
                  ends[order].astype('uint32'), plan.sizes[ends[order]],
                  plan.accesses)


def requests(plan: Plan) -> Any:
    """By access, its request."""
    np = numpy()
    count = np.arange(plan.requests, dtype='uint32')
    return np.repeat(count, np.diff(plan.first)) if plan.unit_bytes \
        else count


def _versions(plan: Plan) -> Any:
    """By request: a number that changes when the object is renewed."""
    np = numpy()
    order = np.argsort(plan.trace.objects, kind='stable')
    versions = np.empty(plan.requests, dtype='int64')
    versions[order] = np.cumsum(plan.renewed[order])
    return versions


def dollars(plan: Plan, reuses: Reuses, cloud: Cloud) -> Worth:
    """What GETs and bytes cost that hits save.

    Units of one request that are missing in one run come with one GET. A
    GET is saved only if all units of the request are hits, so each unit
    has its share of it, and none where one unit must be missed.
    """
    trace = plan.trace
    is_read = trace.verbs == int(Verb.READ)
    each = reuses.sizes * cloud.out_dollars
    gets = float(is_read.sum())
    if plan.parted:
        each += cloud.get_dollars
        gets = float(numpy().diff(plan.first)[is_read].sum())
    else:
        each += cloud.get_dollars * _shares(plan, reuses)
    writes = trace.verbs == int(Verb.WRITE)
    return Worth(each, gets * cloud.get_dollars + cloud.out_dollars
                 * float(plan.sizes[is_read[requests(plan)]].sum())
                 + float(writes.sum()) * cloud.put_dollars
                 + float(trace.lengths[writes].sum()) * cloud.in_dollars)


def by_class(weights: Dict[int, float]) -> Any:
    """By class, the weight of its hits."""
    return numpy().array([weights.get(class_id, 1.0)
                          for class_id in range(256)])


def hits(plan: Plan, reuses: Reuses, weights: Dict[int, float]) -> Worth:
    """Reads all of whose units are hits, by the weights of their classes
    (1 where nothing is said)."""
    of_class = by_class(weights)
    classes = plan.trace.class_ids
    reads = plan.trace.verbs == int(Verb.READ)
    return Worth(
        _shares(plan, reuses) * of_class[plan.class_ids[reuses.ends]],
        float(of_class[classes[reads]].sum()))


def size(plan: Plan, reuses: Reuses) -> Worth:
    """Bytes that are hits."""
    reads = plan.trace.verbs == int(Verb.READ)
    return Worth(reuses.sizes.astype('float64'),
                 float(plan.sizes[reads[requests(plan)]].sum()))


def _shares(plan: Plan, reuses: Reuses) -> Any:
    """By reuse: its share of its request; 0 where a unit of the request
    cannot be a hit."""
    np = numpy()
    if not plan.unit_bytes:
        return np.ones(len(reuses))
    request = requests(plan)[reuses.ends]
    units = np.diff(plan.first)
    possible = np.bincount(request, minlength=plan.requests) == units
    return np.where(possible, 1.0 / units, 0.0)[request]


def fitting(reuses: Reuses, worth: Worth, room: int) -> Tuple[Reuses, Worth]:
    """Without units that are larger than the room, and without those that
    are worth nothing."""
    fit = (reuses.sizes <= room) & (worth.each > 0)
    if fit.all():
        return reuses, worth
    return Reuses(reuses.begins[fit], reuses.ends[fit], reuses.sizes[fit],
                  reuses.accesses), Worth(worth.each[fit], worth.without)
