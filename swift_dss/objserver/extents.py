"""The bytes of one open version, wherever they are.

Built when a reader is built, with everything it needs: the descriptor of
the data file, the residency record of *that inode* and the class map. A tier
daemon may switch the name to another inode at any time: the old one, and the
capacity file opened for it, keep their bytes.

Order of preference per byte: SSD, HDD, remote. The event loop copies cached
bytes of the SSD without waiting, a few chunks at a time, so that they are
hashed and sent while the processor's cache has them; the kernel reads ahead
under the class of the bytes. Bytes that are not cached are read in the SSD's
pool. Bytes of the HDD are always read and hashed in the HDD's pool, one window
a trip, the next window under way while one is sent. The trip that opens their
file for a GET asks the disk for all of them at once, up to a limit: between
two windows it would serve other readers, and move its arm for each.

If the version has checksums of its blocks, whole blocks are read and checked.
A wrong block is never sent: the block of another tier replaces it.
"""

# long: all ways to a byte, and what two copies of one have to agree on.

from __future__ import annotations

import os
from typing import (
    Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional,
    Sequence, Tuple)

from swift_dss.core.errors import (
    RemoteUnavailable, TierUnavailable, VersionGone)
from swift_dss.core.limits import IO_WINDOW_BYTES
from swift_dss.core.residency import Extent, Residency, Tier
from swift_dss.core.spans import ClassMap, Span
from swift_dss.core.version import VersionId
from swift_dss.io import residency_store
from swift_dss.io.classified import (
    bring, expect_random, forget, read_coming, read_exact, read_readable)
from swift_dss.io.pools import Job
from swift_dss.io.probe import AHEAD_BYTES, CHUNK_BYTES
from swift_dss.io.sums.blocks import BlockSums
from swift_dss.objserver.fetch import FetchStream, open_fetch
from swift_dss.objserver.proving import (
    BadBlock, BytesRotten, Piece, in_blocks, trimmed)
from swift_dss.objserver.settings import Node
from swift_dss.wire.control import FetchRequest
from swift_dss.wire.records.blocks import BLOCK_BYTES

#: Up to here, copying and hashing cost less than a trip to a thread.
INLINE_BYTES = 65536
#: Bytes of one trip to the SSD's pool when the event loop would have to wait:
#: a little more than the kernel reads ahead.
TRIP_BYTES = 4 * CHUNK_BYTES

_NOT_BEGUN: Tuple[int, int, List[bytes], int] = (-1, -1, [], -1)
_SSD_BIT = Tier.SSD.value
_BOTH = Tier.SSD | Tier.HDD
#: Where to look for the bytes of a block that proved wrong.
_ORDERS = ((Tier.HDD, Tier.SSD, Tier.REMOTE),
           (Tier.REMOTE, Tier.HDD, Tier.SSD),
           (Tier.REMOTE, Tier.SSD, Tier.HDD))

#: Why a version is read: decides whether remote bytes may be asked for and
#: whether they may be kept.
CLIENT, REPLICATE, AUDIT = 'client', 'replicate', 'audit'


class Window(NamedTuple):
    """One read from one tier with one class."""

    offset: int
    length: int
    tier: Tier
    class_id: int


class VersionBytes:
    """Reads any range of one open version.

    Not shared between green threads. :meth:`close` MUST be called.

    :param fd: of the data file; stays the caller's
    :param keep_cache: leave the read bytes in the page cache
    :param has_changed: says if the record is another one by now
    :param sums: of its blocks; without them bytes are read as they are
    """

    #: A word for the reader.
    client = ''
    #: Bytes that an audit left out because they are not local.
    skipped_bytes = 0
    #: Bits of the tiers that bytes came from.
    tiers_read = 0
    #: True if the HDD lacks bytes of its record that another tier has.
    hdd_differs = False
    #: Bits of the tiers that had other bytes than were written, where
    #: another tier had the right ones.
    rotten_tiers = 0
    #: Ranges that a GET will read.
    _coming: Sequence[Tuple[int, int]] = ()
    _hdd_fd: Optional[int] = None
    _hdd_absent = False

    def __init__(self, node: Node, version: VersionId, partition: str,
                 fd: int, residency: Residency, class_map: ClassMap,
                 purpose: str, keep_cache: bool,
                 has_changed: Callable[[], bool],
                 sums: Optional[BlockSums] = None) -> None:
        self._node = node
        self.version = version
        self.partition = partition
        self._fd = fd
        self._residency = residency
        self.class_map = class_map
        self.purpose = purpose
        self._forget = not keep_cache
        self._has_changed = has_changed
        self._sums = sums
        self._streams: Dict[int, FetchStream] = {}
        #: Up to here the disk was asked at once.
        self._brought = 0
        self._job: Optional[Job] = None
        #: A range, what :meth:`begin` has of its first bytes, and where
        #: the next would be read.
        self._begun: Tuple[int, int, List[bytes], int] = _NOT_BEGUN
        self._read_ahead = class_map.is_uniform
        #: An audit reads what lies on both disks twice.
        self._is_compared = purpose == AUDIT and any(
            extent.tiers & _BOTH == _BOTH for extent in residency.extents)
        #: True if the data file lacks bytes.
        self.is_stub = residency.is_stub
        #: True if stock code may read the data file from end to end.
        self.is_plain = self._read_ahead and not (
            self.is_stub or self._is_compared)

    @property
    def is_proven(self) -> bool:
        """True if blocks are checked before they are given."""
        return self._sums is not None

    def begin(self, start: int, stop: int) -> None:
        """Have the disk bring the first bytes of a read that comes soon.

        Waits for nothing. Most of what a GET costs lies between here and
        its first read: a fast disk is done by then, and no trip to its
        pool is needed. Nothing is begun on slower tiers.
        """
        if self.is_plain and start < stop:
            first, last = self._widened(start, stop)
            length = last - first
            if stop - start > INLINE_BYTES:
                length = min(length, CHUNK_BYTES)
            pieces, offset = self._at_once(
                first, length, self.class_map.rest, self._sums, start, stop)
            self._begun = start, stop, pieces, offset

    def has_begun(self, start: int, stop: int, length: int) -> bool:
        """True if the first ``length`` bytes of a range, or all of a shorter
        one, are here and right."""
        begun_at, begun_to, _, offset = self._begun
        return begun_at == start and begun_to == stop \
            and offset - start >= min(length, stop - start)

    def needs_hdd(self, ranges: Sequence[Tuple[int, int]]) -> bool:
        """True if a byte of ``ranges`` lies on the HDD and not on the SSD.
        Waits for nothing: the record says so.

        :param ranges: (start, stop) pairs
        """
        return any(extent.tiers & _BOTH == Tier.HDD
                   for start, stop in ranges
                   for extent in self._residency.split(start, stop - start))

    def needs_remote(self, ranges: Sequence[Tuple[int, int]]) -> bool:
        """True if a byte of ``ranges`` is here on no tier.

        The HDD, if it is needed, is asked for as many of them as
        ``whole_read_bytes`` allows when its file is opened for this.

        :param ranges: (start, stop) pairs
        :raises TierUnavailable, VersionGone: as :meth:`prepare`
        """
        self._coming = ranges
        return any(self._tier_of(extent) is Tier.REMOTE
                   for start, stop in ranges
                   for extent in self._residency.split(start, stop - start))

    def prepare(self, ranges: Sequence[Tuple[int, int]]) -> None:
        """Make sure that ranges can be read, before the first byte goes.

        Opens the capacity file and asks for remote bytes as needed; costs
        nothing for what is on the SSD.

        :param ranges: (start, stop) pairs
        :raises TierUnavailable: bytes lie only on an HDD that is not there
        :raises RemoteUnavailable: bytes lie only in S3 and it is silent
        :raises VersionGone: the residency of the version has changed:
            open it again; or the HDD has lost the only copy
        """
        if not self.is_stub:
            return
        for start, stop in ranges:
            for extent in self._residency.split(start, stop - start):
                if self._tier_of(extent) is Tier.REMOTE:
                    for window in self._windows(extent.offset, extent.end,
                                                split=False):
                        self._streams[window.offset] = self._ask(window)

    def read(self, start: int, stop: int, digest: Any) -> Iterable[bytes]:
        """The bytes of a range, in order.

        :param digest: updated with every byte that is given, or None
        :raises OSError: of a disk of this node, but EIO
        :raises TierUnavailable, RemoteUnavailable, VersionGone: as
            :meth:`prepare`, if that was not called or bytes went since
        :raises BytesRotten: the next byte is not as it was written, or
            cannot be read
        """
        begun_at, begun_to, pieces, offset = self._begun
        if (begun_at, begun_to) == (start, stop) and offset >= stop:
            # Most small reads end here.
            self._begun = _NOT_BEGUN
            self.tiers_read |= _SSD_BIT
            if digest is not None:
                for data in pieces:
                    digest.update(data)
            if self._forget and offset == self._residency.content_length:
                forget(self._fd, start, stop - start)
            return pieces
        return self._read(start, stop, digest)

    def _read(self, start: int, stop: int, digest: Any) -> Iterator[bytes]:
        while start < stop:
            try:
                for data in self._usual(start, stop, digest):
                    start += len(data)
                    yield data
                return
            except BadBlock as bad:
                first = bad.block * BLOCK_BYTES
                # Blocks that an audit skipped were not counted in start.
                start = max(start, first)
                block = self._another_copy(bad.block)
            if block is None:
                # An audit goes on with the local bytes.
                end = min(first + BLOCK_BYTES, stop)
                self.skipped_bytes += end - start
                start = end
                continue
            for data in trimmed([(first, block)], start, stop, digest):
                start += len(data)
                yield data

    def _usual(self, start: int, stop: int, digest: Any) -> Iterator[bytes]:
        """:meth:`read` up to the first block that is wrong.

        :raises BadBlock: the next byte is of it
        """
        sums = self._sums
        first, last = self._widened(start, stop)
        if self.is_plain:
            self.tiers_read |= _SSD_BIT
            return self._ssd(Window(
                first, last - first, Tier.SSD, self.class_map.rest),
                sums, start, stop, digest)
        if sums is None or (
                (first, last) == (start, stop) and self._read_ahead and len(
                    list(self._residency.split(start, stop - start))) == 1):
            # Hashed where it is read.
            return (piece.data
                    for piece in self._pieces(start, stop, digest, sums))
        return trimmed(in_blocks(
            sums, self._pieces(first, last, None, sums), last),
            start, stop, digest)

    def _widened(self, start: int, stop: int) -> Tuple[int, int]:
        """A range with the whole of its first and last block, where those
        are here and can be checked."""
        if self._sums is None:
            return start, stop
        first = start - start % BLOCK_BYTES
        last = min(stop + -stop % BLOCK_BYTES,
                   self._residency.content_length)
        if self.is_stub:
            first = first if self._is_here(first, start) else start
            last = last if self._is_here(stop, last) else stop
        return first, last

    def _is_here(self, start: int, stop: int) -> bool:
        """True if a range can be read from SSD and HDD."""
        try:
            return all(
                self._tier_of(extent) & _BOTH
                for extent in self._residency.split(start, stop - start))
        except (TierUnavailable, VersionGone):
            return False

    def _pieces(self, start: int, stop: int, digest: Any,
                sums: Optional[BlockSums]) -> Iterator[Piece]:
        """A range, tier by tier and class by class.

        :param sums: check windows of whole blocks with these
        """
        if not self._read_ahead:
            expect_random(self._fd)
        windows = self._windows(start, stop)
        ahead = next(windows, None)
        job: Optional[Job] = None
        while ahead is not None:
            window, ahead = ahead, next(windows, None)
            self.tiers_read |= window.tier.value
            offset = window.offset
            if window.tier is Tier.REMOTE:
                for data in _hashed(self._remote(window), digest):
                    yield Piece(offset, data, True)
                    offset += len(data)
                continue
            checks = self._checks(sums, window)
            if window.tier is Tier.SSD:
                blocks: Iterable[bytes] = self._ssd(
                    window, checks, offset, offset + window.length, digest)
                if self._is_compared:
                    blocks = self._compared(window.offset, blocks)
            else:
                blocks = blocks_read = (job or self._from_hdd(
                    window, digest, checks)).wait()
                job = self._job = None
                if ahead is not None and ahead.tier is Tier.HDD and sum(
                        len(data) for data in blocks_read) == window.length:
                    # The digest has every byte up to here.
                    job = self._from_hdd(ahead, digest,
                                         self._checks(sums, ahead))
            for data in blocks:
                yield Piece(offset, data, checks is not None)
                offset += len(data)
            if offset < window.offset + window.length:
                raise BadBlock(offset // BLOCK_BYTES)

    def _checks(self, sums: Optional[BlockSums],
                window: Window) -> Optional[BlockSums]:
        """``sums``, if the window is of whole blocks."""
        end = window.offset + window.length
        if not window.offset % BLOCK_BYTES and (
                not end % BLOCK_BYTES
                or end == self._residency.content_length):
            return sums
        return None

    def _another_copy(self, block: int) -> Optional[bytes]:
        """A block that proved wrong, or cannot be read, as another tier has
        it.

        :returns: None if it is for an audit to leave it out
        :raises BytesRotten: none has it
        """
        first = block * BLOCK_BYTES
        length = min(BLOCK_BYTES, self._residency.content_length - first)
        extents = list(self._residency.split(first, length))
        usual = [_first_of(extent, (Tier.SSD, Tier.HDD, Tier.REMOTE))
                 for extent in extents]
        tried = [usual]
        for order in _ORDERS:
            tiers = [_first_of(extent, order) for extent in extents]
            if tiers in tried or \
                    Tier.REMOTE in tiers and self.purpose != CLIENT:
                continue
            tried.append(tiers)
            try:
                data = b''.join(self._read_from(tier, extent)
                                for tier, extent in zip(tiers, extents))
            except (OSError, TierUnavailable, VersionGone,
                    RemoteUnavailable):
                continue
            if len(data) == length and (
                    self._sums is None or self._sums.is_right(block, data)):
                for tier, was in zip(tiers, usual):
                    if tier is not was:
                        self.tiers_read |= tier.value
                        self.rotten_tiers |= was.value
                return data
        is_in_s3 = all(extent.tiers & Tier.REMOTE for extent in extents)
        if is_in_s3:
            for was in usual:
                self.rotten_tiers |= was.value
            if self.purpose == AUDIT:
                return None
        raise BytesRotten('the block at byte %d has other bytes than were '
                          'written, or cannot be read' % first, is_in_s3)

    def _read_from(self, tier: Tier, extent: Extent) -> bytes:
        class_id = self.class_map.class_at(extent.offset)
        if tier is Tier.REMOTE:
            stream = self._ask(Window(extent.offset, extent.length, tier,
                                      class_id), keep=False)
            try:
                return b''.join(stream.chunks())
            finally:
                stream.close()
        if tier is Tier.HDD:
            self._open_hdd()
        self._job = self._begin(
            tier, read_exact, self._node.carrier,
            self._hdd_fd if tier is Tier.HDD else self._fd, extent.length,
            extent.offset, class_id)
        data: bytes = self._job.wait()
        self._job = None
        return data

    def splice_here(self, splice: Any, fd: int, pipe_fd: int,
                    length: int) -> int:
        """Move bytes from the data file to a pipe, in the SSD's pool.

        :param splice: ``swift.common.splice.splice``
        """
        class_id = self.class_map.rest
        carrier = self._node.carrier

        def move() -> int:
            carrier.enter(class_id)
            return int(splice(fd, None, pipe_fd, None, length, 0)[0])

        self.tiers_read |= _SSD_BIT
        self._job = self._node.pool(
            Tier.SSD, self.version.device).submit(move)
        moved: int = self._job.wait()
        self._job = None
        return moved

    def close(self) -> None:
        """Let go of everything but the data file; idempotent."""
        for stream in self._streams.values():
            stream.close()
        self._streams = {}
        if self._hdd_fd is not None:
            # In the HDD's pool: the last close of a file that the daemon
            # has removed frees its blocks, and that waits for the disk.
            fd, self._hdd_fd = self._hdd_fd, None
            pool = self._node.pool(Tier.HDD, self.version.device)
            self.after_io(lambda: pool.background(os.close, fd))

    @property
    def lacks_bytes(self) -> bool:
        """True if some are on no tier of this node."""
        return self.is_stub and not self._residency.is_local

    @property
    def is_busy(self) -> bool:
        """True if a pool thread may use our descriptors."""
        return self._job is not None

    def after_io(self, call: Any) -> None:
        """Run ``call`` once no pool thread uses our descriptors."""
        if self._job is None:
            call()
        else:
            self._job.when_finished(call)

    def _windows(self, start: int, stop: int,
                 split: bool = True) -> Iterator[Window]:
        """Cut a range by tier, class and window size.

        With ``split`` False, only by tier: remote ranges are asked for in
        one piece, with the class of their first byte.
        """
        for extent in self._residency.split(start, stop - start):
            tier = self._tier_of(extent)
            if tier is Tier.NONE:
                self.skipped_bytes += extent.length
                continue
            if tier is Tier.REMOTE or not split:
                yield Window(extent.offset, extent.length, tier,
                             self.class_map.class_at(extent.offset))
                continue
            for span in self.class_map.split(extent.offset, extent.length):
                for offset in range(span.offset, span.end, IO_WINDOW_BYTES):
                    yield Window(
                        offset, min(IO_WINDOW_BYTES, span.end - offset),
                        tier, span.class_id)

    def _tier_of(self, extent: Extent) -> Tier:
        """Where to read an extent; NONE if an audit leaves it out."""
        if extent.tiers & Tier.SSD:
            return Tier.SSD
        if extent.tiers & Tier.HDD and not self._hdd_absent:
            try:
                self._open_hdd()
                return Tier.HDD
            except TierUnavailable:
                self._hdd_absent = True
                if self.purpose != AUDIT and \
                        not extent.tiers & Tier.REMOTE:
                    raise
            except VersionGone:
                if not extent.tiers & Tier.REMOTE or self._has_changed():
                    raise
                self.hdd_differs = self._hdd_absent = True
        if self.purpose == AUDIT:
            return Tier.NONE
        if extent.tiers & Tier.REMOTE:
            return Tier.REMOTE
        raise TierUnavailable('capacity tier of %s is not there'
                              % self.version.device)

    def _open_hdd(self) -> None:
        if self._hdd_fd is None:
            self._hdd_fd = self._begin(
                Tier.HDD, self._open_hdd_here).wait()

    def _open_hdd_here(self) -> int:
        """In an HDD pool thread: the capacity file, checked."""
        capacity = self._node.capacity(self.version.device)
        fd = capacity.open_read(self.version)
        try:
            expected = residency_store.load_capacity_id(self._fd)
            if expected and expected != capacity.identity:
                raise VersionGone('the record speaks of another capacity '
                                  'tier')
            there = os.fstat(fd).st_size
            if there < self._residency.content_length:
                raise VersionGone('the HDD has %d of %d bytes' % (
                    there, self._residency.content_length))
            if not self._read_ahead:
                expect_random(fd)
            bring(self._node.carrier, fd, self._whole())
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _whole(self) -> Iterator[Span]:
        """The bytes of a client's GET on the HDD, up to
        ``whole_read_bytes``, in blocks where those are checked."""
        left = self._node.conf.io.whole_read_bytes
        grain = 1 if self._sums is None else BLOCK_BYTES
        for start, stop in self._coming if self.purpose == CLIENT else ():
            start -= start % grain
            stop = min(stop + -stop % grain, self._residency.content_length)
            for extent in self._residency.split(start, stop - start):
                if extent.tiers & _BOTH != Tier.HDD or not left:
                    continue
                length = min(left, extent.length)
                left -= length
                yield from self.class_map.split(extent.offset, length)

    def _ssd(self, window: Window, sums: Optional[BlockSums], start: int,
             stop: int, digest: Any) -> Iterator[bytes]:
        """Check and hash the part of an SSD window that lies in a range.

        :param sums: the window is of whole blocks; without them, it is the
            range
        :raises BadBlock: the next one is wrong, or cannot be read
        """
        offset, end = window.offset, window.offset + window.length
        kept = offset
        begun, self._begun = self._begun, _NOT_BEGUN
        pieces: Sequence[bytes] = ()
        if begun[:2] == (start, stop):
            _, _, pieces, offset = begun
        while True:
            for data in pieces:
                if digest is not None:
                    digest.update(data)
                yield data
            if self._forget and (offset - kept > IO_WINDOW_BYTES or
                                 offset == self._residency.content_length):
                # As Swift does: a short range of a large object stays.
                forget(self._fd, kept, offset - kept)
                kept = offset
            if offset >= end:
                return
            pieces, offset = self._at_once(
                offset, end - offset, window.class_id, sums, start, stop)
            if not pieces:
                pieces, offset = self._awaited(
                    offset, end - offset, window.class_id, sums, start, stop)

    def _at_once(self, offset: int, length: int, class_id: int,
                 sums: Optional[BlockSums], start: int, stop: int
                 ) -> Tuple[List[bytes], int]:
        """(pieces of a range, where the next begin): what can be had
        without waiting of the first of some bytes, and is right."""
        cache = self._node.page_cache
        there = cache.look(self._node.carrier, self._fd,
                           min(AHEAD_BYTES, length), offset, class_id)
        if sums is not None:
            there = sums.right_bytes(offset, cache.chunks, there)
        if not there:
            return [], offset
        return cache.taken(max(start - offset, 0),
                           min(stop - offset, there)), offset + there

    def _awaited(self, offset: int, length: int, class_id: int,
                 sums: Optional[BlockSums], start: int, stop: int
                 ) -> Tuple[List[bytes], int]:
        """The same by way of the SSD's pool.

        Nothing but the read is done there: each system call of a pool
        thread asks for the interpreter's lock once more.

        :raises BadBlock: the first block is wrong, or cannot be read
        """
        # Without an HDD of its own, or in front of the kernel's, the device
        # may have an arm; to an SSD the hint is CPU time and no more.
        coming = min(length, self._node.conf.io.whole_read_bytes) \
            if offset >= self._brought and \
            not self._node.has_hdd(self.version.device) else 0
        self._brought = max(self._brought, offset + coming)
        self._job = self._begin(Tier.SSD, read_coming, self._node.carrier,
                                self._fd, min(TRIP_BYTES, length), offset,
                                class_id, coming)
        data: bytes = self._job.wait()
        self._job = None
        there = len(data)
        if sums is not None:
            view = memoryview(data)
            there = sums.right_bytes(offset, [
                view[at:at + BLOCK_BYTES]
                for at in range(0, there, BLOCK_BYTES)], there)
        if not there:
            raise BadBlock(offset // BLOCK_BYTES)
        return [data[max(start - offset, 0):min(stop - offset, there)]], \
            offset + there

    def _compared(self, offset: int,
                  blocks: Iterable[bytes]) -> Iterator[bytes]:
        """The same blocks, each looked up on the HDD if it is there too."""
        for data in blocks:
            for extent in self._residency.split(offset, len(data)):
                if extent.tiers & Tier.HDD and not self._hdd_absent:
                    first = extent.offset - offset
                    self._compare(extent, data[first:first + extent.length])
            offset += len(data)
            yield data

    def _compare(self, extent: Extent, expected: bytes) -> None:
        try:
            self._open_hdd()
            actual = self._begin(
                Tier.HDD, read_exact, self._node.carrier, self._hdd_fd,
                extent.length, extent.offset,
                self.class_map.class_at(extent.offset)).wait()
            self.hdd_differs = self.hdd_differs or actual != expected
            assert self._hdd_fd is not None
            forget(self._hdd_fd, extent.offset, extent.length)
        except TierUnavailable:
            self._hdd_absent = True
        except (VersionGone, OSError):
            # There is none, or it cannot be read.
            self.hdd_differs = self._hdd_absent = True

    def _from_hdd(self, window: Window, digest: Any,
                  sums: Optional[BlockSums]) -> Job:
        self._job = self._begin(
            Tier.HDD, _read_window, self._node.carrier, self._hdd_fd, window,
            digest, self._forget, sums)
        return self._job

    def _begin(self, tier: Tier, *work: Any) -> Job:
        pool = self._node.pool(tier, self.version.device)
        # An auditor has nothing else to do meanwhile, and its process is
        # a fork that shares its parent's event loop.
        return (pool.inline if self.purpose == AUDIT
                else pool.submit)(*work)

    def _remote(self, window: Window) -> Iterator[bytes]:
        stream = self._streams.pop(window.offset, None) or \
            self._ask(window)
        try:
            yield from stream.chunks()
        finally:
            stream.close()

    def _ask(self, window: Window, keep: bool = True) -> FetchStream:
        # Earlier reads tell the daemon that this fetch belongs to a stream.
        device = self.version.device
        self._node.events.send_what_waits(device)
        return open_fetch(self._node.sockets(device), FetchRequest(
            version=self.version, partition=self.partition,
            offset=window.offset, length=window.length,
            class_id=window.class_id,
            deadline_seconds=self._node.conf.io.remote_deadline_seconds,
            keep=keep and self.purpose == CLIENT, client=self.client))


def _first_of(extent: Extent, order: Sequence[Tier]) -> Tier:
    return next(tier for tier in order if extent.tiers & tier)


def _hashed(blocks: Iterator[bytes], digest: Any) -> Iterator[bytes]:
    for data in blocks:
        if digest is not None:
            digest.update(data)
        yield data


def _read_window(carrier: Any, fd: int, window: Window, digest: Any,
                 forget_it: bool,
                 sums: Optional[BlockSums]) -> List[bytes]:
    """In a pool thread: one window, its digest, its pages let go; up to the
    first byte that cannot be read and, with ``sums``, the first block that
    is wrong.

    In blocks: each is hashed while the processor's cache still has it, and
    none is so large that the C library asks the kernel for fresh pages.
    """
    blocks: List[bytes] = []
    end = window.offset + window.length
    for offset in range(window.offset, end, CHUNK_BYTES):
        length = min(CHUNK_BYTES, end - offset)
        data = read_readable(carrier, fd, length, offset, window.class_id)
        if sums is not None and sums.right_bytes(
                offset, [data], len(data)) < length:
            break
        if data:
            if digest is not None:
                digest.update(data)
            blocks.append(data)
        if len(data) < length:
            break
    if forget_it:
        forget(fd, window.offset, window.length)
    return blocks
