"""Slots of one class in a row, and the hand of SIEVE that goes along it.

SIEVE is Zhang et al., NSDI 2024. The row is kept in two parts, those that
the hand has passed and those before it, so that every step costs the same
however long it is.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Iterator, List, Optional, Set

from support.chunk_oracle.verbs import SIEVE_LOOKS


class Line:
    """Slots, the oldest first; each at most once."""

    def __init__(self) -> None:
        self._passed: OrderedDict[int, None] = OrderedDict()
        self._ahead: OrderedDict[int, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._passed) + len(self._ahead)

    def __iter__(self) -> Iterator[int]:
        yield from self._passed
        yield from self._ahead

    def add_youngest(self, slot: int) -> None:
        """At the end that leaves last."""
        self._ahead[slot] = None

    def add_oldest(self, slot: int) -> None:
        """At the end that leaves first; the hand comes to it."""
        self._passed.update(self._ahead)
        self._ahead, self._passed = self._passed, OrderedDict()
        self._ahead[slot] = None
        self._ahead.move_to_end(slot, last=False)

    def remove(self, slot: int) -> None:
        """From wherever it is; a hand on it goes to the next younger."""
        if slot in self._passed:
            del self._passed[slot]
        else:
            del self._ahead[slot]
        self._turn()

    def oldest(self) -> Optional[int]:
        """The one that was added first."""
        return next(iter(self), None)

    def _turn(self) -> None:
        """Behind the youngest, the hand is at the oldest."""
        if not self._ahead:
            self._ahead, self._passed = self._passed, self._ahead

    def sieve(self, marked: Set[int]) -> int:
        """Move the hand to the first victim; there is a slot.

        :param marked: slots with a mark; those that the hand passes lose
            it
        """
        for _ in range(SIEVE_LOOKS):
            slot = next(iter(self._ahead))
            if slot not in marked:
                break
            marked.discard(slot)
            del self._ahead[slot]
            self._passed[slot] = None
            self._turn()
        return next(iter(self._ahead))

    def to_come(self, marked: Set[int]) -> List[int]:
        """All slots in the order in which they would leave, if nothing
        were used any more."""
        around = [*self._ahead, *self._passed]
        return [slot for slot in around if slot not in marked] + [
            slot for slot in around if slot in marked]
