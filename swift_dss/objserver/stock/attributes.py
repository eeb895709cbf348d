"""Swift's metadata in values that an inode of XFS has room for.

XFS keeps attributes in the inode as long as each value has less than 255
bytes and all of them fit. Swift's pickled metadata has some 350 bytes and
more, so each file would get a block of 4 KiB for them, next to its data: a
gap between this file and the next one, and a block more to write and to read.
Swift reads the metadata from as many values as there are
(``user.swift.metadata``, ``...1`` and on), and so do stock servers, auditors
and tools. An inode of 1 KiB (``mkfs.xfs -i size=1024``) has room for them;
one of 512 bytes has not, and then the file has its block as before.

Swift asks twice for each value, and once more for one that is not there.
Here each is asked for once. The checksum of the metadata says whether all of
it was there; if it does not, Swift's own function reads again and judges.
"""

from __future__ import annotations

import contextlib
import os
import pickle
from hashlib import md5
from typing import Any, Callable, Dict

from swift.obj.diskfile import (
    METADATA_CHECKSUM_KEY, METADATA_KEY, PICKLE_PROTOCOL, BaseDiskFile,
    BaseDiskFileWriter, _read_file_metadata, unpickle, write_metadata)

from swift_dss.objserver.stock.borrowed import with_functions

#: The most that XFS keeps in an inode (``XFS_ATTR_SF_ENTSIZE_MAX``: the length
#: is a byte, and 255 is not used).
VALUE_BYTES = 254

_KEY = METADATA_KEY.decode('ascii')
_CHECKSUM_KEY = METADATA_CHECKSUM_KEY.decode('ascii')
#: In the first bytes of metadata that Python 3 has pickled.
_PICKLED_BYTES, _FIRST_BYTES = b'_codecs\nencode', 32
#: How text is made bytes.
_TEXT = 'utf8', 'surrogateescape'


def read(source: Any, add_missing_checksum: bool = False) -> Dict[str, Any]:
    """See ``swift.obj.diskfile._read_file_metadata``."""
    target = source if isinstance(source, (int, str)) else source.fileno()
    try:
        raw = value = os.getxattr(target, _KEY)
        number = 0
        while len(value) == VALUE_BYTES:
            number += 1
            value = os.getxattr(target, '%s%d' % (_KEY, number))
            raw += value
        is_whole = md5(raw, usedforsecurity=False).hexdigest().encode(
            ) == os.getxattr(target, _CHECKSUM_KEY)
    except OSError:
        is_whole = False
    if is_whole and _PICKLED_BYTES in raw[:_FIRST_BYTES]:
        with contextlib.suppress(AttributeError):
            # Each is bytes, as Swift writes them.
            return {name.decode(*_TEXT): value.decode(*_TEXT)
                    for name, value in unpickle(
                        raw, encoding='bytes').items()}
    metadata: Dict[str, Any] = _read_file_metadata(
        source, add_missing_checksum)
    return metadata


def write(fd: int, metadata: Dict[str, Any]) -> None:
    """See ``swift.obj.diskfile.write_metadata``; in small values."""
    raw = pickle.dumps({_as_bytes(name): _as_bytes(value) for name, value
                        in metadata.items()}, PICKLE_PROTOCOL)
    try:
        for number, at in enumerate(range(0, len(raw), VALUE_BYTES)):
            os.setxattr(fd, '%s%d' % (_KEY, number) if number else _KEY,
                        raw[at:at + VALUE_BYTES])
        os.setxattr(fd, _CHECKSUM_KEY, md5(
            raw, usedforsecurity=False).hexdigest().encode())
    except OSError:
        # Swift logs and names the error.
        write_metadata(fd, metadata, xattr_size=VALUE_BYTES)


def _as_bytes(item: Any) -> Any:
    return item.encode(*_TEXT) if isinstance(item, str) else item


#: Swift's ``_finalize_put``, for writers of ours.
finalize_put: Callable[..., None] = with_functions(
    BaseDiskFileWriter._finalize_put, write_metadata=write)
#: Swift's ``_read_and_validate_metadata``, for diskfiles of ours.
read_and_validate: Callable[..., Any] = with_functions(
    BaseDiskFile._read_and_validate_metadata, _read_file_metadata=read)
