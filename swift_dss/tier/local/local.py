"""This node's versions: their bytes, their records, their index rows.

Movers and the gateway change versions only through here, so that each move
holds the version's lock and updates the index. The update comes last and may
fail: the index is a cache, and a sweep corrects it.
"""

# long: every verb on a version's files, in the one class that locks them.
from __future__ import annotations

import contextlib
import errno
import os
from dataclasses import replace
from typing import (
    Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Set,
    Tuple)

from swift_dss.core.errors import (
    BadClassInput, DamagedRecord, DssError, TierFull, TierUnavailable,
    VersionGone)
from swift_dss.core.residency import RemoteCopy, Residency, Tier
from swift_dss.core.spans import ClassMap
from swift_dss.core.version import VersionId
from swift_dss.gateway.ports import (
    Arrival, LocalFill, LocalReader, LocalVersion, LocalVersions,
    NoWitness, Witness)
from swift_dss.io import mending, moves, quarantine
from swift_dss.io.carriers import Carrier
from swift_dss.io.mending import Rot
from swift_dss.io.newest import (
    newest_file, newest_record, newest_timestamp)
from swift_dss.io.switch import (
    LiveVersion, Opened, Place, listdir, open_data_file)
from swift_dss.strategy.agreement import Aside
from swift_dss.tier.devices import Device, Devices
from swift_dss.tier.inforce import InForce
from swift_dss.tier.index.index import Index, IndexDamaged, IndexUnavailable
from swift_dss.tier.index.pins import NONE, PINNED, Pins
from swift_dss.tier.index.rows import VersionRow, spans_of, wants_remote
from swift_dss.tier.local import metadata
from swift_dss.tier.local.fills import Fill
from swift_dss.tier.local.locks import VersionLocks
from swift_dss.tier.local.watch import Watcher
from swift_dss.tier.metrics import Metrics
from swift_dss.wire import classmap, layout, names
from swift_dss.wire.control import Event

#: Room that moves and fills leave free on any file system: metadata,
#: journals and the object server's own writes need some.
RESERVE_BYTES = 16 * 1024 * 1024
#: Looks at a version that is moved again and again while it is looked at:
#: each but the first is for a move that ended in between.
_LOOKS = 10


class Local(LocalVersions):
    """See the module. Safe to use from any thread; blocks on disks."""

    def __init__(self, in_force: InForce, devices: Devices, index: Index,
                 metrics: Metrics, io: Carrier = moves.PLAIN_IO) -> None:
        self.in_force = in_force
        self.devices = devices
        self.index = index
        self.io = io
        self.locks = VersionLocks()
        self.pins = Pins(in_force, index)
        self._metrics = metrics
        #: Hears of reads and of bytes that leave.
        self.watcher = Watcher()
        #: Devices that fail as a whole, by name; their keepers say so.
        self.failing: Set[str] = set()
        #: Puts a version aside that lacks bytes, if others have it.
        self.put_aside_if: Callable[[LocalVersion], Aside] = \
            lambda local: Aside.NOBODY
        #: Asked before the last local bytes of a version go.
        self.witness: Witness = NoWitness()
        #: Called when S3 has got a version, with its bytes: it may be one
        #: to drop here. MUST be cheap.
        self.on_remote: Callable[[VersionId, int], None] = \
            lambda version, length: None

    # -- looking ---------------------------------------------------------

    def describe(self, version: VersionId, partition: str) -> LocalVersion:
        """See :meth:`LocalVersions.describe`."""
        found, opened, at = self._open_file(version, partition)
        with self._disk_errors():
            if _is_whole(opened, found.content_length):
                return _described(version, partition, found, Residency.whole(
                    found.content_length))
            place = self._place(version, at, found)
            with LiveVersion(place, opened, for_reading=True,
                             keep_foreign=True) as live:
                return _described(version, partition, found, live.residency)

    def read_whole(self, version: VersionId,
                   partition: str) -> Tuple[LocalVersion, bytes]:
        """See :meth:`LocalVersions.read_whole`.

        Nearly all that are read so are on the SSD alone: what one look at
        the file and one read say is enough for these.
        """
        found, opened, at = self._open_file(version, partition)
        with self._disk_errors():
            data = _read_if_whole(opened, found.content_length)
            if data is not None:
                return _described(version, partition, found, Residency.whole(
                    found.content_length)), data
            place = self._place(version, at, found)
            reader = Reader(LiveVersion(place, opened, for_reading=True,
                                        keep_foreign=True))
            with reader:
                return (_described(version, partition, found,
                                   reader.residency),
                        reader.read(0, found.content_length))

    def read_as_parked(
            self, some: Sequence[Tuple[VersionId, str, int]]
            ) -> Iterator[Optional[bytes]]:
        """See :meth:`LocalVersions.read_as_parked`.

        Swift never changes the metadata of a data file: a POST leaves a
        file beside it, which stays until the version goes. So it is as it
        was if nothing else is in the folder. A file that has the length of
        its version has all its bytes, whatever its record says.
        """
        paths: Dict[str, str] = {}
        for version, partition, length in some:
            path = paths.get(version.device)
            if path is None:
                path = paths[version.device] = self._mounted(version)
            yield _read_lonely(layout.hash_dir(
                path, version.policy, partition, version.object_hash),
                version.timestamp + '.data', length) \
                if path and version.frag_index is None else None

    def _mounted(self, version: VersionId) -> str:
        """The path of a device; '' if it is not there."""
        try:
            return self._device(version).path
        except (TierUnavailable, VersionGone):
            return ''

    def newest(self, version: VersionId, partition: str) -> Optional[str]:
        """See :meth:`LocalVersions.newest`."""
        device = self._device(version)

        def look(part: str) -> Optional[str]:
            return newest_timestamp(layout.hash_dir(
                device.path, version.policy, part, version.object_hash))

        with self._disk_errors():
            # Elsewhere only if it is not here: it may have been relinked.
            return look(partition) or max(
                (found for found in map(look, device.partitions_of(version))
                 if found), default=None)

    def newest_record(self, version: VersionId,
                      partition: str) -> Tuple[str, str, bool]:
        """See :meth:`LocalVersions.newest_record`."""
        device = self._device(version)
        with self._disk_errors():
            return newest_record(layout.hash_dir(
                device.path, version.policy, partition,
                version.object_hash), version.frag_index)

    def newest_in_quarantine(self, version: VersionId) -> str:
        """See :meth:`LocalVersions.newest_in_quarantine`."""
        device = self._device(version)
        with self._disk_errors():
            return device.quarantine.newest(version.policy,
                                            version.object_hash)

    def object_name(self, version: VersionId, partition: str) -> str:
        """See :meth:`LocalVersions.object_name`."""
        device = self._device(version)
        with self._disk_errors():
            return metadata.object_name(layout.hash_dir(
                device.path, version.policy, partition,
                version.object_hash))

    def open(self, version: VersionId, partition: str) -> LocalReader:
        """See :meth:`LocalVersions.open`."""
        place, _ = self._look(version, partition)
        with self._disk_errors():
            return Reader(LiveVersion(place, for_reading=True,
                                      keep_foreign=True))

    def exists(self, version: VersionId, partition: str) -> bool:
        """True if the version's data file is on its device."""
        try:
            self._device(version).place(version, partition, 0).data_file()
        except VersionGone:
            return False
        return True

    # -- the index -------------------------------------------------------

    def row(self, version: VersionId, partition: str, put_at: float = 0.0,
            read_at: float = 0.0) -> VersionRow:
        """The index row that the version's own files give."""
        place, found, opened = self._open(version, partition)
        with self._disk_errors(), LiveVersion(place, opened) as live:
            pinned = live.has(names.XATTR_PIN)
            residency = live.residency
        class_map = found.file_map(self.in_force.table)
        rule = self.pins.judge(
            version.device, found.name, found.content_length,
            found.headers.get('Content-Type', ''), class_map.class_ids(
                found.content_length) or {class_map.rest})
        return self._row(
            version, place.partition, found.name, residency, class_map,
            put_at or float(version.timestamp.split('_')[0]), read_at,
            pinned, rule, found.headers['X-Timestamp'] > version.timestamp)

    def row_of_put(self, event: Event) -> Optional[VersionRow]:
        """The same of a version that was just written, from what its
        writer said and one look at its folder; None if that is not enough
        to know it by."""
        version = event.version
        if not event.name or version.frag_index is not None or \
                self.pins.has_rule():
            return None
        place = self._device(version).place(version, event.partition,
                                            event.size)
        name = version.timestamp + '.data'
        try:
            # A move since then has left another size, or has updated the
            # index, which then looks again.
            if place.names() != [name] or os.stat(os.path.join(
                    place.hash_dir, name)).st_size != event.size:
                return None
            class_map = classmap.decode(event.map_text)
        except (OSError, BadClassInput):
            return None
        return self._row(version, event.partition, event.name,
                         Residency.whole(event.size), class_map, event.at,
                         event.at, False, NONE)

    def _row(self, version: VersionId, partition: str, name: str,
             residency: Residency, class_map: ClassMap, put_at: float,
             read_at: float, pinned: bool, rule: int,
             posted: bool = False) -> VersionRow:
        table = self.in_force.table
        spans = spans_of(class_map, residency, table,
                         pinned or rule == PINNED,
                         self.in_force.conf.tier.min_demote_bytes)
        return VersionRow(
            version, partition, residency.content_length, name, put_at,
            read_at, pinned, residency.remote is not None,
            wants_remote(spans, table, class_map.rest), spans, rule, posted)

    def track(self, version: VersionId, partition: str, put_at: float = 0.0,
              read_at: float = 0.0) -> VersionRow:
        """Bring the index up to date with the version's files.

        A move of the version at the same time updates the index itself, and
        its row MUST NOT be overwritten with older facts. So the files are read
        again after the update. Does not wait for the lock, which a long copy
        may hold.
        """
        row = self.row(version, partition, put_at, read_at)
        for _ in range(_LOOKS):
            self.index.put(row)
            read, row = row, self.row(version, partition, put_at, read_at)
            if read == row:
                break
        return row

    def retrack(self, version: VersionId, partition: str) -> None:
        """The same after a move, whose lock the caller holds: a failing
        index only gets counted."""
        try:
            self.index.put(self.row(version, partition))
        except VersionGone:
            self.index.remove(version)
        except (IndexUnavailable, IndexDamaged) as err:
            self._metrics.count('tier.' + err.counter)

    # -- moving ----------------------------------------------------------

    def clean(self, version: VersionId, partition: str,
              class_ids: Iterable[int] = ()) -> Residency:
        """Copy to the HDD the bytes that only the SSD has.

        :param class_ids: only bytes of these; none means all
        :raises TierFull: the HDD has no room
        """
        with self._moving(version, partition, class_ids) as (place, ranges,
                                                             class_map):
            self.require_room(place.capacity.path, place.content_length)
            return moves.copy_to_capacity(place, ranges, class_map, self.io)

    def demote(self, version: VersionId, partition: str,
               class_ids: Iterable[int] = (),
               to_hdd: bool = True) -> Residency:
        """Take bytes off the SSD, with a copy on the HDD first if asked.

        :raises DssError: as :meth:`Witness.proven`; nothing has changed
        """
        proven = None if to_hdd else self._proven(version, partition,
                                                  Tier.SSD)
        with self._moving(version, partition, class_ids) as (place, ranges,
                                                             class_map):
            if to_hdd and self.devices.get(version.device).is_block:
                raise TierUnavailable('%s has engine block: the kernel moves '
                                      'its bytes' % version.device)
            if to_hdd:
                self.require_room(place.capacity.path, place.content_length)
                moves.copy_to_capacity(place, ranges, class_map, self.io)
            left = moves.evict_ssd(place, ranges, class_map, self.io,
                                   proven)
        self.watcher.on_left(version, left)
        return left

    def promote(self, version: VersionId, partition: str,
                class_ids: Iterable[int] = ()) -> Residency:
        """Bring bytes of the HDD to the SSD."""
        with self._moving(version, partition, class_ids) as (place, ranges,
                                                             class_map):
            self.require_room(place.device_path, place.content_length)
            return moves.promote(place, ranges, class_map, self.io)

    def drop_capacity(self, version: VersionId, partition: str) -> Residency:
        """Take bytes off the HDD that lie on another tier too.

        :raises DssError: as :meth:`Witness.proven`; nothing has changed
        """
        proven = self._proven(version, partition, Tier.HDD)
        with self._moving(version, partition) as (place, _, _):
            left = moves.drop_capacity(place, proven=proven)
        self.watcher.on_left(version, left)
        return left

    def mend(self, version: VersionId, partition: str) -> Rot:
        """Replace blocks that are not as they were written.

        A version that no tier has right stays as it is.

        :returns: the wrong blocks
        :raises DssError: as :meth:`Witness.proven`, if S3 alone can have
            some of it right; nothing has changed
        """
        with self._disk_errors(), self.locks.hold(version):
            place, _, _ = self.look_for_move(version, partition, ())
            rot = mending.look(place, self.io)
        if rot.lost:
            # What can be read of it is read, wherever it lies.
            return rot
        proven = self.witness.proven(self.describe(version, partition)) \
            if rot.in_s3 else None
        with self._moving(version, partition) as (place, _, class_map):
            left = mending.mend(place, rot, class_map, self.io, proven)
        if rot.in_s3:
            self.watcher.on_left(version, left)
        if rot.length:
            self._metrics.count('tier.rotten_bytes', rot.length)
            self._metrics.count('tier.rotten_versions_mended')
        return rot

    def fails(self, version: VersionId, partition: str, tier: Tier,
              where: float) -> Optional[bool]:
        """Read a block of a version from one disk, not from memory.

        :param where: from 0 to 1, exclusive: which block
        :returns: True if it cannot be read, or has other bytes than were
            written; None if that disk has none of the version
        :raises DssError: the version's own files cannot be opened
        """
        with self._disk_errors():
            place, _ = self._look(version, partition)
            return mending.fails(place, tier, where, self.io)

    def drop_damaged(self, version: VersionId, partition: str,
                     proven: RemoteCopy) -> None:
        """Take every local byte of a version away, because they are wrong.

        :param proven: the copy that was read back whole just now
        """
        with self._moving(version, partition) as (place, _, _):
            device = self.devices.get(version.device)
            if device.capacity.configured and not device.is_block:
                moves.drop_capacity(place, proven=proven)
            left = moves.evict_ssd(place, proven=proven)
        self.watcher.on_left(version, left)

    def ask_ahead(self, leaving: Iterable[Tuple[VersionId, str]],
                  tier: Tier) -> None:
        """Have S3 be asked at once for all of these that would be in S3
        alone without their bytes on ``tier``. Never raises for one of them.
        """
        found = []
        for version, partition in leaving:
            with contextlib.suppress(DssError, OSError):
                one = self.describe(version, partition)
                if moves.leaves_to_s3(one.residency, tier):
                    found.append(one)
        if found:
            self.witness.ask_ahead(found)

    def _proven(self, version: VersionId, partition: str,
                tier: Tier) -> Optional[RemoteCopy]:
        """S3's word of just now, if bytes would be in S3 alone without
        those on ``tier``. Call without the version's lock: S3 may take its
        time, and the record is compared under the lock."""
        found = self.describe(version, partition)
        if not moves.leaves_to_s3(found.residency, tier):
            return None
        return self.witness.proven(found)

    def pin(self, version: VersionId, partition: str, pinned: bool) -> None:
        """Mark a version so that its bytes stay on the SSD, or not."""
        with self._moving(version, partition) as (place, _, _):
            with LiveVersion(place) as live:
                if pinned:
                    os.setxattr(live.fd, names.XATTR_PIN, b'1')
                elif names.XATTR_PIN in os.listxattr(live.fd):
                    os.removexattr(live.fd, names.XATTR_PIN)
                # The mark survives a power cut and an index rebuild.
                os.fsync(live.fd)

    def record_remote(self, version: VersionId, partition: str,
                      remote: RemoteCopy) -> None:
        """See :meth:`LocalVersions.record_remote`."""
        err, = self.record_remotes([Arrival(version, partition, remote)])
        if err is not None:
            raise err

    def record_remotes(self, arrivals: Sequence[Arrival]
                       ) -> List[Optional[DssError]]:
        """See :meth:`LocalVersions.record_remotes`.

        One look at each, one transaction of the index for all. Of one
        device only the last record is synced: a journalling file system
        brings those before it along. If one did not, a power cut would
        leave a version that is whole here and only seems dirty; whatever
        drops its bytes later syncs a record of its own first.
        """
        done: List[Arrival] = []
        said: List[Optional[DssError]] = [None] * len(arrivals)
        last: Dict[str, int] = {}
        with self.locks.hold_all(one.version for one in arrivals):
            try:
                for number, one in enumerate(arrivals):
                    try:
                        done.append(self._arrive(one, last))
                    except (VersionGone, TierFull, TierUnavailable,
                            DamagedRecord) as err:
                        said[number] = err
                with self._disk_errors():
                    for fd in last.values():
                        # After this a power cut finds all of the records.
                        os.fsync(fd)
            finally:
                for fd in last.values():
                    os.close(fd)
            self._tell_index(done)
        for one in done:
            self.on_remote(one.version, one.length)
        return said

    def _arrive(self, one: Arrival, last: Dict[str, int]) -> Arrival:
        """Write a record; its descriptor stays open in ``last``."""
        with self._disk_errors():
            # Nearly all: they are where they were, and as they were.
            fd = self._mark_at_once(one, last)
            if fd is None:
                one, fd = self._mark(one)
            before = last.get(one.version.device)
            last[one.version.device] = fd
            if before is not None:
                os.close(before)
        return one

    def _mark_at_once(self, one: Arrival,
                      last: Dict[str, int]) -> Optional[int]:
        """The descriptor of a file that is now marked; None if it needs a
        longer look."""
        version = one.version
        if one.length < 0 or version.frag_index is not None:
            return None
        self.devices.policies.require_ours(version.policy)
        # A file that is open there says that a device is mounted.
        device = self.devices.get(version.device) \
            if version.device in last else self._device(version)
        return moves.mark_remote_of_whole('%s/%s.data' % (layout.hash_dir(
            device.path, version.policy, one.partition,
            version.object_hash), version.timestamp), one.length, one.remote)

    def _mark(self, one: Arrival) -> Tuple[Arrival, int]:
        """The same for any; where it was found."""
        if one.length < 0:
            place, found, opened = self._open(one.version, one.partition)
            one = one._replace(length=found.content_length)
        else:
            device = self._device(one.version)
            opened, partition, _ = self._found(device, one.version,
                                               one.partition)
            place = device.place(one.version, partition, one.length)
        with LiveVersion(place, opened) as live:
            moves.mark_remote(live, one.remote, synced=False)
            return one._replace(partition=place.partition), os.dup(live.fd)

    def _tell_index(self, done: List[Arrival]) -> None:
        try:
            unknown = set(self.index.arrived(one.version for one in done))
        except (IndexUnavailable, IndexDamaged) as err:
            self._metrics.count('tier.' + err.counter)
            return
        for one in done:
            if one.version in unknown:
                self.retrack(one.version, one.partition)

    def forget_remote(self, version: VersionId, partition: str) -> None:
        """See :meth:`LocalVersions.forget_remote`."""
        with self._moving(version, partition) as (place, _, _):
            moves.forget_remote(place)

    def copies_needed(self, version: VersionId) -> int:
        """See :meth:`LocalVersions.copies_needed`."""
        return self.devices.policies.data_fragments(version.policy)

    def own_fragment(self, version: VersionId,
                     partition: str) -> VersionId:
        """See :meth:`LocalVersions.own_fragment`."""
        device = self._device(version)
        with self._disk_errors():
            parsed = layout.parse_data_file(newest_file(layout.hash_dir(
                device.path, version.policy, partition,
                version.object_hash), version.frag_index)[1])
        return version if parsed is None or parsed[0] != version.timestamp \
            else replace(version, frag_index=parsed[1])

    def is_failing(self, device: str) -> bool:
        """See :meth:`LocalVersions.is_failing`."""
        return device in self.failing

    def put_aside(self, version: VersionId, partition: str,
                  residency: Residency) -> None:
        """See :meth:`LocalVersions.put_aside`."""
        with self._moving(version, partition) as (place, _, _):
            with LiveVersion(place, for_reading=True,
                             keep_foreign=True) as live:
                if live.residency != residency or newest_timestamp(
                        place.hash_dir) != version.timestamp:
                    raise ValueError('%s is another one by now' % version.key)
            quarantine.put_aside(place)
        self.watcher.on_left(version, None)

    def begin_fill(self, version: VersionId, partition: str, offset: int,
                   length: int, class_id: int) -> Optional[LocalFill]:
        """See :meth:`LocalVersions.begin_fill`."""
        device = self._device(version)
        on_hdd = device.capacity.configured and not device.is_block
        try:
            self.require_room(device.capacity.path if on_hdd
                              else device.path, length)
            return Fill(self, version, partition, on_hdd)
        except (TierFull, TierUnavailable):
            return None

    def reclaim(self, row: VersionRow) -> bool:
        """Forget a version that is obsolete, and its HDD bytes.

        :returns: False if its data file is still there: not obsolete yet
        """
        released = self.release(row.version, row.partition)
        if released:
            self.index.remove(row.version)
        return released

    def release(self, version: VersionId, partition: str) -> bool:
        """Free the HDD bytes of a version that is obsolete; its row is
        the caller's to remove.

        :returns: False if its data file is still there: not obsolete yet
        """
        device = self._device(version)
        with self.locks.hold(version):
            try:
                device.place(version, partition, 0).data_file()
            except VersionGone:
                pass
            else:
                return False
            if device.capacity.configured:
                try:
                    # No data file, so no record, names these bytes. Keep this
                    # order: a version that goes into quarantine leaves its
                    # place first.
                    if device.quarantine.holds(version):
                        self._metrics.count('tier.kept_for_quarantine')
                    else:
                        device.capacity.remove(version)
                except TierUnavailable:
                    # The sweep removes it once the HDD is back.
                    self._metrics.count('tier.orphans_left')
        self.watcher.on_left(version, None)
        return True

    def ready_device(self, version: VersionId) -> Device:
        """The device of a version, if its files may be touched.

        :raises TierUnavailable: it is not mounted, or the version is of a
            policy that is not ours
        """
        return self._device(version)

    def has_room_ahead(self, version: VersionId, length: int) -> bool:
        """True if unrequested bytes may come back: no others have to leave."""
        conf = self.in_force.conf.tier
        device = self._device(version)
        path, high = device.path, conf.high_watermark
        if device.is_block:
            high = conf.hdd_high_watermark
        elif device.capacity.configured:
            path, high = device.capacity.path, conf.hdd_high_watermark
        with self._disk_errors():
            stat = os.statvfs(path)
        room = stat.f_blocks * stat.f_frsize
        used = room - stat.f_bavail * stat.f_frsize
        if path == device.path and conf.ssd_bytes and not device.is_block:
            room = min(room, conf.ssd_bytes)
            used = sum(one['ssd'] for one
                       in self.index.occupancy(version.device).values())
        return used + length <= high * room

    def require_room(self, path: str, length: int) -> None:
        """:raises TierFull: ``length`` bytes would leave less than the
        reserve free on the file system of ``path``."""
        if not path:
            raise TierUnavailable('no capacity tier')
        with self._disk_errors():
            stat = os.statvfs(path)
        if stat.f_bavail * stat.f_frsize < length + RESERVE_BYTES:
            raise TierFull('%s has no room for %d bytes' % (path, length))

    # -- inside ----------------------------------------------------------

    def _moving(self, version: VersionId, partition: str,
                class_ids: Iterable[int] = ()) -> _Moving:
        return _Moving(self, version, partition, class_ids)

    def look_for_move(self, version: VersionId, partition: str,
                      class_ids: Iterable[int]
                      ) -> Tuple[Place, List[moves.Range], ClassMap]:
        """Place, ranges of the classes, and class map of a version."""
        place, found = self._look(version, partition)
        if self.in_force.conf.io.block_checksums:
            place = replace(place, etag=found.etag)
        wanted = set(class_ids)
        class_map = found.file_map(self.in_force.table)
        ranges = [(span.offset, span.length) for span
                  in class_map.split(0, found.content_length)
                  if not wanted or span.class_id in wanted]
        if not ranges and found.content_length:
            raise VersionGone('%s has no bytes of that class any more'
                              % version.key)
        return place, ranges, class_map

    def _device(self, version: VersionId) -> Device:
        """The device of a version: all that touches files asks here.

        :raises TierUnavailable: it is not mounted, or the version is of a
            policy that is not ours
        """
        self.devices.policies.require_ours(version.policy)
        device = self.devices.get(version.device)
        device.require_mounted()
        return device

    def _look(self, version: VersionId, partition: str
              ) -> Tuple[Place, metadata.VersionMetadata]:
        place, found, opened = self._open(version, partition)
        os.close(opened.fd)
        return place, found

    def _open(self, version: VersionId, partition: str
              ) -> Tuple[Place, metadata.VersionMetadata, Opened]:
        """The same, and the open data file."""
        found, opened, partition = self._open_file(version, partition)
        return self._place(version, partition, found), found, opened

    def _place(self, version: VersionId, partition: str,
               found: metadata.VersionMetadata) -> Place:
        return self.devices.get(version.device).place(
            version, partition, found.content_length)

    def _open_file(self, version: VersionId, partition: str
                   ) -> Tuple[metadata.VersionMetadata, Opened, str]:
        """Metadata, open data file, and partition of a version."""
        device = self._device(version)
        with self._disk_errors():
            opened, partition, beside = self._found(device, version,
                                                    partition)
            try:
                found = metadata.of_version(opened.path, opened.fd, beside,
                                            opened.attributes)
            except BaseException:
                os.close(opened.fd)
                raise
        return found, opened, partition

    @classmethod
    def _found(cls, device: Device, version: VersionId,
               partition: str) -> Tuple[Opened, str, List[str]]:
        """As :meth:`_find`, with the data file opened."""
        path, partition, beside = cls._find(device, version, partition)
        try:
            return open_data_file(path), partition, beside
        except FileNotFoundError as err:
            raise VersionGone(path) from err

    @staticmethod
    def _find(device: Device, version: VersionId,
              partition: str) -> Tuple[str, str, List[str]]:
        """Data file, partition, and what else lies in the folder.

        The partition may be another one by now: an operator who increases
        the partition power moves everything.
        """
        folder = layout.hash_dir(device.path, version.policy, partition,
                                 version.object_hash)
        beside = listdir(folder)
        if version.frag_index is None:
            name = version.timestamp + '.data'
            if name in beside:
                return '%s/%s' % (folder, name), partition, beside
        place = device.place(version, partition, 0)
        try:
            return place.data_file(beside), partition, beside
        except VersionGone:
            for moved in device.partitions_of(version):
                place = device.place(version, moved, 0)
                beside = place.names()
                with contextlib.suppress(VersionGone):
                    return place.data_file(beside), moved, beside
            raise

    def _disk_errors(self) -> _DiskErrors:
        return DISK_ERRORS


def _described(version: VersionId, partition: str,
               found: metadata.VersionMetadata,
               residency: Residency) -> LocalVersion:
    return LocalVersion(version, partition, found.etag, found.headers,
                        residency, found.class_map)


def _is_whole(opened: Opened, content_length: int) -> bool:
    """As :func:`_read_if_whole`, without reading."""
    if opened.has_record:
        return False
    try:
        size = os.fstat(opened.fd).st_size
    except BaseException:
        os.close(opened.fd)
        raise
    if size != content_length:
        return False
    os.close(opened.fd)
    return True


def _read_if_whole(opened: Opened, content_length: int) -> Optional[bytes]:
    """All bytes of a file that says nothing of other tiers; None if a
    longer look has to find out where they are. Closes it in the first case,
    and if this raises."""
    if opened.has_record:
        return None
    try:
        # One more than there may be: then the size is known to be right.
        data = os.pread(opened.fd, content_length + 1, 0)
    except BaseException:
        os.close(opened.fd)
        raise
    if len(data) != content_length:
        return None
    os.close(opened.fd)
    return data


def _read_lonely(folder: str, name: str, length: int) -> Optional[bytes]:
    """All bytes of the only file in a folder; None if it is not that, or
    has another length, or cannot be read."""
    try:
        if os.listdir(folder) != [name]:
            return None
        fd = os.open('%s/%s' % (folder, name), os.O_RDONLY | os.O_CLOEXEC)
        try:
            # One more than there may be: then the size is known to be right.
            data = os.pread(fd, length + 1, 0)
        finally:
            os.close(fd)
    except OSError:
        return None  # the full read handles the cause
    return data if len(data) == length else None


class _DiskErrors:
    """I/O errors of a disk mean that its tier is not available."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, OSError) and error.errno in (
                errno.EIO, errno.ENODEV, errno.ENXIO, errno.ESTALE,
                errno.EROFS):
            raise TierUnavailable(str(error)) from error


DISK_ERRORS = _DiskErrors()


class _Moving:
    """Holds the lock; looks the version up; tells the index at the end."""

    def __init__(self, local: Local, version: VersionId, partition: str,
                 class_ids: Iterable[int]) -> None:
        self._local = local
        self._version = version
        self._partition = partition
        self._class_ids = class_ids
        self._lock = local.locks.hold(version)

    def __enter__(self) -> Tuple[Place, List[moves.Range], ClassMap]:
        self._lock.__enter__()
        try:
            return self._local.look_for_move(
                self._version, self._partition, self._class_ids)
        except BaseException:
            self._lock.__exit__(None, None, None)
            raise

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if error is None:
                self._local.retrack(self._version, self._partition)
        finally:
            self._lock.__exit__(None, None, None)
        DISK_ERRORS.__exit__(kind, error, trace)


class Reader(LocalReader):
    """The local bytes of a version as they were when it was opened."""

    def __init__(self, live: LiveVersion) -> None:
        self.live = live
        self._capacity_fd: Optional[int] = None
        self._closed = False
        self.residency = live.residency
        try:
            if any(extent.tiers & Tier.HDD and not extent.tiers & Tier.SSD
                   for extent in live.residency.extents):
                if live.says_foreign:
                    raise TierUnavailable(
                        'the record of %s speaks of another HDD than the '
                        'one mounted now' % live.path)
                self._capacity_fd = live.place.capacity.open_read(
                    live.place.version)
        except (VersionGone, TierUnavailable) as err:
            self._missing: Exception = err
        except BaseException:
            self.close()
            raise

    def read(self, offset: int, length: int) -> bytes:
        """See :meth:`LocalReader.read`."""
        pieces = []
        for extent in self.residency.split(offset, length):
            if extent.tiers & Tier.SSD:
                fd = self.live.fd
            elif not extent.tiers & Tier.HDD:
                raise VersionGone('bytes %d-%d are only remote'
                                  % (extent.offset, extent.end))
            elif self._capacity_fd is None:
                raise self._missing
            else:
                fd = self._capacity_fd
            with DISK_ERRORS:
                piece = os.pread(fd, extent.length, extent.offset)
            if len(piece) != extent.length:
                raise TierUnavailable('a local file ends at byte %d'
                                      % (extent.offset + len(piece)))
            pieces.append(piece)
        return b''.join(pieces)

    def close(self) -> None:
        """See :meth:`LocalReader.close`."""
        if not self._closed:
            self._closed = True
            os.close(self.live.fd)
            if self._capacity_fd is not None:
                os.close(self._capacity_fd)

