"""In a guest: a chunk moves while the table is drawn, and the power goes.

The module takes a second between two regions of a picture.
"""

from __future__ import annotations

import json
import threading
import time

from dss_guest import Direct, Machine, set_class

CHUNK = 8
CHUNK_BYTES = CHUNK * 512
#: More than a region has, and fewer than two have.
FILLED = 250


def main() -> None:
    machine = Machine(CHUNK, 8)
    dss = machine.start('writeback')
    dss.message('watermarks', '100', '100')
    dss.message('idle_ms', '0')
    device = Direct(dss.path)
    set_class(11)
    for chunk in range(FILLED):
        device.read(chunk * CHUNK_BYTES, CHUNK_BYTES)
    time.sleep(1)
    for chunk in (5, FILLED - 5):
        device.write(chunk * CHUNK_BYTES, b'd' * CHUNK_BYTES)
    device.flush()
    # Both regions differ from the table now.
    for chunk in (7, FILLED - 7):
        dss.message('demote', str(chunk * CHUNK), '1')
    before = dss.stats()[-1]['table_writes']
    commit = threading.Thread(target=device.flush)
    begin = time.monotonic()
    commit.start()
    time.sleep(0.5)
    # Of the first region, which is drawn: it leaves, another one gets its
    # slot, and it comes back.
    dss.message('demote', str(9 * CHUNK), '1')
    device.read(2000 * CHUNK_BYTES, CHUNK_BYTES)
    device.read(9 * CHUNK_BYTES, CHUNK_BYTES)
    waited = time.monotonic() - begin
    commit.join()
    report = {'drawn': dss.stats()[-1]['table_writes'] - before,
              'seconds': time.monotonic() - begin, 'waited': waited}
    machine.cut()
    device.close()
    machine.lose_power(dss)
    dss = machine.start('writeback')
    report['used'] = dss.status()['used']
    device = Direct(dss.path)
    report['right'] = all(
        device.read(chunk * CHUNK_BYTES, CHUNK_BYTES) == b'd' * CHUNK_BYTES
        for chunk in (5, FILLED - 5))
    print(json.dumps(report))


main()
