"""In a guest: counters in sysfs are those of the messages, and live as
long as the table does."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List

from dss_guest import Direct, Disk, Dss, set_class


def read(path: str) -> str:
    with open(path) as source:
        return source.read()


def waits_and_reset(dss: Dss, device: Direct) -> List[Dict[str, int]]:
    """The device's counters: writes waited for a stage of few slots; and
    after a reset."""
    dss.message('stage', '1')
    dss.message('class', '11,700,always,back,0,65536,1,0,-,0')
    set_class(11)
    for number in range(16):
        device.write(number << 17, bytes(4096))
    told = [dss.stats()[-1]]
    dss.message('drain')
    dss.message('reset')
    return told + [dss.stats()[-1]]


def main() -> None:
    ssd, hdd = Disk('ssd', 8, 80), Disk('hdd', 32, 1000, 4)
    dss = Dss(ssd.path, hdd.path, hdd.sectors, 64)
    folder = '/sys/block/%s/dss' % os.path.basename(dss.path)
    device = Direct(dss.path)
    for class_id in (11, 25):
        set_class(class_id)
        for number in range(class_id):
            device.write((number << 16) + (class_id << 20), bytes(4096))
    device.read(11 << 20, 4096)
    report: Dict[str, Any] = {
        'names': sorted(os.listdir(folder)), 'class11': read(
            folder + '/class11'), 'class25': read(folder + '/class25'),
        'class9': read(folder + '/class9'), 'device': read(
            folder + '/device'), 'stats': dss.message('stats'),
        'latency': dss.message('latency')}
    dss.reload(dss.table + ' ')
    report['after_reload'] = sorted(os.listdir(folder))
    report['reset'] = waits_and_reset(dss, device)
    device.close()
    dss.remove()
    report['after'] = os.path.exists(folder)
    print(json.dumps(report))


main()
