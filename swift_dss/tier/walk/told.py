"""Failures of a walk, without a list that grows with the population."""

from __future__ import annotations

from typing import List

#: Failures, and versions, that an answer names; of more it has the number.
MOST_TOLD = 1000


class Told:
    """Failures, the first of them word for word."""

    def __init__(self) -> None:
        self._first: List[str] = []
        self.count = 0

    def say(self, text: str) -> None:
        """Add one."""
        self.count += 1
        if len(self._first) < MOST_TOLD:
            self._first.append(text)

    def lines(self) -> List[str]:
        """The fields to print."""
        more = self.count - len(self._first)
        return self._first + (['and %d more' % more] if more else [])
