"""Folders and files that hold other people's names: for one user alone.

The index has the name of every object of every tenant, and only the gateway's
queue knows the pending deletes of S3. So their folder is 0700 and on a disk,
and they are 0600, those of before as well.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from typing import Dict, Iterable, List, Tuple

from swift_dss.core.errors import BadConfig
from swift_dss.io.capacity import sync_dir

#: SQLite's files beside a database. Move the log first: a database without its
#: log has lost transactions.
SQLITE_ENDS = ('-wal', '-shm', '')
#: File systems that a reboot empties.
_IN_MEMORY = frozenset(('tmpfs', 'ramfs'))
_MOVING = '.moving'


def make_folder(path: str, mode: int, option: str) -> None:
    """Make a folder with ``mode``, if it is not there.

    :param option: the option with the path, for the error
    :raises BadConfig: it cannot be made; says what to do
    """
    if os.path.isdir(path):
        return
    try:
        os.makedirs(os.path.dirname(path) or '.', exist_ok=True)
        os.mkdir(path, mode)
        # Whatever the umask is.
        os.chmod(path, mode)
    except OSError as err:
        if os.path.lexists(path):
            raise BadConfig('%s: %s is no folder' % (option, path)) from err
        user = os.geteuid()
        raise BadConfig(
            '%s: %s cannot be made by user %d (%s). As root: "install -d -o '
            '%d -g %d -m %04o %s"%s' % (
                option, path, user, err.strerror, user, os.getegid(), mode,
                path, '; /run is empty after a reboot, so do it with '
                'systemd-tmpfiles (etc/swift-dss-tmpfiles.conf-sample)'
                if path.startswith(('/run/', '/var/run/')) else '')) from err


def tighten_folder(path: str) -> None:
    """Take a folder's rights from all but its owner.

    :raises BadConfig: it is another user's
    """
    status = os.stat(path)
    if not stat.S_IMODE(status.st_mode) & 0o077:
        return
    try:
        os.chmod(path, 0o700)
    except PermissionError as err:
        raise BadConfig(
            '%s belongs to user %d, and others may look into it: "chmod 0700 '
            '%s", and let it be owned by user %d' % (
                path, status.st_uid, path, os.geteuid())) from err


def private_file(path: str) -> None:
    """Let a database be readable by its owner alone; make it, empty, if it
    is not there. SQLite gives its log the same rights.

    A file that root makes belongs to the owner of its folder: commands run
    as root, and the daemon does not.

    :raises OSError: it cannot be made, or is another user's
    """
    file_fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        status = os.fstat(file_fd)
        folder = os.stat(os.path.dirname(path) or '.')
        if not status.st_size and status.st_uid != folder.st_uid and \
                os.geteuid() == 0:
            os.fchown(file_fd, folder.st_uid, folder.st_gid)
    finally:
        os.close(file_fd)
    for end in SQLITE_ENDS:
        with contextlib.suppress(FileNotFoundError):
            if stat.S_IMODE(os.stat(path + end).st_mode) & 0o077:
                os.chmod(path + end, 0o600)


def require_disk(path: str, option: str, allow_tmpfs: bool) -> None:
    """:raises BadConfig: a reboot empties the file system of ``path``."""
    kind = '' if allow_tmpfs else filesystem_of(path)
    if kind in _IN_MEMORY:
        raise BadConfig(
            '%s: %s is on a %s, which a reboot empties: the deletes that S3 '
            'still has to get would be forgotten. Write a folder on a disk '
            'there, such as /var/lib/swift-dss ([dss] allow_tmpfs = true is '
            'for tests)' % (option, path, kind))


def filesystem_of(path: str, mounts: str = '/proc/self/mountinfo') -> str:
    """Type of the file system of a path; '' if the kernel does not say."""
    types: Dict[Tuple[int, int], str] = {}
    try:
        with open(mounts, encoding='utf-8', errors='replace') as source:
            for line in source:
                left, _, right = line.partition(' - ')
                major, _, minor = left.split()[2].partition(':')
                types[int(major), int(minor)] = right.split()[0]
        device = os.stat(path).st_dev
    except (OSError, ValueError, IndexError):
        return ''
    return types.get((os.major(device), os.minor(device)), '')


def adopt(old: str, new: str, names: Iterable[str]) -> List[str]:
    """Move databases that an older version kept elsewhere; their names.

    No process may have them open. A database that already exists at the new
    place stays, and then the old one stays too. A power cut leaves the old one
    until the new one is whole and durable; the next call starts over.

    :raises OSError: no room, or no right
    """
    moved: List[str] = []
    if not os.path.isdir(old) or not os.path.isdir(new) or \
            os.path.samefile(old, new):
        return moved
    for name in names:
        if not os.path.exists(os.path.join(old, name)) or \
                os.path.exists(os.path.join(new, name)):
            continue
        ends = [end for end in SQLITE_ENDS
                if os.path.exists(os.path.join(old, name + end))]
        for end in ends:
            _copy(os.path.join(old, name + end),
                  os.path.join(new, name + end + _MOVING))
        for end in SQLITE_ENDS:
            target = os.path.join(new, name + end)
            if end in ends:
                os.rename(target + _MOVING, target)
            else:
                # Of a database that was once here.
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(target)
        # The new one is whole: a power cut finds it under its name.
        sync_dir(new)
        for end in reversed(SQLITE_ENDS):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(old, name + end))
        moved.append(name)
    return moved


def _copy(source: str, target: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(target)
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL
                 | os.O_CLOEXEC, 0o600)
    with open(source, 'rb') as reader, os.fdopen(fd, 'wb') as writer:
        shutil.copyfileobj(reader, writer, 1 << 20)
        writer.flush()
        os.fsync(writer.fileno())
