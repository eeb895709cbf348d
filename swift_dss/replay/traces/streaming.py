"""A sample of a native trace that is read as a stream.

Memory is that of the sample: a trace of any length takes no more.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

from swift_dss.core.limits import DEFAULT_PART_BYTES
from swift_dss.replay.traces import native, streams
from swift_dss.replay.traces.model import (
    BadTrace, Trace, Verb, numpy, renumbered)
from swift_dss.replay.traces.sampling import Sample, Thinner

_HEAD_BYTES = 4096
Classing = Callable[[Trace], Trace]


def sampled(path: str, share: float, seed: int, rate: float,
            classing: Classing, limit: Optional[int] = None
            ) -> Optional[Tuple[Trace, Sample]]:
    """The sample of a trace.

    :param share: 0: as small as can be
    :param rate: requests a second of traces without times
    :param classing: gives some rows of the trace their classes; it sees the
        hashes of objects, and no names
    :param limit: the first requests only
    :returns: None, with nothing read: it has to be read as a whole, because
        it is of another format or of volumes, or there was no compiler
    :raises BadTrace: it cannot be read
    """
    if not native.HAS_SLICES:
        return None
    with streams.opened(path) as stream:
        head: bytes = stream.peek(_HEAD_BYTES)  # type: ignore[attr-defined]
        if not native.is_marked(head) or b'\n# unit' in head:
            return None
        return _read(stream, path, Thinner(share, seed), rate, classing,
                     limit)


def _read(stream: Any, path: str, thinner: Thinner, rate: float,
          classing: Classing, limit: Optional[int]) -> Tuple[Trace, Sample]:
    np = numpy()
    has_ranges = False
    meaning = native.Meaning()
    part: Optional[Trace] = None
    for meaning, rows in native.slices(stream, path):
        if meaning.unit_bytes:
            raise BadTrace(path, '', 'unit', 'stands behind too many other '
                           'lines: put it on the second one')
        if limit is not None:
            rows = {name: column[:limit - thinner.requests]
                    for name, column in rows.items()}
        if not meaning.timed:
            rows['at_ms'] = (thinner.requests + np.arange(
                len(rows['verbs']))) * (1000.0 / rate)
        if not meaning.clients:
            rows['clients'] = rows['accounts']
        has_ranges |= bool(((rows['verbs'] == int(Verb.READ)) & (
            rows['lengths'] < rows['sizes'])).any())
        part = classing(_trace(path, rows, meaning))
        thinner.take(dict(rows, class_ids=part.class_ids))
        if limit is not None and thinner.requests >= limit:
            break
    if part is None:
        raise BadTrace(path, '', '', 'no requests in it')
    columns, sample = thinner.sample()
    order = np.argsort(columns['at_ms'], kind='stable')
    trace = renumbered(_trace(path, {
        name: column[order] for name, column in columns.items()}, meaning))
    trace.ranked = part.ranked
    trace.part_bytes = meaning.part_bytes or (
        DEFAULT_PART_BYTES if has_ranges else 0)
    # Groups and parts are of rows, which may have changed places.
    return trace, sample.ordered(order)


def _trace(path: str, rows: Dict[str, Any],
           meaning: native.Meaning) -> Trace:
    return Trace(path, timed=meaning.timed, ranked=list(meaning.ranked),
                 **rows)
