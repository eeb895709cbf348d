"""In a guest: a frozen file system on dm-dss, with linear devices below.

Those are what LVM makes of its volumes. So this is an operator's backup:
freeze, have all written back, take a snapshot of the HDD's volume, thaw.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import threading
from typing import Dict

from dm_ioctl import dm_path, dmsetup
from dss_guest import Machine, set_class

MOUNT = '/run/dss'
IMAGE = '/run/snapshot'
FREEZE, THAW = 0xc0045877, 0xc0045878
FILES = 40


def run(*words: str) -> int:
    return subprocess.run(words, stdout=subprocess.DEVNULL).returncode


def write(name: str) -> None:
    with open(os.path.join(MOUNT, name), 'wb') as file:
        file.write(name.encode() * 4000)
        file.flush()
        os.fsync(file.fileno())


def right(folder: str) -> int:
    """Files that have their bytes."""
    count = 0
    for name in os.listdir(folder):
        if name.startswith('file'):
            with open(os.path.join(folder, name), 'rb') as file:
                count += file.read() == name.encode() * 4000
    return count


def main() -> None:
    machine = Machine(16, 8)
    dss = machine.start('writeback')
    dss.message('idle_ms', '0')
    dss.message('watermarks', '100', '100')
    run('mkfs.ext4', '-q', '-F', dss.path)
    os.makedirs(MOUNT)
    run('mount', dss.path, MOUNT)
    set_class(11)
    for number in range(FILES):
        write('file%d' % number)
    report: Dict[str, int] = {'dirty': dss.status()['dirty']}
    folder = os.open(MOUNT, os.O_RDONLY)
    fcntl.ioctl(folder, FREEZE, 0)
    late = threading.Thread(target=write, args=('file-late',))
    late.start()
    dss.message('drain')
    report['drained'] = dss.status()['dirty']
    shutil.copyfile(dm_path('lhdd'), IMAGE)
    # What lvm does to a volume whose table it changes.
    for volume in ('lhdd', 'lssd', dss.name):
        dmsetup('suspend', volume)
        dmsetup('resume', volume)
    late.join(1)
    report['waits'] = late.is_alive()
    fcntl.ioctl(folder, THAW, 0)
    os.close(folder)
    late.join()
    report['right'] = right(MOUNT)
    run('umount', MOUNT)
    report['check'] = run('e2fsck', '-f', '-n', dss.path)
    report['snapshot_check'] = run('e2fsck', '-f', '-n', IMAGE)
    run('mount', '-o', 'ro,loop', IMAGE, MOUNT)
    report['snapshot'] = right(MOUNT)
    print(json.dumps(report))


main()
