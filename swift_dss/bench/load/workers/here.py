"""Processes of users on this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from typing import Any

from swift_dss.bench.load.users import LoadFailed
from swift_dss.bench.load.workers.live import TICK_SECONDS, Plan, live
from swift_dss.bench.load.workers.worker import Worker

#: In place of another machine's specification.
HERE = 'here'
#: For a process to end, before it is killed.
_END_SECONDS = 1.0
_FORK = multiprocessing.get_context('fork')


class Here(Worker):
    """A process of this machine."""

    def __init__(self, plan: Plan, number: int) -> None:
        mine, theirs = multiprocessing.Pipe()
        super().__init__(mine, HERE, number)
        self._stop = _FORK.Event()
        self._process = _FORK.Process(
            target=_child,
            args=(plan, number, theirs, self._stop, os.getpid()),
            daemon=True)
        self._process.start()
        theirs.close()

    def _death(self) -> str:
        self._process.join(_END_SECONDS)
        return 'died with exit code %s' % self._process.exitcode

    def stop(self) -> None:
        """Begin no more requests."""
        self._stop.set()

    def end(self) -> None:
        """See that the process is not there any more."""
        self.pipe.close()
        if 'cleaned' in self.words:
            self._process.join(_END_SECONDS)
        if self._process.is_alive():
            # One that is stopped would keep a SIGTERM for later.
            self._process.kill()
            self._process.join()


def _child(plan: Plan, number: int, pipe: Any, stop: Any,
           parent: int) -> None:
    # An interrupt is the parent's: it asks for the numbers so far.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    try:
        live(plan, number, pipe, stop)
    except LoadFailed as err:
        pipe.send(('failed', str(err)))
    except (EOFError, BrokenPipeError):
        # The parent has gone: nobody wants the numbers.
        os._exit(1)


def _end_with(parent: int) -> None:
    """End this process soon after its parent, whatever it is at.

    Its pipe does not tell: each process has the parent's ends of its own and
    of those that were there before it.
    """
    while os.getppid() == parent:
        time.sleep(TICK_SECONDS)
    os._exit(1)
