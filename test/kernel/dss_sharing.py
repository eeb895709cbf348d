"""In a guest: one SSD and one HDD belong to one device at a time."""

from __future__ import annotations

import json

from dm_ioctl import dmsetup
from dss_guest import Direct, Disk, Dss

CHUNK = 64


def outcome(name: str, table: str) -> str:
    """How the kernel answers the making of a device."""
    try:
        dmsetup('create', name, '--table', table)
    except RuntimeError as error:
        return str(error.__cause__)
    dmsetup('remove', name)
    return 'made'


def line(ssd: str, hdd: str, begin: int, sectors: int,
         feature: str = 'writeback') -> str:
    return '%d %d dss %s %s %d 1 %s' % (begin, sectors, ssd, hdd, CHUNK,
                                        feature)


def main() -> None:
    ssd, hdd = Disk('ssd', 16, 80), Disk('hdd', 32, 1000)
    spare, other = Disk('spare', 16, 80), Disk('other', 32, 1000)
    half = hdd.sectors // 2
    dss = Dss(ssd.path, hdd.path, hdd.sectors, CHUNK)
    device = Direct(dss.path)
    device.write(0, b'd' * 4096)
    report = {
        'ssd': outcome('second', line(ssd.path, other.path, 0, half)),
        'formatted': outcome('second', line(ssd.path, other.path, 0, half,
                                            'format')),
        'hdd': outcome('second', line(spare.path, hdd.path, 0, half)),
        'crossed': outcome('second', line(hdd.path, other.path, 0, half)),
        'targets': outcome('second', '%s\n%s' % (
            line(spare.path, other.path, 0, half),
            line(spare.path, other.path, half, half))),
        'others': outcome('second', line(spare.path, other.path, 0, half)),
    }
    # A table that is loaded for the same device is no second owner.
    dss.reload(dss.table)
    report['dirty'] = dss.status()['dirty']
    dmsetup('suspend', dss.name)
    report['suspended'] = outcome('second', line(ssd.path, other.path, 0,
                                                 half))
    dmsetup('resume', dss.name)
    report['right'] = device.read(0, 4096) == b'd' * 4096
    device.close()
    dss.remove()
    report['after'] = outcome('second', line(ssd.path, hdd.path, 0,
                                             hdd.sectors))
    print(json.dumps(report))


main()
