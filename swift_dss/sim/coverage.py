"""Count the contents of histories: faults, requests and transitions.

A campaign that is fast because little happens in its runs proves little. So
each run counts the faults that took effect, the requests that were answered,
and the transitions: which named step follows which other one, in which mood
of S3, and on the same node or on another. Only events before the mending of
all faults are counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Set, Tuple

#: Mood of S3, whether both steps are of one node, a named step, the next.
Transition = Tuple[str, bool, str, str]
#: Faults by which a node loses a drive or all that its daemon knew.
LOSSES = ('SSD lost', 'HDD lost', 'state lost')


@dataclass
class Coverage:
    """Of one run, or of many.

    :param faults: kind of a fault to how often it took effect
    :param acknowledged: writes that a quorum took
    :param refused: writes that none took
    :param answered: GETs with an object or a tombstone
    :param written_bytes: of acknowledged writes
    :param steps: named steps that daemons reached
    :param closed: everything is mended, and nothing is counted any more
    """

    faults: Dict[str, int] = field(default_factory=dict)
    acknowledged: int = 0
    refused: int = 0
    answered: int = 0
    written_bytes: int = 0
    steps: int = 0
    transitions: Set[Transition] = field(default_factory=set)
    closed: bool = False
    _last: Tuple[str, str] = ('', '')

    def fault(self, kind: str) -> None:
        """A fault took effect."""
        self.faults[kind] = self.faults.get(kind, 0) + 1

    def reached(self, mood: str, node: str, step: str) -> None:
        """A daemon is at a named step."""
        if self.closed:
            return
        before, self._last = self._last, (node, step)
        self.steps += 1
        self.transitions.add((mood, before[0] == node, before[1], step))

    def add(self, other: Coverage) -> None:
        """Count another run's too."""
        for kind, number in other.faults.items():
            self.faults[kind] = self.faults.get(kind, 0) + number
        self.acknowledged += other.acknowledged
        self.refused += other.refused
        self.answered += other.answered
        self.written_bytes += other.written_bytes
        self.steps += other.steps
        self.transitions |= other.transitions

    def lost(self) -> int:
        """Drives, and states of a daemon, that nodes have lost."""
        return sum(self.faults.get(kind, 0) for kind in LOSSES)
