"""What a disk may hold after a power cut: recorded, enumerated, rebuilt.

``Recorder`` stands between our code and the kernel while an operation
runs, and writes down every change it makes to files and folders, and every
fsync. From the recording, :func:`states` makes what a power cut could
leave, with as little trust in the file system as POSIX gives:

- any prefix of the operation;
- of the changes in it that no later fsync of the same file (or folder)
  covers, any subset: lost, or there, in whatever order;
- a write that was not synced may also be there in part (torn in the
  middle);
- a rename or exchange is one change: there or not.

A file's name is a change of its folder, so syncing a file does not save
its name.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import random
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

from swift_dss.io import switch

#: Names of ours that exist on both sides of a cut, and are not judged.
_IGNORED = ('run',)


@dataclass(frozen=True)
class Change:
    """One change; ``kind`` says which, ``where`` which fsyncs save it.

    :param where: inode numbers or folder paths; all of them synced, or,
        for exchange and rename, any of them: they are one journal entry
    """

    kind: str
    where: Tuple[Any, ...]
    values: Tuple[Any, ...] = ()


@dataclass
class File:
    """An inode: its bytes and attributes."""

    data: bytearray = field(default_factory=bytearray)
    xattrs: Dict[str, bytes] = field(default_factory=dict)


@dataclass
class Disk:
    """Files by number, and folders as name -> number."""

    files: Dict[int, File] = field(default_factory=dict)
    folders: Dict[str, Dict[str, int]] = field(default_factory=dict)

    @classmethod
    def read(cls, root: str) -> Disk:
        """Everything under ``root`` as it is now."""
        disk = cls()
        for folder, folders, names in os.walk(root):
            at = os.path.relpath(folder, root)
            if at == '.':
                folders[:] = [folder for folder in folders
                              if folder not in _IGNORED]
            disk.folders[at] = {}
            for name in names:
                path = os.path.join(folder, name)
                number = os.stat(path).st_ino
                disk.folders[at][name] = number
                with open(path, 'rb') as source:
                    disk.files[number] = File(
                        bytearray(source.read()),
                        {key: os.getxattr(path, key)
                         for key in os.listxattr(path)
                         if key.startswith('user.')})
        return disk

    def copy(self) -> Disk:
        """An independent copy."""
        return Disk({number: File(bytearray(file.data), dict(file.xattrs))
                     for number, file in self.files.items()},
                    {at: dict(names) for at, names in self.folders.items()})

    def build(self, root: str) -> None:
        """Make it real under ``root``, which is empty."""
        made: Dict[int, str] = {}
        for at in sorted(self.folders):
            folder = os.path.normpath(os.path.join(root, at))
            if at != '.' and os.path.dirname(at) not in self.folders \
                    and os.path.dirname(at):
                continue  # its parent's entry was lost, and it with that
            os.makedirs(folder, exist_ok=True)
            for name, number in self.folders[at].items():
                path = os.path.join(folder, name)
                if number in made:
                    os.link(made[number], path)
                    continue
                made[number] = path
                with open(path, 'wb') as target:
                    target.write(self.files[number].data)
                for key, value in self.files[number].xattrs.items():
                    os.setxattr(path, key, value)

    def digest(self) -> bytes:
        """Equal for disks that no reader can tell apart."""
        digest = hashlib.sha256()
        for at in sorted(self.folders):
            digest.update(repr((at, sorted(self.folders[at].items())))
                          .encode())
        for number in sorted({number for names in self.folders.values()
                              for number in names.values()}):
            file = self.files[number]
            digest.update(b'%d' % number + bytes(file.data))
            digest.update(repr(sorted(file.xattrs.items())).encode())
        return digest.digest()

    def apply(self, change: Change) -> None:
        """Do one change; one that has lost its ground does nothing."""
        getattr(self, '_' + change.kind)(*change.values)

    def _create(self, number: int) -> None:
        self.files.setdefault(number, File())

    def _write(self, number: int, offset: int, data: bytes) -> None:
        self._create(number)
        content = self.files[number].data
        if len(content) < offset + len(data):
            content.extend(bytes(offset + len(data) - len(content)))
        content[offset:offset + len(data)] = data

    def _truncate(self, number: int, size: int) -> None:
        self._create(number)
        content = self.files[number].data
        del content[size:]
        content.extend(bytes(size - len(content)))

    def _setxattr(self, number: int, name: str, value: bytes) -> None:
        self._create(number)
        self.files[number].xattrs[name] = value

    def _removexattr(self, number: int, name: str) -> None:
        self._create(number)
        self.files[number].xattrs.pop(name, None)

    def _mkdir(self, path: str) -> None:
        self.folders.setdefault(path, {})

    def _rmdir(self, path: str) -> None:
        if not self.folders.get(path):
            self.folders.pop(path, None)

    def _link(self, folder: str, name: str, number: int) -> None:
        self._create(number)
        if folder in self.folders:
            self.folders[folder][name] = number

    def _unlink(self, folder: str, name: str) -> None:
        self.folders.get(folder, {}).pop(name, None)

    def _rename(self, folder: str, name: str, into: str, new: str) -> None:
        if name in self.folders.get(folder, {}) and into in self.folders:
            self.folders[into][new] = self.folders[folder].pop(name)

    def _exchange(self, folder: str, name: str, other: str,
                  other_name: str) -> None:
        first = self.folders.get(folder, {})
        second = self.folders.get(other, {})
        if name in first and other_name in second:
            first[name], second[other_name] = second[other_name], first[name]


class Recorder:
    """Records what happens under ``root`` while it is open."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.changes: List[Change] = []
        self._fresh = itertools.count(1 << 60)
        #: Real inode number to ours, for files made while recording.
        self._numbers: Dict[int, int] = {}

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Stand in for the system calls that change something."""
        names = ('open', 'pwritev', 'pwrite', 'write', 'ftruncate',
                 'setxattr', 'removexattr', 'fsync', 'fdatasync', 'rename',
                 'link', 'unlink', 'mkdir', 'rmdir')
        real = {name: getattr(os, name) for name in names}
        real_exchange = switch.exchange
        try:
            for name in names:
                setattr(os, name, self._wrap(name, real[name]))
            switch.exchange = self._wrap('exchange', real_exchange)
            yield
        finally:
            for name in names:
                setattr(os, name, real[name])
            switch.exchange = real_exchange

    def _wrap(self, name: str, real: Callable[..., Any]) -> Any:
        note = getattr(self, '_note_' + name)

        def call(*args: Any, **options: Any) -> Any:
            return note(real, *args, **options)
        return call

    def _add(self, kind: str, where: Tuple[Any, ...],
             *values: Any) -> None:
        self.changes.append(Change(kind, where, values))

    def _inside(self, path: Any) -> Optional[str]:
        """``path`` relative to the root, or None if it is not watched."""
        if not isinstance(path, str):
            return None
        at = os.path.relpath(path, self.root)
        if at.startswith('..') or at.split(os.sep)[0] in _IGNORED:
            return None
        return at

    def _number(self, fd: int) -> Optional[int]:
        try:
            path = os.readlink('/proc/self/fd/%d' % fd)
        except OSError:
            return None
        if self._inside(path.replace(' (deleted)', '')) is None:
            return None
        inode = os.fstat(fd).st_ino
        return self._numbers.get(inode, inode)

    def _note_open(self, real: Any, path: Any, flags: int,
                   mode: int = 0o777, **options: Any) -> int:
        at = self._inside(path)
        existed = os.path.lexists(path) if at is not None else True
        fd: int = real(path, flags, mode, **options)
        if at is None:
            return fd
        anonymous = flags & os.O_TMPFILE == os.O_TMPFILE
        if anonymous or (flags & os.O_CREAT and not existed):
            number = next(self._fresh)
            self._numbers[os.fstat(fd).st_ino] = number
            self._add('create', (number,), number)
            if not anonymous:
                folder, name = os.path.split(at)
                self._add('link', (folder,), folder, name, number)
        return fd

    def _note_pwritev(self, real: Any, fd: int, buffers: Any,
                      offset: int) -> int:
        data = b''.join(bytes(buffer) for buffer in buffers)
        written: int = real(fd, buffers, offset)
        self._wrote(fd, offset, data[:written])
        return written

    def _note_pwrite(self, real: Any, fd: int, data: Any,
                     offset: int) -> int:
        written: int = real(fd, data, offset)
        self._wrote(fd, offset, bytes(data)[:written])
        return written

    def _note_write(self, real: Any, fd: int, data: Any) -> int:
        written: int = real(fd, data)
        if self._number(fd) is not None:
            end = os.lseek(fd, 0, os.SEEK_CUR)
            self._wrote(fd, end - written, bytes(data)[:written])
        return written

    def _wrote(self, fd: int, offset: int, data: bytes) -> None:
        number = self._number(fd)
        if number is not None:
            self._add('write', (number,), number, offset, data)

    def _note_ftruncate(self, real: Any, fd: int, size: int) -> None:
        real(fd, size)
        number = self._number(fd)
        if number is not None:
            self._add('truncate', (number,), number, size)

    def _note_setxattr(self, real: Any, target: Any, name: str,
                       value: bytes) -> None:
        real(target, name, value)
        number = self._number(target) if isinstance(target, int) else None
        if number is not None:
            self._add('setxattr', (number,), number, name, bytes(value))

    def _note_removexattr(self, real: Any, target: Any, name: str) -> None:
        real(target, name)
        number = self._number(target) if isinstance(target, int) else None
        if number is not None:
            self._add('removexattr', (number,), number, name)

    def _note_fsync(self, real: Any, fd: int) -> None:
        real(fd)
        path = os.readlink('/proc/self/fd/%d' % fd)
        if os.path.isdir(path):
            at = self._inside(path)
            if at is not None:
                self._add('sync', (at,))
        else:
            number = self._number(fd)
            if number is not None:
                self._add('sync', (number,))

    _note_fdatasync = _note_fsync

    def _note_rename(self, real: Any, source: Any, target: Any,
                     **options: Any) -> None:
        real(source, target, **options)
        old, new = self._inside(source), self._inside(target)
        if old is not None and new is not None:
            self._add('rename', (os.path.dirname(old), os.path.dirname(new)),
                      *os.path.split(old), *os.path.split(new))

    def _note_exchange(self, real: Any, name: str, other: str) -> None:
        real(name, other)
        first, second = self._inside(name), self._inside(other)
        if first is not None and second is not None:
            self._add('exchange',
                      (os.path.dirname(first), os.path.dirname(second)),
                      *os.path.split(first), *os.path.split(second))

    def _note_link(self, real: Any, source: str, target: str,
                   **options: Any) -> None:
        real(source, target, **options)
        at = self._inside(target)
        if at is not None:
            inode = os.stat(target).st_ino
            folder, name = os.path.split(at)
            self._add('link', (folder,), folder, name,
                      self._numbers.get(inode, inode))

    def _note_unlink(self, real: Any, path: Any, **options: Any) -> None:
        real(path, **options)
        at = self._inside(path)
        if at is not None:
            folder, name = os.path.split(at)
            self._add('unlink', (folder,), folder, name)

    def _note_mkdir(self, real: Any, path: Any, mode: int = 0o777,
                    **options: Any) -> None:
        real(path, mode, **options)
        at = self._inside(path)
        if at is not None:
            self._add('mkdir', (os.path.dirname(at) or '.',), at)

    def _note_rmdir(self, real: Any, path: Any, **options: Any) -> None:
        real(path, **options)
        at = self._inside(path)
        if at is not None:
            self._add('rmdir', (os.path.dirname(at) or '.',), at)


def states(before: Disk, changes: List[Change], most_per_prefix: int,
           seed: int) -> Iterator[Disk]:
    """Every disk a power cut may leave, each once.

    :param most_per_prefix: of one prefix; where there are more, so many
        are drawn with ``seed``, the extremes always among them
    """
    seen: Set[bytes] = set()
    draw = random.Random(seed)
    real = [change for change in changes if change.kind != 'create']
    for cut in range(len(real) + 1):
        prefix = real[:cut]
        if prefix and prefix[-1].kind == 'sync':
            pass  # the same changes, fewer choices: still its own state
        for choice in _choices(prefix, most_per_prefix, draw):
            disk = before.copy()
            for change, part in zip(prefix, choice):
                if part and change.kind != 'sync':
                    disk.apply(_torn(change) if part == 2 else change)
            key = disk.digest()
            if key not in seen:
                seen.add(key)
                yield disk


def _choices(prefix: List[Change], most: int,
             draw: random.Random) -> Iterator[Tuple[int, ...]]:
    """For each change of a prefix: 0 lost, 1 there, 2 torn."""
    options: List[Tuple[int, ...]] = []
    for at, change in enumerate(prefix):
        if change.kind == 'sync' or _is_synced(change, prefix[at + 1:]):
            options.append((1,))
        elif change.kind == 'write' and len(change.values[2]) > 1:
            options.append((0, 1, 2))
        else:
            options.append((0, 1))
    total = 1
    for counts in options:
        total *= len(counts)
    if total <= most:
        yield from itertools.product(*options)
        return
    yield tuple(counts[0] for counts in options)
    yield tuple(min(counts[-1], 1) for counts in options)
    for _ in range(most - 2):
        yield tuple(draw.choice(counts) for counts in options)


def _is_synced(change: Change, later: List[Change]) -> bool:
    synced = {change_after.where[0] for change_after in later
              if change_after.kind == 'sync'}
    if change.kind in ('rename', 'exchange'):
        return any(where in synced for where in change.where)
    return all(where in synced for where in change.where)


def _torn(change: Change) -> Change:
    number, offset, data = change.values
    return Change('write', change.where,
                  (number, offset, data[:len(data) // 2]))
