"""Orders whose queues are columns of an index, not memory.

An order of ``objects/verbs`` keeps an entry an object in memory, which a
daemon that keeps millions of objects over restarts must not. Here the place of
each candidate is four numbers in its own row, and an order keeps a handful of
further numbers a class. Both are in the index: memory does not grow with the
population, a restart loses nothing, and the next victim is the first entry of
a sorted index.

The same algorithms, with the same decisions: fed with the same accesses,
LRU, S3-FIFO, SIEVE and GDSF evict the same objects as their namesakes
(``test_row_orders``). SARC's watched ends are found again after an eighth of
them has changed, and not with each access.
"""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional, Tuple

from swift_dss.strategy.eviction.objects.verbs import UNIT_COST

#: Queues that a place may name; entries of the third are gone, and only
#: remembered.
FIRST, SECOND, GONE = 0, 1, 2

#: An order's memory of a class: figures by name.
Memory = Dict[str, float]


class Place(NamedTuple):
    """Where a candidate stands.

    :param queue: ``FIRST``, ``SECOND`` or ``GONE``
    :param at: the lowest of a queue is its front
    :param turn: of those that are ``at`` the same, the lowest is in front;
        no two of a class have the same
    :param uses: what the order counts
    """

    queue: int
    at: float
    turn: int
    uses: int


class Entry(NamedTuple):
    """A candidate as :class:`Candidates` shows it.

    :param key: row and class
    :param size: bytes that leave with it
    """

    key: Tuple[int, int]
    place: Place
    size: int


class Choice(NamedTuple):
    """The result of one step: the entry leaves, or was only examined."""

    entry: Entry
    leaves: bool


class Candidates:
    """An order's view of the rows, and its acts on them."""

    def pop(self, queue: int) -> Optional[Entry]:
        """The next of a queue that was not popped yet, from the front or
        from where :meth:`rewind` went; None at the end."""
        raise NotImplementedError

    def peek(self, queue: int) -> Optional[Entry]:
        """The same, and it may be popped still."""
        raise NotImplementedError

    def rewind(self, queue: int, at: Optional[float] = None) -> None:
        """Go on at ``at``, included; None: at the front."""
        raise NotImplementedError

    def move(self, entry: Entry, place: Optional[Place]) -> None:
        """A popped entry stands elsewhere now; None: it is forgotten."""
        raise NotImplementedError

    def used_bytes(self, queue: int) -> int:
        """Of all in a queue but those that were chosen to leave."""
        raise NotImplementedError

    def within(self, queue: int, length: int) -> float:
        """``at`` of the last of those at the front that have ``length``
        bytes together; minus infinity if the first alone has more."""
        raise NotImplementedError


class RowOrder:
    """The verbs. All MUST be pure but for ``memory`` and the candidates,
    and all but :meth:`begin` cost O(1)."""

    name = ''

    def came(self, memory: Memory, before: Optional[Place], size: int,
             cost: float = UNIT_COST, sequential: bool = False) -> Place:
        """Where a newcomer stands.

        :param before: what :meth:`left` said of it
        """
        raise NotImplementedError

    def read(self, memory: Memory, place: Place, size: int,
             cost: float = UNIT_COST, sequential: bool = False) -> Place:
        """Where a candidate stands after a use."""
        raise NotImplementedError

    def missed(self, memory: Memory, sequential: bool) -> None:
        """A reader missed: the object is not a candidate."""

    def begin(self, memory: Memory, candidates: Candidates) -> None:
        """Victims are about to be chosen."""

    def step(self, memory: Memory,
             candidates: Candidates) -> Optional[Choice]:
        """One step on the way to a victim; None: there is none."""
        raise NotImplementedError

    def left(self, memory: Memory, place: Place, size: int,
             candidates: Candidates) -> Optional[Place]:
        """Forget a candidate whose bytes are gone; returns the order's memory
        of it.
        """
        return None


def next_turn(memory: Memory) -> int:
    """A number higher than all before it."""
    memory['turn'] = memory.get('turn', 0.0) + 1.0
    return int(memory['turn'])
