"""Turn the events of object servers into rows of the index.

Events may be lost, late, doubled or out of order: a PUT makes us read the
version's own files, so the newest state always wins, and the sweep finds
versions without an event.

A batch of events costs one look at the index for versions that they make
obsolete, one transaction of the gateway's queue for each of deletes and
uploads, and one of the index. The files are read and removed in between,
without shared locks.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from typing import (
    Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple)

from swift_dss.core.classes import RemoteMode
from swift_dss.core.errors import (
    BadClassInput, DamagedRecord, TierUnavailable, VersionGone)
from swift_dss.core.residency import Tier
from swift_dss.core.version import VersionId
from swift_dss.gateway.ports import Upload
from swift_dss.gateway.service import Gateway
from swift_dss.io import spool
from swift_dss.tier.hits import Hits
from swift_dss.tier.index.index import IndexDamaged, IndexUnavailable
from swift_dss.tier.index.rows import VersionRow
from swift_dss.tier.keep.keepers import Keepers
from swift_dss.tier.local.departures import Departures
from swift_dss.tier.local.local import Local
from swift_dss.tier.metrics import Metrics
from swift_dss.tier.workload import Workload
from swift_dss.wire import classmap
from swift_dss.wire.control import Event, EventKind, encode_event

#: Versions of which it is known where their last read ended, about 300
#: bytes each.
_ENDS = 10000


class Ledger:
    """Applies events. Called by one thread at a time.

    :param gateway: None where there is no remote tier
    """

    def __init__(self, local: Local, departures: Departures,
                 keepers: Keepers, gateway: Optional[Gateway],
                 metrics: Metrics) -> None:
        self._local = local
        self._mover = local.mover
        self._index = local.index
        self._in_force = local.in_force
        self.departures = departures
        self._due = departures.due
        self._keepers = keepers
        self.hits = Hits()
        self.workload = Workload(self._index)
        self._gateway = gateway
        self._metrics = metrics
        self._logger = metrics.logger
        #: Where the last read of a version ended.
        self._ends: OrderedDict[VersionId, int] = OrderedDict()

    def hear(self, batch: List[Event]) -> None:
        """Apply events, and tell all that depend on them. Never raises: one
        bad event must not end the intake of all others.
        """
        batch = [event for event in batch
                 if self._local.devices.is_mine(event.version.device)
                 or self._pass_on(event)]
        self.workload.heard(batch)
        try:
            self._keepers.came(self.apply(batch))
        except IndexDamaged as err:
            self._metrics.count('tier.index_damaged')
            self._due.replace_index(err)
        except Exception:
            self._metrics.count('tier.events_failed', len(batch))
            self._logger.exception('%d events were not applied', len(batch))
            self._due.missed = True

    def apply(self, events: Iterable[Event]) -> Dict[str, int]:
        """Bring the index up to date; the devices that changed, and how
        many bytes were put there.

        Events that cannot be kept because the index cannot be written are
        dropped and counted: objects are still read and written.

        :raises IndexDamaged: the index must be replaced
        """
        ours = self._local.devices.policies.ours
        said, theirs = [], 0
        for event in events:
            if event.version.policy in ours:
                said.append(event)
            else:
                theirs += 1
        if theirs:
            self._metrics.count('tier.events_not_ours', theirs)
        for kind in EventKind:
            number = sum(event.kind is kind for event in said)
            if number:
                self._metrics.count('tier.events.%s' % kind.value, number)
        changed: Dict[str, int] = {}
        for event in said:
            if event.kind is not EventKind.READ:
                device = event.version.device
                changed[device] = changed.get(device, 0) + (
                    event.size if event.kind is EventKind.PUT else 0)
        self._apply_or_drop(said)
        return changed

    def settle(self, rows: Sequence[VersionRow],
               known: Iterable[VersionRow] = ()) -> None:
        """Queue the uploads of versions that were found, and have S3 told of
        their POSTs: a version may come to a device that has heard of its POST
        before, and its record in S3 need not have.

        :param known: those of them whose POSTs were seen to before
        :raises TierUnavailable: none was queued; the next sweep tries again
        """
        wanted = [Upload(row.version, row.partition, self._is_urgent(row),
                         self._top_class(row))
                  for row in rows if row.wants_remote and not row.on_remote]
        if self._gateway is not None and wanted:
            self._gateway.enqueue_uploads(wanted)
        seen = {row.version for row in known}
        posted = [(row.version, row.partition) for row in rows
                  if row.posted and (row.on_remote or row.wants_remote)
                  and row.version not in seen]
        if self._gateway is not None and posted:
            self._gateway.enqueue_renewals(posted)

    # -- inside ----------------------------------------------------------

    def _pass_on(self, event: Event) -> bool:
        """Leave an event to the shard that has its device by now: its
        sender had not heard yet. Always False."""
        kept = False
        with contextlib.suppress(OSError):
            kept = event.kind is EventKind.READ or spool.append(
                self._local.devices.get(event.version.device).path,
                encode_event(event), self._in_force.conf.io.spool_bytes)
        self._metrics.count('tier.events_passed_on' if kept
                            else 'tier.events_dropped')
        return False

    def _apply_or_drop(self, said: List[Event]) -> None:
        try:
            self._apply_all(said)
        except IndexDamaged:
            raise
        except IndexUnavailable:
            self._due.missed = self._due.missed or any(
                event.kind is not EventKind.READ for event in said)
            self._metrics.count('tier.events_dropped', len(said))
        except Exception:
            if len(said) == 1:
                self._due.missed = True
                self._metrics.count('tier.events_failed')
                self._logger.exception('not applied: %s', said[0])
                return
            # One event is bad: apply each alone, so that the others are not
            # lost with it. A repeated event does no harm.
            for event in said:
                self._apply_or_drop([event])

    def _apply_all(self, said: List[Event]) -> None:
        puts = [event for event in said if event.kind is EventKind.PUT]
        reads: Dict[VersionId, List[Event]] = {}
        for event in said:
            if event.kind is EventKind.READ:
                reads.setdefault(event.version, []).append(event)
        newest = [event.version for event in said if event.kind in (
            EventKind.PUT, EventKind.DELETE)]
        gone = self.departures.release(self._index.obsolete(newest))
        rows = self._rows_of(puts, newest)
        with self._index.batch():
            self._index.remove_all(gone)
            known = self._index.add(rows)
            classes = self._index.touch({
                version: (max(event.at for event in some),
                          _classes_named(some))
                for version, some in reads.items()}, self._going_on(reads))
        # Known before this batch, so others may be at work on them: the facts
        # read from their files above may be old by now.
        for row in known:
            self._track(row.version, row.partition, row.put_at)
        self._due.keep(lambda: self.settle(rows, known))
        for event in said:
            if event.kind is EventKind.CLASS:
                self._reclassified(event)
            elif event.kind is EventKind.HDD_DIFFERS:
                self._due.keep(lambda event=event:  # type: ignore[misc]
                           self._hdd_differs(event))
            elif event.kind is EventKind.ROT:
                self._keepers.to_mend(event.version, event.partition)
            elif event.kind is EventKind.GONE:
                self._due.keep(lambda event=event:  # type: ignore[misc]
                           self.departures.heard(event.version))
        for version, some in reads.items():
            self._note_reads(version, some, classes.get(version))

    def _going_on(self, reads: Mapping[VersionId, Sequence[Event]]
                  ) -> Set[VersionId]:
        """Versions with a read that begins where their last one ended."""
        found: Set[VersionId] = set()
        for version, some in reads.items():
            end = self._ends.pop(version, 0)
            for event in some:
                if event.offset and event.offset == end:
                    found.add(version)
                end = event.offset + event.length
            self._ends[version] = end
            if len(self._ends) > _ENDS:
                self._ends.popitem(last=False)
        return found

    def _rows_of(self, puts: Sequence[Event],
                 newest: Sequence[VersionId]) -> List[VersionRow]:
        """Describe new versions from their files, as far as they exist."""
        latest: Dict[Tuple[object, ...], str] = {}
        for version in newest:
            key = _object_of(version)
            latest[key] = max(latest.get(key, ''), version.timestamp)
        rows: List[VersionRow] = []
        for event in puts:
            version = event.version
            try:
                rows.append(
                    self._mover.row_of_put(event) or self._mover.row(
                        version, event.partition, event.at, event.at))
            except VersionGone as err:
                self._metrics.count('tier.events_' + err.counter)
                if version.timestamp < max(
                        latest[_object_of(version)],
                        latest.get(_object_of(version)[:3], '')):
                    # Replaced before this event was applied: no row will ever
                    # lead to its bytes on the HDD.
                    self.departures.release([VersionRow(
                        version, event.partition, event.size)])
            except (TierUnavailable, DamagedRecord) as err:
                self._due.failed(err)
        return rows

    def _is_urgent(self, row: VersionRow) -> bool:
        return any(self._in_force.table.spec(span.class_id).remote in (
            RemoteMode.THROUGH, RemoteMode.ONLY) for span in row.spans)

    def _top_class(self, row: VersionRow) -> int:
        """The highest class of a version: it speaks for it on the link."""
        return max((span.class_id for span in row.spans), default=0,
                   key=lambda one: self._in_force.table.spec(one).rank)

    def _hdd_differs(self, event: Event) -> None:
        """The copy on the HDD is given up; one on the SSD is copied again
        like any that has none."""
        self._logger.error('%s: the HDD has not the bytes of %s: given up',
                           event.version.device, event.version.key)
        self._local.drop_capacity(event.version, event.partition)
        self._mover.track(event.version, event.partition)
        self._metrics.count('tier.hdd_copies_given_up')

    def _reclassified(self, event: Event) -> None:
        row = self._track(event.version, event.partition, event.at, event.at)
        if row is not None:
            self._due.keep(lambda: self.settle([row]))

    def _track(self, version: VersionId, partition: str,
               put_at: float = 0.0,
               read_at: float = 0.0) -> Optional[VersionRow]:
        return self._due.keep(lambda: self._mover.track(
            version, partition, put_at, read_at))

    def _note_reads(self, version: VersionId, some: Sequence[Event],
                    class_ids: Optional[Sequence[int]]) -> None:
        """Count hits of one version's reads, and note bytes to promote.
        """
        if class_ids is None:
            row = self._track(version, some[0].partition,
                              read_at=max(event.at for event in some))
            class_ids = [span.class_id for span in row.spans] if row else []
        slow: Dict[int, None] = {}
        for event in some:
            read = _bytes_by_class(event)
            if read is None:
                read = dict.fromkeys(class_ids, event.length)
            for class_id, length in read.items():
                self.hits.count(class_id, Tier(event.tier_bits & 7), length)
            if event.tier_bits & ~int(Tier.SSD):
                slow.update(dict.fromkeys(read))
        self._local.watcher.on_reads(version, some[-1].partition, some)
        if slow:
            self._keepers.wish(version, some[-1].partition, sorted(slow))


def _object_of(version: VersionId) -> Tuple[object, ...]:
    """The identity shared by versions that replace one another."""
    key = (version.device, version.policy, version.object_hash)
    # As a tombstone has it, which replaces every fragment.
    return key if version.frag_index is None else key + (
        version.frag_index,)


def _classes_named(some: Iterable[Event]) -> Optional[List[int]]:
    """Classes that these reads say they were of; None: all there are."""
    found: Dict[int, int] = {}
    for event in some:
        read = _bytes_by_class(event)
        if read is None:
            return None
        found.update(read)
    return list(found)


def _bytes_by_class(event: Event) -> Optional[Mapping[int, int]]:
    """Class id to bytes that were read of it, if the event knows."""
    if not event.map_text:
        return None
    try:
        found = classmap.decode(event.map_text)
    except BadClassInput:
        return None
    classes: Dict[int, int] = {}
    for span in found.split(event.offset, event.length):
        classes[span.class_id] = classes.get(span.class_id, 0) + span.length
    return classes
