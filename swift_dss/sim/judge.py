"""Read the real state by code that the product does not share.

It follows the documented format of a data file and its residency record, and
looks into S3's dictionary behind S3's back.
"""

from __future__ import annotations

import json
import os
import struct
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

from swift_dss.sim.world.s3 import Stored

_SSD, _HDD = 1, 2
#: More than any file of a run has.
_MOST_BYTES = 1 << 20


class Replica(NamedTuple):
    """One node's state of one object.

    :param timestamp: of the newest file
    :param body: None for a tombstone, and where bytes are missing
    :param is_tombstone: the newest file says that the object is deleted
    :param why: the missing part
    :param local: no byte had to come out of S3
    :param key: the S3 key that the record names, or ''
    :param frag_index: of a fragment; the bytes are its own
    :param durable: False of a fragment whose write was not committed here
    """

    timestamp: str
    body: Optional[bytes]
    is_tombstone: bool
    why: str
    local: bool
    key: str
    frag_index: Optional[int] = None
    durable: bool = True

    @property
    def file_name(self) -> str:
        """Of the data file."""
        return self.timestamp + (
            '' if self.frag_index is None else '#%d%s' % (
                self.frag_index, '#d' * self.durable)) + '.data'


def replica(hash_dir: str, capacity_file: str, keys: Dict[str, Stored],
            is_lost: Callable[[str], bool] = lambda path: False
            ) -> Optional[Replica]:
    """The newest file of an object's folder; None if there is none.

    :param capacity_file: path of a version's file on the HDD, with ``%s``
        for its timestamp
    :param is_lost: of a file whose bytes its disk does not give
    """
    try:
        names = sorted(os.listdir(hash_dir), reverse=True)
    except FileNotFoundError:
        return None
    names = [name for name in names if name.endswith(('.data', '.ts'))]
    if not names:
        return None
    return _of_file(hash_dir, names[0], capacity_file, keys, is_lost)


def fragments(hash_dir: str, capacity_file: str, keys: Dict[str, Stored],
              is_lost: Callable[[str], bool] = lambda path: False
              ) -> List[Replica]:
    """All files of an erasure-coded object's folder, the newest first, and
    of equally new ones those that are durable.

    :param capacity_file: as of :func:`replica`; the timestamp has ``#`` and
        the index behind it
    """
    try:
        names = os.listdir(hash_dir)
    except FileNotFoundError:
        return []
    return sorted((_of_file(hash_dir, name, capacity_file, keys, is_lost)
                   for name in names if name.endswith(('.data', '.ts'))),
                  key=lambda replica: (replica.timestamp, replica.is_tombstone,
                                       replica.durable,
                                       -(replica.frag_index or 0)),
                  reverse=True)


def _of_file(hash_dir: str, name: str, capacity_file: str,
             keys: Dict[str, Stored],
             is_lost: Callable[[str], bool]) -> Replica:
    version, _dot, kind = name.rpartition('.')
    if kind == 'ts':
        return Replica(version, None, True, '', True, '')
    stamp, coded, rest = version.partition('#')
    index, _, mark = rest.partition('#')
    of_fragment = (int(index), mark == 'd') if coded else (None, True)
    path = '%s/%s' % (hash_dir, name)
    try:
        body, local, key = _body(
            path, capacity_file % (stamp + coded + index), keys, is_lost)
    except (OSError, ValueError, KeyError, struct.error) as err:
        return Replica(stamp, None, False, '%s: %s' % (
            type(err).__name__, err), False, key_of(path), *of_fragment)
    return Replica(stamp, body, False, '', local, key, *of_fragment)


def _read(path: str, is_lost: Callable[[str], bool]) -> bytes:
    if is_lost(path):
        raise ValueError('the disk does not give its bytes')
    opened = os.open(path, os.O_RDONLY)
    try:
        return os.read(opened, _MOST_BYTES)
    finally:
        os.close(opened)


def key_of(path: str) -> str:
    """The key that the record of a data file names; empty if it has none."""
    try:
        remote = _record(os.getxattr(path, 'user.dss.residency'))[2]
    except (OSError, ValueError, struct.error):
        return ''
    return remote[0] if remote else ''


def _body(path: str, capacity_file: str, keys: Dict[str, Stored],
          is_lost: Callable[[str], bool]) -> Tuple[bytes, bool, str]:
    size_here = os.stat(path).st_size
    try:
        raw = os.getxattr(path, 'user.dss.residency')
    except OSError:
        return _read(path, is_lost), True, ''
    length, extents, remote = _record(raw)
    if remote is not None and remote[0] not in keys and \
            _own_key(path, remote[0]) in keys:
        remote = _own_key(path, remote[0]), 0
    key = remote[0] if remote else ''
    if size_here not in (length, length + 1):
        raise ValueError('the data file has %d bytes, not %d'
                         % (size_here, length))
    ssd = None if is_lost(path) else _read(path, is_lost)
    if ssd is not None and size_here == length:
        return ssd, True, key
    pieces: List[bytes] = []
    offset, local = 0, True
    for size, tiers in extents:
        if tiers & _SSD and ssd is not None:
            piece = ssd[offset:offset + size]
        elif tiers & _HDD and _is_meant(path, capacity_file) and not (
                tiers & ~_HDD and is_lost(capacity_file)):
            piece = _read(capacity_file, is_lost)[offset:offset + size]
        elif remote is not None:
            local = False
            at = remote[1] + offset
            piece = keys[remote[0]].data[at:at + size]
        else:
            raise ValueError('%d bytes at %d are nowhere' % (size, offset))
        if len(piece) != size:
            raise ValueError('%d bytes at %d are cut off' % (size, offset))
        pieces.append(piece)
        offset += size
    return b''.join(pieces), local, key


def _is_meant(path: str, capacity_file: str) -> bool:
    """Whether a record speaks of the HDD that is there now: an SSD may come
    back to another one, which has this version from a later copy."""
    try:
        meant = os.getxattr(path, 'user.dss.capacity').decode()
        with open(capacity_file.partition('/data/')[0]
                  + '/.dss-capacity') as marker:
            return bool(json.load(marker)['identity'] == meant)
    except OSError:
        return True


def _own_key(path: str, bundle: str) -> str:
    """The own key of a version whose bundle is gone; '' for no bundle."""
    prefix, is_bundle, _ = bundle.partition('bundles/')
    folder, _, object_hash, name = path.rsplit('/', 3)
    policy = folder.rsplit('/', 2)[1].partition('-')[2]
    return '%s%s/%s/%s/%s' % (
        prefix, object_hash[-3:], policy or '0', object_hash,
        name[:-len('.data')].replace('#d', '')) if is_bundle else ''


def _record(raw: bytes) -> Tuple[int, List[Tuple[int, int]],
                                 Optional[Tuple[str, int]]]:
    """(Content-Length, (length, tiers) of each extent, (key, offset))."""
    if raw[:4] != b'DSR1':
        raise ValueError('no residency record')
    length, count = struct.unpack_from('>QH', raw, 8)
    at = 18
    extents = []
    for _ in range(count):
        extents.append(struct.unpack_from('>QB', raw, at))
        at += 9
    flag = raw[at]
    if not flag:
        return length, extents, None
    at += 9
    texts = []
    for _ in range(3):
        size, = struct.unpack_from('>H', raw, at)
        texts.append(raw[at + 2:at + 2 + size].decode())
        at += 2 + size
    offset = 0
    if flag == 2:
        offset, = struct.unpack_from('>Q', raw, at)
    return length, extents, (texts[1], offset)
