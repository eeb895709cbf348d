"""Reading and writing the residency record of a data file.

The record lives in an extended attribute of the data file itself, so that
no index is needed to read an object. Three states are legal:

- size equals Content-Length, no record: whole, on the SSD only;
- size equals Content-Length, a record without holes: whole, and copies on
  other tiers besides;
- size is Content-Length + ``STUB_SURPLUS``, a record: a stub.

Everything else is damage. A damaged record on a file of full size costs
nothing but the knowledge of its copies: the bytes are all there, and the
file is served. On any other size integrity fails closed.

All calls block on the file system of the data file.
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import Optional, Union

from swift_dss.core.errors import FULL_ERRNOS, DamagedRecord, TierFull
from swift_dss.core.residency import (
    STUB_SURPLUS, RemoteCopy, Residency, Tier)
from swift_dss.io.sums import blocks
from swift_dss.wire import names
from swift_dss.wire.records import residency as record

_Target = Union[int, str]
_NO_ROOM = 'no room for the residency record: %s'


def load(target: _Target) -> Optional[Residency]:
    """The record of a data file, or None if it has none.

    :param target: file descriptor or path
    :raises DamagedRecord: there is one and it cannot be trusted
    :raises OSError: the file system would not say
    """
    raw = _get(target, names.XATTR_RESIDENCY)
    return None if raw is None else record.decode(raw)


def load_capacity_id(target: _Target) -> str:
    """Identity of the capacity tier that the record speaks of, or ''."""
    raw = _get(target, names.XATTR_CAPACITY_ID)
    return '' if raw is None else raw.decode('ascii', 'replace')


def store(fd: int, residency: Residency, capacity_id: str = '') -> None:
    """Put the record on an open data file; idempotent; no fsync.

    A file that is whole on the SSD and nowhere else gets no record. The caller
    MUST ``fsync`` the file before it acts on the record, and MUST have made
    the bytes on every other tier durable before.

    :param capacity_id: identity of the capacity tier
        (``Capacity.identity``); needed if a byte lies on the HDD
    :raises TierFull: no room for the attribute
    """
    try:
        _store(fd, residency, capacity_id)
    except OSError as err:
        if not _is_no_room(err):
            raise
        # The place of bytes is more important than their proof.
        if not blocks.remove(fd):
            raise TierFull(_NO_ROOM % err) from err
        store(fd, residency, capacity_id)


def _store(fd: int, residency: Residency, capacity_id: str) -> None:
    on_hdd = bool(residency.tiers & Tier.HDD)
    if on_hdd and capacity_id:
        os.setxattr(fd, names.XATTR_CAPACITY_ID, capacity_id.encode('ascii'))
    if residency.tiers & ~Tier.SSD:
        os.setxattr(fd, names.XATTR_RESIDENCY, record.encode(residency))
    else:
        _remove(fd, names.XATTR_RESIDENCY)
    if not on_hdd:
        _remove(fd, names.XATTR_CAPACITY_ID)


def store_first(fd: int, content_length: int, remote: RemoteCopy) -> bool:
    """The same of a version that the SSD has whole, and now S3 too; False,
    and nothing is done, if the file has a record already."""
    try:
        os.setxattr(fd, names.XATTR_RESIDENCY, record.encode_arrived(
            content_length, remote), os.XATTR_CREATE)
    except FileExistsError:
        return False
    except OSError as err:
        if not _is_no_room(err):
            raise
        if not blocks.remove(fd):
            raise TierFull(_NO_ROOM % err) from err
        return store_first(fd, content_length, remote)
    return True


def _is_no_room(err: OSError) -> bool:
    # ext4 answers ENOSPC where all attributes do not fit one block, and
    # any file system E2BIG or ERANGE for one that is too long.
    return err.errno in FULL_ERRNOS or \
        err.errno in (errno.E2BIG, errno.ERANGE)


def judge(fd: int, content_length: int,
          size: Optional[int] = None) -> Residency:
    """Where the bytes of an open data file are, by the invariant.

    :param content_length: from the version's own metadata
    :param size: of the file, if the caller has just asked
    :raises DamagedRecord: neither whole nor a sound stub; the caller MUST
        quarantine the version and serve no byte of it
    """
    if size is None:
        size = os.fstat(fd).st_size
    if size == content_length:
        return _whole(fd, content_length)
    if size != content_length + STUB_SURPLUS:
        raise DamagedRecord(
            'metadata content-length %d does not match actual object size %d'
            % (content_length, size))
    record = load(fd)
    if record is None:
        raise DamagedRecord('%d bytes for a content-length of %d and no '
                            'residency record' % (size, content_length))
    if record.content_length != content_length or not record.is_stub:
        raise DamagedRecord('residency record of another version: %d bytes '
                            'instead of %d' % (record.content_length,
                                               content_length))
    return record


def _whole(fd: int, content_length: int) -> Residency:
    raw = _get(fd, names.XATTR_RESIDENCY)
    if raw is not None:
        with contextlib.suppress(DamagedRecord):
            residency = record.decode(raw)
            if not residency.is_stub \
                    and residency.content_length == content_length:
                return residency
    return Residency.whole(content_length)


def _get(target: _Target, name: str) -> Optional[bytes]:
    try:
        return os.getxattr(target, name)
    except OSError as err:
        if err.errno in (errno.ENODATA, errno.EOPNOTSUPP):
            return None
        raise


def _remove(fd: int, name: str) -> None:
    try:
        os.removexattr(fd, name)
    except OSError as err:
        if err.errno not in (errno.ENODATA, errno.EOPNOTSUPP):
            raise
