"""The objects that one process has written, and the next thing to do.

Processes share no object: process ``k`` of ``n`` has each ``n``-th name. An
object that is being written is taken for no other write, so that the order of
its generations is known; reads of it go on, and may see the one before or the
one that comes.
"""

from __future__ import annotations

import bisect
import itertools
import math
import random
import threading
from typing import (
    Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple)

from swift_dss.bench.load.scenario import Scenario, Size

CREATE, READ, UPDATE, DELETE, HEAD = (
    'create', 'read', 'update', 'delete', 'head')
OPERATIONS = (CREATE, READ, UPDATE, DELETE, HEAD)
#: Objects that are looked at for one that nobody writes.
_TRIES = 8
#: A read of a version that is older than so many is wrong, not stale.
_GENERATIONS = 64


class Stored:
    """One object.

    :param sizes: bytes of each generation that was ever sent
    :param floor: the newest generation that was acknowledged; -1: none
    """

    __slots__ = ('container', 'floor', 'kind', 'name', 'place', 'sizes')

    def __init__(self, kind: Size, container: str, name: str) -> None:
        self.kind = kind
        self.container = container
        self.name = name
        self.sizes: List[int] = []
        self.floor = -1
        self.place = -1

    @property
    def path(self) -> str:
        """``container/object``"""
        return '%s/%s' % (self.container, self.name)


class Task(NamedTuple):
    """The next thing to do; ``target`` None: there is no object for it."""

    operation: str
    kind: Size
    target: Optional[Stored]


class Objects:
    """What one process has, for all its users; any thread may call.

    :param containers: names that the front end gives them
    :param process: from 0
    """

    def __init__(self, scenario: Scenario, containers: List[str],
                 process: int, processes: int, seed: str) -> None:
        self._sizes = scenario.sizes
        self._containers = containers
        self._process, self._processes = process, processes
        self._random = random.Random('%s/%d' % (seed, process))
        self._lock = threading.Lock()
        self._known: Dict[str, List[Stored]] = {
            size.name: [] for size in scenario.sizes}
        self._written: Set[Stored] = set()
        self._made: Set[Stored] = set()
        first = 1 + max(size.initial for size in scenario.sizes)
        self._numbers = itertools.count(first + process, processes)
        # ssbench: a size is as likely as it has objects at the start.
        weights = [size.initial for size in scenario.sizes]
        self._size_steps = list(itertools.accumulate(
            weights if sum(weights) else [1] * len(weights)))
        self._steps = {size.name: list(itertools.accumulate(size.weights))
                            for size in scenario.sizes}

    def initial(self) -> Iterator[Stored]:
        """This process' part of the objects before the measurement."""
        number = 0
        for size in self._sizes:
            for index in range(1, size.initial + 1):
                if number % self._processes == self._process:
                    yield self._new(size, index, self._containers[
                        number % len(self._containers)])
                number += 1

    def next_task(self) -> Task:
        """Choose size, operation and object; a write must be told to
        :meth:`done`."""
        with self._lock:
            size = self._sizes[self._pick(self._size_steps)]
            operation = OPERATIONS[self._pick(self._steps[size.name])]
            if operation == CREATE:
                return Task(operation, size, self._new(
                    size, next(self._numbers),
                    self._random.choice(self._containers)))
            return Task(operation, size, self._choose(size, operation))

    def begin(self, target: Stored) -> Tuple[int, int]:
        """A new generation of an object is sent now: its number, and its
        bytes."""
        with self._lock:
            target.sizes.append(self._bytes(target.kind))
            self._made.add(target)
            return len(target.sizes) - 1, target.sizes[-1]

    def done(self, task: Task, worked: bool, generation: int = -1) -> None:
        """A write has ended.

        A DELETE that failed may have been carried out, and so may a PUT: the
        object of the one is not read again, and that of the other may have
        either generation.
        """
        target = task.target
        assert target is not None
        with self._lock:
            self._written.discard(target)
            if task.operation == DELETE:
                if worked:
                    self._made.discard(target)
                return
            if worked:
                target.floor = generation
                if target.place < 0:
                    known = self._known[target.kind.name]
                    target.place = len(known)
                    known.append(target)

    def generations(self, target: Stored) -> List[Tuple[int, int]]:
        """The newest generations that a read may give, and their bytes."""
        with self._lock:
            sizes = target.sizes
            first = max(0, len(sizes) - _GENERATIONS)
            return list(enumerate(sizes[first:], first))

    def is_deleted(self, target: Stored) -> bool:
        """Has a DELETE of it begun?"""
        with self._lock:
            return target.place < 0

    def left(self) -> List[Stored]:
        """All that may be there, for the clean-up."""
        with self._lock:
            return list(self._made)

    def _bytes(self, kind: Size) -> int:
        smallest, largest = kind.size_min, kind.size_max
        if not kind.by_doubling:
            return self._random.randint(smallest, largest)
        doublings = math.log2(largest / smallest)
        return min(largest, int(
            smallest * 2 ** (doublings * self._random.random())))

    def _pick(self, steps: Sequence[float]) -> int:
        at = bisect.bisect_right(steps, self._random.random() * steps[-1])
        # A weight of 0 at the end is not chosen by a rounded product.
        return min(at, bisect.bisect_left(steps, steps[-1]))

    def _new(self, size: Size, index: int, container: str) -> Stored:
        return Stored(size, container, '%s_%06d' % (size.name, index))

    def _choose(self, size: Size, operation: str) -> Optional[Stored]:
        known = self._known[size.name]
        if not known:
            return None
        if operation in (READ, HEAD):
            return self._random.choice(known)
        for _ in range(_TRIES):
            target = self._random.choice(known)
            if target not in self._written:
                break
        else:
            return None
        self._written.add(target)
        if operation == DELETE:
            last = known.pop()
            if last is not target:
                known[target.place], last.place = last, target.place
            target.place = -1
        return target
