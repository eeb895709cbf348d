"""Swift's metadata in values that an inode of XFS has room for.

XFS keeps attributes in the inode as long as each value has less than 255
bytes and all of them fit. Swift's pickled metadata has some 350 bytes and
more, so each file would get a block of 4 KiB for them, next to its data: a
gap between this file and the next one, and a block more to write and to read.
Swift reads the metadata from as many values as there are
(``user.swift.metadata``, ``...1`` and on), and so do stock servers, auditors
and tools. An inode of 1 KiB (``mkfs.xfs -i size=1024``) has room for them;
one of 512 bytes has not, and then the file has its block as before.
"""

from __future__ import annotations

from functools import partial
from types import FunctionType
from typing import Any, Callable

from swift.obj.diskfile import BaseDiskFileWriter, write_metadata

#: The most that XFS keeps in an inode (``XFS_ATTR_SF_ENTSIZE_MAX``: the length
#: is a byte, and 255 is not used).
VALUE_BYTES = 254


def _with_small_values(method: Any) -> Callable[..., None]:
    """Swift's method, with pieces of that size.

    It calls ``write_metadata`` by its global name, and that has no setting for
    the size; the function of other policies stays as it is.
    """
    return FunctionType(
        method.__code__, dict(method.__globals__, write_metadata=partial(
            write_metadata, xattr_size=VALUE_BYTES)),
        method.__name__, method.__defaults__, method.__closure__)


#: Swift's ``_finalize_put``, for writers of ours.
finalize_put = _with_small_values(BaseDiskFileWriter._finalize_put)
