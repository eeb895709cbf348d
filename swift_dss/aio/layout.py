"""The parts of an all-in-one cluster, and their folders.

Everything lies under one root folder, so that several clusters can run
beside each other and a stale one can be found and removed::

    <root>/cluster.json      the options of its start
    <root>/etc/              Swift's and our configuration, rings
    <root>/devices/d1..dN    the SSDs: Swift's devices
    <root>/hdd/d1..dN        the capacity tier of each device
    <root>/run/              sockets, state files, index, recon cache
    <root>/log/              one file a server
    <root>/images/           loop images, if the storage is loops
    <root>/cloud/            the second Swift, the S3 cloud
"""

from __future__ import annotations

import dataclasses
import json
import os
import zlib
from dataclasses import dataclass
from typing import List

from swift_dss.core.errors import BadConfig

#: Ports one cluster takes, from its base port on.
PORTS = 10

#: Unix socket paths hold 108 bytes; ours add ``/run/events.sock``.
MAX_ROOT_CHARS = 80

MIB = 1 << 20

#: mkfs.xfs refuses less than 300 MB.
MIN_IMAGE_BYTES = 320 * MIB

#: Users of the cluster: account:user -> (key, groups).
USERS = (
    ('admin', 'admin', 'admin', '.admin .reseller_admin'),
    ('test', 'tester', 'testing', '.admin'),
    ('test', 'tester2', 'testing2', '.admin'),
    ('test', 'tester3', 'testing3', ''),
    ('test2', 'tester2', 'testing2', '.admin'),
)

#: The one user of the S3 cloud.
CLOUD_USER = ('cloud', 'gateway', 'gateway-secret')
CLOUD_BUCKET = 'swift-dss'


@dataclass(frozen=True)
class AioConf:
    """One cluster.

    :param storage: ``loops``, ``folders``, or ``disks``: the modelled disks
        of a laboratory guest, which are lost with it
    :param ssd_bytes: size of each SSD image
    :param hdd_bytes: size of each HDD image, and of the cloud's
    :param ssd_budget_bytes: room for objects on each SSD
    :param hdd_iops: operations a second of the throttled HDD; 0 is no limit
    :param workers: of the proxy and the object server; 0 is in-process
    :param background: run replicator, auditors, updaters, expirer, ...
    :param plain: stock Swift without our parts, to compare with
    :param default_policy: which of :data:`POLICIES` new containers get
    :param replicas: of objects, but those of ``dss-ec``; an edge whose
        second copy is in S3 has 1
    :param chunk_bytes: bytes that proxy and object server move at a time
    :param address: where servers listen
    :param s3_at: URL of the S3 that the gateway uses; empty: the cluster's
        own second Swift
    :param servers_per_port: of the object server, which then has a port for
        each device; 0 is one port for all
    """

    root: str
    base_port: int
    devices: int = 4
    storage: str = 'folders'
    ssd_bytes: int = 512 * MIB
    hdd_bytes: int = 1024 * MIB
    ssd_budget_bytes: int = 64 * MIB
    hdd_iops: int = 120
    workers: int = 0
    background: bool = True
    plain: bool = False
    default_policy: str = 'dss'
    replicas: int = 3
    chunk_bytes: int = 65536
    address: str = '127.0.0.1'
    s3_at: str = ''
    servers_per_port: int = 0

    @property
    def proxy_port(self) -> int:
        """Where clients talk to."""
        return self.base_port

    @property
    def object_port(self) -> int:
        """The object server's."""
        return self.base_port + 1

    def device_port(self, device: str) -> int:
        """The port that serves a device's objects."""
        if not self.servers_per_port:
            return self.object_port
        return self.base_port + PORTS + self.device_names.index(device)

    @property
    def container_port(self) -> int:
        """The container server's."""
        return self.base_port + 2

    @property
    def account_port(self) -> int:
        """The account server's."""
        return self.base_port + 3

    @property
    def cloud_port(self) -> int:
        """First of the four ports of the S3 cloud, in the same order."""
        return self.base_port + 4

    @property
    def metrics_port(self) -> int:
        """The tier daemon's Prometheus page."""
        return self.base_port + 8

    @property
    def auth_url(self) -> str:
        """Where tokens come from."""
        return self.s3_url + '/auth/v1.0'

    @property
    def s3_url(self) -> str:
        """S3 of the cluster itself."""
        return 'http://%s:%d' % (self.address, self.proxy_port)

    @property
    def cloud_url(self) -> str:
        """S3 of the cloud."""
        return self.s3_at or 'http://%s:%d' % (
            self.address, self.cloud_port)

    @property
    def cgroup_name(self) -> str:
        """Unique to the root, the same at every start."""
        return 'swift-dss-%08x' % zlib.crc32(self.root.encode('utf-8'))

    def path(self, *parts: str) -> str:
        """A path under the root."""
        return os.path.join(self.root, *parts)

    @property
    def etc(self) -> str:
        """Swift's configuration folder."""
        return self.path('etc')

    @property
    def run(self) -> str:
        """Sockets and state."""
        return self.path('run')

    @property
    def log(self) -> str:
        """Log files."""
        return self.path('log')

    @property
    def device_names(self) -> List[str]:
        """d1, d2, ..."""
        return ['d%d' % (number + 1) for number in range(self.devices)]


#: Storage policies in order of their index.
POLICIES = ('dss', 'dss-ec', 'vanilla')


def default_root() -> str:
    """The default folder of a cluster."""
    from_env = os.environ.get('SWIFT_DSS_AIO_ROOT')
    if from_env:
        return os.path.abspath(from_env)
    state = os.environ.get('XDG_STATE_HOME') or os.path.join(
        os.path.expanduser('~'), '.local', 'state')
    return os.path.join(state, 'swift-dss', 'aio')


def save(conf: AioConf) -> None:
    """Write down the started cluster."""
    with open(conf.path('cluster.json'), 'w') as out:
        json.dump(dataclasses.asdict(conf), out, indent=2, sort_keys=True)
        out.write('\n')


def load(root: str) -> AioConf:
    """The cluster that was last started in ``root``.

    :raises BadConfig: there was none
    """
    try:
        with open(os.path.join(root, 'cluster.json')) as source:
            return AioConf(**json.load(source))
    except OSError as err:
        raise BadConfig('no cluster in %s (%s); start one with '
                        '"swift-dss aio start --root %s"'
                        % (root, err.strerror, root)) from err
    except (ValueError, TypeError) as err:
        raise BadConfig('%s/cluster.json: %s' % (root, err)) from err


def check(conf: AioConf) -> None:
    """Refuse impossible options before anything is made.

    :raises BadConfig: names the option and the reason
    """
    if len(conf.root) > MAX_ROOT_CHARS:
        raise BadConfig('--root has %d characters; Unix sockets below it '
                        'allow %d' % (len(conf.root), MAX_ROOT_CHARS))
    if conf.devices < 3:
        raise BadConfig('--devices %d: three replicas need three'
                        % conf.devices)
    if conf.storage == 'loops' and min(
            conf.ssd_bytes, conf.hdd_bytes) < MIN_IMAGE_BYTES:
        raise BadConfig('XFS needs images of at least %d MiB'
                        % (MIN_IMAGE_BYTES // MIB))
    if conf.default_policy not in POLICIES:
        raise BadConfig('--default-policy: one of %s' % ', '.join(POLICIES))
    if not 1 <= conf.replicas <= conf.devices:
        raise BadConfig('--replicas %d: 1 to %d, the number of devices'
                        % (conf.replicas, conf.devices))
    if not 4096 <= conf.chunk_bytes <= 16 * MIB:
        raise BadConfig('--chunk-kib %d: 4 to 16384'
                        % (conf.chunk_bytes // 1024))
