"""One lock a version, made when it is asked for and forgotten after."""

from __future__ import annotations

import contextlib
import threading
from typing import Dict, Iterator, List, Tuple

from swift_dss.core.version import VersionId


class VersionLocks:
    """Keeps two moves of one version apart."""

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
