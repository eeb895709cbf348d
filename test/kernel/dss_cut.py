"""In a guest: a write past the SSD that has to be cut while it waits.

It is of class 12, over four chunks. Meanwhile class 13 writes the first or
the last of them past the SSD, and class 11 the second one to the SSD. That
is done sooner: then the write is cut, and a piece of it or its rest waits
for class 13. Prints a line of JSON.
"""

from __future__ import annotations

import json
import threading
import time
from typing import Any, Dict, List

from dss_guest import Direct, Disk, Dss, set_class

CHUNK = 64
CHUNK_BYTES = CHUNK * 512
CLASSES = ('11,2,always,back,0,65536,1,0,-',
           '12,1,never,through,0,65536,1,0,-',
           '13,1,always,around,0,65536,1,0,-')


def cut(dss: Dss, hdd: Disk, waits_for: int) -> Dict[str, Any]:
    """Who ended, what is read then, and what a power cut leaves of it.

    :param waits_for: the chunk that class 13 writes
    """
    device = Direct(dss.path)
    device.write(64 * CHUNK_BYTES, b'z' * 4096)
    # From now on what passes the SSD is durable when it ends.
    device.flush()
    ended: List[int] = []

    def write(class_id: int, chunk: int, data: bytes) -> None:
        set_class(class_id)
        own = Direct(dss.path)
        own.write(chunk * CHUNK_BYTES, data)
        ended.append(class_id)
        own.close()

    threads = [threading.Thread(target=write, args=args, daemon=True)
               for args in ((13, waits_for, b'y' * CHUNK_BYTES),
                            (11, 1, b'x' * CHUNK_BYTES),
                            (12, 0, b'w' * 4 * CHUNK_BYTES))]
    grouped = dss.stats()[-1]['grouped']
    for thread in threads:
        thread.start()
        time.sleep(0.0001)
    for thread in threads:
        thread.join(5.0)
    report = {'ended': ended, 'grouped': dss.stats()[-1]['grouped'] - grouped}
    if len(ended) < len(threads):
        return report
    report['right'] = device.read(0, 4 * CHUNK_BYTES) == b'w' * 4 * CHUNK_BYTES
    device.close()
    # No stop, no flush: the power is gone.
    hdd.power(False)
    hdd.power(True)
    origin = Direct(hdd.path)
    report['kept'] = ''.join(
        origin.read(chunk * CHUNK_BYTES, 512)[:1].decode()
        for chunk in (0, 2, 3))
    origin.close()
    dss.remove()
    return report


def main() -> None:
    reports = []
    for waits_for in (0, 3):
        # The SSD takes longer than the guest needs to send all three.
        ssd = Disk('ssd%d' % waits_for, 16, 500)
        hdd = Disk('hdd%d' % waits_for, 128, 2000, 1, 1)
        dss = Dss(ssd.path, hdd.path, hdd.sectors, CHUNK, 'idle_ms 0')
        dss.message('classes', *CLASSES)
        reports.append(cut(dss, hdd, waits_for))
        if 'right' not in reports[-1]:
            break
    print(json.dumps(reports), flush=True)


main()
