"""Diskfile readers whose bytes may lie on several tiers.

Swift's own checks are kept: the MD5 of a full read against the ETag, the
fragment headers of erasure-coded archives, quarantine at close. They see the
same bytes as in Swift, from other tiers. An error of S3 or of a disk ends the
response early and never quarantines the version: the tier daemon asks the
other primaries first.
"""

from __future__ import annotations

import itertools
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from swift.common.exceptions import ReplicationException
from swift.common.utils import close_if_possible
from swift.obj.diskfile import (
    BaseDiskFileReader, DiskFileReader, ECDiskFileReader)

from swift_dss.core.errors import (
    RemoteUnavailable, TierUnavailable, VersionGone)
from swift_dss.objserver import zero_copy
from swift_dss.objserver.extents import VersionBytes
from swift_dss.objserver.proving import BytesRotten

#: The WSGI server sends headers with so many bytes, or at the end: an error
#: before that would be a 500.
HELD_BYTES = 4096
#: Of one read that the daemon is told apart.
_MOST_RANGES = 64


class BytesUnavailable(ReplicationException):
    """A tier went away in the middle of a read.

    Not a ``DiskFileError`` on purpose: ssync's peer has already got some bytes
    of the object, and only the end of the session tells it of an error.
    ``objserver.sending`` handles errors that show before the first byte.
    """


class RottenBlock(BytesUnavailable):
    """The next bytes are not as they were written, on no tier that could be
    asked.

    :param data_file: path of the version's
    :param headers: of an answer that says when to try again
    """

    def __init__(self, data_file: str, why: str,
                 headers: Dict[str, str]) -> None:
        super().__init__('%s: %s' % (data_file, why))
        self.data_file = data_file
        self.headers = headers


class DssReaderBase(BaseDiskFileReader):
    """Goes between Swift's reader and its base class."""

    #: Swift's own attributes.
    _fp: Any
    _iter_etag: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._range_stop: Optional[int] = None
        #: Ranges that were read, (start, end).
        self._ranges: List[Tuple[int, int]] = []
        self.dss_bytes: VersionBytes = self._diskfile.dss_open_bytes(
            self._fp.fileno(), self._keep_cache)

    def dss_prepare(self, ranges: Sequence[Tuple[int, int]]) -> None:
        """See ``VersionBytes.prepare``."""
        self.dss_bytes.prepare(ranges)

    def _inner_iter(self) -> Iterator[bytes]:
        start = self._fp.tell()
        try:
            stop = self._obj_size
            if self._range_stop is not None:
                stop = min(stop, self._range_stop)
            self._bytes_read = 0
            self._started_at_0 = False
            self._read_to_eof = False
            self._init_checks()
            # The digest grows in pool threads, so Swift's check of each
            # chunk must not update it once more.
            digest, self._iter_etag = self._iter_etag, None
            if stop < self._obj_size:
                # Swift compares it with that of the whole alone.
                digest = None
            for chunk in self.dss_bytes.read(start, stop, digest):
                self._update_checks(chunk)
                self._bytes_read += len(chunk)
                yield chunk
            if not self.dss_bytes.skipped_bytes:
                self._iter_etag = digest
                self._read_to_eof = (
                    stop == self._obj_size
                    or start + self._bytes_read < stop)
        except VersionGone as err:
            self._lost(err)
        except BytesRotten as err:
            raise self._rotten(err) from err
        except (TierUnavailable, RemoteUnavailable) as err:
            self._logger.increment('dss.errors.%s' % err.counter)
            raise BytesUnavailable('%s: %s' % (self._data_file, err)) \
                from err
        finally:
            self._note(start)
            if not self._suppress_file_closing:
                self.close()

    def _rotten(self, err: BytesRotten) -> RottenBlock:
        """The exception for it; tells the daemon of the version."""
        self._logger.increment('dss.errors.rotten')
        if not err.is_in_s3:
            # Else its tiers are told of when it closes.
            self._diskfile.dss_note_lack(self.dss_bytes)
        return RottenBlock(self._data_file, str(err),
                           self._diskfile.dss_later_headers())

    def _lost(self, err: VersionGone) -> None:
        """The record named a capacity file that is not there.

        Either the daemon switched the version since we opened it, or the
        local copy is damaged.
        """
        if not self._diskfile.dss_has_changed(self._data_file):
            self._diskfile.dss_note_lack(self.dss_bytes)
        raise BytesUnavailable('%s: %s' % (self._data_file, err))

    def _note(self, start: int) -> None:
        end = start + self._bytes_read
        if self._ranges and (self._ranges[-1][1] == start or
                             len(self._ranges) >= _MOST_RANGES):
            first, last = self._ranges.pop()
            start, end = min(first, start), max(last, end)
        self._ranges.append((start, end))

    def app_iter_range(self, start: Optional[int],
                       stop: Optional[int]) -> Iterator[bytes]:
        """As Swift's, but nothing past ``stop`` is read."""
        self._range_stop = stop
        chunks: Iterator[bytes] = super().app_iter_range(start, stop)
        return chunks

    def _drop_cache(self, fd: int, offset: int, length: int) -> None:
        """Only for zero-copy: windows let their own pages go."""
        super()._drop_cache(fd, offset, length)

    def can_zero_copy_send(self) -> bool:
        """Whole, single-class versions without checksums of blocks only;
        see ``zero_copy``."""
        return bool(self._use_splice and self.dss_bytes.is_plain
                    and not self.dss_bytes.is_proven)

    def zero_copy_send(self, wsockfd: int) -> None:
        """As Swift's, with the waits for the disk in the SSD's pool."""
        try:
            zero_copy.send(self, wsockfd)
            self._note(0)
        finally:
            self.close()

    def close(self) -> None:
        if self._fp is None:
            return
        self._announce()
        # Or each read would leave a circle to the garbage collector.
        self._diskfile.dss_reader = None
        self.dss_bytes.close()
        if self.dss_bytes.is_busy:
            self._fp = _ClosedLater(self._fp, self.dss_bytes)
        super().close()
        if self.dss_bytes.rotten_tiers and not self._quarantined_dir:
            # The HDD's copy may be what the SSD's is mended from.
            self._diskfile.dss_note_rot(self.dss_bytes)
        elif self.dss_bytes.hdd_differs and not self._quarantined_dir:
            self._diskfile.dss_note_difference(self.dss_bytes)

    def _announce(self) -> None:
        ranges, self._ranges = self._ranges, []
        # The manifest of a dynamic large object is empty, and its read says
        # that its segments come next.
        ranges = [(first, last) for first, last in ranges if last > first
                  or last == 0 and self._diskfile.dss_is_manifest]
        if ranges:
            self._diskfile.dss_note_read(self.dss_bytes, ranges)


class _ClosedLater:
    """The data file, closed once no pool thread reads it any more."""

    def __init__(self, fp: Any, source: VersionBytes) -> None:
        self._fp = fp
        self._source = source

    def close(self) -> None:
        self._source.after_io(self._fp.close)


class DssDiskFileReader(DiskFileReader, DssReaderBase):
    """Reader of replicated objects."""


class DssECDiskFileReader(ECDiskFileReader, DssReaderBase):
    """Reader of fragment archives."""


def begun(body: Any) -> Any:
    """The body of a response, whose first bytes are here and right: nothing
    is on its way before they are.

    :raises RottenBlock: they are not
    """
    parts = iter(body)
    first: List[bytes] = []
    held = 0
    try:
        for part in parts:
            first.append(part)
            held += len(part)
            if held >= HELD_BYTES:
                break
    except BaseException:
        close_if_possible(body)
        raise
    return _Body(body, first, parts)


class _Body:
    """A response body of which the first parts were taken."""

    def __init__(self, body: Any, first: List[bytes], rest: Any) -> None:
        self._body = body
        self._parts = itertools.chain(first, rest)

    def __iter__(self) -> Any:
        return self._parts

    def close(self) -> None:
        close_if_possible(self._body)
