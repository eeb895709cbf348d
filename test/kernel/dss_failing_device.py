"""In a guest: a device under dm-dss fails, and what readers get then.

Each case has devices of its own making: a load runs, one device begins to
fail, something is asked of dm-dss meanwhile, the device heals, and every
sector is read. A reader may get an error, or a version that was written and
not replaced by an acknowledged one: nothing else, at no time. The one
argument is JSON: cases as [seed, device, fault, moment], and perhaps the
percentage of the SSD that is a stage.
"""

from __future__ import annotations

import json
import random
import sys
import time
import traceback
from functools import partial
from typing import Any, Callable, Dict, List, Tuple

from dm_ioctl import dm_path, dmsetup
from dss_guest import Direct, Disk, Dss, Load, Shadow

SSD_MIB, HDD_MIB = 4, 12
#: Of one case and the next: one chunk for a request, or many.
CHUNKS = (64, 8)
ROWS = ('0,0,room,back,0,65536,1,0,-', '11,700,always,back,0,65536,1,0,-',
        '12,600,always,through,0,65536,1,0,-',
        '25,900,always,around,0,65536,1,0,-')
#: With a stage nothing of these classes is dirty but by it.
STAGED_ROWS = (ROWS[0] + ',0', ROWS[1] + ',0', ROWS[2], ROWS[3])
LINEAR = '0 %d linear %s 0'
FLAKEY = '0 %d flakey %s 0 %d 1000000 %s'
#: Tables of a failing device; 'lies' is the twin that has to be caught.
FAULTS: Dict[str, Callable[[Disk], str]] = {
    'reads': lambda disk: FLAKEY % (
        disk.sectors, disk.path, 0, '1 error_reads'),
    'writes': lambda disk: FLAKEY % (
        disk.sectors, disk.path, 0, '1 error_writes'),
    'all': lambda disk: FLAKEY % (
        disk.sectors, disk.path, 0, '2 error_reads error_writes'),
    'gone': lambda disk: '0 %d error' % disk.sectors,
    'now and then': lambda disk: '0 %d flakey %s 0 1 1 2 error_reads '
                                 'error_writes' % (disk.sectors, disk.path),
    'bad blocks': lambda disk: '0 %d dust %s 0 4096' % (
        disk.sectors, disk.path),
    'lies': lambda disk: FLAKEY % (
        disk.sectors, disk.path, 0, '1 drop_writes')}
MOMENTS = ('load', 'flush', 'switch', 'reload', 'start')


class Stubborn(Load):
    """Goes on after errors."""

    def _work(self, chance: random.Random, device: Direct, index: int,
              threads: int) -> None:
        while not self._stop:
            try:
                super()._work(chance, device, index, threads)
            except OSError:
                self.io_errors += 1
                # An error takes no time, and the clock has to move.
                time.sleep(0.001)


class Case:
    """Both disks, each below a device whose table can be changed."""

    def __init__(self, seed: int, disks: Dict[str, Disk],
                 stage: int) -> None:
        self.chance = random.Random(seed)
        self.seed = seed
        self._stage = stage
        self.disks = disks
        self.shadow = Shadow(disks['hdd'].sectors)
        for name, disk in disks.items():
            with open(disk.path, 'wb') as out:
                for _ in range(disk.mib):
                    out.write(bytes(1 << 20))
            dmsetup('create', 'l' + name, '--table',
                    LINEAR % (disk.sectors, disk.path))
        self.dss = self.start()
        self.dss.message('classes', *(STAGED_ROWS if stage else ROWS))

    def start(self) -> Dss:
        chunk = CHUNKS[(self.seed + self.seed // 1000) % len(CHUNKS)]
        dss = Dss(dm_path('lssd'), dm_path('lhdd'),
                  self.disks['hdd'].sectors, chunk,
                  'idle_ms 50 stage %d' % self._stage)
        dss.message('after', '256')
        return dss

    def table(self, name: str, text: str) -> None:
        dmsetup('suspend', '--noflush', '--nolockfs', 'l' + name)
        dmsetup('load', 'l' + name, '--table', text)
        dmsetup('resume', 'l' + name)

    def fail(self, name: str, fault: str) -> None:
        disk = self.disks[name]
        self.table(name, FAULTS[fault](disk))
        if fault == 'bad blocks':
            for block in self.chance.sample(range(disk.sectors // 8),
                                            disk.sectors // 8 // 4):
                dmsetup('message', 'l' + name, '0', 'addbadblock',
                        str(block))
            dmsetup('message', 'l' + name, '0', 'enable')

    def heal(self, name: str) -> None:
        disk = self.disks[name]
        self.table(name, LINEAR % (disk.sectors, disk.path))

    def read_all(self, path: str) -> int:
        """How many of the reads failed; raises WrongBytes."""
        device = Direct(path)
        failed = 0
        try:
            for sector in range(0, len(self.shadow.done), 64):
                try:
                    self.shadow.check(device, sector, 64)
                except OSError:
                    failed += 1
        finally:
            device.close()
        return failed

    def attempt(self, action: Callable[[], Any]) -> bool:
        try:
            action()
        except (OSError, RuntimeError):
            return False
        return True

    def meanwhile(self, moment: str) -> None:
        """What is asked of dm-dss while the device fails."""
        if moment == 'flush':
            device = Direct(self.dss.path)
            for _ in range(3):
                self.attempt(lambda: self.shadow.flush(device))
            device.close()
        elif moment == 'switch':
            for mode in ('writethrough', 'writearound', 'passthrough',
                         'writeback'):
                self.attempt(partial(self.dss.message, 'mode', mode))

    def reload(self, name: str) -> None:
        """A new table from a device that fails: refused, then the old one
        goes on; or none does before the device is well."""
        health = self.dss.status()['health']
        if self.attempt(lambda: self.dss.reload(self.dss.table)) \
                or self.attempt(lambda: dmsetup('resume', 'dss')):
            return
        self.heal(name)
        table = self.dss.table
        if health == 'given_up':
            # It could not be marked, and the HDD has everything.
            table = table.replace(' 4 idle_ms', ' 5 format idle_ms')
        dmsetup('load', 'dss', '--table', table)
        dmsetup('resume', 'dss')
        if health != 'given_up':
            self.after_cut()

    def after_cut(self) -> None:
        """What no flush promised may be gone."""
        device = Direct(self.dss.path)
        self.shadow.after_crash(device)
        device.close()

    def remove(self) -> None:
        self.dss.remove()
        for name in self.disks:
            dmsetup('remove', 'l' + name)


def run(seed: int, name: str, fault: str, moment: str,
        disks: Dict[str, Disk], stage: int = 0) -> Dict[str, Any]:
    """One case."""
    case = Case(seed, disks, stage)
    load = Stubborn(case.shadow, case.dss.path, seed, threads=4)
    load.start()
    load.wait(150)
    case.fail(name, fault)
    if fault == 'now and then':
        # It begins with a good second.
        time.sleep(1.0)
    load.wait(150)
    if moment == 'reload':
        load.stop()
        for _ in range(2):
            case.reload(name)
    else:
        case.meanwhile(moment)
        load.wait(60)
        load.stop()
    case.read_all(case.dss.path)
    status = case.dss.status()
    report = {'fired': bool(load.io_errors or status['ssd_errors']
                            or status['hdd_errors']),
              'errors': load.io_errors,
              'stage_waits': case.dss.stats()[-1]['stage_waits']}
    if moment == 'start' and not restarted(case, name, fault):
        report['end'] = 'not started'
        return report
    if moment != 'start':
        case.heal(name)
    report['end'] = healed(case)
    return report


def restarted(case: Case, name: str, fault: str) -> bool:
    """Stops and starts it while the device fails, and when it is well.

    :returns: whether it runs; else all is removed
    """
    health = case.dss.status()['health']
    case.dss.remove()
    if case.attempt(case.start):
        dmsetup('remove', 'dss')
    case.heal(name)
    if health == 'given_up':
        # The HDD has everything; an SSD that could be marked stays out.
        assert not case.read_all(case.disks['hdd'].path)
        if fault == 'reads':
            assert not case.attempt(case.start), 'a failed SSD came back'
    elif case.attempt(lambda: setattr(case, 'dss', case.start())):
        if name == 'ssd':
            case.after_cut()
        return True
    for disk_name in case.disks:
        dmsetup('remove', 'l' + disk_name)
    return False


def healed(case: Case) -> str:
    """Looks at everything when the device is well; its health."""
    failed = case.read_all(case.dss.path)
    health = str(case.dss.status()['health'])
    if health == 'ok':
        # Nothing is lost by a device that came back.
        assert not failed, '%d reads fail after the device healed' % failed
        case.dss.message('drain')
        case.dss.message('demote', '0', str(case.dss.sectors))
        assert not case.read_all(case.dss.path)
    if health in ('ok', 'given_up'):
        case.dss.message('mode', 'writethrough')
        case.dss.message('drain')
        case.remove()
        assert not case.read_all(case.disks['hdd'].path)
    else:
        case.remove()
    return health


def main() -> None:
    disks = {'ssd': Disk('ssd', SSD_MIB, 80),
             'hdd': Disk('hdd', HDD_MIB, 1000, 4)}
    cases: List[Tuple[Any, ...]] = json.loads(sys.argv[1])
    rows = []
    for case in cases:
        seed, name, fault, moment, *stage = case
        try:
            report = run(seed, name, fault, moment, disks, *stage)
        except (Exception, KeyboardInterrupt):
            print('case %s' % json.dumps(case), file=sys.stderr)
            traceback.print_exc()
            raise
        rows.append(dict(report, case=case))
    print(json.dumps(rows))


if __name__ == '__main__':
    main()
