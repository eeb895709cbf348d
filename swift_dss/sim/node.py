"""One storage node: Swift's folders, written as Swift writes them, and the
product's own tier daemon over them.

The object server is simulated; index, ledger, keeper, movers, queue,
uploads, bundles and deletes are the real ones, on a real folder.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from typing import Callable, List, Mapping, Optional, Sequence, Tuple

from swift.obj.diskfile import read_metadata, write_metadata

from swift_dss.core.classes import ClassTable
from swift_dss.core.config import GatewayConf, NodeConf, TierConf
from swift_dss.core.errors import DssError
from swift_dss.core.residency import Residency
from swift_dss.core.spans import ClassMap
from swift_dss.core.version import VersionId
from swift_dss.io import residency_store, steps
from swift_dss.io.capacity import Capacity
from swift_dss.sim.clock import Clock
from swift_dss.sim.daemon import (
    PARTS, Daemon, Surroundings, Unreadable)
from swift_dss.sim.judge import Replica, replica
from swift_dss.sim.ring import DEVICE, SimRing
from swift_dss.sim.s3 import Bucket
from swift_dss.wire import classmap, layout, names
from swift_dss.wire.control import Event, EventKind
from swift_dss.wire.proof import ProofRequest
from swift_dss.wire.residency import decode

#: Room on a node's SSD: small enough that pressure is the ordinary case.
SSD_BYTES = 9 * 1024
BUCKET, PREFIX = 'sim', 'p/'
#: Policy 0 is ours, policy 1 has Swift's own diskfile.
STOCK = 1
_STOCK_HEADS = 'cdef'
SWIFT_CONF = '''[swift-hash]
swift_hash_path_suffix = sim
[storage-policy:0]
name = ours
default = yes
diskfile_module = egg:swift_dss#dss.fs
[storage-policy:1]
name = stock
'''


class Crash(BaseException):
    """The process ends here. No ``Exception``: nothing of the product may
    catch it."""


class Node:
    """See the module.

    :param root: folder of the whole simulation
    """

    def __init__(self, name: str, root: str, bucket: Bucket, ring: SimRing,
                 clock: Clock, table: ClassTable,
                 logger: logging.Logger, has_hdd: bool = True) -> None:
        self.name = name
        self.bucket = bucket
        self.ring = ring
        self.clock = clock
        self.root = os.path.join(root, name)
        self.devices = os.path.join(self.root, 'ssd')
        self.ssd = os.path.join(self.devices, DEVICE)
        self.hdd = os.path.join(self.root, 'hdd', DEVICE)
        self.state = os.path.join(self.root, 'state')
        for folder in (self.ssd, self.hdd, self.state):
            os.makedirs(folder)
        Capacity(self.hdd, DEVICE).initialise()
        conf = _conf(root, self, has_hdd)
        self.around = Surroundings(
            name, conf, table, bucket, ring, clock, bucket.dice, logger,
            lambda one, object_hash: None)
        #: What the object server said and nobody has read yet.
        self.spool: List[Event] = []
        self.skew = 0.0
        self.daemon: Optional[Daemon] = None

    # -- the object server -----------------------------------------------

    def put(self, name: str, timestamp: str, body: bytes,
            class_id: int) -> bool:
        """Take a version; False if something newer is here."""
        object_hash = hash_of(name)
        folder = self.folder(object_hash)
        if self.newest(object_hash) >= timestamp:
            return False
        class_map = ClassMap.uniform(class_id)
        metadata = {
            'name': name, 'ETag': hashlib.md5(body).hexdigest(),
            'X-Timestamp': timestamp, 'Content-Type': 'text/plain',
            'Content-Length': str(len(body))}
        metadata.update(classmap.to_headers(names.SYSMETA_MAP, class_map))
        self._write(folder, timestamp + '.data', body, metadata)
        self._say(Event(
            EventKind.PUT, self._version(object_hash, timestamp),
            self.ring.partition(object_hash), len(body),
            classmap.encode(class_map), at=self.clock.now, name=name))
        return True

    def delete(self, name: str, timestamp: str) -> bool:
        """Take a tombstone; False if something newer is here."""
        object_hash = hash_of(name)
        if self.newest(object_hash) >= timestamp:
            return False
        self._write(self.folder(object_hash), timestamp + '.ts', b'', {
            'name': name, 'X-Timestamp': timestamp})
        self._say(Event(
            EventKind.DELETE, self._version(object_hash, timestamp),
            self.ring.partition(object_hash), at=self.clock.now))
        return True

    def put_stub(self, object_hash: str, metadata: Mapping[str, str],
                 residency: Residency) -> bool:
        """Take what another node has in S3 alone, if the daemon here can
        prove it."""
        version = self._version(object_hash, metadata['X-Timestamp'])
        if self.daemon is None or \
                self.newest(object_hash) >= version.timestamp:
            return False
        try:
            with self.clock.ahead(self.skew):
                proven = self.daemon.gateway.prove_arrival(ProofRequest(
                    version, self.ring.partition(object_hash),
                    metadata['ETag'], residency)).residency
        except DssError:
            return False
        assert proven is not None
        self._write(self.folder(object_hash), version.timestamp + '.data',
                    bytes(proven.content_length + 1), metadata, proven)
        self._say(Event(
            EventKind.PUT, version, self.ring.partition(object_hash),
            proven.content_length, at=self.clock.now))
        return True

    def record(self, object_hash: str) -> Residency:
        """The residency record of the newest data file, which has one."""
        return decode(os.getxattr(os.path.join(
            self.folder(object_hash), self.newest(object_hash) + '.data'),
            names.XATTR_RESIDENCY))

    def read(self, object_hash: str) -> Tuple[str, Optional[bytes]]:
        """(timestamp, bytes) of an object; (timestamp, None) of a
        tombstone; ('', None) where nothing is.

        :raises Unreadable: its bytes cannot be had now
        """
        found = self.look(object_hash)
        if found is None:
            return '', None
        if found.is_tombstone or (found.local and found.body is not None):
            return found.timestamp, found.body
        return found.timestamp, self._fetch(object_hash, found.timestamp)

    def metadata(self, object_hash: str) -> Mapping[str, str]:
        """Of the newest data file."""
        stamp = self.newest(object_hash)
        found: Mapping[str, str] = read_metadata(os.path.join(
            self.folder(object_hash), stamp + '.data'))
        return found

    def look(self, object_hash: str) -> Optional[Replica]:
        """What a judge finds of an object on this node."""
        return replica(self.folder(object_hash), layout.capacity_file(
            self.hdd, self._version(object_hash, '%s')), self.bucket.keys)

    def newest(self, object_hash: str) -> str:
        """Timestamp of the newest file of an object; '' if none."""
        return max((name.rpartition('.')[0] for name in _names(
            self.folder(object_hash))), default='')

    def hashes(self) -> List[str]:
        """Objects that have a folder here."""
        return sorted(
            one for datadir in _names(self.ssd)
            if datadir.startswith('objects')
            for partition in _names(self.ssd, datadir)
            for suffix in _names(self.ssd, datadir, partition)
            for one in _names(self.ssd, datadir, partition, suffix))

    def audit(self) -> None:
        """As the object server's readers do: a version whose only bytes
        the HDD has lost goes into quarantine."""
        for object_hash in self.hashes():
            found = self.look(object_hash)
            if found is not None and found.body is None and \
                    not found.is_tombstone and not found.key:
                self.drop(object_hash)

    def drop(self, object_hash: str) -> None:
        """As the replicator removes a handoff: nobody is told."""
        shutil.rmtree(self.folder(object_hash), ignore_errors=True)

    def folder(self, object_hash: str) -> str:
        """Swift's folder of an object."""
        return layout.hash_dir(
            self.ssd, policy_of(object_hash),
            self.ring.partition(object_hash), object_hash)

    # -- the daemon ------------------------------------------------------

    def work(self, crash_after: int = 0, sweep: bool = False,
             parts: Sequence[str] = PARTS) -> str:
        """Let the daemon do what is due; what came of it.

        :param parts: of the daemon that get their turn
        :param crash_after: it dies at so many named steps from here; 0:
            it lives
        :param sweep: walk the device too
        """
        left = [crash_after]

        def on_step(name: str) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise Crash(name)

        steps.listen(on_step if crash_after else None)
        try:
            with self.clock.ahead(self.skew):
                self._work(sweep, parts)
        except Crash as crash:
            self.kill()
            return 'dies at %s' % crash
        except DssError as err:
            return '%s: %s' % (type(err).__name__, err)
        finally:
            steps.listen(None)
        return ''

    def _work(self, sweep: bool, parts: Sequence[str]) -> None:
        daemon = self.daemon = self.daemon or Daemon(self.around)
        said, self.spool = self.spool, []
        try:
            daemon.work(said, parts)
        except BaseException:
            # A daemon that dies over a spool finds it again.
            self.spool = said + self.spool
            raise
        if sweep:
            daemon.sweep()

    def scrub(self) -> None:
        """Prove what S3 has of every version here, as the daemon does all
        the time at its own pace."""
        if self.daemon is None:
            return
        found = [(object_hash, self.look(object_hash))
                 for object_hash in self.hashes()]
        self.daemon.scrub([
            (self._version(object_hash, one.timestamp),
             self.ring.partition(object_hash))
            for object_hash, one in found if one is not None and one.key])

    def collect(self) -> None:
        """``swift-dss gateway gc`` on this node."""
        if self.daemon is not None:
            self.daemon.collect()

    def backlog(self) -> int:
        """What waits for S3."""
        return 1 if self.daemon is None else self.daemon.backlog()

    def kill(self) -> None:
        """The daemon is gone, its files stay."""
        daemon, self.daemon = self.daemon, None
        if daemon is not None:
            daemon.close()

    def lose(self, what: Callable[[str], bool]) -> None:
        """Files of the daemon's state are lost; it is killed first."""
        self.kill()
        for name in _names(self.state):
            if what(name):
                path = os.path.join(self.state, name)
                if os.path.isfile(path):
                    os.unlink(path)

    def new_ssd(self) -> None:
        """The SSD is replaced by an empty one."""
        self.kill()
        self.spool = []
        shutil.rmtree(self.ssd)
        os.makedirs(self.ssd)

    def new_hdd(self) -> None:
        """The HDD is replaced by an empty one, made ready by its operator.
        """
        self.kill()
        shutil.rmtree(self.hdd)
        os.makedirs(self.hdd)
        Capacity(self.hdd, DEVICE).initialise()

    # -- inside ----------------------------------------------------------

    def _version(self, object_hash: str, timestamp: str) -> VersionId:
        return VersionId(DEVICE, policy_of(object_hash), object_hash,
                         timestamp)

    def _write(self, folder: str, name: str, body: bytes,
               metadata: Mapping[str, str],
               residency: Optional[Residency] = None) -> None:
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, name)
        with open(path + '.tmp', 'wb') as target:
            target.write(body)
            write_metadata(target, dict(metadata))
            if residency is not None:
                residency_store.store(target.fileno(), residency, '')
        os.rename(path + '.tmp', path)
        for other in _names(folder):
            if other < name:
                os.unlink(os.path.join(folder, other))

    def _say(self, event: Event) -> None:
        self.spool.append(event)

    def _fetch(self, object_hash: str, timestamp: str) -> bytes:
        """All bytes, as the object server gets what is not on its SSD."""
        if self.daemon is None:
            raise Unreadable('%s: the daemon is down' % self.name)
        length = int(self.metadata(object_hash)['Content-Length'])
        with self.clock.ahead(self.skew):
            return self.daemon.fetch(
                self._version(object_hash, timestamp),
                self.ring.partition(object_hash), length)


def _conf(root: str, node: Node, has_hdd: bool) -> NodeConf:
    """Of a node: short ages, so that little time has to pass."""
    return NodeConf(
        devices=node.devices, swift_dir=os.path.join(root, 'etc'),
        mount_check=False, run_dir=node.state,
        capacity={DEVICE: node.hdd} if has_hdd else {},
        tier=TierConf(
            ssd_bytes=SSD_BYTES, clean_after_seconds=5.0,
            min_demote_bytes=600,
            high_watermark=0.7, low_watermark=0.4,
            index_dir=node.state),
        gateway=GatewayConf(
            enabled=True, url='http://s3', bucket=BUCKET, prefix=PREFIX,
            secret_file=os.path.join(root, 'secret'), fills=1,
            remote_after_seconds=2.0, delete_delay_seconds=12.0,
            take_over_seconds=25.0, bundle_age_seconds=3.0,
            bundle_member_bytes=1500))


def hash_of(name: str) -> str:
    """Swift's hash of an object's name, without a cluster's salt."""
    return hashlib.md5(name.encode()).hexdigest()


def policy_of(object_hash: str) -> int:
    """The storage policy of an object: one in four is not ours."""
    return STOCK if object_hash[0] in _STOCK_HEADS else 0


def _names(*folder: str) -> List[str]:
    try:
        return sorted(os.listdir(os.path.join(*folder)))
    except FileNotFoundError:
        return []
