"""Keep the HDDs of a cluster out of the page cache.

The sample of a benchmark fits into the memory of any machine, where data
of a real capacity tier does not: without this, an HDD would be read once
and never again.
"""

from __future__ import annotations

import os
import threading
from types import TracebackType
from typing import Optional, Sequence, Type

DEFAULT_INTERVAL_SECONDS = 0.5


def forget(folders: Sequence[str]) -> int:
    """Drop clean pages of every file below ``folders``.

    :returns: how many files were asked for
    """
    count = 0
    for top in folders:
        for folder, _names, files in os.walk(top):
            for name in files:
                try:
                    file_fd = os.open(os.path.join(folder, name),
                                      os.O_RDONLY)
                except FileNotFoundError:
                    continue  # It was moved since.
                try:
                    os.posix_fadvise(file_fd, 0, 0, os.POSIX_FADV_DONTNEED)
                finally:
                    os.close(file_fd)
                count += 1
    return count


class Cold:
    """Forgets again and again while the block runs."""

    def __init__(self, folders: Sequence[str],
                 interval_seconds: float = DEFAULT_INTERVAL_SECONDS
                 ) -> None:
        self._folders = folders
        self._interval_seconds = interval_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.passes = 0

    def __enter__(self) -> Cold:
        os.sync()  # Dirty pages cannot be dropped.
        forget(self._folders)
        self._thread.start()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]],
                 error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._interval_seconds):
            forget(self._folders)
            self.passes += 1
