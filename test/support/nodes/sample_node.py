"""A node's folders with objects in them, and a judge outside the system.

``SampleNode`` makes one device and its capacity folder and writes objects
the way Swift lays them out. What it acknowledged is kept as digests in
``expected.json``, which nothing of ours ever reads. ``read_version`` is a
reader of its own: it follows the residency record with nothing but the
standard library and our record's documented format.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
from typing import Dict, List, Optional, Sequence, Tuple

from support.nodes.daemon_node import write_policies
from swift.obj.diskfile import read_metadata, write_metadata

from swift_dss.core.residency import RemoteCopy, Tier
from swift_dss.core.spans import ClassMap
from swift_dss.core.version import VersionId
from swift_dss.gateway.ports import LocalVersion, Witness
from swift_dss.io.capacity import Capacity
from swift_dss.io.sums import blocks
from swift_dss.io.switch import Place
from swift_dss.wire import classmap, layout, names
from swift_dss.wire.records import residency as record

PARTITION = '37'


class SampleNode:
    """One device ``sda`` under ``root``, with or without an HDD.

    ``root/devices`` and ``root/hdd`` may be mount points.
    """

    def __init__(self, root: str, with_hdd: bool = True,
                 device: str = 'sda') -> None:
        self.root = root
        self.device = device
        self.devices = os.path.join(root, 'devices')
        self.device_path = os.path.join(self.devices, device)
        self.capacity_path = os.path.join(root, 'hdd', device) \
            if with_hdd else ''
        os.makedirs(self.device_path, exist_ok=True)
        write_policies(root)
        self.capacity = Capacity(self.capacity_path, device)
        if with_hdd:
            self.capacity.initialise()

    def put(self, name: str, data: bytes, timestamp: str = '',
            class_map: Optional[ClassMap] = None,
            frag_index: Optional[int] = None,
            policy: int = 0, with_sums: bool = False,
            object_hash: str = '', partition: str = PARTITION,
            synced: bool = True) -> Place:
        """Write an object like Swift would; it counts as acknowledged.

        :param object_hash: made of the name if it is ''
        :param synced: False for many that no power cut is to meet
        """
        object_hash = object_hash or hashlib.md5(name.encode()).hexdigest()
        version = VersionId(self.device, policy, object_hash,
                            timestamp or '1700000000.00000', frag_index)
        place = Place(self.device_path, self.capacity, version, partition,
                      len(data))
        os.makedirs(place.hash_dir, exist_ok=True)
        frag = '' if frag_index is None else '#%d#d' % frag_index
        path = os.path.join(place.hash_dir,
                            version.timestamp + frag + '.data')
        metadata = {'name': '/a/c/' + name, 'ETag': md5(data),
                    'X-Timestamp': version.timestamp,
                    'Content-Type': 'text/plain',
                    'Content-Length': str(len(data))}
        if class_map is not None:
            metadata.update(classmap.to_headers(names.SYSMETA_MAP,
                                                class_map))
        with open(path, 'wb') as target:
            target.write(data)
            write_metadata(target, metadata)
            if with_sums:
                summer = blocks.Summer()
                summer.update(data)
                blocks.store(target.fileno(), len(data),
                                 summer.finish())
            target.flush()
            if synced:
                os.fsync(target.fileno())
        if not synced:
            return place
        for cleared in (place.hash_dir, os.path.dirname(place.hash_dir)):
            sync(cleared)
        return place

    def acknowledge(self, places: List[Tuple[Place, bytes]]) -> None:
        """Write down what every later reader has to get."""
        expected = {place.version.timestamp + place.version.object_hash:
                    md5(data) for place, data in places}
        with open(os.path.join(self.root, 'expected.json'), 'w',
                  encoding='ascii') as target:
            json.dump(expected, target)

    def expected(self) -> Dict[str, str]:
        """What :meth:`acknowledge` wrote down."""
        with open(os.path.join(self.root, 'expected.json'),
                  encoding='ascii') as source:
            digests: Dict[str, str] = json.load(source)
        return digests

    def places(self) -> List[Place]:
        """Every version that lies on the device now."""
        places = []
        for folder, _folders, files in os.walk(
                os.path.join(self.device_path, 'objects')):
            for name in files:
                path = os.path.join(folder, name)
                version = layout.version_of_path(self.device, path)
                if version is not None:
                    try:
                        length = int(read_metadata(path)['Content-Length'])
                    except Exception:
                        continue  # torn metadata: the judge misses it
                    places.append(Place(self.device_path, self.capacity,
                                        version, path.split(os.sep)[-4],
                                        length))
        return places

    def lost(self, remote: Optional[Dict[str, bytes]] = None) -> List[str]:
        """Acknowledged versions whose bytes cannot be read any more."""
        got = {}
        for place in self.places():
            key = place.version.timestamp + place.version.object_hash
            try:
                got[key] = md5(read_version(place, remote or {}))
            except (OSError, ValueError, KeyError) as err:
                got[key] = repr(err)
        return ['%s: %s' % (key, got.get(key, 'gone'))
                for key, digest in self.expected().items()
                if got.get(key) != digest]


def read_version(place: Place, remote: Dict[str, bytes]) -> bytes:
    """The version's bytes, by the invariant and the record alone."""
    path = place.data_file()
    with open(path, 'rb') as ssd:
        size = os.fstat(ssd.fileno()).st_size
        if size == place.content_length:
            return ssd.read()
        if size != place.content_length + 1:
            raise ValueError('%d bytes' % size)
        residency = record.decode(
            os.getxattr(path, 'user.dss.residency'))
        pieces = []
        for extent in residency.extents:
            if extent.tiers & Tier.SSD:
                piece = os.pread(ssd.fileno(), extent.length, extent.offset)
            elif extent.tiers & Tier.HDD:
                with open(place.capacity.file_path(place.version),
                          'rb') as hdd:
                    piece = os.pread(hdd.fileno(), extent.length,
                                     extent.offset)
            else:
                assert residency.remote is not None
                whole = remote[residency.remote.key]
                piece = whole[extent.offset:extent.end]
            pieces.append(piece)
        return b''.join(pieces)


def sample_bytes(length: int, seed: int) -> bytes:
    """Bytes that no other seed and no hole looks like."""
    return random.Random(seed).getrandbits(length * 8).to_bytes(
        length, 'big') if length else b''


def md5(data: bytes) -> str:
    """Hex digest."""
    return hashlib.md5(data).hexdigest()


def sync(folder: str) -> None:
    """fsync a folder."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class Vouching(Witness):
    """S3 has whatever the records say; what it was asked for is noted."""

    def __init__(self) -> None:
        self.ahead: List[LocalVersion] = []
        self.asked: List[LocalVersion] = []

    def ask_ahead(self, leaving: Sequence[LocalVersion]) -> None:
        self.ahead += leaving

    def proven(self, local: LocalVersion) -> RemoteCopy:
        self.asked.append(local)
        assert local.residency.remote is not None
        return local.residency.remote
