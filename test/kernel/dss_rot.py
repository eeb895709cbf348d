"""In a guest: table blocks that rot, and origins that are others.

``dss_rot.py table SEED ROUNDS`` cuts a cache off, damages copies of table
blocks and starts again: either the start is refused, or every byte that a
flush promised is there. What the tools say must be what the kernel does.

``dss_rot.py origin`` starts a cache with origins that are not its own.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from typing import Any, Dict, List

from dm_ioctl import dmsetup
from dss_guest import Direct, Disk, Dss

from swift_dss.block.ondisk.blocks import BLOCK_SECTORS
from swift_dss.block.ondisk.superblock import Superblock
from swift_dss.block.ondisk.reading import examine

CHUNK = 8
BLOCK = 4096
IDS = ('11' * 16, '22' * 16)


def pattern(number: int, version: int) -> bytes:
    return b'%07d.%07d.' % (number, version) * (BLOCK // 16)


PART = 1 << 20


def read_all(disk: Disk) -> bytes:
    device = Direct(disk.path)
    data = b''.join(device.read(at, PART)
                    for at in range(0, disk.mib << 20, PART))
    device.close()
    return data


def write_all(disk: Disk, data: bytes) -> None:
    device = Direct(disk.path)
    for at in range(0, len(data), PART):
        device.write(at, data[at:at + PART])
    device.close()


class Pair:
    """SSD and HDD, their bytes now, and a cache on them."""

    def __init__(self) -> None:
        self.ssd, self.hdd = Disk('ssd', 8, 80), Disk('hdd', 16, 100)

    def start(self, features: str = 'writeback idle_ms 0') -> Dss:
        return Dss(self.ssd.path, self.hdd.path, self.hdd.sectors, CHUNK,
                   features)

    def bytes_now(self) -> List[bytes]:
        return [read_all(disk) for disk in (self.ssd, self.hdd)]

    def put(self, saved: List[bytes]) -> None:
        for disk, data in zip((self.ssd, self.hdd), saved):
            write_all(disk, data)


def starts(pair: Pair, features: str = 'writeback idle_ms 0') -> Any:
    """The device, or None if the kernel refuses."""
    try:
        return pair.start(features)
    except RuntimeError:
        # What the failed resume left.
        try:
            dmsetup('remove', 'dss')
        except RuntimeError:
            pass
        return None


def fill(device: Direct, wanted: Dict[int, bytes], chance: random.Random,
         spread: range, count: int) -> None:
    for number in chance.sample(spread, count):
        wanted[number] = pattern(number, len(wanted))
        device.write(number * BLOCK, wanted[number])
    device.flush()


def prepared(pair: Pair, chance: random.Random, quiet: bool) -> Any:
    """A cache as a power cut leaves it, and what was promised of it."""
    pair.put([bytes(disk.mib << 20) for disk in (pair.ssd, pair.hdd)])
    dss = pair.start()
    device = Direct(dss.path)
    wanted: Dict[int, bytes] = {}
    fill(device, wanted, chance, range(1000), 100)
    if quiet:
        time.sleep(4)
    fill(device, wanted, chance, range(1000, 1500), 250)
    fill(device, wanted, chance, range(1000), 20)
    if quiet:
        time.sleep(4)
    # The last commit of all, of a region that is left alone: a damaged copy
    # of it would be taken for one that the cut itself damaged.
    for number in range(3000, 3400):
        wanted[number] = pattern(number, len(wanted))
        device.write(number * BLOCK, wanted[number])
    device.flush()
    saved = pair.bytes_now()
    device.close()
    dss.remove()
    return saved, wanted


def hurt(pair: Pair, saved: List[bytes], chance: random.Random) -> int:
    """Damage one or both copies of one to three regions."""
    ssd = bytearray(saved[0])

    def read(sector: int, count: int) -> bytes:
        return bytes(ssd[sector * 512:(sector + count) * 512])

    examined = examine(read, len(ssd) // 512)
    superblock: Superblock = examined.superblock
    newest = max(region.seq for region in examined.regions)
    old = [region for region in examined.regions if 0 < region.seq < newest]
    for region in chance.sample(old, chance.randint(1, min(3, len(old)))):
        for copy in chance.choice(((0,), (1,), (0, 1))):
            at = superblock.region_sector(region.number, copy) * 512
            if any(ssd[at:at + BLOCK]):
                # In the head, or in a record.
                place = at + chance.choice((
                    chance.randrange(32), chance.randrange(32, BLOCK)))
                ssd[place] ^= chance.randrange(1, 256)
    pair.put([bytes(ssd), saved[1]])
    said = examine(read, len(ssd) // 512)
    return len(said.refusals)


def table(seed: int, rounds: int) -> Dict[str, Any]:
    """Damage after damage."""
    chance = random.Random(seed)
    pair = Pair()
    report: Dict[str, Any] = {
        'started': 0, 'refused': 0, 'wrong': 0, 'disagreed': 0, 'dirty': 0,
        'quiet_started': 0}
    for number in range(rounds):
        if number % 5 == 0:
            quiet = number % 10 == 0
            saved, wanted = prepared(pair, chance, quiet)
        refusals = hurt(pair, saved, chance)
        dss = starts(pair)
        report['disagreed'] += bool(refusals) == bool(dss)
        if not dss:
            report['refused'] += 1
            continue
        report['started'] += 1
        report['quiet_started'] += quiet
        report['dirty'] += dss.status()['dirty']
        device = Direct(dss.path)
        report['wrong'] += sum(
            device.read(block * BLOCK, BLOCK) != data
            for block, data in wanted.items())
        device.close()
        dss.remove()
    return report


def origin() -> Dict[str, Any]:
    """Origins that are others, by name and by bytes."""
    pair = Pair()
    named = 'writeback idle_ms 0 origin_id '
    Direct(pair.hdd.path).write(0, pattern(1, 1))
    report: Dict[str, Any] = {}

    def attempt(step: str, features: str) -> None:
        dss = starts(pair, features)
        report[step] = dss is not None
        if dss:
            report[step + '_table'] = subprocess.run(
                ['dmsetup', 'table', 'dss'], check=True, capture_output=True,
                text=True).stdout.strip()
            dss.remove()

    attempt('first', named + IDS[0])
    attempt('same', named + IDS[0])
    attempt('other', named + IDS[1])
    attempt('nameless', 'writeback idle_ms 0')
    attempt('bad_id', named + 'zz' * 16)
    attempt('rebound', named + IDS[1] + ' rebind')
    attempt('first_again', named + IDS[0])
    # By hand, past the cache: in its first blocks, and far behind.
    for step, at in (('begin', 0), ('far', pair.hdd.mib // 17 * 5 << 20)):
        place = at if step == 'begin' else \
            pair.hdd.sectors // 17 * 5 // BLOCK_SECTORS * BLOCK
        was = Direct(pair.hdd.path).read(place, BLOCK)
        Direct(pair.hdd.path).write(place, pattern(2, 2))
        attempt('written_' + step, named + IDS[1])
        Direct(pair.hdd.path).write(place, was)
        attempt('restored_' + step, named + IDS[1])
    return report


def main() -> None:
    if sys.argv[1] == 'table':
        print(json.dumps(table(int(sys.argv[2]), int(sys.argv[3]))))
    else:
        print(json.dumps(origin()))


main()
