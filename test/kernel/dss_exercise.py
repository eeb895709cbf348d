"""In a guest: exercisers of file systems, on dm-dss or on the plain disk.

The one argument is JSON, see ``exercise.py``. A part's outcome goes into
the line of JSON at the end; nothing here knows what is right but for the
exercisers themselves and the checker of the file system, which is asked
after each part. What two devices answer is compared by who started this.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from typing import Any, Callable, Dict, List

from dm_ioctl import dm_path, dmsetup
from dss_guest import Machine, set_class

MOUNT = '/run/dss'
WORK = '/run/exercise'
MAKE = {'xfs': ['mkfs.xfs', '-q', '-f'], 'ext4': ['mkfs.ext4', '-q', '-F']}
CHECK = {'xfs': ['xfs_repair', '-n'], 'ext4': ['e2fsck', '-f', '-n']}
#: As above, with blocks that are smaller than a page.
for _kind, _option in (('xfs', 'size=1k'), ('ext4', '1k')):
    MAKE[_kind + '-1k'] = MAKE[_kind] + ['-b', _option]
    CHECK[_kind + '-1k'] = CHECK[_kind]
CLASSES = (0, 11, 12, 25)
#: Of the mode "staged": nothing is dirty but by the stage.
STAGED_ROWS = tuple('%d,%d,always,back,0,65536,1,0,-,0' % (class_id, rank)
                    for rank, class_id in enumerate((*CLASSES, 1)))
STAGE = '10'
SSD_MIB, HDD_MIB = 8, 400

#: Every operation that fsx knows.
FSX_CONF = """flen = %d
[opsize]
max = 65536
[weights]
close_open = 1
invalidate = 1
mapread = 4
mapwrite = 4
read = 10
write = 10
truncate = 2
fsync = 1
fdatasync = 1
posix_fallocate = 1
punch_hole = 1
sendfile = 1
posix_fadvise = 1
copy_file_range = 1
"""
FIO_JOBS = 4
FIO = ['fio', '--name=v', '--directory=' + MOUNT,
       '--filename_format=fio.$jobnum', '--numjobs=%d' % FIO_JOBS,
       '--thread', '--rw=randwrite',
       '--bssplit=4k/60:16k/30:64k/10', '--ioengine=psync', '--direct=1',
       '--sync=dsync', '--verify=crc32c', '--clocksource=clock_gettime',
       '--output-format=json']
#: Writes until the power goes.
NOISE = ['fio', '--name=noise', '--directory=' + MOUNT, '--numjobs=2',
         '--thread', '--size=4m', '--rw=randwrite', '--bs=4k-32k',
         '--ioengine=psync', '--fdatasync=1', '--time_based',
         '--runtime=600', '--clocksource=clock_gettime']


class Device:
    """dm-dss in some mode, or the disk alone."""

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._machine = Machine(64, 8, SSD_MIB, HDD_MIB)
        self._dss: Any = None
        if mode == 'plain':
            del self._machine.disks['ssd']

    def start(self) -> str:
        """Its node."""
        if self._mode == 'plain':
            disk = self._machine.disks['hdd']
            dmsetup('create', 'lhdd', '--table', '0 %d linear %s 0' % (
                disk.sectors, disk.path))
            return dm_path('lhdd')
        staged = self._mode == 'staged'
        self._dss = self._machine.start(
            'writeback' if staged else self._mode)
        if staged:
            self._dss.message('classes', *STAGED_ROWS)
            self._dss.message('stage', STAGE)
        return str(self._dss.path)

    def settle(self) -> None:
        """All bytes leave the SSD: what is read next is the disk's."""
        if self._dss:
            self._dss.message('drain')
            self._dss.message('demote', '0', str(self._dss.sectors))

    def counted(self) -> Dict[str, int]:
        """What the cache did, so that nobody passes by doing nothing."""
        if not self._dss:
            return {}
        status = dict(self._dss.status(), stage_waits=self._dss.stats()[
            -1]['stage_waits'])
        return {name: status[name] for name in (
            'read_hits', 'write_hits', 'promotions', 'evictions',
            'cleaned', 'stage_waits', 'ssd_errors', 'hdd_errors')}

    def cut(self) -> None:
        self._machine.cut()

    def lose_power(self) -> None:
        self._machine.lose_power(self._dss)


class Forgetting:
    """While it runs, the page cache is emptied again and again: what is
    read comes from the device."""

    def __enter__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._stop.wait(0.05):
            with open('/proc/sys/vm/drop_caches', 'w') as out:
                out.write('3')


def run(*words: str, preload: str = '') -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True,
                          env=dict(os.environ, LD_PRELOAD=preload))


def must(*words: str) -> None:
    done = run(*words)
    if done.returncode:
        raise AssertionError('%s: %d %s %s' % (
            words, done.returncode, done.stdout[-2000:],
            done.stderr[-2000:]))


def digest(path: str) -> str:
    with open(path, 'rb') as source:
        return hashlib.sha256(source.read()).hexdigest()


def fsx(job: Dict[str, Any], path: str, device: Device) -> Dict[str, Any]:
    """Several at once, a class each; then their files, from the device."""
    conf = os.path.join(WORK, 'fsx.toml')
    with open(conf, 'w') as out:
        out.write(FSX_CONF % (4 << 20))
    running: List[subprocess.Popen[bytes]] = []
    with Forgetting():
        for class_id in CLASSES:
            set_class(class_id)
            running.append(subprocess.Popen(
                [job['fsx'], '-q', '-N', str(job['fsx_operations']), '-S',
                 str(job['seed'] + class_id), '-f', conf, '-P', WORK,
                 '%s/fsx.%d' % (MOUNT, class_id)],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT))
        said = [process.communicate()[0] for process in running]
    set_class(0)
    report: Dict[str, Any] = {
        'status': [process.returncode for process in running],
        'said': [text.decode('utf-8', 'replace')[-500:]
                 for text, process in zip(said, running)
                 if process.returncode]}
    must('umount', MOUNT)
    device.settle()
    must('mount', path, MOUNT)
    report['files'] = [digest('%s/fsx.%d' % (MOUNT, class_id))
                       for class_id in CLASSES]
    return report


def stress(job: Dict[str, Any], _path: str, _device: Device
           ) -> Dict[str, Any]:
    """stress-ng's stressors, one after the other, two of each."""
    report = {}
    with Forgetting():
        for number, name in enumerate(job['stressors']):
            print(name, file=sys.stderr, flush=True)
            set_class(CLASSES[number % len(CLASSES)])
            done = run('stress-ng', '--temp-path', MOUNT, '--verify',
                       '--no-rand-seed', '--' + name, '2',
                       '--%s-ops' % name, str(job['stress_operations']),
                       '--timeout', '300s',
                       *job['stressor_options'].get(name, ()),
                       preload=job['resting'])
            report[name] = done.returncode
            if done.returncode == 2:
                report[name + ' said'] = (done.stdout + done.stderr)[-800:]
    set_class(0)
    return report


def _write_and_cut(words: List[str], device: Device) -> None:
    """fio writes all of it; the moment that its last write was
    acknowledged the power is cut, in the midst of what another writes."""
    quiet: Dict[str, Any] = {
        'stdin': subprocess.DEVNULL, 'stdout': subprocess.PIPE,
        'stderr': subprocess.STDOUT}
    noise = subprocess.Popen(NOISE, **quiet)
    writer = subprocess.Popen(words + ['--do_verify=0'], **quiet)
    said = writer.communicate()[0]
    device.cut()
    noise.communicate()
    if writer.returncode or not noise.returncode:
        raise AssertionError('the writer failed (%r), or the cut did not '
                             'reach the other' % said[-1500:])


def fio(job: Dict[str, Any], path: str, device: Device) -> Dict[str, Any]:
    """Synchronous writes of many sizes, in random order, and a power cut;
    all are read back, before and after the chunks left the SSD."""
    report: Dict[str, Any] = {'right': True, 'repair': [], 'verified': 0}
    for number in range(job['cuts']):
        for fio_job in range(FIO_JOBS):
            with open('%s/fio.%d' % (MOUNT, fio_job), 'wb') as file:
                file.write(bytes(job['fio_bytes']))
                file.flush()
                os.fsync(file.fileno())
        seeded = FIO + ['--randseed=%d' % (job['seed'] + number),
                        '--size=%d' % job['fio_bytes']]
        set_class(CLASSES[number % len(CLASSES)])
        _write_and_cut(seeded, device)
        set_class(0)
        must('umount', MOUNT)
        device.lose_power()
        path = device.start()
        must('mount', path, MOUNT)
        for _again in range(2):
            done = run(*seeded, '--verify_only=1')
            if done.returncode:
                report['right'] = False
                report['said'] = [
                    line for line in (done.stdout + done.stderr).split('\n')
                    if line.startswith(('verify', 'fio'))]
            else:
                told = json.loads(done.stdout[done.stdout.index('{'):])
                report['verified'] += sum(job_row['read']['total_ios']
                                          for job_row in told['jobs'])
            must('umount', MOUNT)
            report['repair'].append(run(
                *CHECK[job['file_system']], path).returncode)
            device.settle()
            must('mount', path, MOUNT)
    return report


PARTS: Dict[str, Callable[[Dict[str, Any], str, Device], Dict[str, Any]]] = {
    'fsx': fsx, 'stress-ng': stress, 'fio': fio}


def main() -> None:
    job = json.loads(sys.argv[1])
    for folder in (MOUNT, WORK):
        os.makedirs(folder, exist_ok=True)
    os.chdir(WORK)
    device = Device(job['device'])
    path = device.start()
    outcome: Dict[str, Any] = {}
    for name in job['parts']:
        must(*MAKE[job['file_system']], path)
        # Else its zeros would have the SSD for themselves.
        device.settle()
        must('mount', path, MOUNT)
        begin = time.monotonic()
        outcome[name] = PARTS[name](job, path, device)
        must('umount', MOUNT)
        path = dm_path('lhdd' if job['device'] == 'plain' else 'dss')
        checked = [run(*CHECK[job['file_system']], path).returncode]
        device.settle()
        checked.append(run(*CHECK[job['file_system']], path).returncode)
        outcome[name]['checked'] = checked
        print('%s: %.1f s of virtual time' % (
            name, time.monotonic() - begin), file=sys.stderr)
    print(json.dumps({'outcome': outcome, 'cache': device.counted()}))


main()
