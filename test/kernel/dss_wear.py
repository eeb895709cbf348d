"""In a guest: how many bytes the SSD takes for what is written through a
stage.

Objects of a class that nothing but the stage lets onto the SSD are written
one after the other, each to a place of its own and flushed, and then all is
cleaned. The kernel's own counters of both disks say what they took.
"""

from __future__ import annotations

import json
import sys

from dss_guest import SECTOR, Direct, Disk, Dss, set_class

ROWS = ('0,0,always,back,0,65536,1,0,-,0', '11,700,always,back,0,65536,1,0,-')


def written(disk: Disk) -> int:
    """Bytes since it was made."""
    with open('/sys/block/%s/stat' % disk.name) as source:
        return int(source.read().split()[6]) * SECTOR


def main() -> None:
    object_bytes, count, stage = (int(word) for word in sys.argv[1:])
    ssd, hdd = Disk('ssd', 16, 80), Disk('hdd', 256, 1000, 4)
    dss = Dss(ssd.path, hdd.path, hdd.sectors, 128,
              'idle_ms 50 stage %d' % stage)
    dss.message('classes', *ROWS)
    before = written(ssd), written(hdd)
    device = Direct(dss.path)
    set_class(0)
    step = (256 << 20) // count // 4096 * 4096
    for number in range(count):
        for at in range(0, object_bytes, 65536):
            device.write(number * step + at, bytes([number % 251 + 1])
                         * min(65536, object_bytes - at))
        device.flush()
    dss.message('drain')
    after = written(ssd), written(hdd)
    right = all(device.read(number * step, object_bytes) == bytes(
        [number % 251 + 1]) * object_bytes for number in range(count))
    device.close()
    print(json.dumps({
        'uploaded': object_bytes * count, 'right': right,
        'ssd': after[0] - before[0], 'hdd': after[1] - before[1],
        'stage_waits': dss.stats()[-1]['stage_waits']}))
    dss.remove()


main()
