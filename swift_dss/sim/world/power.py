"""Power cuts: the contents of a node's disks after one.

While a run has a power cut ahead, the system calls by which the product and
Swift change files pass through here. Of each change is known how to undo it,
and which ``fsync`` saves it, with as little trust in the file system as POSIX
gives:

- a name is a change of its folder: only a sync of that saves it, and with it
  the folder itself and those above, which every journal writes before;
- a rename, or an exchange, is one change: the sync of either folder saves it;
- bytes and attributes of a file are saved by a sync of the file.

What nothing has saved lasts for 30 seconds: then the kernel has written it. A
cut takes any of it, each change with those of the same names that came later,
and of a file its bytes, half of them, or its bytes and attributes.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import shutil
import stat
from dataclasses import dataclass
from typing import (
    Any, Callable, Dict, Iterator, List, NamedTuple, Set, Tuple)

from swift.common import utils

from swift_dss.io import switch
from swift_dss.sim.world.clock import Clock
from swift_dss.sim.world.databases import Databases

#: The kernel's own, whatever a worn disk says (``sim.world.worn``).
_pread = os.pread
#: The kernel writes changes that nobody synced after this.
_WRITTEN_SECONDS = 30.0
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
#: More than any file of a run has.
_MOST_BYTES = 1 << 20
_NAMES = ('open', 'setxattr', 'removexattr', 'fsync', 'fdatasync', 'rename',
          'replace', 'link', 'unlink', 'remove', 'mkdir', 'rmdir')


@dataclass
class _Change:
    """Of names.

    :param paths: the names
    :param folders: the sync of any of these saves it
    :param undo: as it was before
    :param kept: a name under which a file that lost its own is kept
    """

    at: float
    paths: Tuple[str, ...]
    folders: Tuple[str, ...]
    undo: Callable[[], None]
    kept: str = ''


class _File(NamedTuple):
    """The bytes that a file without a sync keeps at least in a cut."""

    at: float
    data: bytes
    xattrs: Dict[str, bytes]


class Mains(NamedTuple):
    """The stores that lose changes in a power cut.

    :param databases: of daemons
    """

    power: Power
    databases: Databases

    def step(self) -> None:
        """Time has passed, and daemons have worked."""
        self.power.written()
        self.databases.copy()


class Power:
    """See the module.

    :param root: folder of the simulation
    """

    def __init__(self, root: str, clock: Clock) -> None:
        self._root = root + os.sep
        self._clock = clock
        self._limbo = os.path.join(root, 'limbo')
        self._numbers = itertools.count()
        self._changes: List[_Change] = []
        #: By the number of the inode.
        self._files: Dict[int, _File] = {}
        self._real: Dict[str, Any] = {}
        self._real_exchange = switch.exchange
        self._real_linkat = utils.linkat
        #: Somebody of a node works just now.
        self.is_on = False

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Stand between this process and its files."""
        os.mkdir(self._limbo)
        self._real = {name: getattr(os, name) for name in _NAMES}
        self._real_exchange, self._real_linkat = \
            switch.exchange, utils.linkat
        try:
            for name in _NAMES:
                setattr(os, name, getattr(self, '_' + name))
            switch.exchange = self._exchange
            utils.linkat = _Linkat(self)
            yield
        finally:
            for name in _NAMES:
                setattr(os, name, self._real[name])
            switch.exchange = self._real_exchange
            utils.linkat = self._real_linkat

    def written(self) -> None:
        """The kernel has written the changes that are old enough."""
        before = self._clock.now - _WRITTEN_SECONDS
        if self._changes and self._changes[0].at <= before:
            self._save([change.at <= before for change in self._changes])
        for number in [number for number, written in self._files.items()
                       if written.at <= before]:
            del self._files[number]

    def forget(self, folder: str) -> None:
        """A disk was unmounted, or is another one."""
        self._save([any(path.startswith(folder) for path in change.paths)
                    for change in self._changes])

    def cut(self, folders: Tuple[str, ...], dice: random.Random) -> int:
        """The power of a node fails; how many changes were lost.

        :param folders: where its disks are
        """
        share = dice.choice((0.3, 0.7, 1.0))
        there = [any(path.startswith(folders) for path in change.paths)
                 for change in self._changes]
        lost: List[_Change] = []
        names: Set[str] = set()
        for change, is_its in zip(self._changes, there):
            if is_its and (dice.random() < share or any(
                    _above(path, names) for path in change.paths)):
                lost.append(change)
                names.update(change.paths)
        for change in reversed(lost):
            # Nobody of a node ends in the midst of that.
            with contextlib.suppress(OSError):
                change.undo()
        self._save(there)
        return len(lost) + self._lose_bytes(folders, dice)

    # -- inside ----------------------------------------------------------

    def _lose_bytes(self, folders: Tuple[str, ...],
                    dice: random.Random) -> int:
        lost = 0
        for path in sorted(
                os.path.join(at, name) for folder in folders
                for at, _, names in os.walk(folder) for name in names):
            durable = self._files.pop(os.stat(path).st_ino, None)
            if durable is not None:
                lost += _lose(path, durable, dice.randrange(3))
        return lost

    def _save(self, saved: List[bool]) -> None:
        """These changes are durable, with all changes that they need."""
        names: Set[str] = set()
        left: List[_Change] = []
        for change, is_saved in zip(reversed(self._changes), reversed(saved)):
            if is_saved or not names.isdisjoint(change.paths):
                names.update(change.paths)
                if change.kept:
                    self._real['unlink'](change.kept)
            else:
                left.append(change)
        self._changes = left[::-1]

    def _add(self, paths: Tuple[str, ...], undo: Callable[[], None],
             kept: str = '') -> None:
        self._changes.append(_Change(
            self._clock.now, paths, tuple(map(os.path.dirname, paths)), undo,
            kept))

    def _is_ours(self, path: Any, named: Any = None) -> bool:
        return self.is_on and not named and type(path) is str and \
            path.startswith(self._root)

    def _keep(self, path: str) -> str:
        """Another name of a file that is about to lose this one."""
        kept = '%s/%d' % (self._limbo, next(self._numbers))
        try:
            self._real['link'](path, kept)
        except OSError:
            return ''  # there is none, or it is a folder
        return kept

    def _dirty(self, number: int, data: bytes,
               xattrs: Dict[str, bytes]) -> None:
        self._files[number] = _File(self._clock.now, data, xattrs)

    # -- system calls ----------------------------------------------------

    def _open(self, path: Any, flags: int, *args: Any, **named: Any) -> int:
        if not flags & _WRITES or not self._is_ours(path, named.get(
                'dir_fd')):
            opened: int = self._real['open'](path, flags, *args, **named)
            return opened
        is_nameless = flags & os.O_TMPFILE == os.O_TMPFILE
        is_new = is_nameless or bool(
            flags & os.O_CREAT and not os.path.lexists(path))
        before = None if is_new else _snapshot(path)
        opened = self._real['open'](path, flags, *args, **named)
        number = os.fstat(opened).st_ino
        if before is None:
            self._dirty(number, b'', {})
        elif number not in self._files:
            self._dirty(number, *before)
        if is_new and not is_nameless:
            self._add((path,), lambda: self._real['unlink'](path))
        return opened

    def _setxattr(self, target: Any, *args: Any, **named: Any) -> None:
        self._changes_of(target)
        self._real['setxattr'](target, *args, **named)

    def _removexattr(self, target: Any, *args: Any, **named: Any) -> None:
        self._changes_of(target)
        self._real['removexattr'](target, *args, **named)

    def _changes_of(self, target: Any) -> None:
        if not self.is_on:
            return
        number = os.stat(target).st_ino
        if number not in self._files:
            self._dirty(number, *_snapshot(
                '/proc/self/fd/%d' % target if isinstance(target, int)
                else target))

    def _fsync(self, fd: int) -> None:
        self._real['fsync'](fd)
        if not self.is_on:
            return
        fd_stat = os.fstat(fd)
        if not stat.S_ISDIR(fd_stat.st_mode):
            self._files.pop(fd_stat.st_ino, None)
            return
        folder = os.readlink('/proc/self/fd/%d' % fd)
        saved = [folder in change.folders or folder in change.paths
                 or any(folder.startswith(path + os.sep)
                        for path in change.paths) for change in self._changes]
        if any(saved):
            self._save(saved)

    _fdatasync = _fsync

    def _rename(self, source: Any, target: Any, **named: Any) -> None:
        if not self._is_ours(source, named):
            self._real['rename'](source, target, **named)
            return
        kept = self._keep(target)
        rename = self._real['rename']
        rename(source, target)

        def undo() -> None:
            rename(target, source)
            if kept:
                self._real['link'](kept, target)
        self._add((source, target), undo, kept)

    _replace = _rename

    def _link(self, source: Any, target: Any, **named: Any) -> None:
        self._real['link'](source, target, **named)
        if self._is_ours(target):
            self._add((target,), lambda: self._real['unlink'](target))

    def linked(self, target: Any) -> None:
        """A file has got one more name."""
        if self._is_ours(target):
            self._add((target,), lambda: self._real['unlink'](target))

    def linkat(self, *args: Any) -> Any:
        """A replacement of ``linkat``."""
        done = self._real_linkat(*args)
        self.linked(args[3])
        return done

    def _unlink(self, path: Any, **named: Any) -> None:
        if not self._is_ours(path, named):
            self._real['unlink'](path, **named)
            return
        kept = self._keep(path)
        try:
            self._real['unlink'](path)
        except OSError:
            if kept:
                self._real['unlink'](kept)
            raise
        self._add((path,), lambda: self._real['link'](kept, path), kept)

    _remove = _unlink

    def _mkdir(self, path: Any, *args: Any, **named: Any) -> None:
        self._real['mkdir'](path, *args, **named)
        if self._is_ours(path, named.get('dir_fd')):
            self._add((path,), lambda: shutil.rmtree(path))

    def _rmdir(self, path: Any, **named: Any) -> None:
        self._real['rmdir'](path, **named)
        if self._is_ours(path, named):
            self._add((path,), lambda: self._real['mkdir'](path))

    def _exchange(self, path: str, other: str) -> None:
        self._real_exchange(path, other)
        if self._is_ours(path):
            self._add((path, other), lambda: self._real_exchange(path, other))


class _Linkat:
    """In place of Swift's."""

    def __init__(self, power: Power) -> None:
        self._real = power._real_linkat
        self._power = power

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __call__(self, *args: Any) -> Any:
        return self._power.linkat(*args)


def _above(path: str, names: Set[str]) -> bool:
    """True if a path, or a folder that it is in, is among ``names``."""
    while path and path not in names:
        path = path.rpartition(os.sep)[0]
    return bool(path)


def _snapshot(path: str) -> Tuple[bytes, Dict[str, bytes]]:
    opened = os.open(path, os.O_RDONLY)
    try:
        return _pread(opened, _MOST_BYTES, 0), {
            name: os.getxattr(opened, name)
            for name in os.listxattr(opened) if name.startswith('user.')}
    finally:
        os.close(opened)


def _lose(path: str, durable: _File, how: int) -> int:
    """Nothing, its later half, or all that was not saved."""
    data, xattrs = _snapshot(path)
    wanted = (data, durable.data if len(durable.data) >= len(data)
              else data[:(len(data) + len(durable.data)) // 2],
              durable.data)[how]
    with open(path, 'r+b') as target:
        target.write(wanted)
        target.truncate()
    if how:
        for name in xattrs:
            os.removexattr(path, name)
        for name, value in durable.xattrs.items():
            os.setxattr(path, name, value)
    return int(bool(how))
