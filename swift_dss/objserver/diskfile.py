"""Diskfiles of replicated objects: ``egg:swift_dss#dss.fs``.

Differences from Swift's own: a data file one byte longer than its
Content-Length, with a sound residency record, is a stub and not damage; data
is read and written in pools, classified and placed; the tier daemon gets
events. Names, folders, metadata, ``.meta`` files, tombstones and hashes are
Swift's, so its replicator, auditor, expirer and relinker work unchanged.
"""

from __future__ import annotations

import os
import time
from typing import Any, Dict, Optional, Sequence, Tuple

from swift.common.exceptions import DiskFileNotExist
from swift.common.utils import Timestamp
from swift.obj.diskfile import BaseDiskFile, DiskFile, DiskFileManager

from swift_dss.core.errors import DamagedRecord
from swift_dss.core.residency import TIER_NAMES, Residency
from swift_dss.core.spans import UNCLASSIFIED_MAP, ClassMap
from swift_dss.core.version import VersionId
from swift_dss.io import residency_store
from swift_dss.io.start import syncing
from swift_dss.io.sums import blocks
from swift_dss.objserver import posts, tags
from swift_dss.objserver.extents import CLIENT, REPLICATE, VersionBytes
from swift_dss.objserver.manager import DssManagerBase
from swift_dss.objserver.reader import DssDiskFileReader
from swift_dss.objserver.stock import attributes
from swift_dss.objserver.travel import sending
from swift_dss.objserver.travel.arriving import Arriving
from swift_dss.objserver.writer import DssDiskFileWriter
from swift_dss.strategy.eviction.warmth import staged_map
from swift_dss.wire import classmap, layout, names, registers
from swift_dss.wire.control import Event, EventKind, encode_read


#: Bits of a set of tiers to the counters that go up.
_TIER_COUNTERS = [
    ['dss.read.%s' % name for tier, name in TIER_NAMES if bits & int(tier)]
    for bits in range(8)]


class DssDiskFileBase(BaseDiskFile):
    """Goes between Swift's diskfile and its base class."""

    #: Why it is read; the manager sets it for clients and audits.
    dss_purpose = REPLICATE
    #: The class map of a PUT; set before the writer is built.
    dss_class_map: ClassMap = UNCLASSIFIED_MAP
    #: Where the bytes of the version that was opened last are.
    dss_residency: Optional[Residency] = None
    #: The reader built last and not closed, for the controller.
    dss_reader: Any = None
    #: The range that the request will read, (start, stop) with -1 for the end;
    #: set by the controller.
    dss_range: Optional[Tuple[int, int]] = None
    #: The POST that this diskfile was made for; set by the controller.
    dss_post: Optional[posts.Post] = None
    #: Set by a writer that has put a version.
    dss_written: Optional[Tuple[
        VersionId, int, ClassMap, str, Optional[int]]] = None
    #: The received record of a version that S3 has; set before the writer is
    #: built.
    dss_arriving: Optional[Arriving] = None
    #: The session of ssync that sends it, and the bytes to send.
    dss_session: Optional[sending.Session] = None
    dss_parcel: Optional[sending.Parcel] = None
    _read_and_validate_metadata = attributes.read_and_validate

    @property
    def dss_device(self) -> str:
        """Swift's name of the device."""
        return str(self._device_path).rpartition(os.sep)[2]

    @property
    def dss_partition(self) -> str:
        """Swift's partition."""
        return str(self._datadir.rsplit(os.sep, 3)[1])

    @property
    def dss_hash(self) -> str:
        """Swift's hash of the object."""
        return str(os.path.basename(self._datadir))

    @property
    def dss_backlog_ms(self) -> int:
        """For how long the device's HDD is busy."""
        return int(self.manager.dss_node.backlog_ms(self.dss_device))

    def dss_tag(self, class_map: ClassMap) -> None:
        """Set the class map of the version about to be written.

        :param class_map: in the object's offsets
        """
        self.dss_class_map = tags.for_fragment(
            class_map, self.policy, self.manager.dss_node.class_table)

    def dss_staged_map(self, class_map: ClassMap, writes: bool) -> ClassMap:
        """The classes under which the disk is to have this copy's bytes that
        no client asks for.

        :param class_map: in the offsets of the data file
        :param writes: it is of a write
        """
        node, device = self.manager.dss_node, self.dss_device
        if not node.conf.io.stage_cold_copies or not node.is_block(device):
            return class_map
        return staged_map(class_map, self.manager.dss_copies.rank(
            self.policy, device, self.dss_partition, self.dss_hash),
            node.class_table, writes)

    def dss_version(self) -> VersionId:
        """The version whose data file is open."""
        folder, _, name = self._data_file.rpartition(os.sep)
        if '#' not in name and folder == self._datadir:
            # Swift has parsed the name before it opened the file.
            return VersionId(
                self.dss_device, int(self.policy),
                folder.rpartition(os.sep)[2], name[:-len('.data')])
        version = layout.version_of_path(self.dss_device, self._data_file)
        if version is None:
            raise DamagedRecord('not a data file: %s' % self._data_file)
        return version

    def dss_stored_map(self) -> ClassMap:
        """The class map in force, in the offsets of the data file."""
        class_map = tags.of_metadata(self._metadata, self._logger)
        if class_map.is_uniform:
            return class_map
        return tags.for_fragment(
            class_map, self.policy, self.manager.dss_node.class_table)

    def _drop_stale(self, posted: Dict[str, str]) -> None:
        """Only the parts of a ``.meta`` file that are newer than the data
        count. Swift has seen to the content type.
        """
        counts = registers.current(posted, self._datafile_metadata)
        if counts is posted:
            return
        for name in posted:
            if name not in counts and not name.startswith('Content-Type'):
                self._metadata.pop(name, None)
        self._metadata.update(
            (name, value) for name, value in counts.items()
            if not name.startswith('Content-Type'))

    def _verify_data_file(self, data_file: str, fp: Any,
                          current_time: Any) -> int:
        """As Swift's, but a sound stub passes for the whole version."""
        if self._metafile_metadata:
            self._drop_stale(self._metafile_metadata)
        try:
            content_length = int(self._metadata['Content-Length'])
            size = os.fstat(fp.fileno()).st_size
            self.dss_residency = residency_store.judge(
                fp.fileno(), content_length, size)
        except DamagedRecord as err:
            # Neither whole nor a stub that can be trusted.
            raise self._quarantine(data_file, str(err))
        except OSError as err:
            # The disk cannot read the record, so its damage is not proven, as
            # a wrong size would prove it.
            self._logger.increment('dss.errors.record_unreadable')
            raise DiskFileNotExist() from err
        except (KeyError, ValueError):
            # Swift's own checks know these and quarantine.
            return int(super()._verify_data_file(
                data_file, fp, current_time))
        if size == content_length:
            return int(super()._verify_data_file(
                data_file, fp, current_time))
        # Swift compares the metadata with the size of the file: for the
        # time of its checks, say the size that a stub must have.
        self._metadata['Content-Length'] = str(size)
        try:
            super()._verify_data_file(data_file, fp, current_time)
        finally:
            self._metadata['Content-Length'] = str(content_length)
        self._content_length = content_length
        return content_length

    def dss_open_bytes(self, fd: int, keep_cache: bool) -> VersionBytes:
        """The source of a reader's bytes; captures all it needs now."""
        assert self.dss_residency is not None
        data_file = self._data_file
        node = self.manager.dss_node
        sums = blocks.load(fd, self.dss_residency.content_length) \
            if node.conf.io.block_checksums else None
        class_map = self.dss_stored_map()
        if self.dss_purpose != CLIENT:
            # Else an audit would make cold copies warm.
            class_map = self.dss_staged_map(class_map, writes=False)
        return VersionBytes(
            node, self.dss_version(), self.dss_partition,
            fd, self.dss_residency, class_map, self.dss_purpose, keep_cache,
            lambda: self.dss_has_changed(data_file), sums)

    @property
    def content_length(self) -> Any:
        """As Swift's; that of what is sent, for ssync's sender.

        The sender asks for it first, while it can still go on without.
        """
        length = super().content_length
        if self.dss_session is None:
            return length
        if self.dss_parcel is None:
            self.dss_parcel = sending.pack(
                self, self.dss_session, self.manager.dss_sessions)
        return self.dss_parcel.length

    def get_datafile_metadata(self) -> Any:
        if self.dss_parcel is not None:
            return self.dss_parcel.metadata
        return super().get_datafile_metadata()

    def reader(self, *args: Any, **kwargs: Any) -> Any:
        if self.dss_parcel is not None:
            return self.dss_parcel.chunks
        return self.dss_build_reader(*args, **kwargs)

    def dss_build_reader(self, *args: Any, **kwargs: Any) -> Any:
        """A reader of the bytes themselves."""
        self.dss_reader = super().reader(*args, **kwargs)
        if self.dss_range is not None:
            start, stop = self.dss_range
            size = self._content_length
            self.dss_reader.dss_bytes.begin(
                start, size if stop < 0 else min(stop, size))
        return self.dss_reader

    def dss_has_changed(self, data_file: str) -> bool:
        """True if the name no longer leads to the open file."""
        try:
            with open(data_file, 'rb') as now:
                fresh = residency_store.load(now.fileno())
        except (OSError, DamagedRecord):
            return True
        return fresh != self.dss_residency

    def dss_later_headers(self) -> Dict[str, str]:
        """Of the 409 to a GET that S3 may be able to answer later, or this
        node once the version is mended."""
        return {names.BACKEND_UNAVAILABLE: str(
                    self.manager.dss_node.conf.gateway.retry_after_seconds),
                'X-Backend-Timestamp': self.timestamp.internal}

    # -- events ----------------------------------------------------------

    def dss_note_put(self) -> None:
        """Tell the daemon of the version that was just committed."""
        if self.dss_written is None:
            return
        version, size, class_map, name, auto = self.dss_written
        self._record('PUT', version, size, class_map)
        self._send(Event(EventKind.PUT, version, self.dss_partition, size,
                         classmap.encode(class_map), at=time.time(),
                         name=name, auto=auto))

    def dss_note_read(self, source: VersionBytes,
                      ranges: Sequence[Tuple[int, int]]) -> None:
        """Report a read to the daemon; once a reader.

        :param ranges: that were read, (start, end)
        """
        if self.dss_purpose != CLIENT:
            return
        tiers, version = source.tiers_read, source.version
        for name in _TIER_COUNTERS[tiers]:
            self._logger.increment(name)
        size, at = self._content_length or 0, time.time()
        node, is_manifest = self.manager.dss_node, self.dss_is_manifest
        is_recorded = node.recorder.is_on()
        for start, end in ranges:
            node.events.send_read(
                version.device, encode_read(
                    version, source.partition, size, start, end - start,
                    tiers, at, is_manifest, source.client,
                    classmap.encode_part(source.class_map, start, end)),
                at_once=source.lacks_bytes)
            if is_recorded and end > start:
                self._record('GET', version, size, source.class_map, start,
                             end - start)

    def dss_note_rot(self, source: VersionBytes) -> None:
        """Report to the daemon blocks that are wrong here and right on another
        tier. If the report is lost, the next reader repeats it.
        """
        for tier, name in TIER_NAMES:
            if source.rotten_tiers & tier:
                self._logger.error(
                    '%s: its copy on the %s has other bytes than were '
                    'written, or cannot be read; another tier has them',
                    self._data_file, name.upper())
                self._logger.increment('dss.rotten.%s' % name)
        self.manager.dss_node.events.tell(Event(
            EventKind.ROT, source.version, source.partition,
            self._content_length or 0, at=time.time()))

    def dss_note_lack(self, source: VersionBytes) -> None:
        """Tell the daemon of bytes that no tier of the node has as they were
        written; the next reader tells it again if it was lost. Only the
        daemon puts such a version into quarantine, once others have it."""
        self._logger.increment('dss.errors.lacking')
        self.manager.dss_node.events.tell(Event(
            EventKind.ROT, source.version, source.partition,
            self._content_length or 0, at=time.time()))

    def dss_note_difference(self, source: VersionBytes) -> None:
        """Report to the daemon that the HDD lacks bytes that another tier has.
        If the report is lost, the next reader repeats it.
        """
        self._logger.error('%s: its copy on the HDD is not there or has '
                           'other bytes than the one on the SSD',
                           self._data_file)
        self._logger.increment('dss.errors.hdd_differs')
        self.manager.dss_node.events.tell(Event(
            EventKind.HDD_DIFFERS, source.version, source.partition,
            self._content_length or 0, at=time.time()))

    @property
    def dss_is_manifest(self) -> bool:
        """True if it lists the segments of a large object."""
        metadata = self._metadata or ()
        return 'X-Object-Manifest' in metadata or \
            'X-Static-Large-Object' in metadata

    def delete(self, timestamp: Any) -> None:
        super().delete(timestamp)
        version = VersionId(self.dss_device, int(self.policy),
                            os.path.basename(self._datadir),
                            Timestamp(timestamp).internal)
        self._send(Event(EventKind.DELETE, version, self.dss_partition,
                         at=time.time()))
        self._record('DELETE', version, 0, UNCLASSIFIED_MAP)

    def read_metadata(self, *args: Any, **kwargs: Any) -> Any:
        if self.dss_post is None:
            return super().read_metadata(*args, **kwargs)
        return self.dss_post.presented(self, posts.persistently(
            super().read_metadata, *args, **kwargs))

    def write_metadata(self, metadata: Any) -> None:
        """As Swift's, but merged with the registers of earlier POSTs:
        ``metadata`` then has the stored values.
        """
        if not self._data_file or self._metadata is None:
            super().write_metadata(metadata)
            return
        with posts.lock(self._datadir):
            there = posts.merged(self, metadata, self.dss_post)
            metadata.clear()
            metadata.update(there.metadata)
            if there.is_news:
                super().write_metadata(metadata)
        # Also where the classes stay: the copy in S3 has a record of all
        # metadata.
        after = tags.for_fragment(tags.of_metadata(
            dict(self._datafile_metadata or {}, **metadata), self._logger),
            self.policy, self.manager.dss_node.class_table)
        self._send(Event(
            EventKind.CLASS, self.dss_version(), self.dss_partition,
            self._content_length or 0, classmap.encode(after),
            at=time.time()))

    def _record(self, verb: str, version: VersionId, size: int,
                class_map: ClassMap, offset: int = 0,
                length: int = 0) -> None:
        """For ``swift-dss trace record``, if it runs."""
        recorder = self.manager.dss_node.recorder
        if recorder.is_on():
            recorder.note(verb, getattr(self, '_account', None), version,
                          size, offset, length, class_map.class_at(offset))

    def _send(self, event: Event) -> None:
        self.manager.dss_node.events.send(event)


class DssDiskFile(DiskFile, DssDiskFileBase):
    """A replicated object."""

    reader_cls = DssDiskFileReader
    writer_cls = DssDiskFileWriter


class DssDiskFileManager(DiskFileManager, DssManagerBase):
    """Manager of replicated objects."""

    diskfile_cls = DssDiskFile

    def __init__(self, conf: Any, logger: Any) -> None:
        syncing.refuse_rsync(conf)
        super().__init__(conf, logger)
