"""In a guest: a stage of few slots is full of writes on their way to the SSD.

Threads write one chunk at a time, faster than the HDD takes them, of a class
that nothing but the stage lets onto the SSD. Their bytes are read back at the
end. The arguments are the stage in percent, and the microseconds of a request
of the SSD.
"""

from __future__ import annotations

import json
import random
import sys
import threading
from typing import List

from dss_guest import Direct, Disk, Dss, set_class

CHUNK_BYTES = 64 * 512
THREADS = 8
ROWS = ('0,0,always,back,0,65536,1,0,-,0',)


def body(place: int) -> bytes:
    return bytes([place % 251 + 1]) * CHUNK_BYTES


def write_some(path: str, places: List[int]) -> None:
    set_class(0)
    device = Direct(path)
    for place in places:
        device.write(place * CHUNK_BYTES, body(place))
        device.flush()
    device.close()


def main() -> None:
    stage, microseconds = map(int, sys.argv[1:])
    ssd, hdd = Disk('ssd', 6, microseconds), Disk('hdd', 96, 2000, 4)
    dss = Dss(ssd.path, hdd.path, hdd.sectors, 64,
              'idle_ms 0 high 90 low 80 stage %d' % stage)
    dss.message('classes', *ROWS)
    places = list(range((hdd.mib << 20) // CHUNK_BYTES // 2))
    random.Random(1).shuffle(places)
    threads = [threading.Thread(target=write_some, args=(
        dss.path, places[number::THREADS])) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stats = dss.stats()
    dss.message('drain')
    device = Direct(dss.path)
    wrong = [place for place in places if device.read(
        place * CHUNK_BYTES, CHUNK_BYTES) != body(place)]
    device.close()
    print(json.dumps({
        'wrong': wrong, 'waits': stats[-1]['stage_waits'],
        'passed': stats[0]['bypass_dirty_cap']}))
    dss.remove()


main()
