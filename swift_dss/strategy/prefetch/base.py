"""The contract of a prefetch strategy.

A strategy is pure: it has no clock, does no I/O and draws no lots. Its driver
(the tier daemon, a simulator) reports every read and the fate of requested
bytes, and gets the ranges that the strategy wants next. Late, repeated or
missing reports only cost hits.

The driver MUST

- call :meth:`Prefetch.on_request` for each read, in the order of ``now``;
- fetch each want whole or in pieces, or give it up, in whole or in pieces,
  and say so by :meth:`Prefetch.on_dropped`. A want may name bytes that are
  there or on their way: these are not fetched again, and count as arrived
  at once, or when they come;
- tell of wanted bytes that arrived by :meth:`Prefetch.on_arrival`;
- before unread prefetched bytes leave, ask
  :meth:`Prefetch.on_last_chance`;
- report all bytes that leave, read or not, by :meth:`Prefetch.on_evict`: until
  then a strategy takes bytes that were read or arrived as present.

Each method MUST take a bounded time and each strategy MUST keep within
``Settings.state_bytes``. One account's reads MUST NOT decide what is fetched
for another: all state is kept by account.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Dict, Hashable, List, NamedTuple

#: Bytes of one tracked item's state, where a strategy counts items: a
#: dictionary's entry, a key of three and a small object, measured on CPython
#: 3.11 (``test_prefetch_contract``).
ITEM_BYTES = 512


class Urgency(IntEnum):
    """Which wants go first; the smallest first."""

    #: The reader is in the middle of it: it comes with a miss.
    WITH_MISS = 0
    #: A stream that goes on will need it soon.
    AHEAD = 1
    #: History or a hint says that it may be read.
    GUESS = 2


class Access(NamedTuple):
    """One read.

    :param account: owner of the bytes; accounts share nothing
    :param client: the reader, '' if unknown: only requests of one client
        follow one another
    :param object_id: an object's version, or a volume
    :param offset: of the first byte
    :param length: at least 1
    :param object_bytes: where it ends: nothing past it is ever wanted
    :param hit: True if every byte was there; bytes that were still on
        their way are a miss
    :param now: seconds; never falls
    :param class_id: of the first byte
    """

    account: str
    client: Hashable
    object_id: Hashable
    offset: int
    length: int
    object_bytes: int
    hit: bool
    now: float
    class_id: int = 0


class Want(NamedTuple):
    """A range that the strategy wants.

    :param offset: not always on a border of units; the driver rounds
    :param length: at least 1
    :param confidence: from 0 to 1: how likely it is to be read
    :param strategy: name of the strategy, for the counts
    """

    account: str
    object_id: Hashable
    offset: int
    length: int
    urgency: Urgency
    confidence: float
    strategy: str


@dataclass(frozen=True)
class Settings:
    """Constructor arguments of strategies.

    :param unit_bytes: the unit of degree and trigger distance: a part of S3, a
        page of a volume
    :param max_degree: no want is longer than this many units; at least 4
    :param state_bytes: limit of all state of a strategy
    """

    unit_bytes: int
    max_degree: int = 256
    state_bytes: int = 64 * 1024 * 1024

    def __post_init__(self) -> None:
        if self.unit_bytes < 1 or self.max_degree < 4 or \
                self.state_bytes < ITEM_BYTES:
            raise ValueError(
                'prefetch: units of %d bytes, degree up to %d, %d bytes of '
                'state: needs at least 1, 4 and %d' % (
                    self.unit_bytes, self.max_degree, self.state_bytes,
                    ITEM_BYTES))


class Prefetch:
    """The verbs. One instance serves all accounts of a node; calls MUST
    NOT overlap."""

    name = ''

    def on_request(self, access: Access, room_bytes: int) -> List[Want]:
        """A read; the ranges that should come next.

        :param room_bytes: bytes that bandwidth and budget leave for prefetches
            now; the wants together MUST NOT be longer
        :returns: the most urgent first
        """
        raise NotImplementedError

    def on_arrival(self, account: str, object_id: Hashable, offset: int,
                   length: int, waited: bool, now: float) -> None:
        """A want, or a piece of one, is there.

        :param waited: a reader was already waiting for it
        """

    def on_dropped(self, account: str, object_id: Hashable, offset: int,
                   length: int, now: float) -> None:
        """A want, or a piece of one, is not going to come: it was refused,
        cancelled by demand, or failed."""

    def on_last_chance(self, account: str, object_id: Hashable, offset: int,
                       length: int, now: float) -> bool:
        """Unread prefetched bytes are the next to leave.

        :returns: True to have them kept once as if just used. MUST NOT be
            True twice before they are used or leave
        """
        return False

    def on_evict(self, account: str, object_id: Hashable, offset: int,
                 length: int, used: bool, now: float) -> None:
        """Bytes are gone.

        :param used: a reader had read them
        """

    def state_bytes(self) -> int:
        """Bytes of its state now, about; costs O(1)."""
        return 0

    def counts(self) -> Dict[str, float]:
        """The strategy's own figures, for inspection."""
        return {}

    def save(self) -> Dict[str, Any]:
        """The state that should outlive a restart, as JSON values; {} if none.
        Object ids MUST then be texts or whole numbers.
        """
        return {}

    def load(self, saved: Dict[str, Any]) -> None:
        """Take over what :meth:`save` gave; may be of another version or
        damaged.

        :raises ValueError: it is; nothing has changed
        """


def clip(wants: List[Want], room_bytes: int) -> List[Want]:
    """The first of ``wants`` that together fit into ``room_bytes``, the
    last of them shortened."""
    fitting = []
    for want in wants:
        if room_bytes <= 0:
            break
        if want.length > room_bytes:
            want = want._replace(length=room_bytes)
        room_bytes -= want.length
        fitting.append(want)
    return fitting


class NoPrefetch(Prefetch):
    """Nothing is ever fetched ahead: the base line of the others."""

    name = 'none'

    def __init__(self, settings: Settings) -> None:
        pass

    def on_request(self, access: Access, room_bytes: int) -> List[Want]:
        """See :meth:`Prefetch.on_request`."""
        return []
