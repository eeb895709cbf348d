"""The SSDs and HDDs of a cluster: XFS on loop devices or on disks that are
there, or plain folders."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Dict, List, Sequence, Tuple

from swift_dss.aio.layout import AioConf
from swift_dss.core.errors import DssError


#: Where the disks of the storage ``disks`` are, named as the images are.
DISKS = '/dev/mapper'

#: With inodes that have room for Swift's metadata.
MKFS = ('mkfs.xfs', '-q', '-f', '-i', 'size=1024')


def run(*command: str) -> str:
    """Run a system command.

    :returns: its output
    :raises DssError: it failed; with the output of the command
    """
    try:
        done = subprocess.run(
            command, check=True, stdin=subprocess.DEVNULL,
            capture_output=True)
    except FileNotFoundError as err:
        raise DssError('%s is not installed' % command[0]) from err
    except subprocess.CalledProcessError as err:
        raise DssError('%s: %s' % (
            ' '.join(command),
            err.stderr.decode('utf-8', 'replace').strip())) from err
    return done.stdout.decode('utf-8', 'replace')


def why_no_loops() -> str:
    """Why this process cannot make loop devices; '' if it can."""
    if os.geteuid() != 0:
        return 'not root'
    for tool in ('mkfs.xfs', 'losetup', 'mount', 'umount'):
        if not shutil.which(tool):
            return '%s is not installed' % tool
    if not os.path.exists('/dev/loop-control'):
        return 'no /dev/loop-control'
    return ''


def places(conf: AioConf) -> List[Tuple[str, str, int]]:
    """(image name, mount point, bytes) of every file system."""
    places = []
    for device in conf.device_names:
        places.append(('ssd-' + device, conf.path('devices', device),
                       conf.ssd_bytes))
        if not conf.plain:
            places.append(('hdd-' + device, conf.path('hdd', device),
                           conf.hdd_bytes))
    if not (conf.plain or conf.s3_at):
        places.append(('cloud', conf.path('cloud', 'devices', 'c1'),
                       conf.hdd_bytes * 2))
    return places


def make(conf: AioConf) -> None:
    """Make and mount every file system that is not there yet."""
    for _image, target, _size in places(conf):
        os.makedirs(target, exist_ok=True)
    if conf.storage == 'disks':
        _make_disks(conf)
    elif conf.storage == 'loops':
        make_loops(images(conf))


def _make_disks(conf: AioConf) -> None:
    """Use the disks ``/dev/mapper/ssd-d1``, ...; a part without one (the
    cloud) stays a folder.
    """
    for name, target, _size in places(conf):
        device = os.path.join(DISKS, name)
        if os.path.exists(device):
            run(*MKFS, device)
            run('mount', '-t', 'xfs', '-o', 'noatime', device, target)


def make_loops(wanted: Sequence[Tuple[str, str, int]]) -> None:
    """Make and mount file systems; an image that is there keeps its data.

    :param wanted: image path, mount point, and bytes of each
    """
    fresh: List[str] = []
    mounts: List[Tuple[str, str]] = []
    for image, target, size in wanted:
        os.makedirs(target, exist_ok=True)
        is_new = not os.path.exists(image)
        if is_new:
            os.makedirs(os.path.dirname(image), exist_ok=True)
            with open(image, 'wb') as out:
                out.truncate(size)
        device = attach(image)
        mounts.append((device, target))
        if is_new:
            fresh.append(device)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(
            lambda device: run(*MKFS, device), fresh))
    for device, target in mounts:
        run('mount', '-t', 'xfs', '-o', 'noatime', device, target)


def images(conf: AioConf) -> List[Tuple[str, str, int]]:
    """(image path, mount point, bytes) of every file system."""
    return [(conf.path('images', name + '.img'), target, size)
            for name, target, size in places(conf)]


def attach(image: str) -> str:
    """A loop device for an image, with O_DIRECT where it can have it."""
    # Direct I/O, or the page cache of the image would hide the HDD's
    # limit; a file system without O_DIRECT (tmpfs) has to do without.
    try:
        return run('losetup', '--find', '--show', '--direct-io=on',
                   image).strip()
    except DssError:
        return run('losetup', '--find', '--show', image).strip()


def loops(root: str) -> Dict[str, str]:
    """image -> loop device, of all images under ``root``."""
    if not shutil.which('losetup'):
        return {}
    text = run('losetup', '--json', '--list', '--output', 'NAME,BACK-FILE')
    listed = json.loads(text)['loopdevices'] if text.strip() else []
    devices = {}
    for row in listed:
        image = (row.get('back-file') or '').replace(' (deleted)', '')
        if image.startswith(os.path.join(root, '')):
            devices[image] = row['name']
    return devices


def mounts(root: str) -> List[str]:
    """Mount points under ``root``, the innermost first."""
    targets = []
    with open('/proc/self/mounts') as source:
        for line in source:
            target = line.split()[1].replace('\\040', ' ')
            if target.startswith(os.path.join(root, '')):
                targets.append(target)
    return sorted(targets, key=len, reverse=True)


def unmake(root: str) -> int:
    """Unmount and detach all that lies under ``root``.

    :returns: how many mounts and loop devices there were
    """
    count = 0
    for target in mounts(root):
        unmount(target)
        count += 1
    for device in loops(root).values():
        run('losetup', '--detach', device)
        count += 1
    return count


def unmount(target: str) -> None:
    """Unmount a file system even if processes use it."""
    try:
        run('umount', target)
    except DssError:
        # A process has its folder open: the mount goes when that ends.
        run('umount', '--lazy', target)


def discard(root: str, stem: str) -> None:
    """Give up the images of a file system that is not mounted any more.

    :param root: of the cluster or the member
    :param stem: prefix of their names
    """
    for image, device in loops(root).items():
        if os.path.basename(image).startswith(stem):
            run('losetup', '--detach', device)
    folder = os.path.join(root, 'images')
    for name in os.listdir(folder):
        if name.startswith(stem):
            os.unlink(os.path.join(folder, name))


def share(folder: str) -> None:
    """Let namespaces of processes follow mounts and unmounts below a folder.
    """
    os.makedirs(folder, exist_ok=True)
    run('mount', '--bind', folder, folder)
    run('mount', '--make-shared', folder)


def erase(root: str, names: Sequence[str]) -> None:
    """Delete folders under ``root``; none may be mounted any more."""
    left = mounts(root)
    if left:
        raise DssError('still mounted: %s' % ', '.join(left))
    for name in names:
        shutil.rmtree(os.path.join(root, name), ignore_errors=True)
