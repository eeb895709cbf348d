"""In a guest: one thing after the other that dm-dss promises.

Each function is a scenario on new devices and prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any, Callable, Dict, List

from dm_ioctl import dm_path, dmsetup
from dss_guest import Direct, Disk, Dss, set_class

CHUNK = 64
CHUNK_BYTES = CHUNK * 512
PLAIN = '%d,%d,always,back,0,65536,1,0,%s'


def fill(device: Direct, chunks: range, class_id: int) -> None:
    set_class(class_id)
    for chunk in chunks:
        device.read(chunk * CHUNK_BYTES, 4096)
        # The read is done before the fill is.
        time.sleep(0.001)


def warm(ssd: Disk, hdd: Disk) -> Dict[str, Any]:
    """A clean stop keeps classes, dirty bytes, order of use and table."""
    dss = Dss(ssd.path, hdd.path, hdd.sectors, CHUNK)
    dss.message('classes', PLAIN % (0, 0, '-'), PLAIN % (11, 5, '-'),
                PLAIN % (25, 9, 'pin'))
    slots = dss.status()['slots']
    device = Direct(dss.path)
    fill(device, range(10), 25)
    fill(device, range(10, slots), 11)
    set_class(11)
    device.write(20 * CHUNK_BYTES, b'd' * 4096)
    for chunk in range(slots - 1, 20, -1):
        device.read(chunk * CHUNK_BYTES, 4096)
    before, rows = dss.status(), dss.message('classes')
    device.close()
    dss.remove()
    begin = time.monotonic()
    dss = Dss(ssd.path, hdd.path, hdd.sectors, CHUNK)
    seconds = time.monotonic() - begin
    after = dss.status()
    device = Direct(dss.path)
    dirty = device.read(20 * CHUNK_BYTES, 4096) == b'd' * 4096
    # Five new ones of class 11 push out the five that were used longest
    # ago: chunks 10 to 14.
    fill(device, range(2000, 2005), 11)
    hits = dss.status()['read_hits']
    set_class(11)
    device.read(15 * CHUNK_BYTES, 4096)
    device.read((slots - 1) * CHUNK_BYTES, 4096)
    oldest_left = dss.status()['read_hits'] - hits
    misses = dss.status()['misses']
    device.read(12 * CHUNK_BYTES, 4096)
    device.close()
    same = all(before[key] == after[key] for key in
               ('used', 'classes', 'dirty_grains', 'dirty'))
    return {'same': same, 'dirty_kept': dirty, 'slots': slots,
            'used': after['used'], 'rows': dss.message('classes') == rows,
            'younger_hit': oldest_left,
            'oldest_missed': dss.status()['misses'] - misses,
            'seconds': seconds}


def sieved(ssd: Disk, hdd: Disk) -> Dict[str, Any]:
    """In order ``sieve`` what was used again stays, over a stop too."""
    dss = Dss(ssd.path, hdd.path, hdd.sectors, CHUNK)
    dss.message('classes', PLAIN % (11, 5, '-,65536,sieve'))
    slots, rows = dss.status()['slots'], dss.message('classes')
    device = Direct(dss.path)
    fill(device, range(slots), 11)
    for chunk in range(5):
        device.read(chunk * CHUNK_BYTES, 4096)
    fill(device, range(2000, 2005), 11)
    # Their marks are gone; these get one.
    device.read(20 * CHUNK_BYTES, 4096)
    device.close()
    dss.message('check')
    dss.remove()
    dss = Dss(ssd.path, hdd.path, hdd.sectors, CHUNK)
    device = Direct(dss.path)
    # From 10 on, but not 20.
    fill(device, range(3000, 3011), 11)
    dss.message('check')

    def is_there(chunk: int) -> bool:
        hits = dss.status()['read_hits']
        device.read(chunk * CHUNK_BYTES, 4096)
        return bool(dss.status()['read_hits'] > hits)

    stayed = [chunk for chunk in [0, 4, 20, 22, 2000] if is_there(chunk)]
    left = [chunk for chunk in [5, 9, 10, 19, 21] if not is_there(chunk)]
    device.close()
    return {'rows': rows.split() == dss.message('classes').split() == [
        PLAIN % (11, 5, '-,65536,sieve')], 'stayed': stayed, 'left': left}


def small_misses(ssd: Disk, hdd: Disk) -> Dict[str, Any]:
    """A small miss of a chunk of 1 MiB moves what was asked for."""
    dss = Dss(ssd.path, hdd.path, hdd.sectors, 2048)
    device = Direct(dss.path)
    set_class(25)

    def sectors(disk: Disk, field: int) -> int:
        with open('/sys/block/%s/stat' % disk.name) as file:
            return int(file.read().split()[field])

    before = sectors(hdd, 2)
    device.read(0, 8192)
    device.read(8192, 512)
    time.sleep(0.01)
    hits = sectors(ssd, 2)
    device.read(0, 8192)
    device.write(65536, b'w' * 4096)
    device.read(65536, 4096)
    report = {'hdd_read_sectors': sectors(hdd, 2) - before,
              'ssd_read_sectors': sectors(ssd, 2) - hits,
              'hdd_write_sectors': sectors(hdd, 6)}
    device.close()
    return report


def flags(ssd: Disk, hdd: Disk) -> Dict[str, Any]:
    """What classes may say beyond a rank."""
    dss = Dss(ssd.path, hdd.path, hdd.sectors, CHUNK)
    dss.message('classes', '0,0,never,back,0,65536,1,0,-',
                PLAIN % (11, 5, 'evict-on-hit'), PLAIN % (12, 5, '-'),
                PLAIN % (13, 5, 'no-allocate'), PLAIN % (14, 5, 'direct-hdd'),
                '15,5,always,back,0,65536,1,32,-',
                '16,5,always,around,0,65536,1,0,-')
    device = Direct(dss.path)
    report: Dict[str, Any] = {}
    fill(device, range(1), 0)
    report['never'] = dss.status()['used']
    fill(device, range(1, 2), 11)
    report['evict_before'] = dss.status()['used']
    fill(device, range(1, 2), 11)
    report['evict_after_hit'] = dss.status()['used']
    fill(device, range(2, 3), 12)
    fill(device, range(2, 4), 13)
    report['no_allocate'] = dss.status()['classes']
    fill(device, range(4, 5), 14)
    set_class(14)
    device.write(2 * CHUNK_BYTES, b'x' * 4096)
    report['direct_hdd'] = dss.status()['used']
    set_class(15)
    for page in range(64):
        device.read(100 * CHUNK_BYTES + page * 8192, 8192)
    report['sequential'] = dss.stats()[15]['bypass_sequential']
    set_class(16)
    device.write(200 * CHUNK_BYTES, b'x' * 4096)
    report['around'] = dss.status()['classes'].get(16)
    # Unclassified writeback leaves the class that is there.
    set_class(12)
    device.write(300 * CHUNK_BYTES, b'x' * 4096)
    set_class(0)
    device.write(300 * CHUNK_BYTES, b'y' * 4096)
    report['sticky'] = dss.status()['classes'][12][1]
    device.close()
    return report


def discards(ssd: Disk, hdd: Disk) -> Dict[str, Any]:
    """Discarded bytes are neither kept nor cleaned."""
    dss = Dss(ssd.path, hdd.path, hdd.sectors, CHUNK)
    device = Direct(dss.path)
    set_class(25)
    for chunk in range(8):
        device.write(chunk * CHUNK_BYTES, b'x' * CHUNK_BYTES)
    before = dss.status()['dirty_grains']
    device.close()
    length = 4 * CHUNK_BYTES
    os.system('blkdiscard --offset 0 --length %d %s' % (length, dss.path))
    after = dss.status()['dirty_grains']
    device = Direct(dss.path)
    zero = device.read(0, CHUNK_BYTES) == bytes(CHUNK_BYTES)
    kept = device.read(4 * CHUNK_BYTES, 4096) == b'x' * 4096
    device.close()
    return {'before': before, 'after': after, 'zero': zero, 'kept': kept}


def resize(ssd: Disk, hdd: Disk) -> Dict[str, Any]:
    """A larger SSD and a longer origin, online, with all that is cached."""
    half = ssd.sectors // 2
    dmsetup('create', 'part', '--table', '0 %d linear %s 0' % (
        half, ssd.path))
    part = dm_path('part')
    dss = Dss(part, hdd.path, hdd.sectors // 2, CHUNK)
    device = Direct(dss.path)
    set_class(25)
    small = dss.status()['slots']
    for chunk in range(40):
        device.write(chunk * CHUNK_BYTES, bytes([chunk + 1]) * 4096)
    dmsetup('suspend', 'dss')
    dmsetup('suspend', 'part')
    dmsetup('load', 'part', '--table', '0 %d linear %s 0' % (
        ssd.sectors, ssd.path))
    dmsetup('resume', 'part')
    dmsetup('load', 'dss', '--table', dss.table.replace(
        '0 %d ' % dss.sectors, '0 %d ' % hdd.sectors))
    dmsetup('resume', 'dss')
    grown = dss.status()
    right = [device.read(chunk * CHUNK_BYTES, 4096)
             == bytes([chunk + 1]) * 4096 for chunk in range(40)]
    last = hdd.sectors * 512 - 4096
    device.write(last, b'l' * 4096)
    slots = grown['slots']
    for chunk in range(100, 100 + slots):
        device.write(chunk * CHUNK_BYTES, b'm' * 4096)
    full = dss.status()['used']
    device.close()
    dss.remove()
    dss = Dss(part, hdd.path, hdd.sectors, CHUNK)
    device = Direct(dss.path)
    after = device.read(last, 4096) == b'l' * 4096
    used = dss.status()['used']
    # A shorter origin would lose dirty chunks: refused, unchanged. (The
    # cleaner may have written this one meanwhile, the oldest.)
    device.write(last, b'l' * 4096)
    try:
        dss.reload(dss.table.replace('0 %d ' % hdd.sectors, '0 %d ' % (
            hdd.sectors // 2)))
        refused = False
    except RuntimeError:
        refused = True
    return {'small': small, 'grown': slots, 'right': all(right),
            'kept': grown['used'], 'full': full, 'used': used,
            'last': after, 'refused': refused}


def refusals(ssd: Disk, hdd: Disk) -> Dict[str, Any]:
    """What is wrong is refused with a reason, and changes nothing."""
    sectors = hdd.sectors
    made: List[str] = []
    for table in (
            '0 %d dss %s %s 7' % (sectors, ssd.path, hdd.path),
            '0 %d dss %s %s 64 1 bogus' % (sectors, ssd.path, hdd.path),
            '0 %d dss %s %s 64 2 grain 3' % (sectors, ssd.path, hdd.path),
            '0 %d dss %s %s 64 5 writeback' % (sectors, ssd.path, hdd.path),
            '0 %d dss %s %s 64' % (sectors * 2, ssd.path, hdd.path),
            '0 %d dss /dev/none %s 64' % (sectors, hdd.path)):
        try:
            dmsetup('create', 'bad', '--table', table)
            made.append(table)
        except RuntimeError:
            pass
    dss = Dss(ssd.path, hdd.path, sectors, CHUNK)
    dss.message('classes', PLAIN % (25, 9, '-'))
    rows = dss.message('classes')
    taken = []
    for words in (['bogus'], ['classes', '25,1'], ['mode', 'fast'],
                  ['classes', PLAIN % (25, 1, '-'), PLAIN % (25, 2, '-')],
                  ['classes', PLAIN % (3, 1, '-'), PLAIN % (32, 2, '-')],
                  ['class', '3,1,always,back,9,8,1,0,-'],
                  ['class', '3,1,always,back,0,8,1,0,-,65536,fifo'],
                  ['class', '3,1,always,back,0,1,1,0,direct-ssd+direct-hdd'],
                  ['watermarks', '10', '20'], ['meta_class', '256'],
                  ['demote', '0', '0'], ['demote', str(sectors), '1']):
        try:
            dss.message(*words)
            taken.append(words)
        except RuntimeError:
            pass
    unchanged = dss.message('classes') == rows
    dss.remove()
    with open(ssd.path, 'r+b') as file:
        file.write(b'something else' * 700)
    try:
        Dss(ssd.path, hdd.path, sectors, CHUNK)
        made.append('something else')
    except RuntimeError:
        pass
    Dss(ssd.path, hdd.path, sectors, CHUNK, 'format').remove()
    try:
        Dss(ssd.path, hdd.path, sectors, 2 * CHUNK)
        made.append('other chunk')
    except RuntimeError:
        pass
    return {'made': made, 'taken': taken, 'unchanged': unchanged}


def flush_is_durable(ssd: Disk, hdd: Disk) -> Dict[str, Any]:
    """Before a flush returns, the table on the SSD names the write."""
    dss = Dss(ssd.path, hdd.path, hdd.sectors, CHUNK)
    device = Direct(dss.path)
    set_class(25)
    device.write(0, b'f' * 4096)
    before = dss.stats()[-1]['table_writes']
    device.flush()
    after = dss.stats()[-1]['table_writes']
    device.flush()
    again = dss.stats()[-1]['table_writes']
    device.close()
    return {'first': after - before, 'again': again - after}


def fetched_after(ssd: Disk, hdd: Disk) -> Dict[str, Any]:
    """What a miss brings behind itself is in nobody's way, and comes."""
    dss = Dss(ssd.path, hdd.path, hdd.sectors, 2048)
    dss.message('after', '2048')
    device = Direct(dss.path)
    device.read(0, 4096)
    begin = time.monotonic()
    # Of the 128 KiB that the HDD reads now.
    device.write(5 * 4096, b'w' * 4096)
    written = time.monotonic() - begin
    time.sleep(0.1)
    overtaken = dss.stats()[0]['promoted_sectors']
    # The next miss brings all that is missing, but not over what is there.
    device.read(100 * 4096, 4096)
    begin = time.monotonic()
    device.read(2 * 4096, 4096)
    read = time.monotonic() - begin
    time.sleep(1.0)
    all_of_it = dss.stats()[0]['promoted_sectors']
    misses = hdd_reads(hdd)
    same = device.read(0, 1 << 20) == bytes(5 * 4096) + b'w' * 4096 + bytes(
        250 * 4096)
    report = {'written': written, 'overtaken': overtaken, 'read': read,
              'all': all_of_it, 'right': same,
              'read_again': hdd_reads(hdd) - misses}
    device.close()
    dss.remove()
    return report


def beside(ssd: Disk, hdd: Disk) -> Dict[str, Any]:
    """A window over many small chunks: what it brings, how it is read, and
    that nobody leaves for it."""
    data = b''.join(b'%015d\n' % number for number in range(32768))
    origin = Direct(hdd.path)
    origin.write(0, data)
    dss = Dss(ssd.path, hdd.path, hdd.sectors, 8)
    dss.message('after', '256')
    device = Direct(dss.path)
    before = hdd_reads(hdd)
    right = device.read(40 * 4096, 8192) == data[40 * 4096:42 * 4096]
    time.sleep(0.2)
    report: Dict[str, Any] = {
        'used': dss.status()['used'], 'misses': dss.status()['misses'],
        'promoted': dss.stats()[0]['promoted_sectors'],
        'hdd_reads': hdd_reads(hdd) - before}
    # The two that were asked for have the first slots: before, within and
    # behind them are three spans.
    reads = hdd_reads(ssd)
    right = right and device.read(32 * 4096, 32 * 4096) \
        == data[32 * 4096:64 * 4096]
    report['ssd_reads'] = hdd_reads(ssd) - reads
    # What is dirty is read with what is not.
    device.write(50 * 4096, b'w' * 4096)
    right = right and device.read(49 * 4096 + 512, 8192) == (
        data[49 * 4096 + 512:50 * 4096] + b'w' * 4096
        + data[51 * 4096:51 * 4096 + 512])
    report['read_again'] = hdd_reads(hdd) - before - report['hdd_reads']
    # A chunk in the middle of a span that is not there.
    dss.message('demote', str(45 * 8), '8')
    dss.message('after', '0')
    right = right and device.read(43 * 4096, 5 * 4096) \
        == data[43 * 4096:48 * 4096]
    report['right'] = right
    for sector in range(4096, 4096 + 2 * ssd.sectors, 2048):
        device.read(sector * 512, 1 << 20)
    time.sleep(0.2)
    dss.message('after', '256')
    full, evictions = dss.status(), dss.status()['evictions']
    device.read(hdd.sectors * 512 - (1 << 20), 4096)
    time.sleep(0.2)
    report['full'] = full['used'] == full['slots']
    report['evicted'] = dss.status()['evictions'] - evictions
    device.close()
    dss.remove()
    return report


def past(ssd: Disk, hdd: Disk) -> Dict[str, Any]:
    """Chunks that pass the SSD do so together, both ways; each of them is
    counted by itself, and held until all are written."""
    data = b''.join(b'%015d\n' % number for number in range(32768))
    dss = Dss(ssd.path, hdd.path, hdd.sectors, CHUNK, 'idle_ms 0')
    dss.message('classes', '11,1,never,back,0,65536,1,0,-',
                PLAIN % (12, 2, '-'))
    device = Direct(dss.path)
    set_class(11)
    before = hdd_counts(hdd)
    device.write(4096, data[4096:])
    right = device.read(4096, len(data) - 4096) == data[4096:]
    report: Dict[str, Any] = {'alone': _more(hdd, before)}
    # One chunk in the middle lies on the SSD.
    set_class(12)
    device.write(5 * CHUNK_BYTES, b'w' * CHUNK_BYTES)
    data = data[:5 * CHUNK_BYTES] + b'w' * CHUNK_BYTES \
        + data[6 * CHUNK_BYTES:]
    set_class(11)
    before = hdd_counts(hdd)
    right = right and device.read(4096, len(data) - 4096) == data[4096:]
    device.write(4096, data[:-4096])
    data = data[:4096] + data[:-4096]
    right = right and device.read(4096, len(data) - 4096) == data[4096:]
    report['around'] = _more(hdd, before)
    # Who wants one of many that are being written waits for all of them.
    thread = threading.Thread(target=device.write, args=(0, data))
    thread.start()
    time.sleep(0.0005)
    set_class(12)
    begin = time.monotonic()
    device.write(10 * CHUNK_BYTES, b'v' * CHUNK_BYTES)
    report['waited'] = time.monotonic() - begin > 0.001
    thread.join()
    data = data[:10 * CHUNK_BYTES] + b'v' * CHUNK_BYTES \
        + data[11 * CHUNK_BYTES:]
    counts = dss.stats()[11]
    report['misses'] = counts['misses'], counts['bypass_never']
    dss.message('drain')
    device.close()
    dss.remove()
    origin = Direct(hdd.path)
    report['right'] = right and origin.read(0, len(data)) == data
    origin.close()
    return report


def missed(ssd: Disk, hdd: Disk) -> Dict[str, Any]:
    """Chunks that miss together are one read of the HDD, widened at both
    ends to the window; what gets no slot comes along for the reader."""
    data = b''.join(b'%015d\n' % number for number in range(32768))
    origin = Direct(hdd.path)
    origin.write(0, data)
    origin.close()
    dss = Dss(ssd.path, hdd.path, hdd.sectors, CHUNK, 'idle_ms 0')
    dss.message('classes', PLAIN % (11, 1, '-'),
                '12,1,room,back,0,65536,1,0,-')
    dss.message('ahead', str(CHUNK))
    device = Direct(dss.path)
    set_class(11)
    before = hdd_counts(hdd)
    # From within chunk 1 to within chunk 4.
    begin, length = CHUNK_BYTES + 4608, 3 * CHUNK_BYTES
    right = device.read(begin, length) == data[begin:begin + length]
    # Here and below, on the guest's clock: the fills are done after the
    # reads.
    time.sleep(0.01)
    report: Dict[str, Any] = {'one': _more(hdd, before)[0],
                              'promoted': dss.stats()[11]['promoted_sectors']}
    right = right and device.read(CHUNK_BYTES, 4 * CHUNK_BYTES) \
        == data[CHUNK_BYTES:5 * CHUNK_BYTES]
    report['again'] = _more(hdd, before)[0] - report['one']
    # All slots but two are taken.
    slots = dss.status()['slots']
    for chunk in range(64, 64 + slots - 2 - dss.status()['used']):
        device.read(chunk * CHUNK_BYTES, 4096)
    time.sleep(0.01)
    report['free'] = slots - dss.status()['used']
    set_class(12)
    before = hdd_counts(hdd)
    begin, length = 5 * CHUNK_BYTES, 5 * CHUNK_BYTES
    for _ in range(2):
        right = right and device.read(begin, length) \
            == data[begin:begin + length]
        time.sleep(0.01)
    report['two'] = _more(hdd, before)[0]
    counts = dss.stats()[12]
    report['passed'] = counts['misses'], counts['bypass_room']
    report['right'] = right
    device.close()
    dss.remove()
    return report


def doubled(ssd: Disk, hdd: Disk) -> Dict[str, Any]:
    """What is written through several chunks is one write of the HDD, and
    of the SSD as many as there are rows of slots; what passes the SSD in
    between goes along. Discards are not cut, either."""
    data = b''.join(b'%015d\n' % number for number in range(32768))
    dss = Dss(ssd.path, hdd.path, hdd.sectors, CHUNK, 'idle_ms 0')
    dss.message('classes', PLAIN % (11, 1, '-'),
                '12,1,never,back,0,65536,1,0,-')
    dss.message('mode', 'writethrough')
    device = Direct(dss.path)
    set_class(11)
    before, ssd_before = hdd_counts(hdd), hdd_counts(ssd)
    device.write(4096, data[4096:])
    report: Dict[str, Any] = {
        'new': [_more(hdd, before)[1], _more(ssd, ssd_before)[1]]}
    before = hdd_counts(hdd)
    right = device.read(4096, len(data) - 4096) == data[4096:]
    report['read'] = _more(hdd, before)[0]
    # Again, over what is there.
    data = data[::-1]
    device.write(4096, data[4096:])
    dss.message('drain')
    report['again'] = _more(hdd, before)[1]
    right = right and device.read(4096, len(data) - 4096) == data[4096:]
    report['again_read'] = _more(hdd, before)[0]
    # Half of it has no place on the SSD.
    far = 64 * CHUNK_BYTES
    set_class(11)
    device.write(far, data[:4 * CHUNK_BYTES])
    set_class(12)
    before = hdd_counts(hdd)
    device.write(far, data[:8 * CHUNK_BYTES])
    report['mixed'] = _more(hdd, before)[1]
    right = right and device.read(far, 8 * CHUNK_BYTES) \
        == data[:8 * CHUNK_BYTES]
    report['mixed_read'] = _more(hdd, before)[0]
    device.close()
    discards = hdd_counts(hdd)[11]
    os.system('blkdiscard --offset %d --length %d %s'
              % (128 * CHUNK_BYTES, 32 * CHUNK_BYTES, dss.path))
    report['discards'] = hdd_counts(hdd)[11] - discards
    dss.message('drain')
    report['dirty'] = dss.status()['dirty_grains']
    dss.remove()
    origin = Direct(hdd.path)
    report['right'] = right and origin.read(4096, len(data) - 4096) \
        == data[4096:]
    origin.close()
    return report


def _more(disk: Disk, before: List[int]) -> List[int]:
    """Reads and writes since then."""
    now = hdd_counts(disk)
    return [now[0] - before[0], now[4] - before[4]]


def turns(ssd: Disk, hdd: Disk) -> Dict[str, Any]:
    """Reads come to the HDD by class; without classes as they arrived."""
    report: Dict[str, Any] = {}
    for strategy in ('strict', 'lru'):
        dss = Dss(ssd.path, hdd.path, hdd.sectors, CHUNK,
                  'format idle_ms 0 %s' % strategy)
        dss.message('classes', '11,1,never,back,0,65536,1,0,-',
                    '12,2,never,back,0,65536,1,0,-')
        ended: List[int] = []

        def read(path: str, chunk: int, class_id: int,
                 ended: List[int] = ended) -> None:
            set_class(class_id)
            device = Direct(path)
            device.read(chunk * CHUNK_BYTES, 8 * CHUNK_BYTES)
            ended.append(class_id)
            device.close()

        threads = [threading.Thread(target=read, args=(
            dss.path, 8 * at, 12 if at == 12 else 11)) for at in range(13)]
        for thread in threads[:12]:
            thread.start()
        time.sleep(0.0005)
        threads[12].start()
        for thread in threads:
            thread.join()
        report[strategy] = ended.index(12)
        dss.remove()
    return report


def flush_of_others(ssd: Disk, hdd: Disk) -> Dict[str, Any]:
    """Beside those that flush, what goes past the SSD is durable when it
    ends, all that comes at once by one flush of the HDD: nobody's own flush
    has to wait for it."""
    dss = Dss(ssd.path, hdd.path, hdd.sectors, CHUNK, 'idle_ms 0')
    dss.message('classes', '25,9,always,around,0,65536,1,0,-')
    device = Direct(dss.path)
    set_class(25)
    device.write(0, b'a' * 4096)
    device.flush()
    first = hdd_counts(hdd)[15]
    device.write(0, b'b' * 4096)
    device.write(1 << 20, b'c' * 16 * CHUNK_BYTES)
    written = hdd_counts(hdd)[15]
    device.flush()
    again = hdd_counts(hdd)[15] - written
    groups = dss.stats()[-1]
    device.close()
    # No stop, no flush: the power is gone.
    hdd.power(False)
    hdd.power(True)
    kept = Direct(hdd.path)
    report = {'first': first, 'again': again,
              'flushes': written - first, 'groups': groups['groups'],
              'grouped': groups['grouped'], 'kept': (kept.read(0, 512)[:1]
                       + kept.read(1 << 20, 512)[:1]).decode()}
    kept.close()
    dss.remove()
    return report


def hdd_reads(hdd: Disk) -> int:
    return hdd_counts(hdd)[0]


def hdd_counts(hdd: Disk) -> List[int]:
    with open('/sys/block/%s/stat' % hdd.name) as file:
        return [int(word) for word in file.read().split()]


def memory(ssd: Disk, hdd: Disk) -> Dict[str, Any]:
    """Bytes of memory for each 4 KiB of SSD, by the kernel's own list."""
    report = {}
    for chunk, features in ((8, 'idle_ms 0'), (512, 'format'),
                            (2048, 'format')):
        before = vmalloc_bytes()
        dss = Dss(ssd.path, hdd.path, hdd.sectors, chunk, features)
        pages = dss.status()['slots'] * chunk // 8
        report[str(chunk)] = (vmalloc_bytes() - before) / pages
        dss.remove()
        with open(ssd.path, 'r+b') as file:
            file.write(bytes(8192))
    return report


def vmalloc_bytes() -> int:
    with open('/proc/vmallocinfo') as file:
        return sum(int(line.split()[1]) for line in file
                   if 'dss_' in line or 'dm_dss' in line)


def main() -> None:
    scenario: Callable[[Disk, Disk], Dict[str, Any]] = globals()[sys.argv[1]]
    mib = 4096 if scenario is memory else 16
    depth = 8 if scenario in (fetched_after, beside) else 1
    cache = 1 if scenario is flush_of_others else 0
    ssd, hdd = Disk('ssd', mib, 80), Disk('hdd', 128, 2000, depth, cache)
    print(json.dumps(scenario(ssd, hdd)))


main()
