"""Walks side by side, without a quarrel for the interpreter.

A walk makes some ten short system calls a version. At each its thread gives
the interpreter away, and has to take it back from another one. So where all
is cached, four walks side by side take nearly twice the CPU time of one after
the other, and no less time. Walks that their disks do not keep waiting
therefore take turns; one that waits for its disk goes beside the others. So
does one that gets no turn: another's disk may hang in the middle of a turn,
and each device's failure is its own.
"""

from __future__ import annotations

import os
import resource
from contextlib import contextmanager
from typing import Iterator

from swift_dss.gateway.link.turns import Baton

#: Versions to read in one turn: a millisecond or two.
VERSIONS = 16
#: A disk that gave so many sectors for them kept their reader waiting.
#: Nothing cached, it gives one a version at least, and mostly eight.
_SECTORS = VERSIONS // 4
#: So long a walk waits for its turn, and so many pieces it reads beside the
#: others if it does not come.
_PATIENCE_SECONDS = 1.0
_BESIDE = 1000


class Pieces:
    """The pieces that one walk reads, in the thread that does it.

    :param baton: of all walks of the process
    """

    def __init__(self, baton: Baton) -> None:
        self._baton = baton
        # A kernel that does not count says nothing: as if it waited.
        self._counts = os.path.exists('/proc/self/io')
        self._waits = not self._counts
        #: Pieces still to be read without a turn, as none came.
        self._beside = 0

    @contextmanager
    def piece(self) -> Iterator[None]:
        """Read a piece in here: alone, unless the last one had to wait."""
        has_turn = self._has_turn()
        try:
            before = sectors_read()
            yield
            self._waits = not self._counts or \
                sectors_read() - before >= _SECTORS
        finally:
            if has_turn:
                self._baton.give()

    def _has_turn(self) -> bool:
        if self._beside:
            self._beside -= 1
            return False
        if self._waits:
            return False
        if self._baton.take(_PATIENCE_SECONDS):
            return True
        self._beside = _BESIDE
        return False


def sectors_read() -> int:
    """Sectors that the running thread has had read from disks so far."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_inblock
