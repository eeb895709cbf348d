"""The users of one process: threads, each with a connection."""

from __future__ import annotations

import queue
import threading
import time
from typing import Any, Callable, Iterable, List, Optional, Sequence, Tuple

from swift_dss.bench.load import segments
from swift_dss.bench.load.content import Body, Contents
from swift_dss.bench.load.link import Answer, Expected, Link
from swift_dss.bench.load.objects import (
    CREATE, DELETE, HEAD, READ, Objects, Stored, Task)
from swift_dss.bench.load.records import NONE, Key, Recorder
from swift_dss.bench.load.turns import Turns
from swift_dss.bench.load.warpcsv import Lines
from swift_dss.core.errors import DssError

_TRIES = 3


class LoadFailed(DssError):
    """Something that the measurement needs does not work."""

    exit_code = 70


class Users:
    """All users of one process.

    :param front: a :class:`~swift_dss.bench.load.fronts.SwiftFront`, or S3's
    :param lines: None: requests are not written one by one
    :param is_open: latency counts from the turn
    """

    def __init__(self, front: Any, objects: Objects, contents: Contents,
                 count: int, lines: Optional[Lines], is_open: bool) -> None:
        self._front = front
        self._objects = objects
        self._contents = contents
        self._lines = lines
        self._is_open = is_open
        self._links = [Link(front.place) for _ in range(count)]
        self._threads: List[threading.Thread] = []
        self._errors: queue.Queue[BaseException] = queue.Queue()
        self._ends: List[float] = []
        self.recorder = Recorder()

    @property
    def ended(self) -> float:
        """``time.monotonic()`` when the last user stopped; now, before."""
        return max(self._ends) if len(self._ends) == len(self._links) else \
            time.monotonic()

    def prepare(self) -> None:
        """Write the objects that are there before the measurement.

        :raises LoadFailed: a PUT did not work three times
        """
        self._share(self._objects.initial(), self._must_create)

    def begin(self, turns: Turns, first_user: int) -> None:
        """Let them work; returns at once.

        :param first_user: number of the first of them, in all processes
        """
        for number, link in enumerate(self._links, first_user):
            self._start(self._work, link, turns, number)

    def wait(self, seconds: float) -> bool:
        """Wait so long for all of them; are they done?

        :raises LoadFailed: one of them met an error of the program
        """
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._raise()
        return not any(thread.is_alive() for thread in self._threads)

    def clean(self) -> int:
        """Delete all that may be there; how many did not go."""
        failed: List[Stored] = []

        def delete(link: Link, target: Stored) -> None:
            for _ in range(_TRIES):
                status = self._delete(link, target).status
                if status // 100 == 2 or status == 404:
                    return
            failed.append(target)

        self._share(self._objects.left(), delete)
        return len(failed)

    def _share(self, targets: Iterable[Stored],
               verb: Callable[[Link, Stored], None]) -> None:
        """Do something with each of many objects, all users together."""
        waiting: Any = iter(targets)
        lock = threading.Lock()

        def work(link: Link) -> None:
            while self._errors.empty():
                with lock:
                    target = next(waiting, None)
                if target is None:
                    return
                verb(link, target)

        for link in self._links:
            self._start(work, link)
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        self._raise()

    def _start(self, work: Callable[..., None], *arguments: Any) -> None:
        def guarded() -> None:
            try:
                work(*arguments)
            except Exception as err:
                self._errors.put(err)

        thread = threading.Thread(target=guarded, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _raise(self) -> None:
        if not self._errors.empty():
            err = self._errors.get()
            if isinstance(err, LoadFailed):
                raise err
            raise LoadFailed('a user failed: %s: %s' % (
                type(err).__name__, err)) from err

    def _must_create(self, link: Link, target: Stored) -> None:
        answer = Answer(0.0)
        for _ in range(_TRIES):
            generation, answer = self._put(link, target)
            if answer.status // 100 == 2:
                self._objects.done(Task(CREATE, target.kind, target), True,
                                   generation)
                return
        raise LoadFailed('PUT %s: %s' % (target.path, _error(answer)))

    def _put(self, link: Link, target: Stored) -> Tuple[int, Answer]:
        generation, size = self._objects.begin(target)
        body = self._contents.body(target.path, generation, size)
        if segments.is_large(target.kind, size):
            return generation, segments.put(
                self._front, link, segments.Version(
                    target.path, target.kind, generation, size), body)
        return generation, link.send(
            self._front.put(target.path, target.kind, size), body)

    def _delete(self, link: Link, target: Stored) -> Answer:
        return segments.delete(self._front, link, target.path, [
            segments.Version(target.path, target.kind, generation, size)
            for generation, size in enumerate(target.sizes)
            if segments.is_large(target.kind, size)])

    def _work(self, link: Link, turns: Turns, number: int) -> None:
        link.connect()
        while True:
            turn = turns.take()
            if turn is None:
                break
            task = self._objects.next_task()
            # A turn that has come sleeps for no time.
            time.sleep(max(0.0, turn - time.monotonic()))
            if task.target is None:
                self.recorder.skipped()
            else:
                self._do(link, task, task.target, turn, number)
        self._ends.append(time.monotonic())
        link.close()

    def _do(self, link: Link, task: Task, target: Stored, turn: float,
            number: int) -> None:
        operation, floor = 'PUT', target.floor
        if task.operation == READ:
            operation = 'GET'
            answer = link.send(self._front.get(target.path),
                               expected=self._expected(target))
        elif task.operation == HEAD:
            operation = 'STAT'
            answer = link.send(self._front.head(target.path))
        elif task.operation == DELETE:
            operation = 'DELETE'
            answer = self._delete(link, target)
            self._objects.done(task, answer.status // 100 == 2)
        else:
            generation, answer = self._put(link, target)
            self._objects.done(task, answer.status // 100 == 2, generation)
        start = turn if self._is_open else answer.sent
        self._record(task, target, answer, start, floor)
        self.recorder.sent(answer.sent, answer.sent - turn)
        if self._lines is not None:
            self._lines.add(
                number, operation, target.path, answer.bytes,
                '' if answer.status // 100 == 2 else _error(answer), start,
                answer.first, answer.end)

    def _expected(self, target: Stored) -> Expected:
        def bodies() -> Sequence[Body]:
            return [self._contents.body(target.path, generation, size)
                    for generation, size
                    in self._objects.generations(target)]

        return bodies

    def _record(self, task: Task, target: Stored, answer: Answer,
                start: float, floor: int) -> None:
        recorder = self.recorder
        kind = task.kind
        label = kind.class_name or NONE
        if kind.ranges:
            label += '+ranges'
        key: Key = (label, task.operation, answer.tier or NONE)
        if answer.status // 100 == 2:
            recorder.worked(key, answer.end - start, answer.bytes)
            if task.operation == READ:
                self._verify(target, answer, floor)
        elif (answer.status == 404 or kind.segment_bytes is not None) and \
                task.operation in (READ, HEAD) and \
                self._objects.is_deleted(target):
            # Of segments that go, some bytes may have been read.
            recorder.gone()
        else:
            recorder.failed(key, _error(answer))

    def _verify(self, target: Stored, answer: Answer, floor: int) -> None:
        newest = max((body.generation for body in answer.bodies), default=-1)
        if newest < 0:
            self.recorder.wrong('%s: %d bytes, of no version that was '
                                'written' % (target.path, answer.bytes))
        elif newest < floor:
            self.recorder.stale()


def _error(answer: Answer) -> str:
    return answer.error or 'status %d' % answer.status
