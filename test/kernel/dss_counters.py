"""In a guest: counters in sysfs are those of the messages, and live as
long as the table does."""

from __future__ import annotations

import json
import os
from typing import Any, Dict

from dss_guest import Direct, Disk, Dss, set_class


def read(path: str) -> str:
    with open(path) as source:
        return source.read()


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
    found: Dict[str, Any] = {
        'names': sorted(os.listdir(folder)), 'class11': read(
            folder + '/class11'), 'class25': read(folder + '/class25'),
        'class9': read(folder + '/class9'), 'device': read(
            folder + '/device'), 'stats': dss.message('stats'),
        'latency': dss.message('latency')}
    dss.reload(dss.table + ' ')
    found['after_reload'] = sorted(os.listdir(folder))
    device.close()
    dss.remove()
    found['after'] = os.path.exists(folder)
    print(json.dumps(found))


main()
