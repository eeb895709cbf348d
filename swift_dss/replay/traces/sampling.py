"""Some of a trace's objects, for a replay in small.

A spatial sample keeps every request of an object, or none of them
(Waldspurger and others, "Cache Modeling and Optimization using Miniature
Simulations", ATC 2017). The objects of a volume are runs of some units, so
that most requests are in one; the rest are cut, and count by how much of them
is there. The sample's objects lie in groups, by hash, whose figures tell how
far another sample's would be off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Tuple

from swift_dss.core.errors import BadConfig
from swift_dss.replay.traces.model import COLUMNS, Trace, Verb, numpy

AUTO = 'auto'
#: Requests and objects that a sample has at least where its share is chosen
#: for it.
AUTO_REQUESTS, AUTO_OBJECTS = 1 << 20, 1 << 14
#: A run of a volume's units is so many times a request's mean.
_RUN_REQUESTS = 8
GROUPS = 32
_SLICE = 1 << 20


@dataclass(frozen=True)
class Sample:
    """What was left out.

    :param share: of the objects that are there, above 0 and at most 1
    :param reads: of the whole trace, by class
    :param asked_bytes: by those reads
    :param groups: by request that is there: a number below ``GROUPS``
    :param parts: and how much of the client's request it is, in bytes: 1.0
        is all of it
    :param requests, moved_bytes: of the whole trace
    """

    share: float
    reads: Dict[int, int]
    asked_bytes: Dict[int, int]
    groups: Any
    parts: Any
    requests: int
    moved_bytes: int

    def ordered(self, order: Any) -> Sample:
        """For requests in another order, given as their numbers in this."""
        return replace(self, groups=self.groups[order],
                       parts=self.parts[order])


def parse(text: str) -> float:
    """``5%``, ``0.05`` or ``auto`` (0) to a share.

    :raises BadConfig: it is none
    """
    if text == AUTO:
        return 0.0
    try:
        share = float(text[:-1]) / 100 if text.endswith('%') else float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise BadConfig('--sample: %r is not auto or a share above 0 and up '
                        'to 1 (5%% or 0.05)' % text)
    return share


def thinned(trace: Trace, share: float,
            seed: int = 1) -> Tuple[Trace, Sample]:
    """The trace with ``share`` of its objects.

    :param share: 0: as small as ``AUTO_REQUESTS`` and ``AUTO_OBJECTS`` allow
    :param seed: another one has other objects
    :raises BadConfig: no read is left
    """
    run_bytes = run_length(trace)
    thinner = Thinner(share, seed, run_bytes)
    # In slices: the runs of a large trace would take more room than it does.
    for begin in range(0, len(trace), _SLICE):
        thinner.take({name: getattr(trace, name)[begin:begin + _SLICE]
                      for name in COLUMNS})
    columns, sample = thinner.sample()
    return replace(trace, **columns), sample


class Thinner:
    """A sample of requests that come in slices, without the others.

    :param share: 0: the least that ``AUTO_REQUESTS`` and ``AUTO_OBJECTS``
        allow; until it is known at most some millions of requests are kept
    :param seed: another one has other objects
    :param run_bytes: see :func:`run_length`
    """

    def __init__(self, share: float, seed: int = 1,
                 run_bytes: int = 0) -> None:
        self._share = share or 1.0
        self._is_auto = not share
        self._seed = seed
        self._run_bytes = run_bytes
        self._kept: List[Dict[str, Any]] = []
        self._reads: Dict[int, int] = {}
        self._asked: Dict[int, int] = {}
        self.requests = 0
        self._moved_bytes = 0

    def take(self, rows: Dict[str, Any]) -> None:
        """A slice: ``COLUMNS`` of a :class:`Trace`."""
        np = numpy()
        is_read = rows['verbs'] == int(Verb.READ)
        for class_id in np.unique(rows['class_ids']).tolist():
            these = is_read & (rows['class_ids'] == class_id)
            for counts, count in (
                    (self._reads, these.sum()),
                    (self._asked, rows['lengths'][these].sum())):
                counts[class_id] = counts.get(class_id, 0) + int(count)
        self.requests += len(is_read)
        self._moved_bytes += int(rows['lengths'].sum())
        rows = dict(rows, parts=np.ones(len(is_read)))
        if self._run_bytes:
            rows = _cut(rows, self._run_bytes)
        rows['hashes'] = _hashes(
            rows['objects'], rows['starts'] // self._run_bytes
            if self._run_bytes else 0, self._seed)
        self._kept.append(_thinner(rows, self._share))
        if self._is_auto:
            self._halve()

    def sample(self) -> Tuple[Dict[str, Any], Sample]:
        """The columns of all that is kept, and what they are of.

        :raises BadConfig: no read is left
        """
        np = numpy()
        rows = self._joined()
        if self._is_auto:
            objects = len(np.unique(rows['hashes'])) / self._share
            self._share = min(self._share, max(
                AUTO_REQUESTS / max(1, self.requests),
                AUTO_OBJECTS / max(1.0, objects)))
            rows = _thinner(rows, self._share)
        hashes, parts = rows.pop('hashes'), rows.pop('parts')
        if not (rows['verbs'] == int(Verb.READ)).any():
            raise BadConfig('--sample: %.3g %% of %d requests has no read: '
                            'say a larger share' % (
                                100 * self._share, self.requests))
        return rows, Sample(
            self._share, self._reads, self._asked,
            (hashes % np.uint64(GROUPS)).astype('uint8'), parts,
            self.requests, self._moved_bytes)

    def _halve(self) -> None:
        """Keep half of the objects where a quarter would be enough."""
        if self.kept < 4 * AUTO_REQUESTS:
            return
        rows = self._joined()
        if len(numpy().unique(rows['hashes'])) >= 4 * AUTO_OBJECTS:
            self._share /= 2
            rows = _thinner(rows, self._share)
        self._kept = [rows]

    @property
    def kept(self) -> int:
        """Requests, so far."""
        return sum(len(rows['hashes']) for rows in self._kept)

    def _joined(self) -> Dict[str, Any]:
        return {name: numpy().concatenate([rows[name] for rows in self._kept])
                for name in (*COLUMNS, 'parts', 'hashes')}


def _thinner(rows: Dict[str, Any], share: float) -> Dict[str, Any]:
    # The upper bits choose, the lower ones group.
    kept = (rows['hashes'] >> numpy().uint64(11)) < int(share * (1 << 53))
    return {name: column[kept] for name, column in rows.items()}


def run_length(trace: Trace) -> int:
    """0: objects are not cut."""
    unit = trace.unit_bytes
    if not unit:
        return 0
    mean = float(trace.lengths.mean()) / unit
    is_single = mean <= 1 and not (trace.starts % unit).any()
    return unit if is_single else unit * (
        1 << math.ceil(math.log2(_RUN_REQUESTS * max(1.0, mean))))


def _cut(rows: Dict[str, Any], run_bytes: int) -> Dict[str, Any]:
    """Requests cut where a run ends."""
    np = numpy()
    ends = rows['starts'] + rows['lengths']
    low = rows['starts'] // run_bytes
    many = (ends - 1) // run_bytes - low + 1
    source = np.repeat(np.arange(len(many)), many)
    first = np.repeat(np.cumsum(many) - many, many)
    begins = (low[source] + np.arange(len(source)) - first) * run_bytes
    cut = {name: column[source] for name, column in rows.items()}
    cut['starts'] = np.maximum(rows['starts'][source], begins)
    cut['lengths'] = np.minimum(ends[source], begins + run_bytes) \
        - cut['starts']
    cut['parts'] = cut['lengths'] / rows['lengths'][source]
    return cut


def _hashes(objects: Any, runs: Any, seed: int) -> Any:
    """64 bits of each object and run (splitmix64, three times)."""
    np = numpy()
    salt = _mixed(np.array([seed], dtype='uint64'))
    return _mixed(_mixed(objects.astype('uint64') ^ salt)
                  ^ np.asarray(runs, dtype='uint64'))


def _mixed(numbers: Any) -> Any:
    np = numpy()
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) \
        * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) \
        * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
