"""Build a ``.dss`` from data and a class map, and take one apart.

Both work on binary file objects, a window at a time: memory does not grow
with the object. Results in files appear whole or not at all.
"""

from __future__ import annotations

import contextlib
import os
from typing import BinaryIO, Callable, Iterator, Optional

from swift_dss.core.errors import BadClassInput
from swift_dss.core.limits import IO_WINDOW_BYTES
from swift_dss.core.spans import ClassMap
from swift_dss.wire.dssfile import Decoder
from swift_dss.wire.dsssection import encode_section

#: Called with the bytes done so far.
Progress = Callable[[int], None]


def silent(done: int) -> None:
    """The progress that shows nothing."""


def pack(source: BinaryIO, target: BinaryIO, class_map: ClassMap,
         size: Optional[int], form: str = 'auto',
         block_bytes: Optional[int] = None,
         progress: Progress = silent) -> int:
    """Write the ``.dss`` of ``source`` to ``target``.

    :param size: bytes that ``source`` will give; None if that is not
        known: the form is then ``range``, the only one that can do without
    :returns: bytes of data
    :raises BadClassInput: the map passes the end of the data or cannot be
        written in this form, or ``source`` has another size than it said
    """
    target.write(class_section(class_map, size, form, block_bytes))
    done = 0
    while True:
        chunk = source.read(IO_WINDOW_BYTES)
        if not chunk:
            break
        done += len(chunk)
        if size is not None and done > size:
            break
        target.write(chunk)
        progress(done)
    if size is not None and done != size:
        raise BadClassInput('data', 'changed its size from %d bytes while '
                            'it was read' % size)
    _check_end(class_map, done)
    return done


def class_section(class_map: ClassMap, size: Optional[int],
                  form: str = 'auto',
                  block_bytes: Optional[int] = None) -> bytes:
    """The class section for ``size`` bytes of data.

    :param size: None if it is not known; see :func:`pack`
    :raises BadClassInput: the map passes the end, or has no such form
    """
    if size is None:
        if form == 'block' or block_bytes is not None:
            raise BadClassInput('block form', 'needs the size of the data '
                                'in advance (--size)')
        return encode_section(class_map, class_map.end, 'range')
    _check_end(class_map, size)
    return encode_section(class_map, size, form, block_bytes)


def _check_end(class_map: ClassMap, size: int) -> None:
    if class_map.end > size:
        raise BadClassInput(
            'class map', 'the last range ends at byte %d, past the %d bytes '
            'of data' % (class_map.end, size))


def unpack(source: BinaryIO, target: Optional[BinaryIO],
           decoder: Decoder, progress: Progress = silent) -> None:
    """Feed all of ``source`` to ``decoder``; its data go to ``target``.

    :param target: None to read and check only
    :raises BadClassInput: the stream is no whole ``.dss``
    """
    done = 0
    while True:
        chunk = source.read(IO_WINDOW_BYTES)
        if not chunk:
            break
        data = decoder.feed(chunk)
        if data and target is not None:
            target.write(data)
        done += len(chunk)
        progress(done)
    decoder.finish()


@contextlib.contextmanager
def whole_file(path: str, force: bool) -> Iterator[BinaryIO]:
    """A file that appears under ``path`` when the block ends well.

    An existing device or pipe is written in place.

    :param force: whether an existing file may be replaced
    :raises BadClassInput: the file exists and ``force`` is not set
    """
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, 'wb') as target:
            yield target
        return
    if not force and os.path.lexists(path):
        raise BadClassInput(path, 'is there already; --force replaces it')
    temporary = os.path.join(
        os.path.dirname(path),
        '.%s.%d' % (os.path.basename(path)[:64], os.getpid()))
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, 'wb') as target:
            yield target
            target.flush()
            # After a power cut the name, once there, has all its bytes.
            os.fsync(target.fileno())
        _publish(temporary, path, force)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _publish(temporary: str, path: str, force: bool) -> None:
    if force:
        os.replace(temporary, path)
        return
    try:
        # A link, unlike a rename, refuses to replace a file that was made
        # since.
        os.link(temporary, path)
    except FileExistsError:
        raise BadClassInput(
            path, 'is there already; --force replaces it') from None
    except PermissionError:
        # A file system without hard links; the first check must do.
        os.rename(temporary, path)
        return
    os.unlink(temporary)
