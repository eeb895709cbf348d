"""A version as rows of the index: one for it, one for each of its classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import (
    Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple)

from swift_dss.core.classes import ClassTable
from swift_dss.core.residency import Residency, Tier
from swift_dss.core.spans import ClassMap
from swift_dss.core.version import VersionId
from swift_dss.strategy.eviction.warmth import Warmth, warmth

_SSD, _HDD, _REMOTE = int(Tier.SSD), int(Tier.HDD), int(Tier.REMOTE)


@dataclass
class SpanRow:
    """Bytes of one class in one version.

    :param total_bytes: of that class
    :param ssd_bytes: of them on the SSD; likewise ``hdd`` and ``remote``
    :param dirty_bytes: on the SSD and nowhere else
    :param spare_bytes: on the HDD and verified in S3
    :param movable: False where they must stay on the SSD
    :param warmth: cold bytes leave the SSD before all others
    """

    class_id: int
    total_bytes: int = 0
    ssd_bytes: int = 0
    hdd_bytes: int = 0
    remote_bytes: int = 0
    dirty_bytes: int = 0
    spare_bytes: int = 0
    movable: bool = True
    warmth: Warmth = Warmth.WARM


@dataclass
class VersionRow:
    """One version on one device.

    :param name: ``/account/container/object``; '' if not known
    :param put_at: seconds since the epoch
    :param wants_remote: its classes want a copy in S3 that it has not yet
    :param pin_rule: verdict of the pin rule (``tier.pins``)
    :param posted: its files tell of a POST; the index does not keep it
    """

    version: VersionId
    partition: str
    size: int
    name: str = ''
    put_at: float = 0.0
    read_at: float = 0.0
    pinned: bool = False
    on_remote: bool = False
    wants_remote: bool = False
    spans: List[SpanRow] = field(default_factory=list)
    pin_rule: int = 0
    posted: bool = field(default=False, compare=False)

    def spans_of(self, class_ids: Sequence[int]) -> List[SpanRow]:
        """Those of some classes; no class means all."""
        return [span for span in self.spans
                if not class_ids or span.class_id in class_ids]


class Departing(NamedTuple):
    """A version whose partition is not on its device any more.

    :param on_hdd: the HDD has bytes of it
    """

    row_id: int
    version: VersionId
    partition: str
    on_hdd: bool


@dataclass(frozen=True)
class Candidate:
    """A version's bytes of one class that a mover may work on."""

    version: VersionId
    partition: str
    size: int
    class_id: int
    length: int


def spans_of(class_map: ClassMap, residency: Residency, table: ClassTable,
             pinned: bool, min_demote_bytes: int,
             rank: Optional[int] = None) -> List[SpanRow]:
    """The rows of one version, lowest class first.

    Cost: O(spans + extents).

    :param rank: of the copy; None: it has none
    """
    rows: Dict[int, SpanRow] = {}
    small = residency.content_length <= min_demote_bytes
    for class_id, length, tiers in _merged(class_map, residency):
        row = rows.get(class_id)
        if row is None:
            row = rows[class_id] = SpanRow(class_id)
            spec = table.spec(class_id)
            row.movable = not (pinned or small or spec.pin)
            row.warmth = warmth(rank, spec)
        row.total_bytes += length
        # As numbers: every walk asks, and a flag's "&" takes a microsecond.
        bits = int(tiers)
        if bits & _SSD:
            row.ssd_bytes += length
            if bits == _SSD:
                row.dirty_bytes += length
        if bits & _HDD:
            row.hdd_bytes += length
            if bits & _REMOTE:
                row.spare_bytes += length
        if bits & _REMOTE:
            row.remote_bytes += length
    return [rows[class_id] for class_id in sorted(rows)]


def wants_remote(spans: List[SpanRow], table: ClassTable,
                 rest: int = 0) -> bool:
    """See :meth:`ClassTable.may_leave`.

    :param rest: class of an empty version, which has no span: its name
        and metadata go to S3 like any other's
    """
    return table.may_leave([row.class_id for row in spans] or [rest])


def _merged(class_map: ClassMap, residency: Residency
            ) -> Iterator[Tuple[int, int, Tier]]:
    """(class, length, tiers) of pieces that are alike in both."""
    if len(residency.extents) == 1 and class_map.is_uniform:
        # Nearly all there are, at a third of the cost.
        yield (class_map.rest, residency.content_length,
               residency.extents[0].tiers)
        return
    extents = iter(residency.extents)
    extent = next(extents, None)
    for span in class_map.split(0, residency.content_length):
        at = span.offset
        while extent is not None and at < span.end:
            stop = min(span.end, extent.end)
            yield span.class_id, stop - at, extent.tiers
            at = stop
            if stop == extent.end:
                extent = next(extents, None)
