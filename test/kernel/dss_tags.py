"""In a guest: an HDD that takes one request at a time, and makes others wait.

Whoever gives it a further one stands still until it is taken.
"""

from __future__ import annotations

import json
import threading
import time

from dss_guest import Direct, Disk, Dss, put, set_class

CHUNK = 8
CHUNK_BYTES = CHUNK * 512
#: Between two chunks: neighbours would become one request.
STEP = 4 * CHUNK_BYTES
AROUND = '12,5,always,around,0,65536,1,0,-'
BACK = '11,9,always,back,0,65536,1,0,-'
WRITES = 30


def main() -> None:
    ssd, hdd = Disk('ssd', 16, 80), Disk('hdd', 64, 20000, 1)
    put('/sys/block/hdd/queue/scheduler', 'none')
    dss = Dss(ssd.path, hdd.path, hdd.sectors, CHUNK)
    dss.message('classes', AROUND, BACK)
    device = Direct(dss.path)
    set_class(11)
    for chunk in range(WRITES + 1):
        device.read(chunk * STEP, CHUNK_BYTES)
    time.sleep(1)
    # The table names them, so each write past the SSD waits for a commit.
    dss.message('commit')
    dss.message('demote', '0', str(WRITES * STEP // 512))
    devices = [Direct(dss.path) for _number in range(WRITES)]
    begin = threading.Barrier(WRITES + 1)

    def write(number: int) -> None:
        set_class(12)
        begin.wait()
        devices[number].write(number * STEP, b'w' * CHUNK_BYTES)

    threads = [threading.Thread(target=write, args=(number,))
               for number in range(WRITES)]
    for thread in threads:
        thread.start()
    begin.wait()
    # They are in the hands of the worker.
    time.sleep(0.03)
    at = time.monotonic()
    device.write(WRITES * STEP, b's' * CHUNK_BYTES)
    seconds = time.monotonic() - at
    for thread in threads:
        thread.join()
    right = all(device.read(chunk * STEP, CHUNK_BYTES)
                == (b's' if chunk == WRITES else b'w') * CHUNK_BYTES
                for chunk in range(WRITES + 1))
    print(json.dumps({'seconds': seconds, 'right': right,
                      'all': time.monotonic() - at,
                      'intents': dss.stats()[-1]['intents']}))


main()
