"""A node of one device for the bench of bundles: folder, index, gateway."""

from __future__ import annotations

import hashlib
import logging
import os
import random
import time
from typing import Any, Callable, Dict, List

from swift.obj.diskfile import write_metadata

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.config import GatewayConf, NodeConf, TierConf
from swift_dss.core.errors import DssError
from swift_dss.core.residency import Tier
from swift_dss.core.spans import ClassMap
from swift_dss.core.version import VersionId
from swift_dss.gateway.peers.ranks import Ranks
from swift_dss.gateway.ports import Sink, Upload
from swift_dss.gateway.parts import Outside
from swift_dss.gateway.service import Gateway
from swift_dss.tier.devices import Devices
from swift_dss.tier.index.index import Index
from swift_dss.tier.inforce import InForce
from swift_dss.tier.local.local import Local
from swift_dss.tier.metrics import Metrics
from swift_dss.wire import classmap, names
from swift_dss.wire.control import FetchReply
from swift_dss.wire.layout import hash_dir


_SWIFT_CONF = """[swift-hash]
swift_hash_path_suffix = end
[storage-policy:0]
name = gold
default = yes
diskfile_module = egg:swift_dss#dss.fs
"""
_DONE_SECONDS = 900.0


class Nowhere(Sink):

    def __init__(self) -> None:
        self.length = 0
        self.status = 0
        self.digest = hashlib.md5()

    def begin(self, reply: FetchReply) -> None:
        """See :meth:`Sink.begin`."""
        self.status = reply.status

    def write(self, data: bytes) -> None:
        """See :meth:`Sink.write`."""
        self.length += len(data)
        self.digest.update(data)


class _First(Ranks):
    """Every device is first: there is one."""

    def rank(self, version: VersionId) -> int:
        """See :meth:`Ranks.rank`."""
        return 0

    def partition(self, version: VersionId) -> str:
        """See :meth:`Ranks.partition`."""
        return '7'


class Node:
    """One device in a folder, its index and its gateway."""

    def __init__(self, root: str, gateway: GatewayConf,
                 bundled: bool) -> None:
        logger = logging.getLogger('dss-bench')
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
        self.conf = NodeConf(
            devices=os.path.join(root, 'devices'), mount_check=False,
            run_dir=os.path.join(root, 'run'), swift_dir=root,
            tier=TierConf(index_dir=root, min_demote_bytes=0),
            gateway=gateway)
        os.makedirs(os.path.join(self.conf.devices, 'sda'))
        os.makedirs(self.conf.run_dir)
        # The daemon touches versions of policies that are ours only.
        with open(os.path.join(root, 'swift.conf'), 'w') as target:
            target.write(_SWIFT_CONF)
        table = ClassTable.of([ClassSpec(0, 'plain', 0),
                               ClassSpec(1, 'small', 1, bundle=bundled)])
        metrics = Metrics(self.conf, logger)
        self.index = Index(os.path.join(root, 'index.db'))
        self.local = Local(InForce(self.conf, table), Devices(self.conf),
                           self.index, metrics)
        self.gateway = Gateway(self.conf, lambda: table, self.local, logger,
                               metrics, outside=Outside(ranks=_First(root)))
        self.local.witness = self.gateway.parts.mend.witness
        self.etags: Dict[str, str] = {}
        self.waits: List[float] = []
        self.began = 0.0
        self.local.on_remote = self._arrived
        # Before its first upload a gateway marks the bucket as its cluster's,
        # and tries how S3 answers: no version's cost, so not among the counts.
        self.gateway.parts.link.prefix.may_write()
        self.gateway.start()

    def queue(self, versions: List[VersionId]) -> None:
        """S3 is to get these now."""
        self.began = time.monotonic()
        self.gateway.enqueue_uploads([Upload(version, '7', True, 1)
                                      for version in versions])

    def waiting(self) -> int:
        """Versions that wait for a bundle, or are in one under way."""
        bundles = self.gateway.status()['bundles']
        return int(bundles['waiting'])

    def wait_for(self, arrivals: int) -> None:
        """Until the records of so many versions name a proven copy."""
        # Asking for the status would disturb the measurement.
        self.wait_until(lambda: len(self.waits) >= arrivals)
        self.wait_until(lambda: not self.gateway.status()['uploads'])

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """:raises DssError: it takes too long"""
        deadline = time.monotonic() + _DONE_SECONDS
        while not holds():
            if time.monotonic() > deadline:
                raise DssError('%s %r' % (self.conf.gateway.prefix,
                                          self.gateway.status()))
            time.sleep(0.02)

    @property
    def operations(self) -> Any:
        """Requests to S3 so far, by operation."""
        return Counts(self.gateway.throughput.operations())

    def _arrived(self, version: VersionId, length: int) -> None:
        self.waits.append(time.monotonic() - self.began)

    def make(self, size: int, count: int, seed: int) -> List[VersionId]:
        """Versions as Swift's diskfile leaves them, half of them deep."""
        dice = random.Random(seed)
        made = []
        timestamp = '%016.5f' % (time.time() - 3600)
        for number in range(count):
            name = '/a/c/%sobject-%06d' % (
                'one/two/three/' if number % 2 else '', number)
            version = VersionId('sda', 0, hashlib.md5(
                name.encode()).hexdigest(), timestamp)
            data = dice.getrandbits(8 * size).to_bytes(size, 'big')
            folder = hash_dir(os.path.join(self.conf.devices, 'sda'), 0,
                              '7', version.object_hash)
            os.makedirs(folder)
            etag = hashlib.md5(data).hexdigest()
            metadata = {
                'name': name, 'X-Timestamp': timestamp, 'ETag': etag,
                'Content-Length': str(size),
                'Content-Type': 'application/octet-stream'}
            metadata.update(classmap.to_headers(
                names.SYSMETA_MAP, ClassMap.uniform(1)))
            with open(os.path.join(folder, timestamp + '.data'),
                      'wb') as target:
                target.write(data)
                write_metadata(target, metadata)
            self.etags[version.key] = etag
            self.local.mover.track(version, '7')
            made.append(version)
        return made

    def close(self) -> None:
        """End the gateway."""
        assert all(self.local.describe(
            VersionId('sda', int(policy), object_hash, timestamp),
            '7').residency.tiers & Tier.REMOTE
            for policy, object_hash, timestamp in (
                key.split('/') for key in self.etags)), 'not all in S3'
        self.gateway.stop()
        self.index.file.close()


class Counts(Dict[str, int]):
    """A counter without counts is 0."""

    def __missing__(self, key: str) -> int:
        return 0
