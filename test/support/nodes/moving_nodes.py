"""Object servers with a ring among them, and Swift's own daemons.

Each node has a folder, a port and devices of its own; what moves goes by
ssync from one to the other, as on two machines. There is no tier daemon
unless a test plays one: S3 is away.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from support.edges.fetch_door import FetchDoor
from support.nodes.object_node import ObjectNode, make_node
from swift.common.ring import RingBuilder
from support import md5
from swift.obj.diskfile import read_metadata

from swift_dss.core.residency import RemoteCopy, Residency, Tier
from swift_dss.core.spans import ClassMap
from swift_dss.core.version import VersionId
from swift_dss.io import residency_store
from swift_dss.wire import classmap, control, layout, names
from swift_dss.wire.records import proof

#: (node, device, weight) of a ring.
Place = Tuple[ObjectNode, str, float]

_REPLICATION = """\
[object-replicator]
sync_method = ssync
%(daemons)s
[object-reconstructor]
%(daemons)s
"""
#: Only who has one announces that it takes stubs.
_GATEWAY = """
[gateway]
enabled = true
url = http://127.0.0.1:1
bucket = b
secret_file = %s/s3-secret
admission = false
"""
_DAEMONS = """\
ring_ip = 127.0.0.1
user = %(user)s
recon_cache_path = %(root)s
concurrency = 1
conn_timeout = 5
reclaim_age = 604800
"""


@contextlib.contextmanager
def running_nodes(root: str, devices: Sequence[Sequence[str]],
                  apps: Sequence[str] = ()) -> Iterator[List[ObjectNode]]:
    """Started nodes with HDDs, which end with the block.

    :param devices: names of each node's
    :param apps: of each node; ours by default
    """
    nodes: List[ObjectNode] = []
    try:
        for number, names in enumerate(devices):
            folder = os.path.join(root, 'node%d' % number)
            os.makedirs(folder)
            app = apps[number] if apps else 'egg:swift_dss#object'
            node = make_node(folder, app=app, names=names,
                             capacity=os.path.join(folder, 'hdd'))
            _configure_daemons(node)
            node.start()
            nodes.append(node)
        yield nodes
    finally:
        for node in nodes:
            node.stop()
        shutil.rmtree(root, ignore_errors=True)


def _configure_daemons(node: ObjectNode) -> None:
    with open(node.conf) as source:
        text = source.read()
    daemons = _DAEMONS % {'root': node.root, 'user': getpass.getuser()}
    text = text.replace('[object-replicator]\nsync_method = ssync\n',
                        _REPLICATION % {'daemons': daemons})
    with open(node.conf, 'w') as target:
        target.write(text)
    with open(os.path.join(node.root, 'dss.conf'), 'a') as target:
        target.write(_GATEWAY % node.root)


def make_ring(nodes: Sequence[ObjectNode], replicas: int,
              places: Sequence[Place]) -> List[List[str]]:
    """Write one ring to all nodes, for every policy.

    :returns: of each of its eight partitions, the devices in order
    """
    builder = RingBuilder(3, replicas, 0)
    for number, (node, device, weight) in enumerate(places):
        builder.add_dev({
            'region': 1, 'zone': number + 1, 'ip': '127.0.0.1',
            'port': node.port, 'device': device, 'weight': weight})
    builder.rebalance(seed=1)
    for node in nodes:
        for name in ('object', 'object-1', 'object-2'):
            builder.get_ring().save(os.path.join(
                node.root, name + '.ring.gz'))
    return [[str(device['device'])
             for device in builder.get_part_devices(part)]
            for part in range(8)]


def one_pass(node: ObjectNode, partition: int,
             daemon: str = 'object-replicator') -> str:
    """Let one of Swift's daemons work on a partition of a node; what it
    logged."""
    log = os.path.join(node.root, daemon + '.log')
    with contextlib.suppress(FileNotFoundError):
        os.unlink(log)
    done = subprocess.run(
        [sys.executable, '-m', 'swift_dss.aio.run', node.root, daemon,
         node.conf, 'once', '-p', str(partition)], timeout=240,
        env=dict(os.environ, SWIFT_DSS_AIO_LOG=log),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    with open(log) as source:
        said = source.read()
    print(said)  # shown with a test that fails
    return said


class Daemon(FetchDoor):
    """What an object server needs of a tier daemon and of S3.

    :param keys: S3 has these, with the bytes
    """

    def __init__(self, node: ObjectNode, keys: Dict[str, bytes]) -> None:
        self.keys = keys
        #: What S3 says of a key besides.
        self.metadata: Dict[str, Dict[str, str]] = {}
        self.proofs: List[proof.ProofRequest] = []
        self.fetches: List[control.FetchRequest] = []
        super().__init__(node.root)

    def answer(self, line: bytes, asker: socket.socket) -> None:
        if line.startswith(proof.PREFIX):
            asker.sendall(proof.encode_reply(self._prove(
                proof.decode_request(line))))
        else:
            self._fetch(asker, control.decode_fetch(line))

    def _prove(self, request: proof.ProofRequest) -> proof.ProofReply:
        self.proofs.append(request)
        if request.residency is None:
            return self._find(request.version)
        remote = request.residency.remote
        assert remote is not None
        body = self.keys.get(remote.key)
        if body is None or md5(body) != request.etag:
            return proof.ProofReply(404, 'S3 has no such key')
        return proof.ProofReply(200, '', replace(
            request.residency, remote=replace(remote, verified_at=2.0)))

    def _find(self, version: VersionId) -> proof.ProofReply:
        body = self.keys.get(key_of(version))
        if body is None:
            return proof.ProofReply(404, 'S3 has no such key')
        return proof.ProofReply(200, '', Residency.whole(
            len(body)).with_remote(RemoteCopy(
                's3', key_of(version), md5(body), 2.0)).drop(
                    0, len(body), Tier.SSD), md5(body),
            self.metadata.get(key_of(version), {}))

    def _fetch(self, connection: socket.socket,
               request: control.FetchRequest) -> None:
        self.fetches.append(request)
        body = self.keys.get(key_of(request.version))
        connection.sendall(control.encode_fetch_reply(control.FetchReply(
            503 if body is None else 200)))
        if body is not None:
            connection.sendall(body[request.offset:
                                    request.offset + request.length])


def key_of(version: VersionId) -> str:
    """The key that a version has in S3."""
    return layout.remote_key('', version)


def send_to_s3(path: str, ranges: Sequence[Tuple[int, int]] = ()) -> str:
    """Make a data file what it is once S3 has all of it, and no disk some.

    As the tier daemon does it, a new inode takes the name.

    :param ranges: (offset, length) that leave the SSD; none means all
    :returns: the key
    """
    version = layout.version_of_path('sda', path)
    assert version is not None
    key = key_of(version)
    fresh = path + '.fresh'
    shutil.copy2(path, fresh)
    with open(fresh, 'rb+') as target:
        length = int(read_metadata(target)['Content-Length'])
        residency = (residency_store.load(target.fileno())
                     or Residency.whole(length)).with_remote(
            RemoteCopy('s3', key, 'e' * 32, 1.0))
        for offset, count in ranges or [(0, length)]:
            residency = residency.drop(offset, count, Tier.SSD | Tier.HDD)
            if not ranges:
                target.truncate(0)
                break
            target.seek(offset)
            target.write(bytes(count))
        target.truncate(length + 1)
        residency_store.store(
            target.fileno(), residency,
            residency_store.load_capacity_id(path))
    os.rename(fresh, path)
    return key


def record_of(path: str) -> Residency:
    """The residency record of a data file."""
    with open(path, 'rb') as source:
        return residency_store.judge(source.fileno(), int(
            read_metadata(source)['Content-Length']))


def tagged_headers(class_map: ClassMap) -> Any:
    """What the proxy sends with a PUT of these classes."""
    headers = classmap.to_headers(names.BACKEND_MAP, class_map)
    headers.update(classmap.to_headers(names.SYSMETA_MAP, class_map))
    return headers


def put_fragment(node: ObjectNode, name: str, body: bytes, index: int,
                 device: str, partition: int, timestamp: str,
                 class_id: int = 1) -> bytes:
    """Put one fragment archive of EC 2+1 on a device; its bytes."""
    archive = fragment(body, index)
    answer = node.request('PUT', name, archive, dict(
        tagged_headers(ClassMap.uniform(class_id)), **{
            'X-Timestamp': timestamp,
            'X-Object-Sysmeta-Ec-Frag-Index': str(index),
            'X-Object-Sysmeta-Ec-Etag': md5(body),
            'X-Object-Sysmeta-Ec-Content-Length': str(len(body)),
            'X-Object-Sysmeta-Ec-Scheme':
                'liberasurecode_rs_vand 2+1',
            'X-Object-Sysmeta-Ec-Segment-Size': '65536'}),
        policy=1, device=device, partition=partition)
    assert answer.status == 201
    return archive


def fragment(body: bytes, index: int) -> bytes:
    """A fragment archive, as the proxy makes it."""
    from pyeclib.ec_iface import ECDriver
    driver = ECDriver(k=2, m=1, ec_type='liberasurecode_rs_vand')
    return b''.join(driver.encode(body[at:at + 65536])[index]
                    for at in range(0, len(body), 65536))
