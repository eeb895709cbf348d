"""In a guest, in real time: reads of dm-dss that hit, beside dm-linear's.

Both lie over the same disk in memory, which answers at once: what differs
is the way through the target. A system call of a guest is dear, so many reads
go with one (io_submit).
"""

from __future__ import annotations

import ctypes
import json
import mmap
import random
import struct
import sys
import time
from typing import Dict, List, Sequence

from dm_ioctl import dm_path, dmsetup
from dss_guest import Direct, Disk, Dss

READS = 2000
BATCH = 100
_IO_SETUP, _IO_GETEVENTS, _IO_SUBMIT = 206, 208, 209
_PREAD = 0
#: data, key, rw_flags, opcode, priority, fd, buffer, bytes, offset, and
#: what a read leaves zero.
_IOCB = struct.Struct('<QIIHHIQQqQII')
_LIBC = ctypes.CDLL(None, use_errno=True)


class Batches:
    """Reads of 4 KiB, so many with one system call."""

    def __init__(self) -> None:
        self._context = ctypes.c_ulong(0)
        self._call(_IO_SETUP, BATCH, ctypes.byref(self._context))
        self._buffer = mmap.mmap(-1, BATCH * 4096)
        self._at = ctypes.addressof(ctypes.c_char.from_buffer(self._buffer))
        self._iocbs = ctypes.create_string_buffer(BATCH * _IOCB.size)
        begin = ctypes.addressof(self._iocbs)
        self._list = (ctypes.c_void_p * BATCH)(*[
            begin + number * _IOCB.size for number in range(BATCH)])
        self._events = ctypes.create_string_buffer(BATCH * 32)

    def _call(self, number: int, *words: object) -> int:
        done = _LIBC.syscall(number, *words)
        if done < 0:
            raise OSError(ctypes.get_errno(), 'system call %d' % number)
        return int(done)

    def read(self, fd: int, places: Sequence[int]) -> int:
        """Nanoseconds from the call to the last answer."""
        for number, place in enumerate(places):
            _IOCB.pack_into(
                self._iocbs, number * _IOCB.size, 0, 0, 0, _PREAD, 0, fd,
                self._at + number * 4096, 4096, place, 0, 0, 0)
        begin = time.perf_counter_ns()
        sent = self._call(_IO_SUBMIT, self._context, BATCH, self._list)
        back = self._call(_IO_GETEVENTS, self._context, BATCH, BATCH,
                          self._events, None)
        taken = time.perf_counter_ns() - begin
        results = struct.unpack_from('<%dq' % (4 * BATCH), self._events)
        if (sent, back) != (BATCH, BATCH) or set(results[2::4]) != {4096}:
            raise OSError('%d sent, %d back, %r' % (
                sent, back, set(results[2::4])))
        return taken



def main() -> None:
    chunk, rounds = int(sys.argv[1]), int(sys.argv[2])
    ssd, hdd = Disk('ssd', 24, 0), Disk('hdd', 16, 0)
    with open('/sys/kernel/config/nullb/ssd/power', 'w') as power:
        power.write('0')
    with open('/sys/kernel/config/nullb/ssd/irqmode', 'w') as mode:
        # No interrupt, no timer: the answer comes with the call.
        mode.write('0')
    with open('/sys/kernel/config/nullb/ssd/power', 'w') as power:
        power.write('1')
    dss = Dss(ssd.path, hdd.path, hdd.sectors, chunk)
    dmsetup('create', 'lin', '--table', '0 %d linear %s 0' % (
        hdd.sectors, ssd.path))
    devices = {'linear': Direct(dm_path('lin')), 'dss': Direct(dss.path)}
    blocks = hdd.sectors // 8
    for number in range(0, blocks, 256):
        devices['dss'].write(number * 4096, bytes(1 << 20))
    dss.message('drain')
    before = dss.status()
    chance = random.Random(1)
    best: Dict[str, List[float]] = {name: [] for name in devices}
    batches = Batches()
    for _round in range(rounds):
        places = [chance.randrange(blocks) * 4096 for _ in range(READS)]
        for name, device in devices.items():
            least = min(batches.read(device.fd, places[at:at + BATCH])
                        for at in range(0, READS, BATCH))
            best[name].append(least / BATCH)
    after = dss.status()
    print(json.dumps({
        'hits': after['read_hits'] - before['read_hits'],
        'misses': after['misses'] - before['misses'],
        'ns': {name: [round(duration) for duration in sorted(times)]
               for name, times in best.items()}}))


main()
