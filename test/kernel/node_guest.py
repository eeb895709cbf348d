"""In a machine that boots from its own disk: an operator, and who looks.

The word ``node=VERB`` of the kernel's command line says what it is for.
``fill`` does what the manual's page tells an operator of twelve HDDs and an
SSD. ``look`` is given no device and attaches none: it says what the boot made.
``cut`` looks, too, and then the power is gone. ``spoilt`` looks where devices
never come.

The answer is a line of JSON on the second serial line.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import subprocess
import sys
import termios
import time
from typing import Any, Dict, List

MIB = 1 << 20
NAMES = ['c%02d' % number for number in range(12)]
#: Whose SSD the tab names by the UUID of its cache, whose file system fstab
#: names by its own, and whose bytes are written back late.
BY_UUID = NAMES[::2]
#: A disk by its serial number.
DISK = '/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_%s'
#: Sectors of an SSD's share.
SHARE_SECTORS = 64 * MIB // 512
FILE_BYTES = 2 * MIB
CLASS = 11
TAB = '/etc/dss-block.tab'
TABLE = '/etc/swift/dss-classes.conf'
GENERATOR = '/etc/systemd/system-generators/swift-dss-block-generator'
RULE = '/etc/udev/rules.d/61-dss-block.rules'


def contents(name: str, version: int) -> bytes:
    """The bytes of a cache's file; no two blocks are the same."""
    return b''.join(b'%s %d %023d\n' % (name.encode(), version, at)
                    for at in range(FILE_BYTES // 30 + 1))[:FILE_BYTES]


def need(*words: str, text: str = '') -> str:
    """Run a program that must not fail; its output."""
    done = subprocess.run(words, input=text, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit('%s: %d: %s%s' % (
            ' '.join(words), done.returncode, done.stdout, done.stderr))
    return done.stdout


def origin(name: str) -> str:
    """The HDD of a cache."""
    return DISK % ('hdd' + name[1:])


def ssd(name: str) -> str:
    """Its part of the SSD."""
    return DISK % 'ssd' + '-part%d' % (NAMES.index(name) + 1)


def folder(name: str) -> str:
    """Where its file system is mounted."""
    return '/srv/node/' + name


def _file(name: str) -> str:
    return os.path.join(folder(name), 'file')


# -- an operator -------------------------------------------------------------

def fill() -> Dict[str, Any]:
    """Make twelve caches and their lines, and fill them."""
    need('udevadm', 'settle', '--timeout=600')
    need('sfdisk', '--quiet', DISK % 'ssd',
         text='label: gpt\n' + 'size=%d\n' % SHARE_SECTORS * len(NAMES))
    need('udevadm', 'settle')
    for name in NAMES:
        need('swift-dss', 'block', 'create', name, '--ssd', ssd(name),
             '--origin', origin(name), '--chunk', '64k',
             '--idle-ms', _idle_ms(name), '--class-table', TABLE)
        need('mkfs.xfs', '-q', '-K', '/dev/mapper/' + name)
        os.makedirs(folder(name))
    _write_lines()
    need('systemctl', 'daemon-reload')
    need('udevadm', 'control', '--reload')
    need('udevadm', 'trigger', '--subsystem-match=block')
    need('udevadm', 'settle')
    for name in NAMES:
        need('mount', folder(name))
        for version in range(2):
            _write(name, version)
            if not version:
                # What the HDD has from now on is old.
                need('dmsetup', 'message', name, '0', 'drain')
    return {name: status['dirty_bytes'] for name, status in _status().items()}


def _idle_ms(name: str) -> str:
    return '3600000' if name in BY_UUID else '1000'


def _write_lines() -> None:
    with open(TAB, 'w') as out:
        for name in NAMES:
            path = '/dev/disk/by-id/dss-%s' % _of(
                ssd(name), 'uuid') if name in BY_UUID else ssd(name)
            out.write('%s %s %s nofail,idle-ms=%s\n' % (
                name, path, origin(name), _idle_ms(name)))
    with open('/etc/fstab', 'a') as out:
        for name in NAMES:
            device = '/dev/mapper/' + name
            if name in BY_UUID:
                device = 'UUID=' + need(
                    'blkid', '-o', 'value', '-s', 'UUID', device).strip()
            out.write('%s %s xfs noatime,nofail 0 0\n' % (
                device, folder(name)))


def _of(path: str, key: str) -> str:
    """What udev's rule will say of an SSD with a cache."""
    told = dict(line.split('=', 1) for line in need(
        'swift-dss-block-probe', path).splitlines())
    return told['ID_FS_' + key.upper()]


def _write(name: str, version: int) -> None:
    from swift_dss.io import carriers
    carrier = carriers.choose('ioprio').carrier
    buffer = mmap.mmap(-1, FILE_BYTES)
    buffer[:] = contents(name, version)
    fd = os.open(_file(name), os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
    try:
        carrier.enter(CLASS)
        assert os.write(fd, buffer) == FILE_BYTES
        os.fsync(fd)
    finally:
        carrier.leave()
        os.close(fd)


# -- who looks ---------------------------------------------------------------

def look(all_of_it: bool = True) -> Dict[str, Any]:
    """What the boot made of each cache.

    :param all_of_it: False: do not wait for devices that never come
    """
    _wait_for_the_boot(all_of_it)
    with open('/proc/self/mounts') as lines:
        mounts = {line.split()[1]: line.split()[0] for line in lines}
    before = _status()
    caches: Dict[str, Any] = {}
    for name in NAMES:
        caches[name] = {'device': mounts.get(folder(name), '')}
        if caches[name]['device']:
            caches[name]['sha256'] = hashlib.sha256(_read(name)).hexdigest()
    for name, after in _status().items():
        caches[name]['dirty_bytes'] = after['dirty_bytes']
        for key in ('hits', 'misses'):
            caches[name][key] = _counted(after, key) - _counted(
                before[name], key)
    return caches


def _read(name: str) -> bytes:
    from swift_dss.io import carriers
    carrier = carriers.choose('ioprio').carrier
    buffer = mmap.mmap(-1, FILE_BYTES)
    fd = os.open(_file(name), os.O_RDONLY | os.O_DIRECT)
    try:
        carrier.enter(CLASS)
        os.preadv(fd, [buffer], 0)
    finally:
        carrier.leave()
        os.close(fd)
    return buffer[:]


def _counted(status: Any, key: str) -> int:
    return int(status['classes'].get(str(CLASS), {}).get(key, 0))


def _status() -> Dict[str, Any]:
    """Of each device that there is."""
    rows: List[Any] = json.loads(need(
        'swift-dss', 'block', 'status', '--json'))
    return {row['name']: row for row in rows}


def _wait_for_the_boot(all_of_it: bool) -> None:
    """Until systemd has nothing to do but this program, twice in a row."""
    idle = 0
    while idle < 2:
        need('udevadm', 'settle', '--timeout=600')
        jobs = [job.split() for job in need(
            'systemctl', 'list-jobs', '--no-legend').splitlines()]
        idle = 0 if [
            job for job in jobs if job[1] != 'node-guest.service'
            and (all_of_it or not job[1].endswith('.device'))
            and (all_of_it or job[3] != 'waiting')] else idle + 1
        time.sleep(1)


def main() -> None:
    """Do what the kernel's command line says, and stop the machine."""
    with open('/proc/cmdline') as words:
        verb, = (word[len('node='):] for word in words.read().split()
                 if word.startswith('node='))
    told: Dict[str, Any] = {}
    try:
        told['found'] = fill() if verb == 'fill' else look(
            verb != 'spoilt')
    except (SystemExit, Exception) as err:
        told['error'] = '%s: %s' % (type(err).__name__, err)
    told['failed'] = need('systemctl', 'list-units', '--failed', '--plain',
                          '--no-legend').splitlines()
    told['log'] = need('journalctl', '-b', '--no-pager', '-o', 'cat')
    with open('/dev/ttyS1', 'w') as line:
        line.write(json.dumps(told) + '\n')
        line.flush()
        termios.tcdrain(line)
    if verb == 'cut':
        with open('/proc/sysrq-trigger', 'w') as trigger:
            trigger.write('b')
        time.sleep(60)
    need('systemctl', '--no-block', 'poweroff')


if __name__ == '__main__':
    sys.exit(main())
