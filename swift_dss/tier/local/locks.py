"""Locks: one a node for the daemon, one a version for its moves."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from typing import Dict, Iterable, Iterator, List, Tuple

from swift_dss.core.errors import TierUnavailable
from swift_dss.core.version import VersionId


class _Held:
    """A lock, and how many threads hold or want it."""

    __slots__ = ('lock', 'wanted')

    def __init__(self, lock: threading.Lock) -> None:
        self.lock = lock
        self.wanted = 0


class VersionLocks:
    """Keeps two moves of one version apart.

    A lock is made when it is asked for and forgotten after.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held: Dict[Tuple[str, str], _Held] = {}

    @contextlib.contextmanager
    def hold(self, version: VersionId) -> Iterator[None]:
        """Hold the lock of ``version``; waits for other moves of it."""
        key = (version.device, version.key)
        with self._guard:
            entry = self._want(key)
        try:
            with entry.lock:
                yield
        finally:
            with self._guard:
                self._forget(key, entry)

    @contextlib.contextmanager
    def hold_all(self, versions: Iterable[VersionId]) -> Iterator[None]:
        """Hold the locks of several versions, always in one order. A caller
        that holds one by :meth:`hold` MUST NOT take another.
        """
        keys = sorted({(version.device, version.key) for version in versions})
        entries: List[_Held] = []
        taken = 0
        try:
            with self._guard:
                for key in keys:
                    entries.append(self._want(key))
            for entry in entries:
                entry.lock.acquire()
                taken += 1
            yield
        finally:
            for entry in entries[:taken]:
                entry.lock.release()
            with self._guard:
                for key, entry in zip(keys, entries):
                    self._forget(key, entry)

    def _want(self, key: Tuple[str, str]) -> _Held:
        """Count one more waiter of a lock. Call with the guard held."""
        entry = self._held.get(key)
        if entry is None:
            entry = self._held[key] = _Held(threading.Lock())
        entry.wanted += 1
        return entry

    def _forget(self, key: Tuple[str, str], entry: _Held) -> None:
        entry.wanted -= 1
        if not entry.wanted:
            del self._held[key]


#: In the folder of the daemon's sockets; has its process id.
LOCK_FILE = 'tierd.lock'


def lock_node(run_dir: str) -> int:
    """Make sure that no two daemons run on one node.

    :raises TierUnavailable: one does
    """
    fd = os.open(os.path.join(run_dir, LOCK_FILE),
                 os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as err:
        os.close(fd)
        raise TierUnavailable('another tier daemon runs on %s'
                              % run_dir) from err
    os.ftruncate(fd, 0)
    os.write(fd, b'%d\n' % os.getpid())
    return fd
