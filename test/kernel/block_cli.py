"""In a guest: the life of a dm-dss device, by ``swift-dss block`` alone.

Prints one line of JSON: what each step gave.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from typing import Any, Dict

from block_node import (
    MIB, TABLE, Disk, Writer, block, call, need, save_classes)

from swift_dss.block.ondisk.blocks import flip
from swift_dss.block.ondisk.reading import examine
from swift_dss.block.ondisk.device import SsdDevice

said: Dict[str, Any] = {}


def note(step: str, result: Any) -> Any:
    """Keep what a command of ours gave."""
    said[step] = result
    return result


def main() -> None:
    """All steps, in the order of an operator's."""
    ssd, hdd = Disk('s', 'ssd', 32), Disk('h', 'hdd', 64)
    save_classes()
    create = ('create', 'fast', '--ssd', ssd.path, '--origin', hdd.path,
              '--chunk', '16k', '--idle-ms', '0', '--json')
    refusals(create, ssd, hdd)
    note('create', block(*create, '--class-table', TABLE))
    note('create_again', block(*create))
    writer = Writer('/dev/mapper/fast')
    traffic(writer)
    note('status', block('status', 'fast', '--json', '--class-table', TABLE))
    note('status_text', block('status', '--class-table', TABLE))
    messages()
    watched()
    sizes(writer, ssd, hdd)
    stops(writer, create, ssd, hdd)
    crash(writer, create, ssd, hdd)
    repairs(writer, create, ssd)
    end(writer, create, ssd, hdd)


def refusals(create: Any, ssd: Disk, hdd: Disk) -> None:
    """What create must not touch."""
    need('mkfs.ext4', '-q', ssd.path)
    note('ssd_has_ext4', block(*create))
    os.makedirs('/run/m', exist_ok=True)
    need('mount', ssd.path, '/run/m')
    note('ssd_is_mounted', block(*create, '--force'))
    need('umount', '/run/m')
    need('mkswap', hdd.path)
    need('dd', 'if=/dev/zero', 'of=' + ssd.path, 'bs=1M', 'count=1')
    note('origin_has_swap', block(*create))
    need('wipefs', '-qa', hdd.path)
    with open(ssd.path, 'r+b') as device:
        device.seek(ssd.mib * MIB - 1024)
        device.write(b'Intel Raid ISM Cfg Sig. 1.0.00')
    note('ssd_has_raid', block(*create))
    note('forced', block(*create, '--force'))
    note('forced_signature', call('blkid', '-p', ssd.path))
    note('wiped', block('remove', 'fast', '--wipe'))
    with open('/run/tab', 'w') as out:
        out.write('fast %s %s\n' % (ssd.path, hdd.path))
    note('attach_empty', block('attach', 'fast', '--tab', '/run/tab'))
    note('one_device', block('create', 'fast', '--ssd', hdd.path, '--origin',
                             hdd.path))


def traffic(writer: Writer) -> None:
    """Two classes and one that nobody classified."""
    for number in range(16):
        writer.write(number * 65536, 16384, 11, 1)
        writer.write(MIB * 20 + number * 65536, 4096, 17, 1)
        writer.write(MIB * 30 + number * 65536, 4096, 0, 1)
    for number in range(16):
        writer.read(number * 65536, 16384, 11)
    writer.sync()


def messages() -> None:
    """Typed and raw ones."""
    note('raw', block('message', 'fast', 'stats'))
    note('same_table', block('message', 'fast', 'classes', TABLE))
    save_classes(90)
    note('new_table', block('message', 'fast', 'classes', TABLE))
    note('rows', block('message', 'fast', 'classes'))
    with open('/run/bad.conf', 'w') as out:
        out.write('[class:3]\nname = x\nrank = 1\nfloor = 2\n')
    note('bad_table', block('message', 'fast', 'classes', '/run/bad.conf'))
    note('bad_mode', block('message', 'fast', 'mode', 'sideways'))
    note('bad_raw', block('message', 'fast', 'class', '40,1,2'))
    note('rows_after', block('message', 'fast', 'classes'))
    note('mode', block('message', 'fast', 'mode', 'writethrough'))
    note('back', block('message', 'fast', 'mode', 'writeback'))


def watched() -> None:
    """A service of root keeps the table up to date, and leaves status."""
    service = subprocess.Popen(
        [sys.executable, '-m', 'swift_dss.cli.main', 'block', 'watch',
         '--class-table', TABLE, '--state-dir', '/run/state', 'fast'],
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    for rank in (80, 90):
        save_classes(rank)
        time.sleep(30)
        note('watched_%d' % rank, block('message', 'fast', 'classes'))
    with open(TABLE, 'w') as out:
        out.write('[class:0]')
    time.sleep(30)
    note('watched_bad', block('message', 'fast', 'classes'))
    save_classes(90)
    service.terminate()
    note('watch', [service.wait(), service.communicate()[1].decode()])
    with open('/run/state/fast.json') as source:
        note('state', json.load(source))


def sizes(writer: Writer, ssd: Disk, hdd: Disk) -> None:
    """Both devices become larger."""
    hdd.grow(96)
    ssd.grow(48)
    note('resize', block('resize', 'fast', '--json'))
    writer.write(80 * MIB, 16384, 11, 2)
    note('resized_differences', writer.differences())
    note('resized_rows', block('message', 'fast', 'classes'))
    note('shrink_too_far', block('resize', 'fast', '--ssd-size', '1m'))
    note('shrink_typo', block('resize', 'fast', '--ssd-size', 'much'))
    note('shrink', block('resize', 'fast', '--ssd-size', '40m', '--json'))
    note('shrunk_differences', writer.differences())


def overwrite(path: str, data: bytes) -> bytes:
    """Change the first bytes of a device; those that were there."""
    with open(path, 'r+b') as device:
        there = device.read(len(data))
        device.seek(0)
        device.write(data)
        device.flush()
        os.fsync(device.fileno())
    return there


def stops(writer: Writer, create: Any, ssd: Disk, hdd: Disk) -> None:
    """A clean stop keeps everything."""
    writer.write(65536, 16384, 11, 3)
    note('in_use', block('check', ssd.path))
    note('stop', block('remove', 'fast', '--keep-dirty', '--json'))
    note('check_clean', block('check', ssd.path, '--json'))
    note('dump_clean', block('dump', ssd.path, '--json', '--chunks'))
    note('dump_text', block('dump', ssd.path))
    note('format_dirty', block(*create, '--format'))
    # The same bytes, but not the device that the cache was made for.
    need('dmsetup', '--noudevsync', '--noudevrules', 'create', 'other',
         '--table', '0 %d linear %s 0' % (96 * 2048, hdd.path))
    note('other_origin', block(*[
        '/dev/mapper/other' if word == hdd.path else word
        for word in create]))
    need('dmsetup', '--noudevsync', '--noudevrules', 'remove', 'other')
    wrote = overwrite(hdd.path, b'written past the cache')
    note('written_origin', block(*create))
    overwrite(hdd.path, wrote)
    note('warm', block(*create))
    note('warm_rows', block('message', 'fast', 'classes'))
    note('warm_differences', writer.differences())
    attached(writer, ssd, hdd)


def attached(writer: Writer, ssd: Disk, hdd: Disk) -> None:
    """By the file of the node, as at boot."""
    writer.write(65536, 16384, 11, 3)
    note('stop_attached', block('remove', 'fast', '--keep-dirty'))
    with open('/run/tab', 'w') as out:
        out.write('fast %s %s high=61,low=31,idle-ms=0\nhand /dev/x /dev/y '
                  'noauto\nwrong\n' % (ssd.path, hdd.path))
    note('attach', block('attach', 'fast', '--tab', '/run/tab'))
    note('attach_again', block('attach', '--all', '--tab', '/run/tab'))
    note('attach_none', block('attach', 'x', '--tab', '/run/tab'))
    note('attached_differences', writer.differences())
    note('attached_table', call('dmsetup', 'table', 'fast'))


def crash(writer: Writer, create: Any, ssd: Disk, hdd: Disk) -> None:
    """The power is cut; what was synced is there, and the cache warm."""
    for number in range(8):
        writer.write(number * 65536, 16384, 11, 4)
    writer.sync()
    ssd.vanish()
    hdd.vanish()
    need('dmsetup', '--noudevsync', 'remove', 'fast')
    ssd.come_back()
    hdd.come_back()
    note('check_crashed', block('check', ssd.path, '--json'))
    note('warm_crashed', block(*create))
    note('crashed_differences', writer.differences())
    note('crashed_rows', block('message', 'fast', 'classes'))


def repairs(writer: Writer, create: Any, ssd: Disk) -> None:
    """A copy is mended, then the SSD itself."""
    writer.write(5 * 65536, 16384, 17, 5)
    note('stop_2', block('remove', 'fast', '--keep-dirty'))
    damage(ssd.path)
    shutil.copyfile(ssd.path, '/run/copy')
    note('check_damaged', block('check', '/run/copy', '--json'))
    note('start_damaged', block(*create))
    call('dmsetup', '--noudevsync', 'remove', 'fast')
    note('repair_dry', block('repair', '/run/copy', '--json'))
    note('repair_copy', block('repair', '/run/copy', '--output',
                              '/run/mended', '--json'))
    note('check_mended', block('check', '/run/mended', '--json'))
    note('check_original', block('check', '/run/copy'))
    note('repair', block('repair', ssd.path, '--yes', '--undo-file',
                         '/run/undo.json', '--json'))
    note('warm_repaired', block(*create))
    note('repaired_differences', writer.differences())


def damage(path: str) -> None:
    """Turn a bit over in the block of a region that has dirty chunks."""
    with SsdDevice(path, write=True) as device:
        ssd = examine(device.read, device.sectors)
        region = [region for region in ssd.regions if region.block and any(
            record.dirty for record in region.block.records)][0]
        sector = ssd.superblock.region_sector(region.number, region.copy)
        device.write(sector, flip(device.read(sector, 8), 5000))
        device.sync()


def end(writer: Writer, create: Any, ssd: Disk, hdd: Disk) -> None:
    """All bytes are on the origin, and nobody needs the SSD any more."""
    for number in range(16):
        writer.write(40 * MIB + number * 65536, 16384, 11, 6)
    with open('/dev/mapper/fast', 'rb'):
        note('remove_in_use', block('remove', 'fast'))
    # What the origin lacks now, so that the end shows something.
    note('differences_before', writer.differences(hdd.path))
    note('remove', block('remove', 'fast', '--json', '--wipe'))
    note('origin_differences', writer.differences(hdd.path))
    note('compared', len(writer.wanted))
    note('check_wiped', block('check', ssd.path))
    note('no_device', block('status', 'fast'))


try:
    main()
finally:
    print(json.dumps(said))
