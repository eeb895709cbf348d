"""The class in the first element of each readv and writev.

For a kernel with our patches (doc/source/explanation/patched-kernel.rst). The
class is one byte in front of the data; the call's result does not count it.
The kernel keeps the class with a page in the page cache until any thread
writes that page to the disk. So nothing needs an early sync to keep its class.

The files that we read and write are opened by Swift, and other code uses
their descriptors too. So each of our calls sets ``RWF_CLASSIFIED``, and the
files are not opened with ``O_CLASSIFIED``: the kernel never takes another
caller's vector for a classified one.

Between reads and writes there are operations without a vector (sync,
truncate, rename, splice). For them the thread has the priority of the
``ioprio`` carrier.
"""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from typing import Any, Optional, Sequence

from swift_dss.io.carriers import Carrier
from swift_dss.io.carriers.ioprio import IoprioCarrier

#: Open flag: each vector on this file starts with a class.
O_CLASSIFIED = 0o10000000000

#: preadv2 and pwritev2: this vector starts with a class.
RWF_CLASSIFIED = 0x40000000

_CLASSES = 32
_BYTES = tuple(bytes((class_id,)) for class_id in range(_CLASSES))


class ClassifiedCarrier(IoprioCarrier):
    """Classified vectors; the thread's priority for all the rest."""

    name = 'classified'
    remembers = True

    def probe(self) -> Optional[str]:
        """Write and read a temporary file; see that it is honoured."""
        reason = super().probe()
        if reason is not None:
            return reason
        try:
            with tempfile.NamedTemporaryFile() as plain:
                return _probe_call(plain.fileno()) or \
                    _probe_file(plain.name)
        except OSError as err:
            return 'cannot be tried: %s' % err

    def expect(self, fd: int, length: int, offset: int,
               class_id: int) -> None:
        """Nothing: a hint carries no class, and the read takes its own."""

    def pread(self, fd: int, length: int, offset: int,
              class_id: int) -> bytes:
        """``os.preadv`` of a class and one buffer."""
        data = bytearray(length)
        try:
            got = os.preadv(fd, [bytearray(_BYTES[class_id]), data], offset,
                            RWF_CLASSIFIED)
        except OSError as err:
            if err.errno != errno.EOPNOTSUPP:
                raise
            return super().pread(fd, length, offset, class_id)
        return bytes(data if got == length else data[:got])

    def pwritev(self, fd: int, buffers: Sequence[Any], offset: int,
                class_id: int) -> int:
        """``os.pwritev`` of a class and the buffers."""
        try:
            return os.pwritev(fd, [_BYTES[class_id], *buffers], offset,
                              RWF_CLASSIFIED)
        except OSError as err:
            # Not a file of a kind that can have classes: the bytes matter
            # more.
            if err.errno != errno.EOPNOTSUPP:
                raise
            return super().pwritev(fd, buffers, offset, class_id)


def _probe_call(fd: int) -> Optional[str]:
    """Why RWF_CLASSIFIED has another meaning here, or None."""
    try:
        wrote = os.pwritev(fd, [_BYTES[5], b'da', b'ta'], 0, RWF_CLASSIFIED)
    except OSError as err:
        if err.errno != errno.EOPNOTSUPP:
            raise
        return 'this kernel has no RWF_CLASSIFIED'
    data = os.pread(fd, 8, 0)
    if (wrote, data) != (4, b'data'):
        return 'RWF_CLASSIFIED: %d bytes written, %r found' % (wrote, data)
    try:
        os.pwritev(fd, [bytes((_CLASSES,)), b'more'], 4, RWF_CLASSIFIED)
    except OSError as err:
        if err.errno == errno.EINVAL:
            return None
        raise
    return 'RWF_CLASSIFIED: class %d is not refused' % _CLASSES


def _probe_file(path: str) -> Optional[str]:
    """Why O_CLASSIFIED has another meaning here, or None.

    :param path: a file that has the bytes ``data``
    """
    opened = os.open(path, os.O_RDWR | os.O_CLOEXEC | O_CLASSIFIED)
    try:
        # A kernel that does not know the flag drops it without a word.
        if not fcntl.fcntl(opened, fcntl.F_GETFL) & O_CLASSIFIED:
            return 'this kernel has no O_CLASSIFIED'
        first, data = bytearray(_BYTES[7]), bytearray(8)
        got = os.readv(opened, [first, data])
        if (got, bytes(data[:4]), bytes(first)) != (4, b'data', _BYTES[7]):
            return 'O_CLASSIFIED: %d bytes read, %r, class byte %r' % (
                got, bytes(data), bytes(first))
    finally:
        os.close(opened)
    return None


def open_carrier() -> Carrier:
    """A carrier for a patched kernel; probe it before use."""
    return ClassifiedCarrier()
