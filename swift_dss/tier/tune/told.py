"""A tuner's choice in words and numbers, for operators and the next start."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence

from swift_dss.strategy.tuning.chooser import Verdict
from swift_dss.strategy.tuning.guard import Lag
from swift_dss.strategy.tuning.shadows import BATCH

#: Changes that are remembered.
_CHANGES = 10


@dataclass
class Told:
    """The choice in force.

    :param since: seconds since the epoch
    :param home: see :class:`~swift_dss.strategy.tuning.guard.Guard`
    :param changes: the last ones, the newest last
    :param held: see :class:`~swift_dss.strategy.tuning.chooser.Chooser`
    :param left_at: the same, in seconds since the epoch
    """

    configured: str = ''
    in_force: str = ''
    since: float = 0.0
    why: str = ''
    home: Optional[Lag] = None
    changes: List[Dict[str, Any]] = field(default_factory=list)
    held: int = 0
    left_at: List[float] = field(default_factory=list)

    @classmethod
    def of(cls, text: str) -> Told:
        """Read :meth:`text`. Of another text nothing is believed: the tuner
        learns again."""
        try:
            fields = json.loads(text)
            home = fields['home']
            return cls(
                str(fields['configured']), str(fields['in_force']),
                float(fields['since']), str(fields['why']),
                None if home is None else Lag(*map(float, home)),
                [{'at': float(change['at']), 'old': str(change['old']),
                  'new': str(change['new']), 'why': str(change['why'])}
                 for change in fields['changes']][-_CHANGES:],
                int(fields['held']), [*map(float, fields['left_at'])])
        except (ValueError, TypeError, KeyError):
            return cls()

    def text(self) -> str:
        """As the index keeps it; '' of a tuner that never was."""
        return json.dumps(vars(self)) if self.configured else ''

    def began(self, configured: str, in_force: str, at: float) -> None:
        """A tuner begins, with an earlier choice or the configured one."""
        if configured != self.configured:
            self.held, self.left_at = 0, []
        if (configured, in_force) != (self.configured, self.in_force):
            self.configured, self.in_force = configured, in_force
            self.since, self.why, self.home = at, 'as configured', None

    def changed(self, old: str, new: str, reason: str, at: float,
                home: Optional[Lag]) -> None:
        """Another order is in force."""
        self.in_force, self.since, self.why = new, at, reason
        self.home = home
        self.changes = [*self.changes, {
            'at': at, 'old': old, 'new': new, 'why': reason}][-_CHANGES:]

    def status(self) -> Dict[str, Any]:
        """Plain values."""
        return {'since': self.since, 'why': self.why,
                'changes': list(self.changes)}


def why(verdict: Verdict, names: Sequence[str]) -> str:
    """The reason of a change, as a sentence."""
    points = '%.2f points (+-%.2f)' % (
        100 * abs(verdict.gain), 100 * verdict.error)
    seen = 'over %d sampled accesses' % (verdict.batches * BATCH)
    new, old = names[verdict.new], names[verdict.old]
    if verdict.by_guard:
        return '%s again: with %s the SSD saved %s less of the cost of ' \
            'reads than %s would have, %s' % (new, old, points, new, seen)
    if not verdict.new and verdict.gain <= 0:
        return '%s again: %s gains no more than %s, %s' % (
            new, old, points, seen)
    return '%s instead of %s: it saves %s more of the cost of reads, %s' % (
        new, old, points, seen)
