"""A version's files, its lock and its row: together, or not at all.

Every change of a version goes by way of :meth:`Mover.moving`, which holds the
lock, looks where the version is by now, and tells the index at the end. The
index comes last and may fail: it is a cache, and a sweep corrects it.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from typing import Iterable, List, Optional, Tuple

from swift_dss.core.errors import (
    BadClassInput, TierFull, TierUnavailable, VersionGone)
from swift_dss.core.residency import Residency
from swift_dss.core.spans import ClassMap
from swift_dss.core.version import VersionId
from swift_dss.io import moves
from swift_dss.io.carriers import Carrier
from swift_dss.io.switch import (
    LiveVersion, Opened, Place, listdir, open_data_file)
from swift_dss.tier.devices import Device, Devices
from swift_dss.tier.index.file import IndexDamaged, IndexUnavailable
from swift_dss.tier.index.index import Index
from swift_dss.tier.index.pins import NONE, PINNED, Pins
from swift_dss.tier.index.rows import VersionRow, spans_of, wants_remote
from swift_dss.tier.inforce import InForce
from swift_dss.tier.local import metadata
from swift_dss.tier.local.copies import Copies
from swift_dss.tier.local.locks import VersionLocks
from swift_dss.tier.local.reader import DISK_ERRORS, is_whole
from swift_dss.tier.metrics import Metrics
from swift_dss.wire import classmap, layout, names
from swift_dss.wire.control import Event

#: Room that moves and fills leave free on any file system: metadata,
#: journals and the object server's own writes need some.
RESERVE_BYTES = 16 * 1024 * 1024
#: Looks at a version that is moved again and again while it is looked at:
#: each but the first is for a move that ended in between.
_LOOKS = 10


class Mover:
    """Owns the locks, and knows where versions are. Safe to use from any
    thread; blocks on disks.
    """

    def __init__(self, in_force: InForce, devices: Devices, index: Index,
                 metrics: Metrics, io: Carrier) -> None:
        self.in_force = in_force
        self.devices = devices
        self.index = index
        self.io = io
        self.locks = VersionLocks()
        self.pins = Pins(in_force, index)
        #: Where there are rings, the daemon exchanges it.
        self.copies = Copies(in_force, devices, None)
        self._metrics = metrics

    # -- looking ---------------------------------------------------------

    def device(self, version: VersionId) -> Device:
        """The device of a version: whatever touches files asks here.

        :raises TierUnavailable: it is not mounted, or the version is of a
            policy that is not ours
        """
        self.devices.policies.require_ours(version.policy)
        device = self.devices.get(version.device)
        device.require_mounted()
        return device

    def exists(self, version: VersionId, partition: str) -> bool:
        """True if the version's data file is on its device.

        :raises TierUnavailable: it is not there, nor is its device; or the
            version is of a policy that is not ours
        """
        if version.frag_index is None:
            # Nearly all there are: one look, and two at one that is gone.
            self.devices.policies.require_ours(version.policy)
            device = self.devices.get(version.device)
            if os.path.exists('%s/%s.data' % (layout.hash_dir(
                    device.path, version.policy, partition,
                    version.object_hash), version.timestamp)):
                return True
            device.require_mounted()
            return False
        try:
            self.device(version).place(version, partition, 0).data_file()
        except VersionGone:
            return False
        return True

    def look(self, version: VersionId, partition: str
             ) -> Tuple[Place, metadata.VersionMetadata]:
        """Where a version lies now, and its metadata."""
        place, stored, opened = self.open(version, partition)
        os.close(opened.fd)
        return place, stored

    def open(self, version: VersionId, partition: str,
             beside: Optional[List[str]] = None
             ) -> Tuple[Place, metadata.VersionMetadata, Opened]:
        """The same, and the open data file."""
        stored, opened, partition = self.open_file(version, partition, beside)
        return self.place(version, partition, stored), stored, opened

    def place(self, version: VersionId, partition: str,
              stored: metadata.VersionMetadata) -> Place:
        """Where a version lies whose partition is known."""
        return self.devices.get(version.device).place(
            version, partition, stored.content_length)

    def open_file(self, version: VersionId, partition: str,
                  beside: Optional[List[str]] = None
                  ) -> Tuple[metadata.VersionMetadata, Opened, str]:
        """Metadata, open data file, and partition of a version.

        :param beside: names in its folder, if the caller has just looked. It
            MUST look once more at the device before it believes the result:
            here no one asks if that is mounted
        """
        device = self.device(version) if beside is None \
            else self.devices.get(version.device)
        with DISK_ERRORS:
            opened, partition, beside = self.find(device, version, partition,
                                                  beside)
            try:
                stored = metadata.of_version(opened.path, opened.fd, beside,
                                             opened.attributes)
            except BaseException:
                os.close(opened.fd)
                raise
        return stored, opened, partition

    @classmethod
    def find(cls, device: Device, version: VersionId, partition: str,
             beside: Optional[List[str]] = None
             ) -> Tuple[Opened, str, List[str]]:
        """Open data file, partition, and what else lies in the folder.

        :param beside: see :meth:`open_file`
        """
        path, partition, beside = cls._find(device, version, partition,
                                            beside)
        try:
            return open_data_file(path), partition, beside
        except FileNotFoundError as err:
            raise VersionGone(path) from err

    @staticmethod
    def _find(device: Device, version: VersionId, partition: str,
              beside: Optional[List[str]]) -> Tuple[str, str, List[str]]:
        """Data file, partition, and what else lies in the folder.

        The partition may be another one by now: an operator who increases
        the partition power moves everything.
        """
        folder = layout.hash_dir(device.path, version.policy, partition,
                                 version.object_hash)
        if beside is None:
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

    def look_for_move(self, version: VersionId, partition: str,
                      class_ids: Iterable[int]
                      ) -> Tuple[Place, List[moves.Range], ClassMap]:
        """Place, ranges of the classes, and class map of a version."""
        place, stored = self.look(version, partition)
        if self.in_force.conf.io.block_checksums:
            place = replace(place, etag=stored.etag)
        wanted = set(class_ids)
        class_map = stored.file_map(self.in_force.table)
        ranges = [(span.offset, span.length) for span
                  in class_map.split(0, stored.content_length)
                  if not wanted or span.class_id in wanted]
        if not ranges and stored.content_length:
            raise VersionGone('%s has no bytes of that class any more'
                              % version.key)
        return place, ranges, class_map

    # -- moving ----------------------------------------------------------

    def moving(self, version: VersionId, partition: str,
               class_ids: Iterable[int] = ()) -> Moving:
        """A move of a version, to be entered: then it has the lock."""
        return Moving(self, version, partition, class_ids)

    def require_room(self, path: str, length: int) -> None:
        """:raises TierFull: ``length`` bytes would leave less than the
        reserve free on the file system of ``path``."""
        if not path:
            raise TierUnavailable('no capacity tier')
        with DISK_ERRORS:
            stat = os.statvfs(path)
        if stat.f_bavail * stat.f_frsize < length + RESERVE_BYTES:
            raise TierFull('%s has no room for %d bytes' % (path, length))

    @staticmethod
    def is_pinned(place: Place) -> bool:
        """True if the version's file has the mark, which is set with its
        lock held."""
        with DISK_ERRORS:
            return names.XATTR_PIN in os.listxattr(place.data_file())

    # -- the index -------------------------------------------------------

    def row(self, version: VersionId, partition: str, put_at: float = 0.0,
            read_at: float = 0.0,
            beside: Optional[List[str]] = None) -> VersionRow:
        """The index row that the version's own files give.

        :param beside: see :meth:`open_file`
        """
        stored, opened, partition = self.open_file(version, partition, beside)
        pinned = names.XATTR_PIN in opened.attributes
        with DISK_ERRORS:
            if is_whole(opened, stored.content_length):
                residency = Residency.whole(stored.content_length)
            else:
                with LiveVersion(self.place(version, partition, stored),
                                 opened) as live:
                    residency = live.residency
        class_map = stored.file_map(self.in_force.table)
        rule = self.pins.judge(
            version.device, stored.name, stored.content_length,
            stored.headers.get('Content-Type', ''),
            class_map.class_ids(stored.content_length))
        return self._row(
            version, partition, stored.name, residency, class_map,
            put_at or float(version.timestamp.split('_')[0]), read_at,
            pinned, rule, stored.headers['X-Timestamp'] > version.timestamp)

    def row_of_put(self, event: Event) -> Optional[VersionRow]:
        """The same of a version that was just written, from what its
        writer said and one look at its folder; None if that is not enough
        to know it by."""
        version = event.version
        if not event.name or version.frag_index is not None or \
                self.pins.has_rule():
            return None
        place = self.device(version).place(version, event.partition,
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
                         self.in_force.conf.tier.min_demote_bytes,
                         self.copies.rank(version))
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


class Moving:
    """Holds the lock; looks the version up; tells the index at the end."""

    def __init__(self, mover: Mover, version: VersionId, partition: str,
                 class_ids: Iterable[int]) -> None:
        self._mover = mover
        self._version = version
        self._partition = partition
        self._class_ids = class_ids
        self._lock = mover.locks.hold(version)

    def __enter__(self) -> Tuple[Place, List[moves.Range], ClassMap]:
        self._lock.__enter__()
        try:
            return self._mover.look_for_move(
                self._version, self._partition, self._class_ids)
        except BaseException:
            self._lock.__exit__(None, None, None)
            raise

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if error is None:
                self._mover.retrack(self._version, self._partition)
        finally:
            self._lock.__exit__(None, None, None)
        DISK_ERRORS.__exit__(kind, error, trace)
