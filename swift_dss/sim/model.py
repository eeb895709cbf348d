"""The judge of a run: the states that acknowledged writes allow.

A write that was acknowledged is the newest of its name until a later one is
acknowledged. A write that was not acknowledged may have happened or not, at
any time later. So the cluster, at rest, may show the newest acknowledged
version or any later attempt, and nothing else.

The same holds for POSTs: metadata, content type and class map are registers,
each with a history of its own, and a PUT sets all of them.
X-Delete-At is part of the metadata. The time itself writes nothing: readers do
not see the object from then on, and the expirer's DELETE is a write like any.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Optional


class Violation(AssertionError):
    """The cluster shows a state that no acknowledged write allows.

    :param bytes_lost: of an acknowledged version
    """

    def __init__(self, text: str, bytes_lost: int = 0) -> None:
        super().__init__(text)
        self.bytes_lost = bytes_lost


#: The registers that a POST may set.
REGISTERS = ('map', 'meta', 'type')


@dataclass(frozen=True)
class Attempt:
    """A PUT or DELETE that a client sent.

    :param body: None deletes
    :param class_map: as it is encoded
    :param until: its X-Delete-At; '' if it is to stay
    """

    timestamp: str
    body: Optional[bytes]
    class_map: str = ''
    until: str = ''


@dataclass
class Register:
    """The values of one register by POSTs, by their timestamps."""

    attempts: Dict[str, str] = field(default_factory=dict)
    acknowledged: str = ''

    def tried(self, at: str, value: str) -> None:
        """A client sent a POST that sets it."""
        self.attempts[at] = value

    def acknowledge(self, at: str) -> None:
        """The client was told 202."""
        self.acknowledged = max(self.acknowledged, at)

    def allowed(self, put_at: str, put: str) -> List[str]:
        """The values that the cluster may show at rest, with the data of
        ``put_at``.

        :param put: the value that this PUT set
        """
        since = max(self.acknowledged, put_at)
        values = [value for at, value in self.attempts.items()
                  if at >= since and at > put_at]
        return values + [put] * (since == put_at)


def _registers() -> Dict[str, Register]:
    return {name: Register() for name in REGISTERS}


@dataclass
class Name:
    """The history of one name, in the order of timestamps."""

    attempts: List[Attempt] = field(default_factory=list)
    acknowledged: str = ''
    registers: Dict[str, Register] = field(default_factory=_registers)
    #: Some write has had an X-Delete-At.
    expires: bool = False

    def tried(self, attempt: Attempt) -> None:
        """A client sent it; whether it was acknowledged comes later."""
        self.expires = self.expires or bool(attempt.until)
        self.attempts.append(attempt)
        self.attempts.sort(key=lambda write: write.timestamp)

    def acknowledge(self, timestamp: str) -> None:
        """The client was told 2xx."""
        self.acknowledged = max(self.acknowledged, timestamp)

    def allowed(self) -> List[Attempt]:
        """The values that the cluster may show at rest. An object that was
        never acknowledged may also be absent.
        """
        return [attempt for attempt in self.attempts
                if attempt.timestamp >= self.acknowledged]

    def replaced(self, timestamp: str) -> bool:
        """True if a request of this time set all metadata anew."""
        return timestamp in self.registers['meta'].attempts or \
            self.wrote(timestamp) is not None

    def promised(self) -> Optional[Attempt]:
        """The newest acknowledged write; None if there is none."""
        return next((attempt for attempt in self.attempts
                     if attempt.timestamp == self.acknowledged), None)

    def wrote(self, timestamp: str) -> Optional[Attempt]:
        """The write with a timestamp; None if no client ever sent it."""
        return next((attempt for attempt in self.attempts
                     if attempt.timestamp == timestamp), None)


class Model:
    """All names of a run."""

    def __init__(self) -> None:
        self.names: Dict[str, Name] = {}

    def name(self, name: str) -> Name:
        """The history of a name; begun when first asked for."""
        return self.names.setdefault(name, Name())
