"""Every request as a line, in the columns that warp's analysis reads.

The columns, their order and tabs between them are those of warp's
``csv.zst``; ``zstd`` makes the one of the other.
"""

from __future__ import annotations

import threading
import time
from typing import List, Optional, TextIO

HEADER = ('idx', 'thread', 'op', 'client_id', 'n_objects', 'bytes',
          'endpoint', 'file', 'error', 'start', 'first_byte', 'end',
          'duration_ns')
_BREAKS = str.maketrans('\t\r\n"', "    ")
#: Separator of the lines that processes write before they have a number.
_TAB = '\t'


def header() -> str:
    """The first line."""
    return _TAB.join(HEADER) + '\n'


class Lines:
    """Writes the lines of one process, without their number; any thread.

    :param client: the name of this process
    """

    def __init__(self, out: TextIO, client: str, endpoint: str) -> None:
        self._out = out
        self._client = client
        self._endpoint = endpoint
        self._lock = threading.Lock()
        # All processes of a machine have the same monotonic clock.
        self._epoch_ns = time.time_ns() - time.monotonic_ns()

    def add(self, user: int, method: str, path: str, count: int,
            error: str, start: float, first: Optional[float],
            end: float) -> None:
        """One request; times of ``time.monotonic()``."""
        row: List[str] = [
            str(user), method, self._client, '1', str(count),
            self._endpoint, path.translate(_BREAKS),
            error.translate(_BREAKS), self._time(start),
            '' if first is None else self._time(first), self._time(end),
            str(round((end - start) * 1e9))]
        with self._lock:
            self._out.write(_TAB.join(row) + '\n')

    def _time(self, at: float) -> str:
        """RFC 3339, with nanoseconds."""
        seconds, rest = divmod(self._epoch_ns + round(at * 1e9), 10 ** 9)
        return '%s.%09dZ' % (
            time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds)), rest)


def join(parts: List[str], out: TextIO) -> None:
    """One file of the lines of all processes, numbered.

    :param parts: paths
    """
    out.write(header())
    number = 0
    for part in parts:
        with open(part, encoding='utf-8') as lines:
            for line in lines:
                out.write('%d\t%s' % (number, line))
                number += 1
