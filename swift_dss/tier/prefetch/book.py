"""Accounts of pieces fetched ahead, and of their fates: parts, bytes, dollars.

A piece *waits* until a worker takes it, is *coming* while it is fetched, is
*here* until it is read (useful), leaves unread or is written off (wasted).
A piece is late if a reader came before it was here: it still saved some time.
Money is counted when S3 is asked, by list prices.

Not thread-safe: its owner locks.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Dict, List, Optional, Tuple

from swift_dss.core.version import VersionId
from swift_dss.strategy.prefetch.base import Urgency


class Stage(Enum):
    """Where a piece is on its way."""

    WAITING = 'waiting'
    COMING = 'coming'
    HERE = 'here'


class Fate(Enum):
    """How a piece ended."""

    #: It was here when a client read it.
    USEFUL = 'useful'
    #: A reader wanted it before it was here.
    LATE = 'late'
    #: It left unread, or stayed unread for too long.
    WASTED = 'wasted'
    #: It was never fetched: no room, no link, too old, or failed.
    DROPPED = 'dropped'
    #: A reader needed the link more.
    CANCELLED = 'cancelled'


@dataclass
class Piece:
    """A part of a version that a client may read.

    :param strategy: name of the strategy that wanted it
    :param asked_at: monotonic seconds
    :param admitted: its device has room for it
    :param paid: dollars for it until now
    """

    account: str
    object_id: str
    version: VersionId
    partition: str
    offset: int
    length: int
    class_id: int
    urgency: Urgency
    confidence: float
    strategy: str
    asked_at: float
    stage: Stage = Stage.WAITING
    waited: bool = False
    cancelled: bool = False
    admitted: bool = False
    paid: float = 0.0

    @property
    def key(self) -> Tuple[VersionId, int]:
        """No two pieces have the same."""
        return self.version, self.offset

    @property
    def end(self) -> int:
        """One past its last byte."""
        return self.offset + self.length


@dataclass
class Counts:
    """Of one fate.

    :ivar dollars: that were spent on them
    """

    pieces: int = 0
    bytes: int = 0
    dollars: float = 0.0


@dataclass
class Book:
    """All pieces of the node.

    :param get_dollars: of one request
    :param byte_dollars: of one byte out of S3
    """

    get_dollars: float
    byte_dollars: float
    fates: Dict[Fate, Counts] = field(default_factory=lambda: {
        fate: Counts() for fate in Fate})
    #: Bytes of pieces that are not read yet, whatever their stage.
    open_bytes: int = 0
    dollars: float = 0.0

    def __post_init__(self) -> None:
        self._pieces: OrderedDict[Tuple[VersionId, int], Piece] = \
            OrderedDict()
        self._of: Dict[VersionId, Dict[int, Piece]] = {}

    def __len__(self) -> int:
        return len(self._pieces)

    def add(self, piece: Piece) -> bool:
        """Take a piece up; False if it is there already."""
        if piece.key in self._pieces:
            return False
        self._pieces[piece.key] = piece
        self._of.setdefault(piece.version, {})[piece.offset] = piece
        self.open_bytes += piece.length
        return True

    def has(self, piece: Piece) -> bool:
        """True while a piece is open."""
        return self._pieces.get(piece.key) is piece

    def of(self, version: VersionId) -> List[Piece]:
        """The open pieces of a version."""
        return list(self._of.get(version, {}).values())

    def within(self, version: VersionId, offset: int,
               length: int) -> List[Piece]:
        """Those with bytes in a range, the first first."""
        return sorted((piece for piece in self.of(version)
                       if piece.offset < offset + length
                       and piece.end > offset),
                      key=lambda piece: piece.offset)

    def running(self) -> List[Piece]:
        """Those that are on their way."""
        return [piece for piece in self._pieces.values()
                if piece.stage is Stage.COMING]

    def oldest_unread(self) -> Optional[Piece]:
        """The piece that has been here unread for longest."""
        for piece in self._pieces.values():
            if piece.stage is Stage.HERE:
                return piece
        return None

    def keep(self, piece: Piece) -> None:
        """Treat a piece as if it had just come."""
        if self.has(piece):
            self._pieces.move_to_end(piece.key)

    def pay(self, piece: Piece) -> None:
        """S3 is asked for a piece."""
        price = self.get_dollars + piece.length * self.byte_dollars
        piece.paid += price
        self.dollars += price

    def close(self, piece: Piece, fate: Optional[Fate]) -> None:
        """A piece is through; None: it was here before it was asked for.
        """
        if not self.has(piece):
            return
        del self._pieces[piece.key]
        del self._of[piece.version][piece.offset]
        if not self._of[piece.version]:
            del self._of[piece.version]
        self.open_bytes -= piece.length
        if fate is not None:
            counts = self.fates[fate]
            counts.pieces += 1
            counts.bytes += piece.length
            counts.dollars += piece.paid

    def stages(self) -> Dict[str, int]:
        """Pieces by stage."""
        counts_by_stage = {stage.value: 0 for stage in Stage}
        for piece in self._pieces.values():
            counts_by_stage[piece.stage.value] += 1
        return counts_by_stage

    def status(self) -> Dict[str, Any]:
        """Plain values."""
        fields: Dict[str, Any] = {'open_bytes': self.open_bytes,
                                  'dollars': self.dollars}
        fields.update(self.stages())
        for fate, counts in self.fates.items():
            fields[fate.value + '_pieces'] = counts.pieces
            fields[fate.value + '_bytes'] = counts.bytes
            fields[fate.value + '_dollars'] = counts.dollars
        return fields
