"""A device of ours with both tiers, without any server around it."""

from __future__ import annotations

import dataclasses
import os
import uuid
from typing import Any, Dict, List, NamedTuple

from swift.common import storage_policy, utils
from swift.obj import diskfile as stock
from support import swift_files
from support.tier_classes import TIERS

from swift_dss.core.residency import Tier
from swift_dss.core.spans import UNCLASSIFIED_MAP, ClassMap
from swift_dss.io.carriers import Carrier
from swift_dss.io.probe import CHUNK_BYTES, PageCache
from swift_dss.objserver import settings
from swift_dss.objserver.diskfile import DssDiskFileManager
from swift_dss.objserver.ec import DssECDiskFileManager
from swift_dss.wire.control import EventKind

#: 1 and 5..9 go to the SSD, 2 to the HDD, 3 to both.
CLASSES = TIERS + ''.join(
    '[class:%d]\nname = n%d\nrank = %d\n' % (number, number, number + 20)
    for number in range(5, 10))
CONF = """
[dss]
run_dir = {root}/run
class_table = {root}/classes.conf
[tier]
min_demote_bytes = 0
[gateway]
enabled = yes
[capacity]
"""


class Moved(NamedTuple):
    """One read or write that reached a carrier."""

    kind: str
    path: str
    offset: int
    length: int
    class_id: int


class Recorder(Carrier):
    """A carrier that remembers what it carried."""

    name = 'recorder'
    carries = True

    def __init__(self) -> None:
        self.moved: List[Moved] = []

    def pread(self, fd: int, length: int, offset: int,
              class_id: int) -> bytes:
        data = super().pread(fd, length, offset, class_id)
        self._note('r', fd, offset, len(data), class_id)
        return data

    def pwritev(self, fd: int, buffers: Any, offset: int,
                class_id: int) -> int:
        written = super().pwritev(fd, buffers, offset, class_id)
        self._note('w', fd, offset, written, class_id)
        return written

    def _note(self, kind: str, fd: int, offset: int, length: int,
              class_id: int) -> None:
        self.moved.append(Moved(kind, os.readlink('/proc/self/fd/%d' % fd),
                                offset, length, class_id))


class Full(PageCache):
    """A page cache that has everything: that of ``scratch`` never says
    what it has without waiting."""

    def look(self, carrier: Any, fd: int, length: int, offset: int,
             class_id: int) -> int:
        data = os.pread(fd, length, offset)
        for chunk, at in zip(self.chunks, range(0, length, CHUNK_BYTES)):
            part = data[at:at + CHUNK_BYTES]
            chunk[:len(part)] = part
        return len(data)


class Ragged(Full):
    """A page cache that has all but the end of several chunks."""

    def look(self, carrier: Any, fd: int, length: int, offset: int,
             class_id: int) -> int:
        if length > CHUNK_BYTES:
            length -= 4096
        return super().look(carrier, fd, length, offset, class_id)


class Logger:
    """A Swift logger that counts."""

    thread_locals = (None, None)

    def __init__(self) -> None:
        self.counts: Dict[str, int] = {}
        self.lines: List[str] = []

    def increment(self, name: str, *_args: Any) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1

    def _line(self, text: str, *args: Any, **_kwargs: Any) -> None:
        self.lines.append(text % args if args else text)

    debug = info = warning = error = exception = _line


class Disk:
    """Managers over one fresh device and its capacity tier."""

    def __init__(self, root: str, hdd: bool = True) -> None:
        self.root = root
        self.devices = os.path.join(root, 'devices')
        self.device = os.path.join(self.devices, 'sda')
        self.capacity_path = os.path.join(root, 'hdd', 'sda')
        os.makedirs(self.device)
        self.logger = Logger()
        conf = os.path.join(root, 'dss.conf')
        for path, text in (
                (os.path.join(root, 'classes.conf'), CLASSES),
                (conf, CONF.format(root=root) + (
                    'sda = %s\n' % self.capacity_path if hdd else ''))):
            with open(path, 'w', encoding='ascii') as target:
                target.write(text)
        self.options = {'devices': self.devices, 'mount_check': 'false',
                        'dss_conf': conf, 'fallocate_reserve': '0'}
        self.node = settings.node_for(self.options, self.logger)
        self.carrier = self.node.carrier = Recorder()
        if hdd:
            self.node.capacity('sda').initialise()
        #: What the tier daemon was told at once.
        self.told: List[Any] = []
        tell = self.node.events.tell

        def hear(event: Any) -> bool:
            self.told.append(event)
            return tell(event)

        self.node.events.tell = hear  # type: ignore[method-assign]
        self.policies = _policies()
        self.ours = DssDiskFileManager(self.options, self.logger)
        self.ec = DssECDiskFileManager(self.options, self.logger)
        self.stock = stock.DiskFileManager(self.options, self.logger)

    def pools(self) -> Dict[str, Dict[str, int]]:
        """Counters of every pool that the node has used."""
        return {pool.name: pool.snapshot() for pool in (
            self.node.pool(Tier.SSD, 'sda'), self.node.pool(Tier.HDD, 'sda'),
            self.node.hasher.pool) if pool.jobs}

    def lacking(self) -> List[Any]:
        """Versions of which the daemon was told that they lack bytes."""
        return [event.version for event in self.told
                if event.kind is EventKind.ROT]

    def without_sums(self) -> None:
        """Keep no checksums of blocks from here on, and check none."""
        self.node.conf = dataclasses.replace(
            self.node.conf, io=dataclasses.replace(
                self.node.conf.io, block_checksums=False))

    def open_file(self, name: str, manager: Any = None, policy: int = 0,
                  **kwargs: Any) -> Any:
        """A diskfile of /a/c/<name>."""
        manager = manager or (self.ec if policy == 1 else self.ours)
        return manager.get_diskfile('sda', '7', 'a', 'c', name,
                                    policy=self.policies[policy], **kwargs)

    def put(self, name: str, chunks: Any, class_map: Any = None,
            size: Any = -1, manager: Any = None, timestamp: str = '',
            policy: int = 0, frag_index: Any = None) -> Any:
        """Write an object as the object server does; its diskfile."""
        if isinstance(chunks, bytes):
            chunks = [chunks]
        disk_file = self.open_file(name, manager, policy)
        if hasattr(disk_file, 'dss_tag'):
            disk_file.dss_tag(class_map or UNCLASSIFIED_MAP)
        total = sum(len(chunk) for chunk in chunks)
        stamp = utils.Timestamp(timestamp or utils.Timestamp.now())
        writer = disk_file.writer(size=total if size == -1 else size)
        try:
            writer.open()
            for chunk in chunks:
                writer.write(chunk)
            length, etag = writer.chunks_finished()
            metadata = {'X-Timestamp': stamp.internal, 'ETag': etag,
                        'Content-Type': 'a/b',
                        'Content-Length': str(length)}
            if class_map is not None:
                metadata['X-Object-Sysmeta-Dss-Map'] = _text(class_map)
            if frag_index is not None:
                metadata['X-Object-Sysmeta-Ec-Frag-Index'] = \
                    str(frag_index)
                metadata['X-Object-Sysmeta-Ec-Etag'] = 'x'
            writer.put(metadata)
            writer.commit(stamp)
        finally:
            writer.close()
        return disk_file

    def read(self, name: str, start: Any = None, stop: Any = None,
             manager: Any = None, policy: int = 0, **kwargs: Any) -> bytes:
        """The bytes of an object or of one range of it."""
        disk_file = self.open_file(name, manager, policy, **kwargs)
        with disk_file.open():
            reader = disk_file.reader()
        source = reader if start is None else \
            reader.app_iter_range(start, stop)
        return b''.join(source)

    def data_path(self, name: str, policy: int = 0) -> str:
        """The data file of an object."""
        return swift_files.data_file(
            self.ec if policy == 1 else self.ours, self.policies[policy],
            '/a/c/' + name)

    def quarantined(self) -> List[str]:
        """What any manager has put aside."""
        top = os.path.join(self.device, 'quarantined')
        return [os.path.join(folder, name)
                for folder, _folders, names in os.walk(top)
                for name in names]


def _text(class_map: ClassMap) -> str:
    from swift_dss.wire import classmap
    return classmap.encode(class_map)


def _policies() -> Any:
    utils.HASH_PATH_SUFFIX, utils.HASH_PATH_PREFIX = b'test', b'test'
    policies = storage_policy.StoragePolicyCollection([
        storage_policy.StoragePolicy(0, 'dss', is_default=True),
        storage_policy.ECStoragePolicy(
            1, 'dss-ec', ec_type='liberasurecode_rs_vand', ec_ndata=2,
            ec_nparity=1, ec_segment_size=65536)])
    storage_policy._POLICIES = policies
    return policies


def scratch() -> str:
    """A folder on a file system with O_TMPFILE and attributes."""
    for place in ('/dev/shm', '/var/tmp'):
        if os.access(place, os.W_OK):
            path = os.path.join(place, 'dss-unit-%s' % uuid.uuid4().hex)
            os.makedirs(path)
            return path
    raise RuntimeError('no scratch folder')
