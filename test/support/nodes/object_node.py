"""One object server on folders of the caller's, spoken to directly.

No proxy, ring or container server: requests carry what the proxy would
send. Policy 0 is replicated and ours, 1 is EC 2+1 and ours, 2 is stock
Swift's replicated diskfile.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import subprocess
import sys
import time
from typing import Any, Dict, Iterator, NamedTuple, Optional

from support import wait_until
from support.tier_classes import TIERS

from swift_dss.aio import processes

_SWIFT_CONF = """\
[swift-hash]
swift_hash_path_suffix = test
swift_hash_path_prefix = test
[storage-policy:0]
name = dss
default = yes
diskfile_module = egg:swift_dss#dss.fs
[storage-policy:1]
name = dss-ec
policy_type = erasure_coding
ec_type = liberasurecode_rs_vand
ec_num_data_fragments = 2
ec_num_parity_fragments = 1
ec_object_segment_size = 65536
diskfile_module = egg:swift_dss#dss_ec.fs
[storage-policy:2]
name = vanilla
"""
_SERVER_CONF = """\
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = %(port)d
workers = 0
swift_dir = %(root)s
devices = %(devices)s
mount_check = false
log_level = INFO
fallocate_reserve = 0
%(dss_conf)s
%(extra)s
[pipeline:main]
pipeline = object-server
[app:object-server]
use = %(app)s
allowed_headers = Content-Disposition
[object-replicator]
sync_method = ssync
[object-auditor]
"""
_DSS_CONF = """\
[dss]
devices = %(devices)s
swift_dir = %(root)s
run_dir = %(root)s/run
class_table = %(root)s/dss-classes.conf
mount_check = false
allow_tmpfs = true
[io]
remote_deadline_seconds = 1
carrier = %(carrier)s
[capacity]
%(capacity)s
[tier]
index_dir = %(root)s/run
"""
#: Class 1: SSD; 2: never on the SSD; 3: on both at once; 4: when there is
#: room; 5..9: SSD.
CLASSES = TIERS + """\
[class:4]
name = roomy
rank = 20
allocate = room
[class:5]
name = five
rank = 55
[class:6]
name = six
rank = 56
[class:7]
name = seven
rank = 57
"""


class Answer(NamedTuple):
    """A response, read to its end."""

    status: int
    headers: Dict[str, str]
    body: bytes


class ObjectNode:
    """A running object server."""

    def __init__(self, root: str, devices: str, port: int) -> None:
        self.root = root
        self.devices = devices
        self.port = port
        self.process: Any = None
        self._stamp = 0

    @property
    def log(self) -> str:
        return os.path.join(self.root, 'object-server.log')

    @property
    def conf(self) -> str:
        return os.path.join(self.root, 'object-server.conf')

    def timestamp(self) -> str:
        """Newer than every one before."""
        self._stamp = max(self._stamp + 1, int(time.time() * 100000))
        return '%.5f' % (self._stamp / 100000)

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection('127.0.0.1', self.port,
                                          timeout=60)

    def request(self, method: str, name: str, body: bytes = b'',
                headers: Optional[Dict[str, str]] = None, policy: int = 0,
                device: str = 'sda', partition: int = 7,
                connection: Any = None) -> Answer:
        """One request as the proxy would send it."""
        sent = {'X-Timestamp': self.timestamp(),
                'X-Backend-Storage-Policy-Index': str(policy)}
        if method == 'PUT':
            sent.update({'Content-Type': 'application/octet-stream',
                         'Content-Length': str(len(body))})
        sent.update(headers or {})
        asked = connection or self.connect()
        asked.request(method, '/%s/%d/a/c/%s' % (device, partition, name),
                      body or None, sent)
        response = asked.getresponse()
        answer = Answer(response.status, {
            key.lower(): value for key, value in response.getheaders()},
            response.read())
        if connection is None:
            asked.close()
        return answer

    def hash_dir(self, name: str, policy: int = 0, device: str = 'sda',
                 partition: int = 7) -> str:
        """Swift's folder of an object."""
        import hashlib
        digest = hashlib.md5(
            b'test/a/c/' + name.encode() + b'test').hexdigest()
        return os.path.join(
            self.devices, device,
            'objects-%d' % policy if policy else 'objects', str(partition),
            digest[-3:], digest)

    def data_file(self, name: str, policy: int = 0,
                  device: str = 'sda') -> str:
        """The one data file of an object."""
        return self.data_file_in(name, 7, policy, device)

    def data_file_in(self, name: str, partition: int, policy: int = 0,
                     device: str = 'sda') -> str:
        """The same in a partition of the caller's."""
        folder = self.hash_dir(name, policy, device, partition)
        data_files = [item for item in os.listdir(folder)
                      if item.endswith('.data')]
        assert len(data_files) == 1, data_files
        return os.path.join(folder, data_files[0])

    def start(self) -> None:
        environ = dict(os.environ,
                       SWIFT_DSS_AIO_LOG=self.log,
                       PYTHONWARNINGS='ignore')
        with open(self.log + '.out', 'ab') as output:
            self.process = subprocess.Popen(
                [sys.executable, '-m', 'swift_dss.aio.run', self.root,
                 'object-server', self.conf], env=environ,
                stdout=output, stderr=subprocess.STDOUT)
        wait_until(self._answers, 60, 'an object server on %d' % self.port)

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.log + '.out'
        try:
            return self.request('OPTIONS', 'x').status > 0
        except OSError:
            return False

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.process = None


def make_node(root: str, app: str = 'egg:swift_dss#object',
              devices: str = '', capacity: str = '',
              carrier: str = 'auto', extra: str = '',
              names: Any = ('sda',)) -> ObjectNode:
    """Write the configuration of a node; it is not started.

    :param capacity: folder above the capacity tiers; '' for none
    """
    devices = devices or os.path.join(root, 'devices')
    for name in names:
        os.makedirs(os.path.join(devices, name), exist_ok=True)
    os.makedirs(os.path.join(root, 'run', 'state'), exist_ok=True)
    port = processes.free_base_port(1, first=26080)
    ours = 'swift_dss' in app
    values = {
        'root': root, 'devices': devices, 'port': port, 'app': app,
        'extra': extra, 'carrier': carrier,
        'dss_conf': 'dss_conf = %s/dss.conf' % root if ours else '',
        'capacity': '* = %s/%%(device)s' % capacity if capacity else ''}
    stock = _SWIFT_CONF if ours else '\n'.join(
        line for line in _SWIFT_CONF.splitlines()
        if not line.startswith('diskfile_module'))
    for name, text in (('swift.conf', stock),
                       ('object-server.conf', _SERVER_CONF % values),
                       ('dss.conf', _DSS_CONF % values),
                       ('dss-classes.conf', CLASSES)):
        with open(os.path.join(root, name), 'w') as target:
            target.write(text)
    if capacity:
        from swift_dss.io.capacity import Capacity
        for name in names:
            Capacity(os.path.join(capacity, name), name).initialise()
    return ObjectNode(root, devices, port)


@contextlib.contextmanager
def running_node(root: str, **options: Any) -> Iterator[ObjectNode]:
    """A started node that is stopped at the end."""
    node = make_node(root, **options)
    try:
        node.start()
        yield node
    finally:
        node.stop()
