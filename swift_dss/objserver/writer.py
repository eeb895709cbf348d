"""Diskfile writers that place and classify what they write.

The class map and the plan (which bytes go to which tier) are fixed when
the writer is opened. Data is collected into windows; a full window makes one
trip to the pool of its tier, while the next one fills from the network. An
object of one window is hashed as it arrives, while it is in the processor's
cache; larger objects are hashed window by window, together with other uploads
(:mod:`swift_dss.io.sums.hashing`). A small object makes a single trip,
together with everything that makes it durable.

The order of a PUT, and what is true after a power cut at each point:

1. HDD bytes are written to a capacity file without a name, SSD bytes to
   an inode without a name: nothing is left behind.
2. The capacity file is synced, named, and its folders synced: an orphan
   is left, which the sweep of the tier removes.
3. Size, Swift's metadata and the residency record are set, the inode is
   synced and then named (Swift's own ``_finalize_put``): the version is
   there, and every byte that its record promises is too.
"""

# long: one order of durable steps, shared by replication and EC.
from __future__ import annotations

import errno
import os
from functools import partial
from typing import Any, Iterator, List, Optional, Sequence, Tuple

from swift.common.exceptions import DiskFileError, DiskFileNoSpace
from swift.common.utils import (
    Timestamp, drop_buffer_cache, fallocate, fs_has_free_space,
    makedirs_count)
from swift.obj.diskfile import (
    BaseDiskFileWriter, DiskFileWriter, ECDiskFileWriter)

from swift_dss.core.errors import (
    FULL_ERRNOS, DamagedRecord, TierFull, TierUnavailable)
from swift_dss.core.limits import (
    IO_WINDOW_BYTES, WIDE_WINDOW_BYTES, WIDE_WINDOW_UPLOADS)
from swift_dss.core.residency import (
    STUB_SURPLUS, Extent, Residency, Tier)
from swift_dss.core.version import VersionId
from swift_dss.io import residency_store
from swift_dss.io.classified import Piece, write_pieces
from swift_dss.io.pools import Job
from swift_dss.io.sums import blocks
from swift_dss.io.sums.blocks import Summer
from swift_dss.io.sums.hashing import Hasher, Stream
from swift_dss.objserver import tags
from swift_dss.objserver.stock import attributes

#: As numbers: a flag's "&" takes a microsecond, its ``value`` half of that.
_SSD_BIT, _HDD_BIT = Tier.SSD.value, Tier.HDD.value


class DssWriterBase(BaseDiskFileWriter):
    """Goes between Swift's writer and its base class.

    Tombstones and ``.meta`` files are written by Swift's own code; their
    attributes have the same small values.
    """

    #: Swift's own attributes.
    _fd: Any
    _last_sync: int
    _upload_size: int
    _finalize_put = attributes.finalize_put

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        diskfile = self._diskfile
        self._node = diskfile.manager.dss_node
        self._device = diskfile.dss_device
        self._class_map = diskfile.dss_class_map
        #: Of the disk's writes; the version has the one above.
        self._staged_map = diskfile.dss_staged_map(
            self._class_map, writes=True)
        self._mixed = not self._staged_map.is_uniform
        self._last_class = self._staged_map.class_at(0) if self._mixed \
            else self._staged_map.rest
        self._plan: List[Extent] = []
        #: Set where S3 has the version, and no byte comes.
        self._arriving = diskfile.dss_arriving
        self._window: List[bytes] = []
        self._window_at = 0
        self._window_bytes = 0
        self._window_limit = IO_WINDOW_BYTES
        self._is_counted = False
        self._stream: Optional[Stream] = None
        #: Checksums of the blocks; None if they are not kept.
        self._summer: Optional[Summer] = None
        #: Chunks of the window that the stream has been given.
        self._streamed = 0
        self._jobs: List[Tuple[Tier, Job]] = []
        self._hdd_fd: Optional[int] = None
        self._capacity_id = ''

    # -- opening ---------------------------------------------------------

    def open(self) -> Any:
        if self._extension != '.data':
            return super().open()
        if self._fd is not None:
            raise ValueError('DiskFileWriter is already open')
        self._plan = self._node.plan(
            self._device, self._class_map, self._size) \
            if self._arriving is None else \
            list(self._arriving.residency.extents)
        for extent in self._plan:
            if int(extent.tiers) & _HDD_BIT:
                self._open_capacity()
                break
        with _no_space():
            self._begin()
        if self._node.uploads < WIDE_WINDOW_UPLOADS:
            self._window_limit = WIDE_WINDOW_BYTES
        self._node.uploads += 1
        self._is_counted = True
        if self._arriving is not None:
            self._upload_size = self._arriving.content_length
        elif (self._size is None or self._size > self._window_limit) and \
                Hasher.is_there():
            self._stream = self._chunks_etag = self._node.hasher.stream()
        if self._node.conf.io.block_checksums:
            self._summer = Summer()
        return self

    def _begin(self) -> None:
        """Open the file and take its blocks.

        Folders come after the blocks: making them may wait for the disk, and
        files would not lie in the order in which they came.
        """
        placement = self._node.placement(self._device) \
            if self.manager.use_linkat else None
        fd = None if placement is None else placement.open(
            self._node.uploads + 1)
        if placement is None or fd is None:
            self._fd, self._tmppath = self._get_tempfile()
            self._reserve()
            return
        self._fd, self._tmppath = fd, None
        self._reserve()
        if not placement.landed(fd):
            # Another upload had the lock of the group: now it may not.
            os.ftruncate(fd, 0)
            self._reserve()
        makedirs_count(self._datadir)

    def _reserve(self) -> None:
        """Take room before the body comes: that of the HDD, if the SSD has
        none; else the object is refused."""
        try:
            self._reserve_ssd()
        except (OSError, DiskFileNoSpace) as err:
            if getattr(err, 'errno', errno.ENOSPC) not in FULL_ERRNOS or \
                    not self._pass_ssd():
                raise

    def _reserve_ssd(self) -> None:
        on_ssd = [extent for extent in self._plan
                  if int(extent.tiers) & _SSD_BIT]
        if self._size:
            for extent in on_ssd:
                fallocate(self._fd, extent.length, extent.offset)
        elif on_ssd and not fs_has_free_space(
                self._fd, self.manager.fallocate_reserve,
                self.manager.fallocate_is_percent):
            raise DiskFileNoSpace()

    def _pass_ssd(self) -> bool:
        """Place all bytes on the HDD; False if they cannot be there."""
        plan = [] if self._arriving is not None else \
            self._node.plan_past_ssd(
                self._device, self._class_map, self._size)
        if not plan:
            return False
        os.ftruncate(self._fd, 0)
        if self._hdd_fd is not None:
            os.close(self._hdd_fd)
            self._hdd_fd = None
        self._plan = plan
        self._open_capacity()
        if self._hdd_fd is None:
            return False
        self.logger.increment('dss.uploads.past_full_ssd')
        return True

    def _open_capacity(self) -> None:
        """Get a capacity file, or else let the SSD take everything."""
        try:
            self._hdd_fd, self._capacity_id = self._pool(Tier.HDD).run(
                self._open_capacity_here)
        except (TierUnavailable, TierFull) as err:
            self.logger.increment('dss.errors.%s' % err.counter)
            self._plan = [Extent(0, self._size or 0, Tier.SSD)]

    def _open_capacity_here(self) -> Tuple[int, str]:
        capacity = self._node.capacity(self._device)
        identity = capacity.check()
        fd = capacity.create()
        try:
            for extent in self._plan if self._size else ():
                if extent.tiers & Tier.HDD:
                    os.posix_fallocate(fd, extent.offset, extent.length)
        except OSError as err:
            os.close(fd)
            if err.errno in FULL_ERRNOS:
                raise TierFull(str(err)) from err
            raise TierUnavailable(str(err)) from err
        return fd, identity

    # -- data ------------------------------------------------------------

    def write(self, chunk: bytes) -> None:
        if self._extension != '.data':
            super().write(chunk)
            return
        if self._fd is None:
            raise ValueError('Writer is not open')
        if self._arriving is not None:
            raise DamagedRecord('a stub comes without bytes')
        if self._stream is None:
            self._chunks_etag.update(chunk)
        if self._summer is not None:
            self._summer.update(chunk)
        self._window.append(chunk)
        self._window_bytes += len(chunk)
        self._upload_size += len(chunk)
        # The trip that syncs the object writes its end.
        if self._window_bytes >= self._window_limit and \
                self._upload_size != self._size:
            self._send_window()

    def chunks_finished(self) -> Tuple[int, str]:
        self._land()
        if self._stream is not None:
            self._begin_to_hash(self._stream)
            self._stream.wait()
        return self._upload_size, self._chunks_etag.hexdigest() \
            if self._arriving is None else self._arriving.etag

    def _send_window(self) -> None:
        """Begin to write the window, after the one before has landed."""
        self._land()
        ssd, hdd = self._cut()
        if ssd:
            self._last_class = ssd[-1].class_id
        if self._stream is not None:
            self._begin_to_hash(self._stream)
        self._start_window(self._upload_size)
        self._jobs.append((Tier.SSD, self._pool(Tier.SSD).submit(
            self._write_window, self._fd, ssd)))
        if hdd:
            self._jobs.append((Tier.HDD, self._pool(Tier.HDD).submit(
                write_pieces, self._node.carrier, self._hdd_fd, hdd,
                self._mixed)))

    def _begin_to_hash(self, stream: Stream) -> None:
        stream.begin(self._window[self._streamed:])
        self._streamed = len(self._window)

    def _start_window(self, offset: int) -> None:
        self._window = []
        self._streamed = 0
        self._window_at = offset
        self._window_bytes = 0

    def _write_window(self, fd: int, pieces: Sequence[Piece]) -> None:
        """In an SSD pool thread."""
        # Left to the kernel, it would wait for the sync at the end, and with
        # it the writer, while the disk idles until then.
        write_pieces(self._node.carrier, fd, pieces, self._mixed,
                     at_once=True)
        written = sum(piece.length for piece in pieces)
        self._last_sync += written
        if self._last_sync >= self._bytes_per_sync:
            # Bounds the bytes that the last fsync waits for.
            os.fdatasync(fd)
            drop_buffer_cache(fd, 0, 0)
            self._last_sync = 0

    def _land(self) -> None:
        """Wait for the window that is under way."""
        while self._jobs:
            tier, job = self._jobs[0]
            with _no_space():
                job.wait()
            self._jobs.pop(0)
        if self._stream is not None:
            self._stream.wait()

    def _cut(self) -> Tuple[List[Piece], List[Piece]]:
        """The window as pieces of one class each, by tier."""
        if len(self._plan) <= 1 and not self._mixed:
            tiers = int(self._plan[0].tiers) if self._plan else _SSD_BIT
            piece = Piece(self._window_at, self._window_bytes,
                          self._staged_map.rest,
                          [memoryview(chunk) for chunk in self._window])
            return ([piece] if tiers & _SSD_BIT else [],
                    [piece] if tiers & _HDD_BIT else [])
        ssd: List[Piece] = []
        hdd: List[Piece] = []
        take = _Taker(self._window)
        for extent in self._placed(self._window_at,
                                   self._window_at + self._window_bytes):
            for span in self._staged_map.split(extent.offset,
                                               extent.length):
                piece = Piece(span.offset, span.length, span.class_id,
                              take(span.length))
                if extent.tiers & Tier.SSD:
                    ssd.append(piece)
                if extent.tiers & Tier.HDD:
                    hdd.append(piece)
        return ssd, hdd

    def _placed(self, start: int, stop: int) -> Iterator[Extent]:
        """The plan between two offsets; its last tier goes on for ever."""
        for index, extent in enumerate(self._plan):
            last = index == len(self._plan) - 1
            first = max(start, extent.offset)
            end = stop if last else min(stop, extent.end)
            if first < end:
                yield Extent(first, end - first, extent.tiers)

    # -- finishing -------------------------------------------------------

    def _put(self, metadata: Any, cleanup: bool = True, *args: Any,
             **kwargs: Any) -> None:
        """As Swift's, in our pool, with the HDD's bytes made durable
        first."""
        if self._extension != '.data':
            super()._put(metadata, cleanup, *args, **kwargs)
            return
        self._land()
        timestamp = Timestamp(metadata['X-Timestamp'])
        filename = self.manager.make_on_disk_filename(
            timestamp, self._extension, *args, **kwargs)
        metadata['name'] = self._name
        target_path = os.path.join(self._datadir, filename)
        residency = self._residency()
        version = VersionId(
            self._device, int(self._diskfile.policy),
            self._datadir.rpartition(os.sep)[2], timestamp.internal,
            kwargs.get('frag_index'))
        tiers = int(residency.tiers)
        if tiers & _HDD_BIT:
            residency = self._finish_capacity(residency, version)
            tiers = int(residency.tiers)
        try:
            self._pool(Tier.SSD).run(
                self._finalize_version, residency, metadata, target_path,
                cleanup, getattr(self.logger, 'thread_locals', None))
        except BaseException:
            if tiers & _HDD_BIT and not self._put_succeeded:
                self._pool(Tier.HDD).background(
                    self._remove_capacity_here, version)
            raise
        self._diskfile.dss_written = (
            version, self._upload_size, self._class_map,
            self._name if tiers == _SSD_BIT else '', tags.auto_of(metadata))
        for bit, name in ((_SSD_BIT, 'ssd'), (_HDD_BIT, 'hdd')):
            if tiers & bit:
                self.logger.increment('dss.placed.%s' % name)

    def _finalize_version(self, residency: Residency, metadata: Any,
                          target_path: str, cleanup: bool,
                          logger_thread_locals: Any) -> None:
        """In an SSD pool thread: steps 3 of the module's list."""
        with _no_space():
            if self._window_bytes:
                ssd, _hdd = self._cut()
                if ssd:
                    self._last_class = ssd[-1].class_id
                write_pieces(self._node.carrier, self._fd, ssd,
                             self._mixed, synced_next=True)
            # The bytes left to sync belong to the last piece.
            self._node.carrier.enter(self._last_class)
            if residency.is_stub:
                # From its first instant under a name, this inode has the
                # one size that stock Swift refuses before the first byte.
                os.ftruncate(self._fd, self._upload_size + STUB_SURPLUS)
            if self._summer is not None and not blocks.store(
                    self._fd, self._upload_size, self._summer.finish()):
                self.logger.increment('dss.blocks.no_room')
            if int(residency.tiers) & ~_SSD_BIT:
                residency_store.store(self._fd, residency,
                                      self._capacity_id)
            # Writes Swift's metadata, syncs the inode (data, size and
            # attributes survive a power cut from here on, nameless), then
            # names it and syncs its folder (now the version exists).
            try:
                self._finalize_put(metadata, target_path, cleanup,
                                   logger_thread_locals)
            except DiskFileNoSpace:
                # A file system of few attributes: Swift's go first.
                if not blocks.remove(self._fd):
                    raise
                self._finalize_put(metadata, target_path, cleanup,
                                   logger_thread_locals)

    def _residency(self) -> Residency:
        if self._arriving is not None:
            residency: Residency = self._arriving.residency
            return residency
        if len(self._plan) == 1:
            return Residency.whole(self._upload_size, self._plan[0].tiers)
        return Residency(self._upload_size, tuple(_merged(
            self._placed(0, self._upload_size))))

    def _finish_capacity(self, residency: Residency,
                         version: VersionId) -> Residency:
        """Make the HDD's bytes durable under their name.

        :returns: where the bytes are after it: on the SSD alone, if the
            HDD cannot name the file but can still be read
        """
        last = self._cut()[1]
        try:
            self._pool(Tier.HDD).run(
                self._publish_here, version, last)
            return residency
        except FileExistsError:
            # This version was here before, half made (a fragment that was
            # never committed). Its name may still have a record that leans
            # on the old file, so keep that and bring our bytes home.
            pass
        except (TierUnavailable, TierFull) as err:
            self.logger.increment('dss.errors.%s' % err.counter)
        self._pool(Tier.HDD).run(self._bring_home_here, residency)
        return Residency.whole(self._upload_size)

    def _publish_here(self, version: VersionId,
                      pieces: Sequence[Piece]) -> None:
        """In an HDD pool thread: step 2 of the module's list."""
        fd = self._hdd_fd
        assert fd is not None
        try:
            write_pieces(self._node.carrier, fd, pieces, self._mixed)
            os.ftruncate(fd, self._upload_size)
            os.fsync(fd)
            # Durable but nameless here; publish() names it, durably too.
            self._node.capacity(self._device).publish(
                fd, version, replace=False)
        except FileExistsError:
            raise
        except OSError as err:
            if err.errno in FULL_ERRNOS:
                raise TierFull(str(err)) from err
            raise TierUnavailable(str(err)) from err

    def _bring_home_here(self, residency: Residency) -> None:
        """In an HDD pool thread: copy the bytes that only the HDD has to the
        SSD.
        """
        fd = self._hdd_fd
        assert fd is not None
        with _no_space():
            # The window still in memory goes to the SSD by the new plan.
            for extent in residency.split(0, self._window_at):
                if extent.tiers & Tier.SSD:
                    continue
                for at in range(extent.offset, extent.end, IO_WINDOW_BYTES):
                    length = min(IO_WINDOW_BYTES, extent.end - at)
                    data = os.pread(fd, length, at)
                    if len(data) != length:
                        raise DiskFileError('capacity file is short')
                    while data:
                        written = os.pwrite(self._fd, data, at)
                        at, data = at + written, data[written:]
        self._plan = [Extent(0, self._upload_size, Tier.SSD)]

    def _remove_capacity_here(self, version: VersionId) -> None:
        try:
            self._node.capacity(self._device).remove(version)
        except (OSError, TierUnavailable):
            pass  # an orphan: the sweep of the tier removes it

    def close(self) -> None:
        """As Swift's; a descriptor that a thread still uses is closed by
        that thread."""
        self._window = []
        if self._is_counted:
            self._is_counted = False
            self._node.uploads -= 1
        if self._stream is not None:
            self._stream.close()
        for tier, job in self._jobs:
            if tier is Tier.SSD and not job.finished and self._fd:
                fd, self._fd = self._fd, None
                job.when_finished(partial(os.close, fd))
            elif tier is Tier.HDD and self._hdd_fd is not None:
                hdd, self._hdd_fd = self._hdd_fd, None
                job.when_finished(partial(
                    self._pool(Tier.HDD).background, os.close, hdd))
        self._jobs = []
        if self._hdd_fd is not None:
            # In its own pool: closing a file that never got a name frees
            # its blocks, and that waits for the disk.
            hdd, self._hdd_fd = self._hdd_fd, None
            self._pool(Tier.HDD).background(os.close, hdd)
        super().close()

    def _pool(self, tier: Tier) -> Any:
        return self._node.pool(tier, self._device)


class DssDiskFileWriter(DiskFileWriter, DssWriterBase):
    """Writer of replicated objects."""

    def commit(self, timestamp: Any) -> None:
        super().commit(timestamp)
        self._diskfile.dss_note_put()


class DssECDiskFileWriter(ECDiskFileWriter, DssWriterBase):
    """Writer of fragment archives."""

    def commit(self, timestamp: Any) -> None:
        super().commit(timestamp)
        self._diskfile.dss_note_put()


class _Taker:
    """Takes bytes off the front of chunks without copying them."""

    def __init__(self, chunks: Sequence[bytes]) -> None:
        self._views = [memoryview(chunk) for chunk in chunks]
        self._index = 0

    def __call__(self, length: int) -> List[memoryview]:
        taken: List[memoryview] = []
        while length:
            view = self._views[self._index]
            if len(view) > length:
                taken.append(view[:length])
                self._views[self._index] = view[length:]
                break
            taken.append(view)
            length -= len(view)
            self._index += 1
        return taken


class _no_space:
    """Translates "no room" of a system call, once, into Swift's error."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, err: Any, trace: Any) -> None:
        if isinstance(err, OSError) and err.errno in FULL_ERRNOS:
            raise DiskFileNoSpace(str(err)) from err
        if isinstance(err, TierFull):
            raise DiskFileNoSpace(str(err)) from err


def _merged(extents: Iterator[Extent]) -> Iterator[Extent]:
    last: Optional[Extent] = None
    for extent in extents:
        if last is not None and last.tiers == extent.tiers:
            last = Extent(last.offset, last.length + extent.length,
                          last.tiers)
            continue
        if last is not None:
            yield last
        last = extent
    if last is not None:
        yield last
