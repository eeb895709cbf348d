"""Mend a cache that no kernel uses, without dropping readable data.

:func:`plan` turns the findings of
:func:`~swift_dss.block.ondisk.reading.examine` into writes. Known blocks are
restored. For copies in doubt there is no plan before the operator has decided:

``older``
    the older copies count, as after a crash. Right if nothing was committed
    after them; else readers may get wrong bytes.
``drop``
    the SSD forgets the chunks in doubt, and the origin's bytes count. Chunks
    that the older copies call dirty are salvaged first: the caller MUST keep
    their bytes and places.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass, field
from typing import Dict, List, Optional

from swift_dss.block.ondisk.blocks import BLOCK_BYTES, BLOCK_SECTORS, is_sound
from swift_dss.block.ondisk.findings import (
    Chunk, Examined, Kind, NotACache, Place, Progress, Read)
from swift_dss.block.ondisk.geometry import HEAD, Geometry, plan_segment
from swift_dss.block.ondisk.reading import examine_table
from swift_dss.block.ondisk.superblock import (
    SUPER_SECTORS, Superblock, build_super, table_sum)
from swift_dss.block.ondisk.table_block import (
    TABLE_MAGIC, Record, TableBlock, build_block)
from swift_dss.core.errors import DssError

DECISIONS = ('older', 'drop')


class NeedsDecision(DssError):
    """Nothing was changed: see the module for the choices."""

    exit_code = 4


@dataclass
class Plan:
    """The blocks to write, in this order.

    :param salvage: chunks whose bytes must be kept elsewhere first, by
        their number on the origin
    """

    writes: List[Place] = field(default_factory=list)
    salvage: List[Chunk] = field(default_factory=list)
    dropped_chunks: int = 0

    def over(self, read: Read) -> Read:
        """Reads as if all of it were written."""
        blocks = {place.sector: place.wanted for place in self.writes}

        def patched(sector: int, count: int) -> bytes:
            data = bytearray(read(sector, count))
            for at in range(sector, sector + count):
                if at in blocks:
                    begin = (at - sector) * 512
                    data[begin:begin + BLOCK_BYTES] = blocks[at]
            return bytes(data)

        return patched


def plan(ssd: Examined, read: Read, decision: str = '') -> Plan:
    """How to make a cache sound.

    :param decision: one of :data:`DECISIONS`, or '' for none
    :raises NeedsDecision: something is in doubt and there is none, or it
        does not help
    """
    _check(ssd, decision)
    made = Plan()
    superblock = ssd.superblock
    for region in ssd.regions:
        made.writes += region.places
    dropped = list(ssd.doubtful) if decision == 'drop' else []
    if superblock.has_failed or (
            ssd.super_in_doubt and decision == 'drop'):
        dropped = list(range(superblock.nr_regions))
    seqs = {region.number: region.best_seq for region in ssd.regions}
    newest = max([superblock.commit_seq] + list(seqs.values())) + 1
    for number in sorted(set(dropped)):
        _drop(ssd, read, number, newest, made)
        seqs[number] = newest
    lost_super = [place for place in ssd.super_places
                  if not any(place.wanted)]
    # A flipped bit of the superblock is put back as it was.
    made.writes += [place for place in ssd.super_places
                    if any(place.wanted)]
    changed = bool(ssd.doubtful or dropped)
    if lost_super or changed or superblock.bad_rows:
        made.writes += [place for place in lost_super
                        if place.sector == superblock.sector]
        _write_super(superblock, changed or ssd.super_in_doubt, seqs,
                     newest, read, made)
    return made


def _check(ssd: Examined, decision: str) -> None:
    if ssd.hopeless:
        raise NeedsDecision('%s: no repair of the SSD helps; give the device '
                            'the size it had' % '; '.join(ssd.hopeless))
    in_doubt = [finding.text for finding in ssd.findings
                if finding.kind is Kind.DOUBT]
    if in_doubt and decision not in DECISIONS:
        raise NeedsDecision('%s (decide: %s)' % (
            '; '.join(in_doubt), ' or '.join(DECISIONS)))
    if decision != 'older':
        return
    twice = [text for text in ssd.refusals if 'two slots' in text]
    if ssd.superblock.has_failed or twice:
        raise NeedsDecision('%s: the SSD contradicts itself, so only "drop" '
                            'helps' % '; '.join(ssd.refusals))


def _drop(ssd: Examined, read: Read, number: int, seq: int,
          made: Plan) -> None:
    """Let a region be empty, in a version newer than all."""
    superblock = ssd.superblock
    region = ssd.regions[number]
    first, count = superblock.region_slots(number)
    block = region.best
    if block is not None:
        for at, record in enumerate(block.records):
            if record.oblock is None:
                continue
            made.dropped_chunks += 1
            if record.dirty:
                made.salvage.append(Chunk(first + at, record))
    # Over the copy that does not count, so that a power cut in between
    # leaves things as they were.
    counts = region.known_copy if region.known else region.copy
    copy = 1 - counts if block is not None else 1
    sector = superblock.region_sector(number, copy)
    made.writes = [place for place in made.writes if place.sector != sector]
    made.writes.append(Place(
        sector, read(sector, BLOCK_SECTORS), build_block(
            TableBlock(superblock.generation, seq, number,
                       (Record(None),) * count), superblock.geometry)))


def _write_super(superblock: Superblock, changed: bool, seqs: Dict[int, int],
                 newest: int, read: Read, made: Plan) -> None:
    """The next superblock, over the copy that does not count.

    The decision about the table holds once this write is durable; until then
    the old superblock still refuses to start.
    """
    fresh = dataclasses.replace(
        superblock, seq=superblock.seq + 1, bad_rows=())
    if changed:
        fresh = dataclasses.replace(
            fresh, flags=0, twin_seq=0, commit_seq=newest, table_sum=table_sum(
                [seqs[number] for number in range(superblock.nr_regions)]))
    made.writes.append(Place(
        fresh.sector, read(fresh.sector, BLOCK_SECTORS),
        build_super(fresh)))


def rebuild(read: Read, sectors: int, geometry: Geometry,
            origin_sectors: int,
            progress: Progress = lambda done, of: None) -> Examined:
    """The contents of a cache whose superblocks are both gone.

    Only a cache that never grew can be rebuilt, because the place of a further
    segment's table is lost.

    :param geometry, origin_sectors: as it was made with
    :param sectors: size of the SSD when it was made
    :raises NotACache: no table block that fits to these figures
    """
    segment = plan_segment(geometry, SUPER_SECTORS, sectors)
    if segment is None:
        raise NotACache('%d sectors have no room for a cache' % sectors)
    seen: Counter[int] = Counter()
    for number in range(2 * segment.nr_regions):
        generation = _generation(
            read(segment.table_sector + number * BLOCK_SECTORS,
                 BLOCK_SECTORS), number // 2, geometry)
        if generation is not None:
            seen[generation] += 1
    if not seen:
        raise NotACache('no table block of a cache of this size with chunks '
                        'of %d and grains of %d sectors' % (
                            geometry.chunk_sectors, geometry.grain_sectors))
    if len(seen) > 1:
        raise NotACache('table blocks of %d caches: the sizes given are not '
                        'those of this one' % len(seen))
    made = Superblock(
        bytes(16), seen.most_common(1)[0][0], 1, geometry.chunk_sectors,
        geometry.grain_sectors, origin_sectors, (segment,))
    ssd = Examined(made, sectors)
    ssd.say(Kind.DOUBT, 0, 'both superblocks are gone: sizes and the class '
            'table are what you say, and whether the SSD failed is not '
            'known')
    ssd.super_in_doubt = True
    ssd.super_places += [
        Place(sector, read(sector, BLOCK_SECTORS), bytes(BLOCK_BYTES))
        for sector in (0, BLOCK_SECTORS)]
    return examine_table(ssd, read, progress)


def _generation(block: bytes, region: int,
                geometry: Geometry) -> Optional[int]:
    if len(block) != BLOCK_BYTES or not is_sound(block):
        return None
    _csum, magic, generation, _seq, number, _count, record_bytes = \
        HEAD.unpack_from(block)
    if (magic, number, record_bytes) != (
            TABLE_MAGIC, region, geometry.record_bytes):
        return None
    return int(generation)
