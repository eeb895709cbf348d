"""Locks: one a node for the daemon, one a version for its moves."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from typing import Dict, Iterable, Iterator, List, Tuple

from swift_dss.core.errors import TierUnavailable
from swift_dss.core.version import VersionId


class VersionLocks:
    """Keeps two moves of one version apart.

    A lock is made when it is asked for and forgotten after.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        #: Key to [lock, number of threads that hold or want it].
        self._held: Dict[Tuple[str, str], List[object]] = {}

    @contextlib.contextmanager
    def hold(self, version: VersionId) -> Iterator[None]:
        """Hold the lock of ``version``; waits for other moves of it."""
        key = (version.device, version.key)
        with self._guard:
            entry = self._held.setdefault(key, [threading.Lock(), 0])
            entry[1] += 1  # type: ignore[operator]
        try:
            with entry[0]:  # type: ignore[attr-defined]
                yield
        finally:
            with self._guard:
                entry[1] -= 1  # type: ignore[operator]
                if not entry[1]:
                    del self._held[key]

    @contextlib.contextmanager
    def hold_all(self, versions: Iterable[VersionId]) -> Iterator[None]:
        """Hold those of several, always in one order: who holds one by
        :meth:`hold` MUST NOT ask for another."""
        by_key = {(one.device, one.key): one for one in versions}
        with contextlib.ExitStack() as held:
            for key in sorted(by_key):
                held.enter_context(self.hold(by_key[key]))
            yield


def lock_node(run_dir: str) -> int:
    """Make sure that no two daemons run on one node.

    :raises TierUnavailable: one does
    """
    fd = os.open(os.path.join(run_dir, 'tierd.lock'),
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
