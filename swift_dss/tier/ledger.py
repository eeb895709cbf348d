"""What object servers said, turned into rows of the index.

Events may be lost, late, doubled or out of order: a PUT makes us read the
version's own files, so the newest state always wins, and the sweep finds
what nobody told us.
"""

from __future__ import annotations

import logging
from typing import Callable, Dict, Iterable, List, Optional, Set

from swift_dss.core.classes import ClassTable, RemoteMode
from swift_dss.core.errors import (
    BadClassInput, DamagedRecord, DssError, TierUnavailable, VersionGone)
from swift_dss.core.residency import Tier
from swift_dss.core.version import VersionId
from swift_dss.gateway.service import Gateway
from swift_dss.tier.index import Index, IndexDamaged, IndexUnavailable
from swift_dss.tier.local import Local
from swift_dss.tier.metrics import Metrics
from swift_dss.tier.rows import VersionRow
from swift_dss.wire import classmap
from swift_dss.wire.control import Event, EventKind


class Ledger:
    """Applies events. Called by one thread at a time.

    :param gateway: None where there is no remote tier
    :param wish: told of (version, partition, classes) that were read from
        a slower tier
    :param hits: told of (class id, tiers, bytes) of each read
    """

    def __init__(self, local: Local, index: Index,
                 table: Callable[[], ClassTable], metrics: Metrics,
                 logger: logging.Logger, gateway: Optional[Gateway],
                 wish: Callable[[VersionId, str, List[int]], None],
                 hits: Callable[[int, Tier, int], None]) -> None:
        self._local = local
        self._index = index
        self._table = table
        self._metrics = metrics
        self._logger = logger
        self._gateway = gateway
        self._wish = wish
        self._hits = hits
        #: Something was said and could not be kept: a sweep is due. Who
        #: begins one clears it first.
        self.missed = False

    def apply(self, events: Iterable[Event]) -> Set[str]:
        """Bring the index up to date; the devices that changed.

        Events that cannot be kept because the index cannot be written are
        dropped and counted: objects are read and written all the same.

        :raises IndexDamaged: the index must be replaced
        """
        changed: Set[str] = set()
        reads: Dict[VersionId, Event] = {}
        for event in events:
            if event.kind is EventKind.READ:
                self._count_read(event)
                reads[event.version] = event
                continue
            try:
                self._apply_one(event)
                changed.add(event.version.device)
            except IndexDamaged:
                raise
            except IndexUnavailable:
                self.missed = True
                self._metrics.count('tier.events_dropped')
            except (VersionGone, TierUnavailable, DamagedRecord) as err:
                # Gone again, or nothing we can look at: the sweep will.
                self.missed = self.missed or isinstance(
                    err, TierUnavailable)
                self._metrics.count('tier.events_%s' % err.counter)
        try:
            with self._index.batch():
                for event in reads.values():
                    self._touch(event)
        except IndexUnavailable:
            self._metrics.count('tier.events_dropped', len(reads))
        return changed

    def settle(self, row: VersionRow) -> None:
        """After a version was found: does S3 have to get it?"""
        if self._gateway is None or not row.wants_remote or row.on_remote:
            return
        urgent = any(
            self._table().spec(span.class_id).remote in (
                RemoteMode.THROUGH, RemoteMode.ONLY) for span in row.spans)
        self._gateway.enqueue_upload(row.version, row.partition, urgent)

    def retire(self, row: VersionRow) -> None:
        """An overwritten or deleted version: free what it holds."""
        if self._local.exists(row.version, row.partition):
            return
        # Before the row goes: a crash in between must leave somebody who
        # still knows the key. The gateway never deletes a newest version.
        if self._gateway is not None and (row.on_remote or row.wants_remote):
            self._gateway.enqueue_delete(row.version, row.partition)
        if self._local.reclaim(row):
            self._metrics.count('tier.reclaimed')

    def _apply_one(self, event: Event) -> None:
        version = event.version
        self._metrics.count('tier.events.%s' % event.kind.value)
        if event.kind is not EventKind.CLASS:
            for row in self._index.older_than(version):
                self.retire(row)
        if event.kind is EventKind.DELETE:
            return
        self.settle(self._local.track(
            version, event.partition, event.at, event.at))

    def _count_read(self, event: Event) -> None:
        self._metrics.count('tier.events.read')
        tiers = Tier(event.tier_bits & 7)
        for class_id, length in self._classes_of(event).items():
            self._hits(class_id, tiers, length)

    def _touch(self, event: Event) -> None:
        classes = self._classes_of(event)
        if not self._index.touch(event.version, classes, event.at):
            try:
                self._local.track(event.version, event.partition,
                                  read_at=event.at)
            except DssError as err:
                self._metrics.count('tier.events_%s' % err.counter)
                return
        if event.tier_bits & ~int(Tier.SSD):
            self._wish(event.version, event.partition, sorted(classes))

    def _classes_of(self, event: Event) -> Dict[int, int]:
        """Class id to bytes that the event read of it."""
        if event.map_text:
            try:
                found = classmap.decode(event.map_text)
            except BadClassInput:
                found = None
            if found is not None:
                classes: Dict[int, int] = {}
                for span in found.split(event.offset, event.length):
                    classes[span.class_id] = \
                        classes.get(span.class_id, 0) + span.length
                return classes
        row = self._index.get(event.version)
        spans = row.spans if row else []
        return {span.class_id: event.length for span in spans}
