"""What each acknowledged write allows: the judge of a run.

A write that was acknowledged is the newest of its name until a later one is
acknowledged. A write that was not acknowledged may have happened or not, at
any time later. So the cluster, at rest, may show the newest acknowledged
version or any later attempt, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Optional


@dataclass(frozen=True)
class Attempt:
    """A PUT or DELETE that a client sent.

    :param body: None deletes
    """

    timestamp: str
    body: Optional[bytes]


@dataclass
class Name:
    """The history of one name, in the order of timestamps."""

    attempts: List[Attempt] = field(default_factory=list)
    acknowledged: str = ''

    def tried(self, attempt: Attempt) -> None:
        """A client sent it; whether it was acknowledged comes later."""
        self.attempts.append(attempt)
        self.attempts.sort(key=lambda one: one.timestamp)

    def acknowledge(self, timestamp: str) -> None:
        """The client was told 2xx."""
        self.acknowledged = max(self.acknowledged, timestamp)

    def allowed(self) -> List[Attempt]:
        """What the cluster may show at rest. An object that nobody ever
        acknowledged may also be absent."""
        return [one for one in self.attempts
                if one.timestamp >= self.acknowledged]

    def promised(self) -> Optional[Attempt]:
        """The newest acknowledged write; None if there is none."""
        return next((one for one in self.attempts
                     if one.timestamp == self.acknowledged), None)

    def wrote(self, timestamp: str) -> Optional[Attempt]:
        """The write with a timestamp; None if no client ever sent it."""
        return next((one for one in self.attempts
                     if one.timestamp == timestamp), None)


class Model:
    """All names of a run."""

    def __init__(self) -> None:
        self.names: Dict[str, Name] = {}

    def name(self, name: str) -> Name:
        """The history of a name; begun when first asked for."""
        return self.names.setdefault(name, Name())
