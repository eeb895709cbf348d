"""Events that the tier daemon was not there to hear, kept on the device.

Many object-server workers append and one daemon takes away, at any time.
A worker opens, locks, appends one line and closes; the daemon locks the
same file, reads it and unlinks it under the lock. A worker that finds its
file unlinked after it got the lock opens the new one. So no event is lost
between them, and none is read half.

The folder never holds more than a bound of bytes; past it the sweep of the
device finds the dropped events' versions. Calls block on the device.
"""

from __future__ import annotations

import fcntl
import os
from typing import List

from swift_dss.wire import layout

_NAME = 'events'
#: Each one lost means that the daemon took the file in that moment.
_TRIES = 200


def append(device_path: str, line: bytes, limit_bytes: int) -> bool:
    """Keep one event.

    :param line: without a newline in it
    :param limit_bytes: of the whole file
    :returns: False if the bound is reached: the event is not kept
    :raises OSError: the device would not take it
    """
    folder = layout.spool_dir(device_path)
    path = os.path.join(folder, _NAME)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    for _ in range(_TRIES):
        try:
            fd = os.open(path, flags, 0o600)
        except FileNotFoundError:
            _make_folder(device_path, folder)
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            status = os.fstat(fd)
            if not status.st_nlink:
                continue  # the daemon took it while we waited
            if status.st_size + len(line) + 1 > limit_bytes:
                return False
            os.write(fd, line + b'\n')
            return True
        finally:
            os.close(fd)
    return False


def take(device_path: str) -> List[bytes]:
    """All events kept so far, oldest first; they are the caller's now.

    They are gone from the device when this returns: a caller that dies
    before it used them falls back on the sweep.
    """
    path = os.path.join(layout.spool_dir(device_path), _NAME)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return []
    with os.fdopen(fd, 'rb') as source:
        fcntl.flock(fd, fcntl.LOCK_EX)
        lines = source.read().split(b'\n')
        # A name that is gone already was taken by another reader.
        if os.fstat(fd).st_nlink:
            os.unlink(path)
            return [line for line in lines if line]
    return []


def _make_folder(device_path: str, folder: str) -> None:
    # Never make the device's own folder: where it is missing, the device
    # is not mounted and the file would land on the system disk.
    if not os.path.isdir(device_path):
        raise FileNotFoundError(device_path)
    os.makedirs(folder, exist_ok=True)
