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
import functools
from typing import (
    Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Set)

from swift_dss.core.classes import RemoteMode
from swift_dss.core.errors import (
    BadClassInput, DamagedRecord, TierUnavailable, VersionGone)
from swift_dss.core.residency import Tier
from swift_dss.core.version import VersionId
from swift_dss.gateway.ports import Upload
from swift_dss.gateway.service import Gateway
from swift_dss.io import spool
from swift_dss.tier.hear.passes import Heard, Passes
from swift_dss.tier.hits import Hits
from swift_dss.tier.index.file import IndexDamaged, IndexUnavailable
from swift_dss.tier.index.rows import VersionRow
from swift_dss.tier.keep.keepers import Keepers
from swift_dss.tier.keep.wishes import Access, Wish
from swift_dss.tier.local.departures import Departures
from swift_dss.tier.local.local import Local
from swift_dss.tier.metrics import Metrics
from swift_dss.tier.tune.tuning import Tuning
from swift_dss.tier.workload import Workload
from swift_dss.wire import classmap
from swift_dss.wire.control import Event, EventKind, encode_event


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
        self.workload = Workload(self._index.file)
        self.tuning = Tuning(self._in_force, self._index.file, keepers,
                             metrics)
        self._gateway = gateway
        self._metrics = metrics
        self._logger = metrics.logger
        self._passes = Passes()
        #: Hears of each upload; MUST be cheap, and never raise.
        self.on_put: Callable[[Event], None] = lambda event: None

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
               known: Sequence[VersionRow] = (),
               posts_missed: bool = False) -> None:
        """Queue the uploads of versions that were found, and have S3 told of
        their POSTs: a version may come to a device that has heard of its POST
        before, and its record in S3 need not have.

        :param known: those of them that the index had before
        :param posts_missed: POSTs of known ones may be unheard of, too
        :raises TierUnavailable: none was queued; the next sweep tries again
        """
        if self._gateway is None:
            return
        wanted = [row for row in rows
                  if row.wants_remote and not row.on_remote]
        if wanted:
            self._gateway.enqueue_uploads([
                Upload(row.version, row.partition, self._is_urgent(row),
                       self._top_class(row)) for row in wanted])
        seen = {row.version for row in known}
        if seen and wanted:
            self._end_again([row for row in wanted if row.version in seen])
        posted = [(row.version, row.partition) for row in rows
                  if row.posted and (row.on_remote or row.wants_remote)
                  and (posts_missed or row.version not in seen)]
        if posted:
            self._gateway.enqueue_renewals(posted)

    def settle_walked(self, rows: Sequence[VersionRow],
                      known: Sequence[VersionRow]) -> None:
        """The same of versions that a walk has read. Where events were lost,
        that of a POST may be among them, though its version is known."""
        self.settle(rows, known, self._due.unclean)

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
        rows = self._rows_of(puts)
        passes = self._passes.hear_all(reads)
        with self._index.file.batch():
            self._index.remove_all(gone)
            known = self._index.add(rows)
            classes = self._index.touch({
                version: (max(event.at for event in events),
                          _classes_named(events))
                for version, events in reads.items()},
                {version for version, told in passes.items() if told.goes_on},
                _read_again(reads))
        # Known before this batch, so others may be at work on them: the facts
        # read from their files above may be old by now.
        for row in known:
            self._track(row.version, row.partition, row.put_at)
        self._due.keep(lambda: self.settle(rows, known))
        self._reclassified([event for event in said
                            if event.kind is EventKind.CLASS])
        for event in said:
            if event.kind is EventKind.HDD_DIFFERS:
                self._due.keep(lambda event=event:  # type: ignore[misc]
                               self._hdd_differs(event))
            elif event.kind is EventKind.ROT:
                self._keepers.to_mend(event.version, event.partition)
            elif event.kind is EventKind.GONE:
                self._due.keep(lambda event=event:  # type: ignore[misc]
                               self.departures.heard(event.version))
        self._teach(reads, passes, classes, rows, gone)
        for version, events in reads.items():
            self._note_reads(version, events, classes.get(version),
                             passes[version].numbers)

    def _teach(self, reads: Mapping[VersionId, Sequence[Event]],
               passes: Mapping[VersionId, Heard],
               classes: Mapping[VersionId, Sequence[int]],
               rows: Sequence[VersionRow],
               gone: Sequence[VersionId]) -> None:
        """Tell all that learn from reads, uploads and deletes."""
        self.tuning.heard(reads, classes, rows, gone)
        self._keepers.heard(
            [Access(version, reads[version][0].size, class_ids,
                    passes[version].begun)
             for version, class_ids in classes.items()], rows, gone)

    def _rows_of(self, puts: Sequence[Event]) -> List[VersionRow]:
        """Describe new versions from their files, as far as they exist."""
        rows: List[VersionRow] = []
        for event in puts:
            self.on_put(event)
            version = event.version
            try:
                rows.append(
                    self._mover.row_of_put(event) or self._mover.row(
                        version, event.partition, event.at, event.at))
            except VersionGone as err:
                self._metrics.count('tier.events_' + err.counter)
                self._due.keep(functools.partial(self._overtaken, event))
            except (TierUnavailable, DamagedRecord) as err:
                self._due.failed(err)
        return rows

    def _overtaken(self, put: Event) -> None:
        """Free the bytes on the HDD of a version that was replaced before
        this event was applied: no row will ever lead to them. The event of
        what replaced it may have been applied long ago."""
        newest = self._local.newest(put.version, put.partition)
        if newest is not None and newest > put.version.timestamp:
            self.departures.release([VersionRow(
                put.version, put.partition, put.size)])

    def _end_again(self, wanted: Iterable[VersionRow]) -> None:
        """Look at once at those whose upload ended since their files were
        read: what was queued for them now would wait for their age."""
        done = [Upload(row.version, row.partition, True, self._top_class(row))
                for row in wanted if self._is_there(row.version)]
        if done and self._gateway is not None:
            self._gateway.enqueue_uploads(done)

    def _is_there(self, version: VersionId) -> bool:
        row = self._index.get(version)
        return row is not None and row.on_remote

    def _is_urgent(self, row: VersionRow) -> bool:
        return any(self._in_force.table.spec(span.class_id).remote in (
            RemoteMode.THROUGH, RemoteMode.ONLY) for span in row.spans)

    def _top_class(self, row: VersionRow) -> int:
        """The highest class of a version: it speaks for it on the link."""
        spec = self._in_force.table.spec
        return max((span.class_id for span in row.spans), default=0,
                   key=lambda class_id: spec(class_id).rank)

    def _hdd_differs(self, event: Event) -> None:
        """The copy on the HDD is given up; one on the SSD is copied again
        like any that has none."""
        self._logger.error('%s: the HDD has not the bytes of %s: given up',
                           event.version.device, event.version.key)
        self._local.drop_capacity(event.version, event.partition)
        self._mover.track(event.version, event.partition)
        self._metrics.count('tier.hdd_copies_given_up')

    def _reclassified(self, events: Sequence[Event]) -> None:
        tracked = [self._track(event.version, event.partition, event.at,
                               event.at) for event in events]
        rows = [row for row in tracked if row is not None]
        if rows:
            self._due.keep(lambda: self.settle(rows))

    def _track(self, version: VersionId, partition: str,
               put_at: float = 0.0,
               read_at: float = 0.0) -> Optional[VersionRow]:
        return self._due.keep(lambda: self._mover.track(
            version, partition, put_at, read_at))

    def _note_reads(self, version: VersionId, events: Sequence[Event],
                    class_ids: Optional[Sequence[int]],
                    passes: Sequence[int]) -> None:
        """Count hits of one version's reads, and note bytes to promote.

        :param passes: that of each read
        """
        if class_ids is None:
            row = self._track(version, events[0].partition,
                              read_at=max(event.at for event in events))
            class_ids = [span.class_id for span in row.spans] if row else []
        slow: Dict[int, None] = {}
        slow_passes: Dict[int, None] = {}
        for event, number in zip(events, passes):
            read = bytes_by_class(event)
            if read is None:
                read = dict.fromkeys(class_ids, event.length)
            for class_id, length in read.items():
                self.hits.count(class_id, Tier(event.tier_bits & 7), length)
            if event.tier_bits & ~int(Tier.SSD):
                slow.update(dict.fromkeys(read))
                slow_passes[number] = None
        self._local.watcher.on_reads(version, events[-1].partition, events)
        if slow:
            self._keepers.wish(Wish(
                version, events[-1].partition, tuple(sorted(slow)),
                tuple(slow_passes)))


def _read_again(reads: Mapping[VersionId, Sequence[Event]]
                ) -> Set[VersionId]:
    """Versions with more than one read; ranges of one have one time."""
    return {version for version, events in reads.items()
            if len({event.at for event in events}) > 1}


def _classes_named(events: Iterable[Event]) -> Optional[List[int]]:
    """Classes that these reads say they were of; None: all there are."""
    length_by_class: Dict[int, int] = {}
    for event in events:
        read = bytes_by_class(event)
        if read is None:
            return None
        length_by_class.update(read)
    return list(length_by_class)


def bytes_by_class(event: Event) -> Optional[Mapping[int, int]]:
    """Class id to bytes that were read of it, if the event knows."""
    if not event.map_text:
        return None
    try:
        class_map = classmap.decode(event.map_text)
    except BadClassInput:
        return None
    return class_map.bytes_by_class(event.offset, event.length)
