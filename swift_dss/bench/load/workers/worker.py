"""The parent's side of one process of users, and of all of them."""

from __future__ import annotations

import time
from multiprocessing import connection
from typing import Any, Dict, Iterator, NamedTuple, Optional, Sequence

from swift_dss.bench.load.records import Counts
from swift_dss.bench.load.users import LoadFailed
from swift_dss.bench.load.warpcsv import Numbered

#: A process that says nothing for so long is lost; it has a word each second.
SILENCE_SECONDS = 30.0
#: Between two looks at those that say nothing.
_LOOK_SECONDS = 0.25


class Loss(NamedTuple):
    """The end of a process before its time.

    :param reason: ``died``, for one
    :param figures_at: ``time.monotonic()`` when its last figures came; None:
        it sent none
    :param lost_at: when it was missed
    """

    reason: str
    figures_at: Optional[float]
    lost_at: float


class Worker:
    """The parent's side of one process.

    :param pipe: readable when it has said something
    :param machine: where it is
    :param number: of the process, from 0
    :ivar lines: takes the lines of its requests
    :ivar words: the newest of each kind that it has said
    :ivar loss: None: it is there
    """

    def __init__(self, pipe: Any, machine: str, number: int) -> None:
        self.pipe = pipe
        self.machine = machine
        self.number = number
        self.lines: Optional[Numbered] = None
        self.words: Dict[str, Any] = {}
        self.loss: Optional[Loss] = None
        self._heard_at = time.monotonic()
        self._figures_at: Optional[float] = None

    @property
    def counts(self) -> Optional[Counts]:
        """The newest; None: it has said none."""
        return self.words['counts']['counts'] if 'counts' in self.words \
            else None

    def tell(self, message: Any) -> None:
        """Give it the next word; one that is lost hears nothing."""
        if self.loss is None:
            # Its time to answer begins.
            self._heard_at = time.monotonic()
            try:
                self.pipe.send(message)
            except OSError:
                self._lose(self._death())

    def look(self) -> None:
        """Take all that it has said, and see whether it is lost."""
        try:
            while self.loss is None and self.pipe.poll():
                name, said = self.pipe.recv()
                self._take(name, said)
        except (EOFError, OSError):
            self._lose(self._death())
        if time.monotonic() - self._heard_at > SILENCE_SECONDS:
            self._lose('said nothing for %.0f seconds' % SILENCE_SECONDS)

    def _take(self, name: str, said: Any) -> None:
        self._heard_at = time.monotonic()
        if name == 'failed':
            self._lose(said)
        elif name == 'lines' and self.lines is not None:
            self.lines.add(said)
            return
        elif name == 'counts':
            self._figures_at = self._heard_at
        self.words[name] = said

    def _death(self) -> str:
        """Why nothing can come any more."""
        return 'died'

    def failed(self) -> LoadFailed:
        """Its loss, where nothing can go on without it."""
        assert self.loss is not None
        return LoadFailed('%s, process %d of users: %s' % (
            self.machine, self.number, self.loss.reason))

    def _lose(self, reason: str) -> None:
        if self.loss is None:
            self.loss = Loss(reason, self._figures_at, time.monotonic())
            # If it is there after all, it has to send no more requests.
            self.end()

    def reassure(self) -> None:
        """Say that the parent is there, where that is not seen."""

    def part(self) -> None:
        """Ask for all that is to be known when it has cleaned up."""

    def stop(self) -> None:
        """Begin no more requests."""
        raise NotImplementedError

    def end(self) -> None:
        """See that the process is not there any more."""
        raise NotImplementedError


def each_look(workers: Sequence[Worker], name: str) -> Iterator[bool]:
    """Look at all until each of them has said a word or is lost.

    :returns: about four times a second, or as they say something: have they?
    """
    while True:
        waiting = [worker for worker in workers
                   if worker.loss is None and name not in worker.words]
        if not waiting:
            return
        ready = connection.wait([worker.pipe for worker in waiting],
                                _LOOK_SECONDS)
        for worker in waiting:
            worker.look()
        yield bool(ready)
