"""All that a look at a cache tells, and how bad it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

from swift_dss.block.ondisk.superblock import Superblock
from swift_dss.block.ondisk.table_block import Record, TableBlock
from swift_dss.core.errors import DssError

#: Reads (sector, number of sectors); short only at the end of the device.
Read = Callable[[int, int], bytes]
Progress = Callable[[int, int], None]


class NotACache(DssError):
    """There is no superblock of dm-dss on the device."""

    exit_code = 8


class Kind(IntEnum):
    """The weight of a finding."""

    #: Nothing is wrong.
    NOTE = 0
    #: Damage that costs nothing: no byte and no knowledge is lost.
    SPARE = 1
    #: The copy that counted is damaged but known: one flipped bit.
    KNOWN = 2
    #: An operator has to decide before the cache is used.
    DOUBT = 3


class Finding(NamedTuple):
    """A fact about the SSD that an operator should know.

    :param sector: where on the SSD
    :param region: of the table; None for the superblock or all of it
    """

    kind: Kind
    sector: int
    region: Optional[int]
    text: str


class Place(NamedTuple):
    """A block on the SSD, and its right contents."""

    sector: int
    found: bytes
    wanted: bytes


class Chunk(NamedTuple):
    """A chunk of the origin that the SSD has."""

    slot: int
    record: Record


@dataclass
class Region:
    """A region of the table.

    :param seq: version of the copy that the kernel would take; 0: none
    :param copy: which that is
    :param known: the copy that counted, if one flipped bit hid it
    """

    number: int
    seq: int = 0
    copy: int = 0
    block: Optional[TableBlock] = None
    known: Optional[TableBlock] = None
    known_copy: int = 0
    #: Of damaged copies that are no single flipped bit: copy, its own version.
    lost: List[Tuple[int, Optional[int]]] = field(default_factory=list)
    #: All damaged copies, in the same way.
    damaged: List[Tuple[int, Optional[int]]] = field(default_factory=list)
    #: Damaged copies as they are, and what to write there.
    places: List[Place] = field(default_factory=list)

    @property
    def best(self) -> Optional[TableBlock]:
        """A description of the damage."""
        return self.known or self.block

    @property
    def best_seq(self) -> int:
        """The version of that."""
        return self.best.seq if self.best else 0


@dataclass
class Examined:
    """All that is known of a cache.

    :param superblock: the copy that counts, as far as it is known
    :param super_places: damaged copies of it
    :param refusals: why the kernel would not start with it as it is
    """

    superblock: Superblock
    sectors: int
    regions: List[Region] = field(default_factory=list)
    findings: List[Finding] = field(default_factory=list)
    super_places: List[Place] = field(default_factory=list)
    refusals: List[str] = field(default_factory=list)
    #: Regions whose older copy is in doubt.
    doubtful: List[int] = field(default_factory=list)
    #: A newer superblock may have been lost.
    super_in_doubt: bool = False
    #: Sector of one that may have been newer than a clean stop.
    newer_super: Optional[int] = None
    #: Doubts that no decision about the table takes away.
    hopeless: List[str] = field(default_factory=list)
    #: Chunk of the origin to where it is.
    chunks: Dict[int, Chunk] = field(default_factory=dict)
    #: Slots that a newer commit replaced: the kernel drops their records.
    replaced: List[int] = field(default_factory=list)

    @property
    def worst(self) -> Kind:
        """The worst of all findings."""
        return max((finding.kind for finding in self.findings),
                   default=Kind.NOTE)

    @property
    def exit_code(self) -> int:
        """0: sound; 1: damage that repair mends; 4: to be decided."""
        return {Kind.NOTE: 0, Kind.SPARE: 1, Kind.KNOWN: 1,
                Kind.DOUBT: 4}[self.worst]

    @property
    def dirty(self) -> Dict[int, Chunk]:
        """Chunks of which the origin has older bytes."""
        return {oblock: chunk for oblock, chunk in self.chunks.items()
                if chunk.record.dirty}

    def say(self, kind: Kind, sector: int, text: str,
            region: Optional[int] = None) -> None:
        """Note a finding."""
        self.findings.append(Finding(kind, sector, region, text))
