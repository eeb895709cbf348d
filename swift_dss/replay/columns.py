"""Times and sums of requests, of the results of their accesses.

Where hits do not depend on time the cache goes first, and all times follow
from what it did: some thousand requests at once, with numpy.
"""

from __future__ import annotations

from typing import Any, Dict

from swift_dss.replay.plan import Plan
from swift_dss.replay.setup import Setup
from swift_dss.replay.traces.model import Verb, numpy
from swift_dss.strategy.eviction.objects.verbs import BYPASS, HIT, MISS


class Columns:
    """The columns and counts of :class:`~swift_dss.replay.setup.Outcome`.

    :param results: of each access
    :param came: the access that brought in what an access hit
    """

    def __init__(self, plan: Plan, setup: Setup, results: Any,
                 came: Any) -> None:
        np = numpy()
        self._plan, self._setup = plan, setup
        self._results, self._came = results, came
        self._dice = np.random.Generator(np.random.PCG64([setup.seed, 1]))
        #: When the bytes that a request misses are there, and the most that
        #: one waited.
        self._there_ms = np.empty(plan.requests)
        self._most_ms = 0.0
        self.latency_ms = np.empty(plan.requests)
        self.hits = np.empty(plan.requests, dtype=bool)
        self.hit_bytes = np.empty(plan.requests, dtype='int64')
        self.asked_bytes = np.add.reduceat(plan.sizes, plan.first[:-1]) \
            if plan.unit_bytes else plan.sizes
        self.counts: Dict[str, float] = dict.fromkeys((
            'gets', 'get_bytes', 'puts', 'put_bytes', 'bypasses', 'delayed',
            'ssd_written_bytes'), 0.0)

    # long: a request's columns, from hits to bytes.
    def take(self, begin: int, end: int) -> None:
        """Fill in a slice of requests; slices come in their order."""
        np = numpy()
        plan, setup, rows = self._plan, self._setup, slice(begin, end)
        first = plan.first[begin:end + 1]
        accesses = slice(int(first[0]), int(first[-1]))
        results, sizes = self._results[accesses], plan.sizes[accesses]
        verbs, lengths = plan.trace.verbs[rows], plan.trace.lengths[rows]
        reads, writes = verbs == int(Verb.READ), verbs == int(Verb.WRITE)
        is_hit = results == HIT
        asked = self.asked_bytes[rows]
        missing = self._summed(np.where(is_hit, 0, sizes), first)
        fetched = reads & (missing > 0)
        hits = reads & ~fetched
        waits = np.zeros(end - begin)
        fetch_ms = setup.cloud.get.draw(self._dice, int(fetched.sum())) \
            + missing[fetched] / setup.cloud.bytes_per_second * 1000.0
        waits[fetched] = fetch_ms
        self._there_ms[rows] = plan.trace.at_ms[rows] + waits
        self._most_ms = max(self._most_ms, waits.max())
        delays = self._delays(begin, end, is_hit) * hits
        latency = setup.ssd.times.draw(self._dice, end - begin) \
            + np.minimum(lengths, asked) \
            / setup.ssd.bytes_per_second * 1000.0 + waits + delays
        if writes.any():
            # The SSD's copy is made at the same time.
            latency[writes] = setup.cloud.put.draw(
                self._dice, int(writes.sum())) + lengths[writes] \
                / setup.cloud.bytes_per_second * 1000.0
        latency[verbs == int(Verb.DELETE)] = 0.0
        self.latency_ms[rows], self.hits[rows] = latency, hits
        self.hit_bytes[rows] = (asked - missing) * reads
        in_place = is_hit & self._spread(writes, first)
        for name, count in (
                ('gets', (self._gets(is_hit, first) * reads).sum()),
                ('get_bytes', missing[fetched].sum()),
                ('puts', writes.sum()), ('put_bytes', lengths[writes].sum()),
                ('bypasses', (results == BYPASS).sum()),
                ('delayed', (delays > 0).sum()),
                # All that comes in, and all that clients write in place.
                ('ssd_written_bytes',
                 sizes[(results == MISS) | in_place].sum())):
            self.counts[name] += float(count)

    def _summed(self, column: Any, first: Any) -> Any:
        """By request, of its accesses."""
        return numpy().add.reduceat(column, first[:-1] - first[0]) \
            if self._plan.unit_bytes else column

    def _spread(self, column: Any, first: Any) -> Any:
        """By access, of its request."""
        np = numpy()
        return np.repeat(column, np.diff(first)) \
            if self._plan.unit_bytes else column

    def _gets(self, is_hit: Any, first: Any) -> Any:
        """GETs of each request: one for each part, or for each run of units,
        that is missing."""
        np = numpy()
        missed = ~is_hit
        if not self._plan.parted and self._plan.unit_bytes:
            before = np.concatenate(([True], is_hit[:-1]))
            before[first[:-1] - first[0]] = True
            missed &= before
        return self._summed(missed.astype('int64'), first)

    def _delays(self, begin: int, end: int, is_hit: Any) -> Any:
        """The wait of requests for units that earlier ones are fetching."""
        np = numpy()
        plan, at_ms = self._plan, self._plan.trace.at_ms
        first = plan.first[begin:end + 1]
        delays = np.zeros(len(is_hit))
        # All that came earlier was there when the slice began.
        oldest = np.searchsorted(at_ms, at_ms[begin] - self._most_ms)
        came = self._came[int(first[0]):int(first[-1])]
        late = np.flatnonzero(is_hit & (came >= plan.first[oldest]))
        source = came[late]
        if plan.unit_bytes:
            source = np.searchsorted(plan.first, source, 'right') - 1
        now_ms = self._spread(at_ms[begin:end], first)
        delays[late] = np.maximum(0.0, self._there_ms[source] - now_ms[late])
        return np.maximum.reduceat(delays, first[:-1] - first[0]) \
            if plan.unit_bytes else delays
