"""Where our files lie: on the device, on its capacity tier, in S3.

On the device (SSD), beside Swift's own folders::

    <devices>/<device>/dss/spool/      events a dead daemon has not read
    <devices>/<device>/dss/tmp/        stub inodes being built

On the capacity file system (HDD) of that device::

    <capacity>/<device>/.dss-capacity          identity, see below
    <capacity>/<device>/tmp/                   files being written
    <capacity>/<device>/data/<policy>/<abc>/<hash>/<timestamp>[#<frag>]

A capacity file has every byte at the offset it has in the object; bytes
that lie elsewhere are holes. The identity file names the device it belongs
to: where it is missing, the HDD is not mounted and the tier is
*unavailable*, never empty.

In the node's run directory::

    <run>/events.sock     datagrams to the tier daemon
    <run>/fetch.sock      streams of bytes from the tier daemon
    <run>/admin.sock      one JSON request and reply a connection
    <run>/state/<device>.json   pressure, as the daemon last saw it
"""

from __future__ import annotations

import os
import re
from typing import Optional, Tuple

from swift_dss.core.version import VersionId

DEVICE_DIR = 'dss'
CAPACITY_MARKER = '.dss-capacity'

_DATA_FILE = re.compile(
    r'^(?P<timestamp>[0-9]{10}\.[0-9]{5}(?:_[0-9a-f]{16})?)'
    r'(?:#(?P<frag>[0-9]{1,4})(?:#d)?)?\.data\Z')
_REMOTE_KEY = re.compile(
    r'^(?P<abc>[0-9a-f]{3})/(?P<policy>[0-9]{1,9})/(?P<hash>[0-9a-f]{32})/'
    r'(?P<timestamp>[0-9]{10}\.[0-9]{5}(?:_[0-9a-f]{16})?)'
    r'(?:#(?P<frag>[0-9]{1,4}))?(?P<suffix>\.[a-z]+)?\Z')
_DATA_DIR = re.compile(r'^objects(?:-(?P<policy>[0-9]{1,9}))?\Z')


def spool_dir(device_path: str) -> str:
    """Folder of events that the daemon has yet to read."""
    return os.path.join(device_path, DEVICE_DIR, 'spool')


def stub_tmp_dir(device_path: str) -> str:
    """Folder of inodes that are about to replace a data file."""
    return os.path.join(device_path, DEVICE_DIR, 'tmp')


def capacity_marker(capacity_path: str) -> str:
    """The file that proves that the capacity tier is mounted."""
    return os.path.join(capacity_path, CAPACITY_MARKER)


def capacity_tmp_dir(capacity_path: str) -> str:
    """Folder of capacity files still being written."""
    return os.path.join(capacity_path, 'tmp')


def capacity_file(capacity_path: str, version: VersionId) -> str:
    """The capacity file of ``version``, whether or not it exists."""
    frag = '' if version.frag_index is None else '#%d' % version.frag_index
    # As in hash_dir: once for each version that is looked at.
    return '%s/data/%d/%s/%s/%s%s' % (
        capacity_path, version.policy, version.object_hash[-3:],
        version.object_hash, version.timestamp, frag)


def data_dir_name(policy: int) -> str:
    """Swift's ``objects`` folder of a policy."""
    return 'objects-%d' % policy if policy else 'objects'


def hash_dir(device_path: str, policy: int, partition: str,
             object_hash: str) -> str:
    """Swift's folder of one object."""
    # Not os.path.join, at four times the cost: one or more an event.
    return '%s/%s/%s/%s/%s' % (device_path, data_dir_name(policy), partition,
                               object_hash[-3:], object_hash)


def parse_data_file(name: str) -> Optional[Tuple[str, Optional[int], bool]]:
    """(timestamp, fragment index, durable) of a ``.data`` file name.

    A replicated file counts as durable. None for any other name.
    """
    match = _DATA_FILE.match(name)
    if not match:
        return None
    frag = match.group('frag')
    return (match.group('timestamp'), None if frag is None else int(frag),
            frag is None or name.endswith('#d.data'))


def version_of_path(device: str, path: str) -> Optional[VersionId]:
    """The version that a data file's full path stands for, or None."""
    parts = path.split(os.sep)
    parsed = parse_data_file(parts[-1])
    if parsed is None or len(parts) < 5:
        return None
    datadir = _DATA_DIR.match(parts[-5])
    if not datadir:
        return None
    policy = int(datadir.group('policy') or 0)
    return VersionId(device, policy, parts[-2], parsed[0], parsed[1])


def remote_key(prefix: str, version: VersionId) -> str:
    """The S3 key of a version: the same on every replica.

    Replicas share a key; each fragment of an EC object has its own.
    """
    return '%s%s/%s' % (prefix, version.object_hash[-3:], version.key)


def parse_remote_key(prefix: str, key: str
                     ) -> Optional[Tuple[VersionId, str]]:
    """(version, rest of the key) of a key of :func:`remote_key` or of a key
    beside it; None for any other.

    The version is on no device.
    """
    if not key.startswith(prefix):
        return None
    match = _REMOTE_KEY.match(key[len(prefix):])
    if not match or not match.group('hash').endswith(match.group('abc')):
        return None
    frag = match.group('frag')
    return VersionId('', int(match.group('policy')), match.group('hash'),
                     match.group('timestamp'),
                     None if frag is None else int(frag)), \
        match.group('suffix') or ''
