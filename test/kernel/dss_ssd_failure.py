"""In a guest: the SSD fails, with and without dirty bytes on it."""

from __future__ import annotations

import json
import sys

from dm_ioctl import dm_path, dmsetup
from dss_guest import Direct, Disk, Dss, set_class

GOOD = '0 %d linear %s 0'
BAD = '0 %d flakey %s 0 0 1000000 %s'


def change(disk: Disk, table: str) -> None:
    dmsetup('suspend', '--noflush', '--nolockfs', 'lssd')
    dmsetup('load', 'lssd', '--table', table)
    dmsetup('resume', 'lssd')


def attempt(action: object) -> str:
    try:
        action()  # type: ignore[operator]
    except OSError as error:
        return 'errno %d' % (error.errno or 0)
    return 'ok'


def main() -> None:
    dirty = sys.argv[1] == 'dirty'
    readable = sys.argv[2] == 'readable'
    ssd, hdd = Disk('ssd', 8, 80), Disk('hdd', 32, 1000, 4)
    dmsetup('create', 'lssd', '--table', GOOD % (ssd.sectors, ssd.path))
    dss = Dss(dm_path('lssd'), hdd.path, hdd.sectors, 64)
    device = Direct(dss.path)
    set_class(25)
    old, new = b'o' * 8192, b'n' * 8192
    device.write(0, old)
    device.write(1 << 20, old)
    dss.message('drain')
    device.read(2 << 20, 8192)
    if dirty:
        device.write(1 << 20, new)
        device.flush()
    fault = '1 error_writes' if readable else '2 error_reads error_writes'
    change(ssd, BAD % (ssd.sectors, ssd.path, fault))
    report = {
        # A miss wants to fill: the write to the SSD fails.
        'fill': attempt(lambda: device.read(3 << 20, 4096)),
        'write': attempt(lambda: device.write(4 << 20, new)),
        'write_again': attempt(lambda: device.write(4 << 20, new)),
        'clean_read': attempt(lambda: device.read(0, 8192)),
        'clean_right': device.read(0, 8192) == old,
        'health': dss.status()['health']}
    report['dirty_read'] = attempt(lambda: device.read(1 << 20, 8192))
    if readable and dirty:
        dss.message('drain')
    report['health_after'] = dss.status()['health']
    report['write_after'] = attempt(lambda: device.write(5 << 20, new))
    report['flush_after'] = attempt(device.flush)
    report['ssd_errors'] = dss.status()['ssd_errors']
    device.close()
    change(ssd, GOOD % (ssd.sectors, ssd.path))
    dss.remove()
    report['hdd_has'] = Direct(hdd.path).read(1 << 20, 8192).decode()[0]
    print(json.dumps(report))


main()
