"""The figures so far, on a terminal."""

from __future__ import annotations

from typing import TextIO

from swift_dss.bench.load import report
from swift_dss.bench.load.records import Counts
from swift_dss.cli.table import table


class Live:
    """The table so far, drawn over itself; quiet without a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_drawn = stream.isatty()
        self._lines = 0

    def show(self, seconds: float, counts: Counts) -> None:
        """Draw it."""
        if not self._is_drawn:
            return
        listed = report.lines(report.rows(counts, seconds), seconds)
        text = '%.0f s\n%s\n' % (seconds, table(report.HEADS, listed))
        self.close()
        self._stream.write(text)
        self._stream.flush()
        self._lines = text.count('\n')

    def close(self) -> None:
        """Take it away again."""
        if self._lines:
            self._stream.write('\x1b[%dA\x1b[J' % self._lines)
            self._stream.flush()
        self._lines = 0
