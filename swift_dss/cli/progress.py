"""A bar of bytes done, on a terminal and for work that takes a while."""

from __future__ import annotations

import sys
import time
from typing import Optional, TextIO

_WIDTH = 32
#: Seconds between two drawings, and before the first.
_EVERY_SECONDS = 0.2
_FIRST_SECONDS = 0.5
_UNITS = ('B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB')


def bytes_text(count: float) -> str:
    """``1.5 MiB`` for a number of bytes."""
    for unit in _UNITS:
        if count < 1024 or unit == _UNITS[-1]:
            break
        count /= 1024
    return '%d B' % count if unit == 'B' else '%.1f %s' % (count, unit)


class Bar:
    """A line on stderr that says how far the work is.

    Nothing is drawn unless the stream is a terminal and the work takes
    longer than half a second.

    :param total: bytes in all; None if that is not known
    """

    def __init__(self, label: str, total: Optional[int],
                 stream: Optional[TextIO] = None) -> None:
        self._label = label
        self._total = total
        self._stream = sys.stderr if stream is None else stream
        self._wanted = self._stream.isatty()
        self._started = time.monotonic()
        self._next = self._started + _FIRST_SECONDS
        self._drawn = False

    def __call__(self, done: int) -> None:
        """The work has reached ``done`` bytes."""
        now = time.monotonic()
        if not self._wanted or now < self._next:
            return
        self._next = now + _EVERY_SECONDS
        rate = done / max(now - self._started, 1e-6)
        if self._total:
            share = min(done / self._total, 1.0)
            filled = int(share * _WIDTH)
            text = '[%s%s] %3d%%' % (
                '#' * filled, '.' * (_WIDTH - filled), share * 100)
        else:
            text = bytes_text(done)
        self._stream.write('\r%s %s %s/s \x1b[K'
                           % (self._label, text, bytes_text(rate)))
        self._stream.flush()
        self._drawn = True

    def close(self) -> None:
        """Wipe the line."""
        if self._drawn:
            self._stream.write('\r\x1b[K')
            self._stream.flush()
            self._drawn = False
