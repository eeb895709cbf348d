"""In a guest: a device stops, goes on, and gets other tables.

Its module complains of memory that may wait for a device meanwhile.
"""

from __future__ import annotations

import json

from dm_ioctl import dmsetup
from dss_guest import Direct, Disk, Dss, set_class

CHUNK = 8


def swap(dss: Dss, table: str) -> int:
    """Another table: how often memory was asked for while it stood."""
    dmsetup('load', dss.name, '--table', table)
    before = asked()
    dmsetup('suspend', dss.name)
    dmsetup('resume', dss.name)
    return asked() - before


def asked() -> int:
    with open('/sys/module/dm_dss/parameters/asked') as file:
        return int(file.read())


def main() -> None:
    ssd, hdd = Disk('ssd', 12, 80), Disk('hdd', 24, 1000, 8)
    dss = Dss(ssd.path, hdd.path, hdd.sectors, CHUNK)
    device = Direct(dss.path)
    set_class(11)
    for offset in range(0, 2 << 20, 4096):
        device.write(offset, b'd' * 4096)
    before = asked()
    dmsetup('suspend', dss.name)
    dmsetup('resume', dss.name)
    report = {'again': asked() - before, 'same': swap(dss, dss.table)}
    head, _count, words = dss.table.partition(' %d ' % 2)
    dmsetup('message', dss.name, '0', 'drain')
    report['format'] = swap(dss, '%s 3 %s format' % (head, words))
    device.close()
    dss.remove()
    print(json.dumps(report))


main()
