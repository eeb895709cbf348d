"""Caches of keys without bytes, one for each candidate, fed with a sample.

A spatial sample has every access of an object or none (Waldspurger and others,
"Cache Modeling and Optimization using Miniature Simulations", ATC 2017), and a
cache of a share of the room holds the same share of it. The share is as large
as memory allows: as soon as one of the shadows remembers more than
:data:`MOST` objects, it is made a half to an eighth, and all begin again.
"""

from __future__ import annotations

from array import array
from itertools import compress
from operator import mul
from typing import List, Mapping, NamedTuple, Optional, Sequence

from swift_dss.core.classes import ClassTable
from swift_dss.strategy.eviction.objects import compiled, orders
from swift_dss.strategy.eviction.objects.verbs import HIT, ObjectCache
from swift_dss.strategy.tuning.choices import Choice

#: Objects of one shadow: six of them take less than 8 MiB, in C as in Python.
MOST, MOST_PYTHON = 16000, 3000
#: Sampled accesses that are played at once, and judged as one.
BATCH = 128
#: As C numbers them. A write exchanges an object, and is nobody's miss.
ACCESS, WRITE, REMOVE = 0, 1, 2
#: C's results to one for each hit.
_IS_HIT = bytes(number == HIT for number in range(256))
#: A shadow is warm once so much of its room is in use, or once so many
#: batches have not added more than a hundredth.
_FULL, _STILL_BATCHES = 0.9, 32
_MASK = (1 << 64) - 1
_ODD = 0x9E3779B97F4A7C15


class Penalty:
    """The cost of a miss: weight of the class times microseconds.

    :param weights: of classes, by id; of the cost (1 each), and of weighted
        order (those of the class table)
    :param look_us: until the first byte
    """

    def __init__(self, weights: Mapping[int, float], look_us: float,
                 bytes_per_second: float) -> None:
        self.weights = dict(weights)
        self.look_us = look_us
        self.bytes_per_second = bytes_per_second

    def __call__(self, size: int, class_id: int) -> float:
        return self.weights.get(class_id, 1.0) * (
            self.look_us + size / self.bytes_per_second * 1e6)


class Shadow:
    """One candidate's cache.

    :param room: bytes, at least 1
    """

    def __init__(self, choice: Choice, room: int, table: ClassTable,
                 penalty: Penalty) -> None:
        self._fast = compiled.make(
            choice.strategy, room, table, penalty.weights, penalty.look_us,
            penalty.bytes_per_second)
        self.room = room
        self._slow: Optional[ObjectCache] = None
        if self._fast is None:
            self._slow = orders.make(choice.strategy, room, table,
                                     penalty.weights, penalty)

    @property
    def used(self) -> int:
        """Bytes."""
        if self._fast is not None:
            return self._fast.used_bytes
        assert self._slow is not None
        return self._slow.used_bytes

    @property
    def objects(self) -> int:
        """The most that it remembered at a time."""
        if self._fast is not None:
            return self._fast.remembered
        assert self._slow is not None
        return len(self._slow)

    @property
    def filled(self) -> float:
        """The share of its room that is in use, if it has more objects than
        memory allows; else 1."""
        if self._fast is not None:
            return self._fast.used_bytes / self.room \
                if self._fast.remembered > MOST else 1.0
        assert self._slow is not None
        return self._slow.used_bytes / self.room \
            if len(self._slow) > MOST_PYTHON else 1.0

    def play(self, rows: Rows) -> bytes:
        """By access: 1 for a hit, else 0."""
        if self._fast is not None:
            results, came = bytearray(len(rows.keys)), \
                bytearray(4 * len(rows.keys))
            self._fast.play(rows.keys, rows.sizes, rows.class_ids, rows.verbs,
                            results, came, 0)
            return bytes(results).translate(_IS_HIT)
        return bytes(map(self._ask, rows.keys, rows.sizes, rows.class_ids,
                         rows.verbs))

    def _ask(self, key: int, size: int, class_id: int, verb: int) -> bool:
        assert self._slow is not None
        if verb != ACCESS:
            self._slow.remove(key)
        if verb == REMOVE:
            return False
        return self._slow.access(key, size, class_id) == HIT


class Reads(NamedTuple):
    """How many, and how long they are together."""

    number: int
    bytes: int


class Batch(NamedTuple):
    """Figures of some sampled accesses.

    :param asked: the cost of all reads without a cache
    :param saved: what each candidate saved of it
    :param true: what the true cache saved of it; None if that is not known
    :param reads: all of them
    :param hits: those that each candidate served
    """

    asked: float
    saved: List[float]
    true: Optional[float]
    reads: Reads
    hits: List[Reads]


class Rows:
    """Accesses in columns, as C wants them.

    :ivar reads: by access: 1 of a read
    :ivar hits: by access: 1 where the true cache hit
    :ivar are_known: ``hits`` holds for all reads
    """

    __slots__ = ('keys', 'sizes', 'class_ids', 'verbs', 'reads', 'hits',
                 'are_known')

    def __init__(self) -> None:
        self.keys = array('q')
        self.sizes = array('q')
        self.class_ids = array('B')
        self.verbs = array('B')
        self.reads = bytearray()
        self.hits = bytearray()
        self.are_known = True

    def add(self, key: int, size: int, class_id: int, verb: int,
            is_hit: Optional[bool]) -> None:
        """One access."""
        self.keys.append(key)
        self.sizes.append(size or 1)
        self.class_ids.append(class_id)
        self.verbs.append(verb)
        self.reads.append(verb == ACCESS)
        self.hits.append(bool(is_hit))
        if is_hit is None and verb == ACCESS:
            self.are_known = False


class Shadows:
    """All candidates over one sample.

    :param room: bytes that the true cache has
    :ivar share: of the objects, that are in the sample
    :ivar generation: how often the shadows began again
    :ivar is_warm: they have been full since the last beginning
    """

    def __init__(self, choices: Sequence[Choice], room: int,
                 table: ClassTable, penalty: Penalty) -> None:
        self.choices = list(choices)
        self.room = room
        self.share = 1.0
        self.generation = 0
        self.is_warm = False
        self._still = (0, 0)
        self._table = table
        self._penalty = penalty
        self._below = 0
        self._rows = Rows()
        self._shadows: List[Shadow] = []
        self._restart()

    def hear(self, key: int, size: int, class_id: int, verb: int = ACCESS,
             is_hit: Optional[bool] = None) -> Optional[Batch]:
        """An access.

        :param key: any whole number
        :param is_hit: of the true cache; None if that is not known
        :returns: with every :data:`BATCH` of the sample: its figures
        """
        mixed = key * _ODD & _MASK
        mixed = (mixed ^ mixed >> 32) * _ODD & _MASK
        if mixed >= self._below:
            return None
        rows = self._rows
        rows.add(mixed >> 1, size, class_id, verb, is_hit)
        return None if len(rows.verbs) < BATCH else self._play()

    def _play(self) -> Optional[Batch]:
        rows, self._rows = self._rows, Rows()
        # A write or a removal is nobody's miss.
        costs = [self._penalty(size, class_id) if is_read else 0.0
                 for size, class_id, is_read in zip(
                     rows.sizes, rows.class_ids, rows.reads)]
        lengths = list(map(mul, rows.sizes, rows.reads))
        played = [shadow.play(rows) for shadow in self._shadows]
        filled = min(shadow.filled for shadow in self._shadows)
        if filled < 1.0:
            # Orders remember what left, and what comes may be smaller.
            self.share *= min(0.5, max(0.125, 0.45 * filled))
            self.generation += 1
            self._restart()
            return None
        self._warm()
        return Batch(
            sum(costs), [sum(compress(costs, hits)) for hits in played],
            sum(compress(costs, rows.hits)) if rows.are_known else None,
            Reads(sum(rows.reads), sum(lengths)),
            [Reads(sum(compress(rows.reads, hits)),
                   sum(compress(lengths, hits))) for hits in played])

    @property
    def objects(self) -> int:
        """Of all shadows together."""
        return sum(shadow.objects for shadow in self._shadows)

    def _warm(self) -> None:
        """After a batch."""
        used, (batches, before) = self._shadows[0].used, self._still
        if batches < _STILL_BATCHES:
            self._still = (batches + 1, before)
        else:
            self._still = (0, used)
        if used >= _FULL * self._shadows[0].room or (
                batches == _STILL_BATCHES and used <= 1.01 * before):
            self.is_warm = True

    def _restart(self) -> None:
        self.is_warm = False
        self._still = (0, 0)
        self._below = int(self.share * (1 << 64))
        self._rows = Rows()
        self._shadows = [
            Shadow(choice, max(1, int(self.room * self.share)), self._table,
                   self._penalty) for choice in self.choices]
