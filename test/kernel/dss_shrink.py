"""In a guest: the SSD becomes smaller under load, and loses its end."""

from __future__ import annotations

import json
import sys
from typing import Any, Dict

from dm_ioctl import dm_path, dmsetup
from dss_guest import Direct, Disk, Dss, Load, Shadow, seed_from

LINEAR = '0 %d linear %s 0'
#: By chunk: MiB of the SSD before and after, and of the HDD. What stays is a
#: whole number of regions.
SIZES = {8: (12, 6, 24), 64: (20, 12, 32)}


def main() -> None:
    seed, chunk = seed_from(sys.argv[1:]), int(sys.argv[2])
    before_mib, after_mib, hdd_mib = SIZES[chunk]
    ssd, hdd = Disk('ssd', before_mib, 80), Disk('hdd', hdd_mib, 1000, 4)
    dmsetup('create', 'lssd', '--table', LINEAR % (
        before_mib * 2048, ssd.path))
    dss = Dss(dm_path('lssd'), hdd.path, hdd.sectors, chunk)
    shadow = Shadow(hdd.sectors)
    load = Load(shadow, dss.path, seed, threads=6)
    load.start()
    try:
        load.wait(3000)
        before = dss.status()
        report: Dict[str, Any] = {'before': before['slots'], 'refused': []}
        for words in (('shrink', '8'), ('shrink', 'x'), ('shrink', '')):
            try:
                dss.message(*words)
            except RuntimeError:
                report['refused'].append(words[1])
        dss.message('shrink', str(after_mib * 2048))
        load.wait(1000)
        after = dss.status()
        stats = dss.stats()
    finally:
        load.stop()
    dss.message('check')
    # Nothing of it is needed any more: let it be gone.
    dmsetup('suspend', 'dss')
    dmsetup('suspend', 'lssd')
    dmsetup('load', 'lssd', '--table', LINEAR % (after_mib * 2048, ssd.path))
    dmsetup('resume', 'lssd')
    dmsetup('load', 'dss', '--table', dss.table)
    dmsetup('resume', 'dss')
    reloaded = dss.status()
    device = Direct(dss.path)
    shadow.check_all(device)
    Load(shadow, dss.path, seed + 1, threads=6).run(500)
    dss.message('drain')
    dss.message('demote', '0', str(dss.sectors))
    shadow.check_all(device)
    device.close()
    dss.remove()
    report.update(
        after=after['slots'], used=after['used'], dirty=before['dirty'],
        used_before=before['used'], reloaded=reloaded['slots'],
        kept=reloaded['used'], shrunk=sum(
            row['evicted_shrink'] for key, row in stats.items() if key >= 0))
    print(json.dumps(report))


main()
