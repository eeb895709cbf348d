"""Every request as a line, in the columns that warp's analysis reads.

The columns, their order and tabs between them are those of warp's
``csv.zst``; ``zstd`` makes the one of the other.
"""

from __future__ import annotations

import collections
import threading
import time
from typing import Deque, List, Optional, TextIO

HEADER = ('idx', 'thread', 'op', 'client_id', 'n_objects', 'bytes',
          'endpoint', 'file', 'error', 'start', 'first_byte', 'end',
          'duration_ns')
_BREAKS = str.maketrans('\t\r\n"', "    ")
_TAB = '\t'
#: Characters of the lines of one process that wait for their way to the
#: file: a minute of 5,000 requests a second, if nothing is taken.
MAX_WAITING = 64 << 20
#: Of one message: a quarter of a second on a way of 1 MB/s.
_MESSAGE = 256 << 10


class Lines:
    """The lines of one process, without their number, until they are taken;
    any thread may call.

    :param client: the name of this process
    :param epoch_ns: ``time.time_ns()`` at 0 of ``time.monotonic()``, by the
        clock that all lines are to have
    :ivar missing: requests that found no room
    """

    def __init__(self, client: str, endpoint: str, epoch_ns: int) -> None:
        self._client = client
        self._endpoint = endpoint
        self._epoch_ns = epoch_ns
        self._lock = threading.Lock()
        self._waiting: Deque[str] = collections.deque()
        self._characters = 0
        self.missing = 0

    def add(self, user: int, operation: str, path: str, count: int,
            error: str, start: float, first: Optional[float],
            end: float) -> None:
        """One request; times of ``time.monotonic()``.

        :param operation: by warp's name: ``STAT`` is a HEAD
        """
        row: List[str] = [
            str(user), operation, self._client, '1', str(count),
            self._endpoint, path.translate(_BREAKS),
            error.translate(_BREAKS), self._time(start),
            '' if first is None else self._time(first), self._time(end),
            str(round((end - start) * 1e9))]
        line = _TAB.join(row) + '\n'
        with self._lock:
            if self._characters + len(line) > MAX_WAITING:
                self.missing += 1
                return
            self._waiting.append(line)
            self._characters += len(line)

    def take(self) -> str:
        """The oldest lines, as many as go in one message; '': none."""
        text: List[str] = []
        size = 0
        with self._lock:
            while self._waiting and size < _MESSAGE:
                text.append(self._waiting.popleft())
                size += len(text[-1])
            self._characters -= size
        return ''.join(text)

    def _time(self, at: float) -> str:
        """RFC 3339, with nanoseconds."""
        seconds, rest = divmod(self._epoch_ns + round(at * 1e9), 10 ** 9)
        return '%s.%09dZ' % (
            time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds)), rest)


class Numbered:
    """One file of the lines of all processes, in the order of their coming.

    Writes the header at once. A file that cannot be written any more ends
    nothing but itself.

    :ivar missing: lines that came since then
    :ivar error: the reason; None: all is written
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._number = 0
        self.missing = 0
        self.error: Optional[OSError] = None
        self._write(_TAB.join(HEADER) + '\n')

    def add(self, text: str) -> None:
        """Lines of :meth:`Lines.take`."""
        lines = text.split('\n')[:-1]
        self._write(''.join(
            '%d\t%s\n' % (number, line)
            for number, line in enumerate(lines, self._number)))
        self._number += len(lines)
        if self.error is not None:
            self.missing += len(lines)

    def _write(self, text: str) -> None:
        if self.error is None:
            try:
                self._out.write(text)
                self._out.flush()
            except OSError as err:
                self.error = err
