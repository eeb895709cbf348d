"""In a guest: random requests of many chunks, one after the other.

``dss_spans.py <seed> <requests> <mode> <ahead> <MiB>``. Prints a line of
JSON: what the core counted for each class, if the right bytes came back, and
how many requests the HDD got.
"""

from __future__ import annotations

import json
import random
import sys
import time
from typing import Any, Dict

from dss_guest import Direct, Disk, Dss, set_class

CHUNK = 64
GRAIN_BYTES = 4096
MOST_BYTES = 512 << 10
#: Plain ones of two ranks, one that stays outside, one that stays outside
#: in long runs, one that is written on both, one that leaves after a hit.
CLASSES = ('11,1,always,back,0,65536,1,0,-',
           '12,2,never,back,0,65536,1,0,-',
           '13,3,always,back,0,65536,1,512,-',
           '14,2,always,through,0,32768,1,0,-',
           '15,2,always,back,0,65536,1,0,evict-on-hit',
           '16,2,room,around,0,65536,1,0,-')


def spans(seed: int, requests: int, mode: str, ahead: int,
          mib: int) -> Dict[str, Any]:
    random.seed(seed)
    ssd, hdd = Disk('ssd', 16, 10), Disk('hdd', 64, 100)
    dss = Dss(ssd.path, hdd.path, hdd.sectors, CHUNK,
              '%s idle_ms 0 high 100 low 100 ahead %d' % (mode, ahead))
    dss.message('classes', *CLASSES)
    device = Direct(dss.path)
    zone = mib << 20
    bytes_now = bytearray(zone)
    right, end = True, 0
    for number in range(requests):
        set_class(random.randrange(11, 17))
        length = random.choice((512, GRAIN_BYTES, 1 << 16, MOST_BYTES))
        length = random.randrange(1, length // 512 + 1) * 512
        begin = random.randrange((zone - length) // 512) * 512
        if random.random() < 0.7:
            begin -= begin % GRAIN_BYTES
        if random.random() < 0.3 and end + length <= zone:
            begin = end
        end = begin + length
        if random.random() < 0.5:
            right &= device.read(begin, length) == bytes_now[begin:end]
        else:
            data = (b'%07d\n' % number) * (length // 8)
            device.write(begin, data)
            bytes_now[begin:end] = data
        # On the guest's clock: fills end before the next request.
        time.sleep(0.01)
    report = {'counts': {
        class_id: {name: value for name, value in row.items()
                   if name.startswith(('read_hits', 'write_hits', 'misses',
                                       'takes', 'bypass', 'evicted',
                                       'reclassed', 'resident'))}
        for class_id, row in dss.stats().items() if class_id >= 0}}
    with open('/sys/block/hdd/stat') as file:
        words = file.read().split()
    report['hdd'] = [int(words[0]), int(words[4])]
    dss.message('drain')
    device.close()
    dss.remove()
    origin = Direct(hdd.path)
    for begin in range(0, zone, MOST_BYTES):
        right &= origin.read(begin, MOST_BYTES) == \
            bytes_now[begin:begin + MOST_BYTES]
    origin.close()
    report['right'] = right
    return report


print(json.dumps(spans(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3],
                       int(sys.argv[4]), int(sys.argv[5]))), flush=True)
