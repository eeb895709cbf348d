"""In a guest: every state of the media at a flush or FUA point.

SSD and HDD are halves of one disk behind dm-log-writes, which logs all
that reaches the media in one order. A load runs; each flush that it was
promised is marked in the log. Then, for each flush or FUA write in the
log, the media are made what they were at that moment, once with all
writes before it and once without some of those that no flush had covered;
dm-dss starts from that, and every sector must have a version that it may
have, and keep it when all chunks leave the SSD.
"""

from __future__ import annotations

import json
import random
import struct
import sys
from typing import Dict, Iterator, List, NamedTuple, Set, Tuple

from dm_ioctl import dm_path, dmsetup
from dss_guest import SECTOR, Direct, Disk, Dss, Shadow, seed_from, set_class

MAGIC = 0x6a736677736872
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8
#: The mark after a write that needed an intent; those of promises are
#: numbers.
INTENT = b'intent'
SSD_SECTORS = 4096 + 512
HDD_SECTORS = 4096
CHUNK = 64
FEATURES = 'idle_ms 20 high 40 low 10 stage %d %s'
ROWS = ('0,0,room,back,0,65536,1,0,-', '11,700,always,back,0,65536,1,0,-',
        '12,600,always,through,0,65536,1,0,-',
        '25,900,always,around,0,65536,1,0,-')
#: With a stage nothing of these classes is dirty but by it.
STAGED_ROWS = (ROWS[0] + ',0', ROWS[1] + ',0', ROWS[2], ROWS[3])


class Entry(NamedTuple):
    sector: int
    flags: int
    data: bytes


def read_log(path: str) -> Iterator[Entry]:
    """The entries of dm-log-writes, format version 1."""
    device = Direct(path)
    magic, version, count, size = struct.unpack_from(
        '<QQQI', device.read(0, SECTOR))
    assert (magic, version, size) == (MAGIC, 1, SECTOR)
    place = 1
    for _ in range(count):
        block = device.read(place * SECTOR, SECTOR)
        sector, sectors, flags, length = struct.unpack_from('<QQQQ', block)
        place += 1
        if flags & MARK:
            yield Entry(0, flags, block[32:32 + length])
            continue
        data = b''
        if not flags & DISCARD:
            while len(data) < sectors * SECTOR:
                part = min(sectors * SECTOR - len(data), 1 << 20)
                data += device.read(place * SECTOR + len(data), part)
            place += sectors
        yield Entry(sector, flags, data)
    device.close()


def start(mode: str, stage: int) -> Dss:
    for name, begin, sectors in (('ssd', 0, SSD_SECTORS),
                                 ('hdd', SSD_SECTORS, HDD_SECTORS)):
        dmsetup('create', 'l' + name, '--table', '0 %d linear %s %d' % (
            sectors, dm_path('logged'), begin))
    return Dss(dm_path('lssd'), dm_path('lhdd'), HDD_SECTORS, CHUNK,
               FEATURES % (stage, mode))


def load(seed: int, requests: int, stage: int, shadow: Shadow
         ) -> Tuple[List[Dict[int, int]], int]:
    """Requests of all classes in all modes.

    :param stage: percent of the SSD
    :returns: what each mark promises, and how often a class had dirty
        chunks in the stage
    """
    chance = random.Random(seed)
    dss = start('writeback', stage)
    dss.message('classes', *(STAGED_ROWS if stage else ROWS))
    device = Direct(dss.path)
    promised: List[Dict[int, int]] = []
    kept: Dict[int, int] = {}
    intents = staged = 0
    for number in range(requests):
        set_class(chance.choice((0, 11, 12, 25)))
        sector = int(HDD_SECTORS * chance.random() ** 2)
        count = min(chance.choice((1, 8, 16, 64)), HDD_SECTORS - sector)
        if chance.random() < 0.7:
            shadow.write(device, sector, count)
        else:
            shadow.check(device, sector, count)
        told = dss.stats()
        before, intents = intents, told[-1]['intents']
        staged += bool(stage) and any(
            row.get('dirty') for row in told.values())
        if intents > before:
            dmsetup('message', 'logged', '0', 'mark', INTENT.decode())
        if chance.random() < 0.3:
            shadow.flush(device)
            kept = {number: version for number, version
                    in enumerate(shadow.kept) if version}
            dmsetup('message', 'logged', '0', 'mark', str(len(promised)))
            promised.append(kept)
        if number % 50 == 49:
            dss.message('mode', chance.choice((
                'writeback', 'writeback', 'writethrough', 'writearound')))
    device.close()
    dmsetup('remove', 'dss')
    for name in ('lssd', 'lhdd', 'logged'):
        dmsetup('remove', name)
    return promised, staged


def examine(image: bytearray, least: Dict[int, int], shadow: Shadow,
            disks: Tuple[Disk, Disk]) -> None:
    """Start from an image, and look at every sector twice."""
    for disk, data in zip(disks, (image[:SSD_SECTORS * SECTOR],
                                  image[SSD_SECTORS * SECTOR:])):
        device = Direct(disk.path)
        for place in range(0, len(data), 1 << 20):
            device.write(place, bytes(data[place:place + (1 << 20)]))
        device.close()
    dss = Dss(disks[0].path, disks[1].path, HDD_SECTORS, CHUNK)
    seen = Shadow(HDD_SECTORS)
    seen.issued = list(shadow.issued)
    for sector, version in least.items():
        seen.kept[sector] = version
    device = Direct(dss.path)
    try:
        seen.after_crash(device)
        dss.message('drain')
        dss.message('demote', '0', str(HDD_SECTORS))
        seen.check_all(device)
    finally:
        device.close()
        dss.remove()


def chosen(log: List[Entry], points: int, chance: random.Random) -> Set[int]:
    """The numbers of at most that many points.

    Up to half of them are the first flush after an intent, when the SSD has
    other bytes than the table told of before; the others lie anywhere.
    """
    total, told = 0, []
    waits = False
    for entry in log:
        if entry.flags & MARK:
            waits |= entry.data == INTENT
        elif entry.flags & (FLUSH | FUA):
            # The log has what was not FUA with the next flush.
            if waits and entry.flags & FLUSH:
                told.append(total)
                waits = False
            total += 1
    wanted = set(chance.sample(told, min(points // 2, len(told))))
    rest = [number for number in range(total) if number not in wanted]
    return wanted | set(chance.sample(
        rest, min(points - len(wanted), len(rest))))


def replay(log: List[Entry], promised: List[Dict[int, int]], shadow: Shadow,
           disks: Tuple[Disk, Disk], points: int, seed: int) -> int:
    """Examine at most that many points of the log."""
    chance = random.Random(seed)
    image = bytearray((SSD_SECTORS + HDD_SECTORS) * SECTOR)
    sure = bytearray(image)
    loose: List[Entry] = []
    least: Dict[int, int] = {}
    wanted = chosen(log, points, chance)
    number = examined = 0
    for entry in log:
        if entry.flags & MARK:
            if entry.data.isdigit():
                least = promised[int(entry.data)]
            continue
        if entry.flags & FLUSH:
            sure[:] = image
            loose = []
        place = entry.sector * SECTOR
        image[place:place + len(entry.data)] = entry.data
        loose.append(entry)
        if entry.flags & FUA:
            sure[place:place + len(entry.data)] = entry.data
        if not entry.flags & (FLUSH | FUA):
            continue
        number += 1
        if number - 1 not in wanted:
            continue
        examine(image, least, shadow, disks)
        torn = bytearray(sure)
        for late in loose:
            if late.flags & FUA or chance.random() < 0.5:
                begin = late.sector * SECTOR
                torn[begin:begin + len(late.data)] = late.data
        examine(torn, least, shadow, disks)
        examined += 1
    return examined


def main() -> None:
    seed = seed_from(sys.argv[1:])
    requests, points = int(sys.argv[2]), int(sys.argv[3])
    stage = int(sys.argv[4]) if sys.argv[4:] else 0
    base = Disk('base', 8, 80, 64, cache_mib=1)
    record = Disk('record', 256, 10)
    disks = (Disk('ssd', 3, 10), Disk('hdd', 3, 10))
    dmsetup('create', 'logged', '--table', '0 %d log-writes %s %s' % (
        SSD_SECTORS + HDD_SECTORS, base.path, record.path))
    shadow = Shadow(HDD_SECTORS)
    promised, staged = load(seed, requests, stage, shadow)
    log = list(read_log(record.path))
    examined = replay(log, promised, shadow, disks, points, seed)
    print(json.dumps({
        'entries': len(log), 'promises': len(promised), 'staged': staged,
        'points': sum(bool(entry.flags & (FLUSH | FUA)) for entry in log),
        'intents': sum(bool(entry.flags & MARK) and entry.data == INTENT
                       for entry in log),
        'examined': examined}))


if __name__ == '__main__':
    main()
