"""This node's versions: their bytes, their records, their index rows.

Movers and the gateway change versions only through here, so that each move
holds the version's lock and updates the index. The update comes last and may
fail: the index is a cache, and a sweep corrects it.
"""

# long: every verb on a version's files, in the one class that locks them.
from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from typing import (
    Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple)

from swift_dss.core.errors import (
    DamagedRecord, DssError, Pinned, TierFull, TierUnavailable, VersionGone)
from swift_dss.core.residency import RemoteCopy, Residency, Tier
from swift_dss.core.version import VersionId
from swift_dss.gateway.ports import (
    Arrival, Listed, LocalFill, LocalReader, LocalVersion, LocalVersions,
    NoWitness, Witness)
from swift_dss.io import mending, moves, quarantine
from swift_dss.io.carriers import Carrier
from swift_dss.io.mending import Rot
from swift_dss.io.newest import (
    newest_file, newest_record, newest_timestamp)
from swift_dss.io.switch import LiveVersion
from swift_dss.strategy.agreement import Aside
from swift_dss.tier.devices import Devices
from swift_dss.tier.index.filters import Filter
from swift_dss.tier.index.file import IndexDamaged, IndexUnavailable
from swift_dss.tier.index.index import Index
from swift_dss.tier.inforce import InForce
from swift_dss.tier.local import metadata
from swift_dss.tier.local.fills import Fill
from swift_dss.tier.local.mover import Mover
from swift_dss.tier.local.reader import (
    DISK_ERRORS, Reader, is_whole, read_if_whole, read_lonely)
from swift_dss.tier.local.watch import Watcher
from swift_dss.tier.metrics import Metrics
from swift_dss.wire import layout, names

#: Versions that are listed in one go.
_PAGE = 100


class Local(LocalVersions):
    """See the module. Safe to use from any thread; blocks on disks."""

    def __init__(self, in_force: InForce, devices: Devices, index: Index,
                 metrics: Metrics, io: Carrier = moves.PLAIN_IO) -> None:
        self.in_force = in_force
        self.devices = devices
        self.index = index
        self.mover = Mover(in_force, devices, index, metrics, io)
        self._metrics = metrics
        #: Hears of reads and of bytes that leave.
        self.watcher = Watcher()
        #: Puts a version aside that lacks bytes, if others have it.
        self.put_aside_if: Callable[[LocalVersion], Aside] = \
            lambda local: Aside.NOBODY
        #: False while the index is being rebuilt.
        self.knows_all: Callable[[], bool] = lambda: True
        #: Asked before the last local bytes of a version go.
        self.witness: Witness = NoWitness()
        #: Called when S3 has got a version, with its bytes: it may be one
        #: to drop here. MUST be cheap.
        self.on_remote: Callable[[VersionId, int], None] = \
            lambda version, length: None

    # -- looking ---------------------------------------------------------

    def in_s3(self, after: int) -> List[Listed]:
        """See :meth:`LocalVersions.in_s3`."""
        return [(row_id, row.version, row.partition)
                for row_id, row in self.index.pages.listing(
                    Filter(on_remote=True), _PAGE, after)]

    def is_indexed(self) -> bool:
        """See :meth:`LocalVersions.is_indexed`."""
        return self.knows_all()

    def describe(self, version: VersionId, partition: str) -> LocalVersion:
        """See :meth:`LocalVersions.describe`."""
        stored, opened, at = self.mover.open_file(version, partition)
        with DISK_ERRORS:
            if is_whole(opened, stored.content_length):
                return _described(version, partition, stored, Residency.whole(
                    stored.content_length))
            place = self.mover.place(version, at, stored)
            with LiveVersion(place, opened, for_reading=True,
                             keep_foreign=True) as live:
                return _described(version, partition, stored, live.residency)

    def read_whole(self, version: VersionId,
                   partition: str) -> Tuple[LocalVersion, bytes]:
        """See :meth:`LocalVersions.read_whole`.

        Nearly all that are read so are on the SSD alone: what one look at
        the file and one read say is enough for these.
        """
        stored, opened, at = self.mover.open_file(version, partition)
        with DISK_ERRORS:
            data = read_if_whole(opened, stored.content_length)
            if data is not None:
                return _described(version, partition, stored, Residency.whole(
                    stored.content_length)), data
            place = self.mover.place(version, at, stored)
            reader = Reader(LiveVersion(place, opened, for_reading=True,
                                        keep_foreign=True))
            with reader:
                return (_described(version, partition, stored,
                                   reader.residency),
                        reader.read(0, stored.content_length))

    def read_as_parked(
            self, wanted: Sequence[Tuple[VersionId, str, int]]
            ) -> Iterator[Optional[bytes]]:
        """See :meth:`LocalVersions.read_as_parked`.

        Swift never changes the metadata of a data file: a POST leaves a
        file beside it, which stays until the version goes. So it is as it
        was if nothing else is in the folder. A file that has the length of
        its version has all its bytes, whatever its record says.
        """
        paths: Dict[str, str] = {}
        for version, partition, length in wanted:
            path = paths.get(version.device)
            if path is None:
                path = paths[version.device] = self._mounted(version)
            yield read_lonely(layout.hash_dir(
                path, version.policy, partition, version.object_hash),
                version.timestamp + '.data', length) \
                if path and version.frag_index is None else None

    def _mounted(self, version: VersionId) -> str:
        """The path of a device; '' if it is not there."""
        try:
            return self.mover.device(version).path
        except (TierUnavailable, VersionGone):
            return ''

    def newest(self, version: VersionId, partition: str) -> Optional[str]:
        """See :meth:`LocalVersions.newest`."""
        device = self.mover.device(version)

        def look(part: str) -> Optional[str]:
            return newest_timestamp(layout.hash_dir(
                device.path, version.policy, part, version.object_hash))

        with DISK_ERRORS:
            # Elsewhere only if it is not here: it may have been relinked.
            return look(partition) or max(filter(None, map(
                look, device.partitions_of(version))), default=None)

    def newest_record(self, version: VersionId,
                      partition: str) -> Tuple[str, str, bool]:
        """See :meth:`LocalVersions.newest_record`."""
        device = self.mover.device(version)
        with DISK_ERRORS:
            return newest_record(layout.hash_dir(
                device.path, version.policy, partition,
                version.object_hash), version.frag_index)

    def newest_in_quarantine(self, version: VersionId) -> str:
        """See :meth:`LocalVersions.newest_in_quarantine`."""
        device = self.mover.device(version)
        with DISK_ERRORS:
            return device.quarantine.newest(version.policy,
                                            version.object_hash)

    def object_name(self, version: VersionId, partition: str) -> str:
        """See :meth:`LocalVersions.object_name`."""
        device = self.mover.device(version)
        with DISK_ERRORS:
            return metadata.object_name(layout.hash_dir(
                device.path, version.policy, partition,
                version.object_hash))

    def open(self, version: VersionId, partition: str) -> LocalReader:
        """See :meth:`LocalVersions.open`."""
        place, _ = self.mover.look(version, partition)
        with DISK_ERRORS:
            return Reader(LiveVersion(place, for_reading=True,
                                      keep_foreign=True))

    # -- moving ----------------------------------------------------------

    def clean(self, version: VersionId, partition: str,
              class_ids: Iterable[int] = ()) -> Residency:
        """Copy to the HDD the bytes that only the SSD has.

        :param class_ids: only bytes of these; none means all
        :raises TierFull: the HDD has no room
        """
        with self.mover.moving(version, partition, class_ids) as (
                place, ranges, class_map):
            self.mover.require_room(place.capacity.path,
                                    place.content_length)
            return moves.copy_to_capacity(place, ranges, class_map,
                                          self.mover.io)

    def demote(self, version: VersionId, partition: str,
               class_ids: Iterable[int] = (),
               to_hdd: bool = True, spare_pins: bool = False) -> Residency:
        """Take bytes off the SSD, with a copy on the HDD first if asked.

        :param spare_pins: for a version that was chosen by its row
        :raises Pinned: it is pinned by now; nothing has changed
        :raises DssError: as :meth:`Witness.proven`; nothing has changed
        """
        proven = None if to_hdd else self._proven(version, partition,
                                                  Tier.SSD)
        with self.mover.moving(version, partition, class_ids) as (
                place, ranges, class_map):
            if to_hdd and self.devices.get(version.device).is_block:
                raise TierUnavailable('%s has engine block: the kernel moves '
                                      'its bytes' % version.device)
            if spare_pins and self.mover.is_pinned(place):
                raise Pinned('%s is pinned by now' % version.key)
            if to_hdd:
                self.mover.require_room(place.capacity.path,
                                        place.content_length)
                moves.copy_to_capacity(place, ranges, class_map, self.mover.io)
            left = moves.evict_ssd(place, ranges, class_map, self.mover.io,
                                   proven)
        self.watcher.on_left(version, left)
        return left

    def promote(self, version: VersionId, partition: str,
                class_ids: Iterable[int] = ()) -> Residency:
        """Bring bytes of the HDD to the SSD."""
        with self.mover.moving(version, partition, class_ids) as (
                place, ranges, class_map):
            self.mover.require_room(place.device_path, place.content_length)
            return moves.promote(place, ranges, class_map, self.mover.io)

    def drop_capacity(self, version: VersionId, partition: str,
                      class_ids: Iterable[int] = (),
                      spare_pins: bool = False) -> Residency:
        """Take bytes off the HDD that lie on another tier too.

        :param class_ids: only bytes of these; none means all
        :param spare_pins: only those on the SSD, if it is pinned by now
        :raises DssError: as :meth:`Witness.proven`; nothing has changed
        """
        proven = self._proven(version, partition, Tier.HDD)
        with self.mover.moving(version, partition, class_ids) as (
                place, ranges, _):
            if spare_pins and self.mover.is_pinned(place):
                proven = None
            left = moves.drop_capacity(place, ranges, proven)
        self.watcher.on_left(version, left)
        return left

    def mend(self, version: VersionId, partition: str) -> Rot:
        """Replace blocks that are not as they were written.

        A version that no tier has right stays as it is.

        :returns: the wrong blocks
        :raises DssError: as :meth:`Witness.proven`, if S3 alone can have
            some of it right; nothing has changed
        """
        with DISK_ERRORS, self.mover.locks.hold(version):
            place, _, _ = self.mover.look_for_move(version, partition, ())
            rot = mending.look(place, self.mover.io)
        if rot.lost:
            # Every byte that can be read was read, wherever it lies.
            return rot
        proven = self.witness.proven(self.describe(version, partition)) \
            if rot.in_s3 else None
        with self.mover.moving(version, partition) as (place, _, class_map):
            left = mending.mend(place, rot, class_map, self.mover.io, proven)
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
        with DISK_ERRORS:
            place, _ = self.mover.look(version, partition)
            return mending.fails(place, tier, where, self.mover.io)

    def drop_damaged(self, version: VersionId, partition: str,
                     proven: RemoteCopy) -> None:
        """Take every local byte of a version away, because they are wrong.

        :param proven: the copy that was read back whole just now
        """
        with self.mover.moving(version, partition) as (place, _, _):
            device = self.devices.get(version.device)
            if device.has_hdd:
                moves.drop_capacity(place, proven=proven)
            left = moves.evict_ssd(place, proven=proven)
        self.watcher.on_left(version, left)

    def ask_ahead(self, leaving: Iterable[Tuple[VersionId, str]],
                  tier: Tier) -> None:
        """Have S3 be asked at once for all of these that would be in S3
        alone without their bytes on ``tier``. Never raises for one of them.
        """
        to_s3 = []
        for version, partition in leaving:
            with contextlib.suppress(DssError, OSError):
                local = self.describe(version, partition)
                if moves.leaves_to_s3(local.residency, tier):
                    to_s3.append(local)
        if to_s3:
            self.witness.ask_ahead(to_s3)

    def _proven(self, version: VersionId, partition: str,
                tier: Tier) -> Optional[RemoteCopy]:
        """S3's word of just now, if bytes would be in S3 alone without
        those on ``tier``. Call without the version's lock: S3 may take its
        time, and the record is compared under the lock."""
        local = self.describe(version, partition)
        if not moves.leaves_to_s3(local.residency, tier):
            return None
        return self.witness.proven(local)

    def pin(self, version: VersionId, partition: str, pinned: bool) -> None:
        """Mark a version so that its bytes stay on the SSD, or not."""
        with self.mover.moving(version, partition) as (place, _, _):
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
        with self.mover.locks.hold_all(
                arrival.version for arrival in arrivals):
            try:
                for number, arrival in enumerate(arrivals):
                    try:
                        done.append(self._arrive(arrival, last))
                    except (VersionGone, TierFull, TierUnavailable,
                            DamagedRecord) as err:
                        said[number] = err
                with DISK_ERRORS:
                    for fd in last.values():
                        # After this a power cut finds all of the records.
                        os.fsync(fd)
            finally:
                for fd in last.values():
                    os.close(fd)
            self._tell_index(done)
        for arrival in done:
            self.on_remote(arrival.version, arrival.length)
        return said

    def _arrive(self, arrival: Arrival, last: Dict[str, int]) -> Arrival:
        """Write a record; its descriptor stays open in ``last``."""
        with DISK_ERRORS:
            # Nearly all: they are where they were, and as they were.
            fd = self._mark_at_once(arrival, last)
            if fd is None:
                arrival, fd = self._mark(arrival)
            before = last.get(arrival.version.device)
            last[arrival.version.device] = fd
            if before is not None:
                os.close(before)
        return arrival

    def _mark_at_once(self, arrival: Arrival,
                      last: Dict[str, int]) -> Optional[int]:
        """The descriptor of a file that is now marked; None if it needs a
        longer look."""
        version = arrival.version
        if arrival.length < 0 or version.frag_index is not None:
            return None
        self.devices.policies.require_ours(version.policy)
        # A file that is open there says that a device is mounted.
        device = self.devices.get(version.device) \
            if version.device in last else self.mover.device(version)
        return moves.mark_remote_of_whole('%s/%s.data' % (layout.hash_dir(
            device.path, version.policy, arrival.partition,
            version.object_hash), version.timestamp), arrival.length,
            arrival.remote)

    def _mark(self, arrival: Arrival) -> Tuple[Arrival, int]:
        """The same for any; where it was found."""
        if arrival.length < 0:
            place, stored, opened = self.mover.open(
                arrival.version, arrival.partition)
            arrival = arrival._replace(length=stored.content_length)
        else:
            device = self.mover.device(arrival.version)
            opened, partition, _ = self.mover.find(device, arrival.version,
                                                   arrival.partition)
            place = device.place(arrival.version, partition, arrival.length)
        with LiveVersion(place, opened) as live:
            moves.mark_remote(live, arrival.remote, synced=False)
            return arrival._replace(partition=place.partition), os.dup(live.fd)

    def _tell_index(self, done: List[Arrival]) -> None:
        try:
            unknown = set(self.index.arrived(
                arrival.version for arrival in done))
        except (IndexUnavailable, IndexDamaged) as err:
            self._metrics.count('tier.' + err.counter)
            return
        for arrival in done:
            if arrival.version in unknown:
                self.mover.retrack(arrival.version, arrival.partition)

    def forget_remote(self, version: VersionId, partition: str) -> None:
        """See :meth:`LocalVersions.forget_remote`."""
        with self.mover.moving(version, partition) as (place, _, _):
            moves.forget_remote(place)

    def copies_needed(self, version: VersionId) -> int:
        """See :meth:`LocalVersions.copies_needed`."""
        return self.devices.policies.data_fragments(version.policy)

    def own_fragment(self, version: VersionId,
                     partition: str) -> VersionId:
        """See :meth:`LocalVersions.own_fragment`."""
        device = self.mover.device(version)
        with DISK_ERRORS:
            parsed = layout.parse_data_file(newest_file(layout.hash_dir(
                device.path, version.policy, partition,
                version.object_hash), version.frag_index)[1])
        return version if parsed is None or parsed[0] != version.timestamp \
            else replace(version, frag_index=parsed[1])

    def is_failing(self, device: str) -> bool:
        """See :meth:`LocalVersions.is_failing`."""
        return device in self.devices.failing

    def put_aside(self, version: VersionId, partition: str,
                  residency: Residency) -> None:
        """See :meth:`LocalVersions.put_aside`."""
        with self.mover.moving(version, partition) as (place, _, _):
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
        device = self.mover.device(version)
        on_hdd = device.has_hdd
        try:
            self.mover.require_room(device.capacity.path if on_hdd
                                    else device.path, length)
            return Fill(self.mover, version, partition, on_hdd)
        except (TierFull, TierUnavailable):
            return None

    def release(self, version: VersionId, partition: str) -> bool:
        """Free the HDD bytes of a version that is obsolete; its row is
        the caller's to remove.

        :returns: False if its data file is still there: not obsolete yet
        """
        device = self.mover.device(version)
        with self.mover.locks.hold(version):
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

    def has_room_ahead(self, version: VersionId, length: int) -> bool:
        """True if unrequested bytes may come back: no others have to leave."""
        conf = self.in_force.conf.tier
        device = self.mover.device(version)
        path, high = device.path, conf.high_watermark
        if device.is_block:
            high = conf.hdd_high_watermark
        elif device.capacity.configured:
            path, high = device.capacity.path, conf.hdd_high_watermark
        with DISK_ERRORS:
            stat = os.statvfs(path)
        room = stat.f_blocks * stat.f_frsize
        used = room - stat.f_bavail * stat.f_frsize
        if path == device.path and conf.ssd_bytes and not device.is_block:
            room = min(room, conf.ssd_bytes)
            used = sum(part['ssd'] for part
                       in self.index.occupancy(version.device).values())
        return used + length <= high * room

def _described(version: VersionId, partition: str,
               stored: metadata.VersionMetadata,
               residency: Residency) -> LocalVersion:
    return LocalVersion(version, partition, stored.etag, stored.headers,
                        residency, stored.class_map)
