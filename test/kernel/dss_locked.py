"""In a guest, in real time: how long dm-dss holds its lock on a large SSD.

1 TiB in chunks of 64 KiB. Only the table needs memory: the data of both
devices is not kept.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Dict, List

from dm_ioctl import dm_path, dmsetup
from dss_guest import NULLB, Direct, Disk, Dss, put, set_class

HELD = '/sys/module/dm_dss/parameters/held'
CHUNK = 128
SSD_MIB = 1 << 20
TABLE_MIB = 1024
SPAN = 1 << 19
ROUNDS = 4


def empty(name: str, mib: int) -> str:
    """A device that keeps nothing."""
    folder = os.path.join(NULLB, name)
    os.mkdir(folder)
    for key, value in (('size', mib), ('memory_backed', 0), ('irqmode', 0),
                       ('queue_mode', 2), ('hw_queue_depth', 256),
                       ('max_sectors', 4096), ('power', 1)):
        put(os.path.join(folder, key), str(value))
    return '/dev/' + name


def held() -> Dict[str, int]:
    """By place, the microseconds that it held the lock, since the last call.

    Of twenty times the longest is left out: then the machine had taken its
    processor away from the guest.
    """
    most: Dict[str, int] = {}
    with open(HELD) as file:
        lines = file.readlines()
    put(HELD, '0')
    for line in lines:
        place, *steps = line.split()
        times = [tuple(map(int, step.split(':'))) for step in steps]
        left = sum(count for _us, count in times) // 20
        for us, count in reversed(times):
            left -= count
            if left < 0:
                most[place] = max(most.get(place, 0), us)
                break
    return most


def main() -> None:
    table = Disk('table', TABLE_MIB, 1)
    data, hdd = empty('data', SSD_MIB), empty('hdd', 4 * SSD_MIB)
    dmsetup('create', 'lssd', '--table', '0 %d linear %s 0\n%d %d linear %s 0'
            % (table.sectors, table.path, table.sectors,
               (SSD_MIB - TABLE_MIB) * 2048, data))
    dss = Dss(dm_path('lssd'), hdd, 4 * SSD_MIB * 2048, CHUNK)
    dss.message('classes', '11,5,always,through,0,65536,1,0,-',
                '12,5,always,back,0,65536,1,0,-')
    device = Direct(dss.path)
    buffer = b'd' * SPAN
    count = int(sys.argv[1])
    phases: Dict[str, List[Dict[str, int]]] = {
        'load': [], 'stop': [], 'settle': []}
    held()
    for number in range(ROUNDS):
        for class_id in (11, 12):
            set_class(class_id)
            for span in range(count):
                device.write(((number * 2 + class_id - 11) * count + span)
                             * SPAN, buffer)
        device.flush()
        dss.message('stats')
        dss.message('latency')
        dss.status()
        phases['load'].append(held())
        dss.message('commit')
        dmsetup('suspend', dss.name)
        dmsetup('resume', dss.name)
        phases['stop'].append(held())
    # One chunk of each region, on both devices: they settle together.
    set_class(11)
    unsettled = 0
    for _time in range(ROUNDS):
        for chunk in range(0, dss.status()['used'], 160):
            device.write(chunk * CHUNK * 512, buffer[:4096])
        unsettled = max(unsettled, dss.stats()[-1]['unsettled_regions'])
        held()
        device.flush()
        phases['settle'].append(held())
    report: Dict[str, Any] = {
        'unsettled': unsettled,
        'slots': dss.status()['slots'], 'used': dss.status()['used']}
    device.close()
    # Of the rounds the one that was least disturbed.
    report['most'] = {
        '%s: %s' % (phase, place): min(longest[place] for longest in rounds
                                       if place in longest)
        for phase, rounds in phases.items()
        for place in set().union(*rounds)}
    print(json.dumps(report))
    sys.stdout.flush()
    os._exit(0)


main()
