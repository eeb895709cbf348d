"""In a guest: many dirty chunks, none beside another, are cleaned at once.

The HDD takes a millisecond for each write, the SSD 50 for all reads that it
has at once. Prints how long the drain took, and the chunks of the HDD that
are wrong after it.
"""

from __future__ import annotations

import json
import time

from dss_guest import Direct, Disk, Dss

CHUNK_BYTES = 64 * 512
CHUNKS = 256


def body(place: int) -> bytes:
    return bytes([place % 251 + 1]) * CHUNK_BYTES


def main() -> None:
    ssd, hdd = Disk('ssd', 16, 50000), Disk('hdd', 32, 1000, 1)
    dss = Dss(ssd.path, hdd.path, hdd.sectors, 64,
              'idle_ms 0 high 100 low 100')
    device = Direct(dss.path)
    for place in range(CHUNKS):
        device.write(2 * place * CHUNK_BYTES, body(place))
    device.close()
    dirty = dss.status()['dirty']
    begin = time.monotonic()
    dss.message('drain')
    seconds = time.monotonic() - begin
    clean = dss.status()['dirty'] == 0
    dss.remove()
    device = Direct(hdd.path)
    wrong = [place for place in range(CHUNKS) if device.read(
        2 * place * CHUNK_BYTES, CHUNK_BYTES) != body(place)]
    device.close()
    print(json.dumps({'dirty': dirty, 'clean': clean, 'wrong': wrong,
                      'seconds': seconds}))


main()
