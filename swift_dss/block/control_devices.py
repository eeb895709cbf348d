"""Find the use of a block device before it is overwritten."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from typing import List, Optional

from swift_dss.block.control import number_of
from swift_dss.core.errors import BadConfig

_SBIN = ('/usr/sbin', '/sbin')
#: Files that identify a device, the best first: mapped devices, arrays, SCSI
#: and ATA, NVMe, virtual ones, loop devices, mapped devices without a uuid.
_IDENTITIES = ('dm/uuid', 'md/uuid', 'device/wwid', 'wwid', 'device/serial',
               'serial', 'loop/backing_file', 'dm/name')
#: blkid's exit status for "nothing that I know".
_NOTHING = 2


def block_number(path: str) -> str:
    """``major:minor`` of a block device.

    :raises BadConfig: it is none
    """
    number = number_of(path)
    if number is None or not os.path.isdir('/sys/dev/block/' + number):
        raise BadConfig('%s: not a block device' % path)
    return number


def sectors_of(path: str) -> int:
    """The size in sectors of 512 bytes."""
    with open('/sys/dev/block/%s/size' % block_number(path)) as source:
        return int(source.read())


def logical_bytes(path: str) -> int:
    """The size of the smallest write."""
    folder = os.path.realpath('/sys/dev/block/' + block_number(path))
    for place in (folder, os.path.dirname(folder)):
        name = os.path.join(place, 'queue', 'logical_block_size')
        if os.path.exists(name):
            with open(name) as source:
                return int(source.read())
    return 512


def uses_of(path: str) -> List[str]:
    """Everything that has the device now; an empty list is none."""
    number = block_number(path)
    return [('is mounted on %s' % place) for place in mounts_of(number)] + [
        'is swap' for _ in swaps(number)] + [
            'is part of %s' % name for name in holders(number)]


def mounts_of(number: str) -> List[str]:
    """Where the file system of a device is mounted."""
    places = []
    with open('/proc/self/mountinfo') as lines:
        for line in lines:
            words = line.split()
            if words[2] == number:
                places.append(words[4].replace('\\040', ' '))
    return places


def swaps(number: str) -> List[str]:
    """Lines of /proc/swaps that are this device."""
    if not os.path.exists('/proc/swaps'):
        return []
    with open('/proc/swaps') as lines:
        paths = [line.split()[0] for line in lines.readlines()[1:]]
    return [path for path in paths
            if os.path.exists(path) and number_of(path) == number]


def holders(number: str) -> List[str]:
    """Devices that are built on it, and partitions of it."""
    folder = '/sys/dev/block/%s' % number
    try:
        names = sorted(os.listdir(os.path.join(folder, 'holders')))
    except FileNotFoundError:
        names = []
    return names + sorted(
        name for name in os.listdir(folder)
        if os.path.exists(os.path.join(folder, name, 'partition')))


def identity(path: str) -> bytes:
    """16 bytes that only this device has, and has again after a restart.

    Made of the device's identity, and of the start of a partition.

    :returns: zeroes if it says nothing
    """
    folder = os.path.realpath('/sys/dev/block/' + block_number(path))
    start = _attribute(folder, 'start')
    if start:
        folder = os.path.dirname(folder)
    for name in _IDENTITIES:
        value = _attribute(folder, name)
        if value:
            return hashlib.blake2s(
                ('%s=%s start=%s' % (name, value, start)).encode(),
                digest_size=16).digest()
    return bytes(16)


def _attribute(folder: str, name: str) -> str:
    try:
        with open(os.path.join(folder, name), 'rb') as source:
            return source.read().decode('latin-1').strip(' \0\n')
    except OSError:
        return ''


def signature(path: str) -> Optional[str]:
    """The file system or the like that a device carries; None for none.

    :raises BadConfig: the device cannot be examined
    """
    program = shutil.which('blkid', path=os.pathsep.join(
        [os.environ.get('PATH', os.defpath)] + list(_SBIN)))
    if program is None:
        raise BadConfig('no blkid: apt-get install util-linux')
    done = subprocess.run(
        [program, '-p', '-o', 'export', path], stdin=subprocess.DEVNULL,
        capture_output=True, check=False, timeout=120)
    if done.returncode == _NOTHING:
        return None
    if done.returncode:
        raise BadConfig('%s: blkid: %s' % (path, ' '.join(
            done.stderr.decode('utf-8', 'replace').split())
            or 'several signatures'))
    values = dict(line.partition('=')[::2] for line in
                  done.stdout.decode('utf-8', 'replace').splitlines())
    # Of a partition blkid also says how the table names it.
    if all(key == 'DEVNAME' or key.startswith('PART_ENTRY_')
           for key in values):
        return None
    kind = values.get('TYPE') or values.get('PTTYPE')
    label = values.get('LABEL')
    return '%s%s' % (kind or 'something', ' "%s"' % label if label else '')
