"""Several clients at once, each in a process of its own.

Processes and not threads: a client that waits for the interpreter lock of
another one would report its own delay as the cluster's.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from dataclasses import dataclass
from typing import Any, Callable, Iterator, List, Optional

from swift_dss.bench.cluster.client import (
    BenchFailed, Client, Request, Sample, Target)

#: Gives the requests of client ``number``, for ever or until done.
Work = Callable[[int], Iterator[Request]]

_FORK = multiprocessing.get_context('fork')
_START_DEADLINE_SECONDS = 60.0


@dataclass(frozen=True)
class Outcome:
    """The results of all clients of one run.

    :param seconds: from the common start to the end of the last request
    """

    samples: List[Sample]
    seconds: float

    @property
    def good(self) -> List[Sample]:
        """Samples that count: answered with 2xx, in full."""
        return [sample for sample in self.samples
                if sample.status // 100 == 2]

    @property
    def per_second(self) -> float:
        """Good requests a second."""
        return len(self.good) / self.seconds if self.seconds else 0.0

    @property
    def failures(self) -> int:
        """Requests that were refused, cut short or lost."""
        return len(self.samples) - len(self.good)


class Crowd:
    """Clients that have started and wait for each other.

    :param seconds: no request is begun after so long; None: until the
        work of every client is done
    :param nice: added to the niceness of the clients
    """

    def __init__(self, target: Target, clients: int, work: Work,
                 seconds: Optional[float], nice: int = 0) -> None:
        self._barrier = _FORK.Barrier(clients + 1)
        self._pipes: List[Any] = []
        self._processes: List[Any] = []
        for number in range(clients):
            ours, theirs = _FORK.Pipe(duplex=False)
            process = _FORK.Process(
                target=_client, daemon=True,
                args=(target, work, number, seconds, self._barrier, theirs,
                      nice))
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)
        self._begin = 0.0

    def begin(self) -> None:
        """Let them go; returns at once."""
        self._barrier.wait(_START_DEADLINE_SECONDS)
        self._begin = time.monotonic()

    def result(self) -> Outcome:
        """Wait for the last one.

        :raises BenchFailed: a client process died
        """
        samples: List[Sample] = []
        for pipe, process in zip(self._pipes, self._processes):
            try:
                samples += pipe.recv()
            except EOFError as err:
                raise BenchFailed('a client process died') from err
            process.join()
        end = max((sample.at + sample.seconds for sample in samples),
                  default=self._begin)
        return Outcome(samples, end - self._begin)


def run(target: Target, clients: int, work: Work,
        seconds: Optional[float] = None) -> Outcome:
    """All of it: start, go, wait."""
    crowd = Crowd(target, clients, work, seconds)
    crowd.begin()
    return crowd.result()


def _client(target: Target, work: Work, number: int,
            seconds: Optional[float], barrier: Any, pipe: Any,
            nice: int) -> None:
    os.nice(nice)
    client = Client(target)
    client.connect()
    requests = work(number)
    samples = []
    barrier.wait(_START_DEADLINE_SECONDS)
    deadline = None if seconds is None else time.monotonic() + seconds
    for request in requests:
        samples.append(client.do(request))
        if deadline is not None and time.monotonic() >= deadline:
            break
    client.close()
    pipe.send(samples)
    pipe.close()
