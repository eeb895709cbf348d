"""In a guest: no request may wait for memory, and there is none.

All allocations that must not wait fail; what the pools keep back is all that
there is. In virtual time a worker that tries again at once stops the guest's
clock for ever.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from typing import Any, Callable, Dict, Iterator, List

from dss_guest import Direct, Disk, Dss, put, set_class

FAIL = '/sys/kernel/debug/failslab/'
GRAIN_BYTES = 4096
THROUGH = '11,5,always,through,0,65536,1,0,-'


@contextlib.contextmanager
def no_memory() -> Iterator[None]:
    """Allocations that may wait are spared; so programs go on."""
    for name, value in (('verbose', '0'), ('ignore-gfp-wait', 'Y'),
                        ('times', '-1'), ('interval', '1'),
                        ('probability', '100')):
        put(FAIL + name, value)
    try:
        yield
    finally:
        put(FAIL + 'probability', '0')


def together(actions: List[Callable[[], object]]) -> None:
    """All at once, each in a thread that is ready before memory ends."""
    begin = threading.Barrier(len(actions) + 1)

    def run(action: Callable[[], object]) -> None:
        set_class(11)
        begin.wait()
        action()

    threads = [threading.Thread(target=run, args=(action,))
               for action in actions]
    for thread in threads:
        thread.start()
    with no_memory():
        begin.wait()
        for thread in threads:
            thread.join()


def cut(ssd: Disk, hdd: Disk) -> Dict[str, Any]:
    """A read that is cut into more pieces than the pool has."""
    chunk = 2048
    grains = chunk // 8
    dss = Dss(ssd.path, hdd.path, hdd.sectors, chunk)
    writer, reader = Direct(dss.path), Direct(dss.path)
    set_class(11)
    # Every second grain is on the SSD, so each is a piece by itself.
    wanted = bytearray(grains * GRAIN_BYTES)
    for grain in range(0, grains, 2):
        data = bytes([grain % 251 + 1]) * GRAIN_BYTES
        writer.write(grain * GRAIN_BYTES, data)
        wanted[grain * GRAIN_BYTES:(grain + 1) * GRAIN_BYTES] = data
    first = bytes(wanted[:GRAIN_BYTES])
    got = []
    together([lambda: writer.write(0, first),
              lambda: got.append(reader.read(0, len(wanted)))])
    return {'right': got == [bytes(wanted)],
            'deferred': dss.stats()[-1]['deferred']}


def doubled(ssd: Disk, hdd: Disk) -> Dict[str, Any]:
    """More doubled writes than the pool has copies."""
    dss = Dss(ssd.path, hdd.path, hdd.sectors, 8)
    dss.message('classes', THROUGH)
    devices = [Direct(dss.path) for _number in range(120)]
    together([
        lambda device=device, number=number: device.write(  # type: ignore
            number << 19, bytes([number + 1]) * GRAIN_BYTES)
        for number, device in enumerate(devices)])
    right = all(device.read(number << 19, GRAIN_BYTES)
                == bytes([number + 1]) * GRAIN_BYTES
                for number, device in enumerate(devices))
    return {'right': right, 'used': dss.status()['used']}


def main() -> None:
    ssd, hdd = Disk('ssd', 64, 4000, 256), Disk('hdd', 128, 20000, 256)
    scenario = {'cut': cut, 'doubled': doubled}[sys.argv[1]]
    print(json.dumps(scenario(ssd, hdd)))


main()
