"""Times and sums of requests, of the results of their accesses.

Where hits do not depend on time the cache goes first, and all times follow
from what it did: some thousand requests at once, with numpy.
"""

from __future__ import annotations

from typing import Any, Dict, Tuple

from swift_dss.replay.plan import Accesses, Plan
from swift_dss.replay.setup import Outcome, Setup
from swift_dss.replay.traces.model import Verb, numpy
from swift_dss.replay.traces.spool import Column, slices
from swift_dss.strategy.eviction.objects.verbs import BYPASS, HIT, MISS

#: Requests whose units are looked at together.
_SLICE = 1 << 14


class Columns:
    """The columns and counts of :class:`~swift_dss.replay.setup.Outcome`."""

    def __init__(self, plan: Plan, setup: Setup) -> None:
        np = numpy()
        self._plan, self._setup = plan, setup
        self._dice = np.random.Generator(np.random.PCG64([setup.seed, 1]))
        self._window = _Window()
        # Four bytes each where they are enough: traces are long.
        self.latency_ms = np.empty(plan.requests, dtype='float32')
        self.hits = np.empty(plan.requests, dtype=bool)
        self._asked = Column(plan.bytes_kind)
        self._found = Column(plan.bytes_kind)
        self.counts: Dict[str, float] = dict.fromkeys((
            'gets', 'get_bytes', 'puts', 'put_bytes', 'bypasses', 'delayed',
            'ssd_written_bytes'), 0.0)

    # long: a request's columns, from hits to bytes.
    def take(self, part: Accesses, results: Any, came: Any) -> None:
        """Fill in some requests; they come in their order.

        :param results: of each access
        :param came: the access that brought in what an access hit
        """
        np = numpy()
        plan, setup = self._plan, self._setup
        rows, first, sizes = slice(part.begin, part.end), part.first, \
            part.sizes
        verbs, lengths = plan.trace.verbs[rows], plan.trace.lengths[rows]
        reads, writes = verbs == int(Verb.READ), verbs == int(Verb.WRITE)
        is_hit = results == HIT
        asked = self._summed(sizes, first)
        missing = self._summed(np.where(is_hit, 0, sizes), first)
        fetched = reads & (missing > 0)
        hits = reads & ~fetched
        waits = np.zeros(len(verbs))
        fetch_ms = setup.cloud.get.draw(self._dice, int(fetched.sum())) \
            + missing[fetched] / setup.cloud.bytes_per_second * 1000.0
        waits[fetched] = fetch_ms
        delays = self._delays(part, waits, is_hit, came) * hits
        latency = setup.ssd.times.draw(self._dice, len(verbs)) \
            + np.minimum(lengths, asked) \
            / setup.ssd.bytes_per_second * 1000.0 + waits + delays
        if writes.any():
            # The SSD's copy is made at the same time.
            latency[writes] = setup.cloud.put.draw(
                self._dice, int(writes.sum())) + lengths[writes] \
                / setup.cloud.bytes_per_second * 1000.0
        latency[verbs == int(Verb.DELETE)] = 0.0
        self.latency_ms[rows], self.hits[rows] = latency, hits
        if plan.unit_bytes:
            self._asked.extend(asked)
            self._found.extend((asked - missing) * reads)
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

    def outcome(self, cached_bytes: float, cache_seconds: float) -> Outcome:
        """Of all requests, which are taken.

        :param cached_bytes: that are in the cache in the end
        :param cache_seconds: of processor time
        """
        self.counts['cached_bytes'] = cached_bytes
        cached, asked = None, self._plan.trace.sizes
        if self._plan.unit_bytes:
            cached, asked = self._found.whole(), self._asked.whole()
        return Outcome(self._setup, self.latency_ms, self.hits, cached, asked,
                       self.counts, cache_seconds, 0.0)

    def _summed(self, column: Any, first: Any) -> Any:
        """By request, of its accesses."""
        return numpy().add.reduceat(column, first[:-1]) \
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
            before[first[:-1]] = True
            missed &= before
        return self._summed(missed.astype('int64'), first)

    def _delays(self, part: Accesses, waits: Any, is_hit: Any,
                came: Any) -> Any:
        """The wait of requests for units that earlier ones are fetching."""
        np = numpy()
        at_ms = self._plan.trace.at_ms[part.begin:part.end]
        self._window.add(at_ms, at_ms + waits, part.before + part.first[:-1])
        delays = np.zeros(len(is_hit))
        late = np.flatnonzero(is_hit & (came >= self._window.first))
        there_ms = self._window.there_ms(came[late])
        delays[late] = np.maximum(
            0.0, there_ms - self._spread(at_ms, part.first)[late])
        return np.maximum.reduceat(delays, part.first[:-1]) \
            if self._plan.unit_bytes else delays


class Answers:
    """The columns of requests that are played one by one."""

    def __init__(self, plan: Plan) -> None:
        np = numpy()
        self._plan = plan
        self.latency_ms = np.zeros(plan.requests, dtype='float32')
        self.hits = np.zeros(plan.requests, dtype=bool)
        self._found = Column(plan.bytes_kind)
        self._rows = Column('I')

    def add(self, row: int, wait_ms: float, hit: bool,
            bytes_found: int) -> None:
        """A request; they come in any order."""
        self.latency_ms[row], self.hits[row] = wait_ms, hit
        if self._plan.unit_bytes:
            self._found.append(bytes_found)
            self._rows.append(row)

    def by_bytes(self) -> Tuple[Any, Any]:
        """(bytes of each that were in the cache, bytes that it was for), as
        :class:`Outcome` has them, of all requests."""
        np = numpy()
        if not self._plan.unit_bytes:
            return None, self._plan.trace.sizes
        asked = Column(self._plan.bytes_kind)
        for part in self._plan.slices(_SLICE):
            asked.extend(np.add.reduceat(part.sizes, part.first[:-1]))
        cached, rows = self._found.whole(), self._rows.whole()
        if any((rows[part] != np.arange(part.start, part.stop)).any()
               for part in slices(len(rows))):
            cached = cached[np.argsort(rows)]
        return cached, asked.whole()


class _Window:
    """When the bytes of the last requests are there: of all whose bytes may
    still be on their way."""

    def __init__(self) -> None:
        np = numpy()
        self._at_ms, self._there_ms = np.empty(0), np.empty(0)
        self._accesses = np.empty(0, dtype='int64')
        #: The most that a request waited.
        self._most_ms = 0.0

    @property
    def first(self) -> int:
        """The first access that is known."""
        return int(self._accesses[0])

    def add(self, at_ms: Any, there_ms: Any, accesses: Any) -> None:
        """Requests that follow.

        :param accesses: the first of each
        """
        np = numpy()
        self._most_ms = max(self._most_ms, float((there_ms - at_ms).max()))
        # All that came earlier was there when the first of these began.
        keep = slice(int(np.searchsorted(
            self._at_ms, at_ms[0] - self._most_ms)), None)
        self._at_ms, self._there_ms, self._accesses = (
            np.concatenate((old[keep], new)) for old, new in (
                (self._at_ms, at_ms), (self._there_ms, there_ms),
                (self._accesses, accesses)))

    def there_ms(self, accesses: Any) -> Any:
        """By access: when the bytes of its request are there."""
        return self._there_ms[numpy().searchsorted(
            self._accesses, accesses, 'right') - 1]
