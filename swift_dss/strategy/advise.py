"""How large data, metadata and log should be. Pure.

By rule, from measurements (R3, R3a, R6a and E5 of "Storage on the Edge"): data
must hold the ingest of the longest outage, the largest object on top, and
headroom for eviction and moves; metadata grows with the population, the log
with the waiting bytes.

The paper's failures came from too little data room (Table IV), and data room
is the largest cost; so the advice also warns when there is far more than the
workload needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Mapping, Optional

#: Bytes of the index for a version of one class: measured, with its
#: indexes, on a million of versions.
INDEX_ROW_BYTES = 700
#: Bytes of the gateway's queue for a version that waits.
QUEUE_ROW_BYTES = 700
#: An area this many times the advised size is called too large.
TOO_LARGE = 4.0
#: SQLite's own overhead and the write-ahead logs, bytes.
_FLOOR_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class Workload:
    """The workload, measured or expected.

    :param ingest_rate: bytes a second that come in, at the busiest
    :param objects_rate: objects a second, at the busiest
    :param outage_seconds: the longest time without S3
    :param largest_bytes: the largest object
    :param writers: largest objects that come in at a time
    :param population: versions on this node
    :param local_bytes: bytes that never go to S3, or that readers come back
        to: the working set
    """

    ingest_rate: float
    objects_rate: float
    outage_seconds: float
    largest_bytes: int
    writers: int
    population: int
    local_bytes: int = 0


@dataclass(frozen=True)
class Advice:
    """One area: its size, and the size it should have.

    :param area: ``data``, ``metadata`` or ``log``
    :param has_bytes: None if it is not known
    """

    area: str
    wants_bytes: int
    why: str
    has_bytes: Optional[int] = None

    @property
    def verdict(self) -> str:
        """``fits``, ``too small`` or ``too large``; '' if not known."""
        if self.has_bytes is None:
            return ''
        if self.has_bytes < self.wants_bytes:
            return 'too small'
        if self.has_bytes > self.wants_bytes * TOO_LARGE:
            return 'too large'
        return 'fits'


@dataclass(frozen=True)
class Drain:
    """The load on the link to S3.

    :param bytes_per_second: of the link, towards S3
    :param drain_seconds: from the end of the longest outage until nothing of
        it waits; None: never
    """

    bytes_per_second: float
    drain_seconds: Optional[float]

    @property
    def keeps_up(self) -> bool:
        """False if more comes in at the busiest than leaves."""
        return self.drain_seconds is not None


def drain(load: Workload, link_rate: float) -> Drain:
    """The backlog of an outage leaves with the share of the link that new
    uploads do not need.

    :param link_rate: bytes a second towards S3, above 0
    """
    spare = link_rate - load.ingest_rate
    return Drain(link_rate, load.ingest_rate * load.outage_seconds / spare
                 if spare > 0 else None)


def advise(load: Workload, headroom: float,
           has_bytes: Mapping[str, int]) -> List[Advice]:
    """Sizes of all areas.

    :param headroom: share of the data room that is kept free
    :param has_bytes: existing sizes, by area
    """
    waiting = load.ingest_rate * load.outage_seconds
    largest = load.largest_bytes * max(1, load.writers)
    data = int((waiting + largest + load.local_bytes)
               / max(0.01, 1.0 - headroom))
    metadata = _FLOOR_BYTES + load.population * INDEX_ROW_BYTES
    log = _FLOOR_BYTES + int(
        load.objects_rate * load.outage_seconds * QUEUE_ROW_BYTES)
    return [
        Advice('data', data, 'ingest x longest outage + largest object x '
               'writers + what stays, and %.0f %% headroom' % (
                   100 * headroom), has_bytes.get('data')),
        Advice('metadata', metadata, 'versions x %d bytes of index'
               % INDEX_ROW_BYTES, has_bytes.get('metadata')),
        Advice('log', log, 'objects/s x longest outage x %d bytes of queue'
               % QUEUE_ROW_BYTES, has_bytes.get('log'))]
