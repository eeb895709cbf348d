"""In a guest: random requests of all classes against a shadow, through
mode switches, class tables, watermarks, suspend, drain and demotion, while
SSD and origin grow."""

from __future__ import annotations

import json
import random
import sys
from typing import Dict

from dm_ioctl import dm_path, dmsetup
from dss_guest import Direct, Disk, Dss, Load, Shadow, seed_from

ROWS = (
    ('0,0,room,back,0,65536,1,0,-', '11,700,always,back,0,65536,1,0,-',
     '12,600,always,through,0,65536,1,0,-',
     '25,900,always,back,6553,65536,1,0,-'),
    ('0,0,never,around,0,65536,1,0,-', '11,7,always,back,0,32768,1,0,-',
     '12,6,always,back,0,65536,1,64,evict-on-hit',
     '25,9,always,around,0,65536,1,0,direct-ssd'),
    ('0,0,always,back,0,65536,1,0,direct-hdd',
     '11,70,room,through,0,65536,1,0,-',
     '12,60,always,back,0,65536,1,0,no-allocate',
     '25,90,always,back,0,6553,1,0,pin'),
)
MODES = ('writeback', 'writethrough', 'writearound', 'passthrough')


class Growing:
    """Both disks as devices that begin with a half of them.

    :ivar times: how often they grew
    """

    STEPS = 4

    def __init__(self, disks: Dict[str, Disk]) -> None:
        self._disks = disks
        self.times = 0
        for name, disk in disks.items():
            dmsetup('create', 'l' + name, '--table',
                    '0 %d linear %s 0' % (self._sectors(name), disk.path))

    def _sectors(self, name: str) -> int:
        half = self._disks[name].sectors // 2
        return half + half * self.times // self.STEPS

    def path(self, name: str) -> str:
        return dm_path('l' + name)

    @property
    def origin(self) -> int:
        return self._sectors('hdd')

    def grow(self, dss: Dss) -> str:
        """A step, under load: requests wait, and go on."""
        if self.times == self.STEPS:
            return 'no more'
        before, self.times = self.origin, self.times + 1
        dmsetup('suspend', dss.name)
        for name, disk in self._disks.items():
            dmsetup('suspend', 'l' + name)
            dmsetup('load', 'l' + name, '--table', '0 %d linear %s 0' % (
                self._sectors(name), disk.path))
            dmsetup('resume', 'l' + name)
        dss.table = dss.table.replace('0 %d dss' % before,
                                      '0 %d dss' % self.origin)
        dmsetup('load', dss.name, '--table', dss.table)
        dmsetup('resume', dss.name)
        return 'grow'


def disturb(dss: Dss, chance: random.Random, growing: Growing) -> str:
    """One thing that an operator may do at any time."""
    which = chance.randrange(9)
    if which == 0:
        words = ['mode', chance.choice(MODES)]
    elif which == 1:
        words = ['mode', 'writeback']
    elif which == 2:
        words = ['classes', *chance.choice(ROWS)]
    elif which == 3:
        low = chance.randrange(101)
        words = ['watermarks', str(chance.randrange(low, 101)), str(low)]
    elif which == 4:
        words = [chance.choice(('clean', 'commit', 'check'))]
    elif which == 5:
        words = ['demote', '0', str(dss.sectors)]
    elif which == 6:
        words = [chance.choice(('ahead', 'after')),
                 str(chance.choice((0, 16, 64, 2048)))]
    elif which == 7:
        return growing.grow(dss)
    else:
        dss.reload(dss.table)
        return 'reload'
    dss.message(*words)
    return ' '.join(words)


def main() -> None:
    seed = seed_from(sys.argv[1:])
    chunk, grain = int(sys.argv[2]), int(sys.argv[3])
    requests = int(sys.argv[4])
    chance = random.Random(seed)
    ssd = Disk('ssd', 6, 80)
    hdd = Disk('hdd', 32, 2000, 4)
    growing = Growing({'ssd': ssd, 'hdd': hdd})
    dss = Dss(growing.path('ssd'), growing.path('hdd'), growing.origin,
              chunk, 'idle_ms 0 grain %d' % grain)
    small = dss.status()['slots']
    shadow = Shadow(dss.sectors)
    load = Load(shadow, dss.path, seed)
    load.start()
    done = 0
    while load.requests < requests and not load.errors:
        load.wait(requests // 40)
        disturb(dss, chance, growing)
        done += 1
    load.stop()
    dss.message('check')
    device = Direct(dss.path)
    shadow.check_all(device)
    status = dss.status()
    stats = dss.stats()
    dss.message('mode', 'writeback')
    dss.message('drain')
    left = dss.status()
    device.close()
    dss.remove()
    # The HDD alone has everything.
    shadow.check_all(Direct(hdd.path))
    print(json.dumps({
        'requests': load.requests, 'disturbed': done,
        'io_errors': load.io_errors, 'status': status, 'device': stats[-1],
        'left_dirty': left['dirty_grains'], 'grown': growing.times,
        'slots': [small, left['slots']]}))


main()
