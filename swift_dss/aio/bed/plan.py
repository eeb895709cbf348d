"""The parts of a bed, and the folders of its members.

::

    <root>/bed.json          the options of its start, and the changes since
    <root>/etc/              rings and their builders, hosts
    <root>/n1/ ... nN/       a node each, laid out as an all-in-one cluster
    <root>/p1/ ... pM/       a proxy each
    <root>/s3/               the S3: a second, stock Swift, and its door
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import os
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping

from swift_dss.aio import configs, layout
from swift_dss.aio.layout import MIB, AioConf
from swift_dss.core.errors import BadConfig

#: Unix socket paths hold 108 bytes; a node's add ``/n99/run/events.sock``.
MAX_ROOT_CHARS = 80
#: An address has one byte for the number of a node or proxy.
MAX_MEMBERS = 99
#: Three replicas, and the fragments of 2+1, each want a drive.
MIN_DRIVES = 3
NODE_PORT = 6200
PROXY_PORT = 8080
CLOUD_PORT = 9000
#: Where the door of the S3 listens.
DOOR_PORT = 9100
S3 = 's3'
BED_FILE = 'bed.json'

#: Section to option to value, of ``dss.conf``.
Options = Mapping[str, Mapping[str, str]]

#: Ages of a bed: waits of minutes in a machine room are short here.
SHORT_AGES: Dict[str, Dict[str, str]] = {
    'tier': {'clean_after_seconds': '1', 'interval_seconds': '1'},
    'gateway': {'remote_after_seconds': '2', 'delete_delay_seconds': '12',
                'take_over_seconds': '25', 'bundle_age_seconds': '3'}}


@dataclass
class Plan:
    """A bed as it was asked for.

    :param nodes: names of the storage nodes
    :param drives: SSDs of a node, each with its HDD
    :param zones: how many there are; 0 is one a node
    :param hostnames: rings name hosts instead of addresses
    :param options: of every node's ``dss.conf``, by section
    :param node_options: the same of single nodes, by node
    :param stock: nodes that run Swift's own object server and diskfile
    :param versions: folders of packages, by member that runs the product
        installed there
    :param skew: seconds that a node's clock is ahead, by node
    :param waiting: nodes that are not in the rings yet
    :param leaving: nodes that give up their objects
    :param retired: names of nodes that were here once
    """

    root: str
    nodes: List[str]
    proxies: List[str]
    drives: int = 1
    zones: int = 0
    hostnames: bool = False
    ssd_bytes: int = 320 * MIB
    hdd_bytes: int = 512 * MIB
    ssd_budget_bytes: int = 64 * MIB
    workers: int = 0
    servers_per_port: int = 1
    keys: List[str] = field(
        default_factory=lambda: list(configs.Keys.new()))
    options: Dict[str, Dict[str, str]] = field(default_factory=dict)
    node_options: Dict[str, Dict[str, Dict[str, str]]] = field(
        default_factory=dict)
    stock: List[str] = field(default_factory=list)
    versions: Dict[str, str] = field(default_factory=dict)
    skew: Dict[str, float] = field(default_factory=dict)
    waiting: List[str] = field(default_factory=list)
    leaving: List[str] = field(default_factory=list)
    retired: List[str] = field(default_factory=list)

    def path(self, *parts: str) -> str:
        """A path under the root."""
        return os.path.join(self.root, *parts)

    @property
    def members(self) -> List[str]:
        """Nodes, proxies and the S3."""
        return self.nodes + self.proxies + [S3]

    def address(self, member: str) -> str:
        """Where a member is."""
        if member == S3:
            return '10.77.2.1'
        kind = 0 if member.startswith('n') else 1
        return '10.77.%d.%d' % (kind, int(member[1:]))

    def host(self, member: str) -> str:
        """How rings and URLs call a member."""
        if self.hostnames:
            return member + '.bed.example'
        return self.address(member)

    def zone(self, node: str) -> int:
        """Nodes are dealt to zones in turn."""
        number = int(node[1:])
        return (number - 1) % self.zones + 1 if self.zones else number

    @property
    def door_url(self) -> str:
        """The S3 that gateways use."""
        return 'http://%s:%d' % (self.host(S3), DOOR_PORT)

    def conf(self, member: str) -> AioConf:
        """A member, as one all-in-one cluster that lacks the rest."""
        if member == S3:
            return AioConf(
                root=self.path(S3), base_port=CLOUD_PORT - 4, devices=0,
                storage='loops', hdd_bytes=self.hdd_bytes)
        is_node = member in self.nodes
        return AioConf(
            root=self.path(member), storage='loops',
            base_port=NODE_PORT if is_node else PROXY_PORT,
            devices=self.drives if is_node else 0,
            ssd_bytes=self.ssd_bytes, hdd_bytes=self.hdd_bytes,
            ssd_budget_bytes=self.ssd_budget_bytes, hdd_iops=0,
            workers=self.workers, background=False,
            plain=member in self.stock, address=self.address(member),
            s3_at=self.door_url,
            # Swift looks for its ports among the addresses in the rings,
            # and knows no names there: one port serves all drives then.
            servers_per_port=0 if self.hostnames
            else self.servers_per_port)

    def daemon(self, member: str) -> str:
        """Module of the tier daemon in the version that a node runs.

        Modules move between versions; the name of the command stays.

        :raises BadConfig: that version has no such command
        """
        packages = self.versions.get(member)
        if not packages:
            return 'swift_dss.tier.main'
        for made in importlib.metadata.distributions(path=[packages]):
            for point in made.entry_points:
                if point.name == 'swift-dss-tierd':
                    return point.value.partition(':')[0]
        raise BadConfig('%s: the version there has no command '
                        'swift-dss-tierd' % packages)

    def environment(self, member: str) -> Dict[str, str]:
        """Variables of a member's processes that choose their version."""
        packages = self.versions.get(member)
        return {'PYTHONPATH': packages} if packages else {}

    def dss_options(self, node: str) -> Dict[str, Dict[str, str]]:
        """The options in which a node's ``dss.conf`` differs."""
        merged: Dict[str, Dict[str, str]] = {}
        for options in (SHORT_AGES, self.options,
                        self.node_options.get(node, {})):
            for section, pairs in options.items():
                merged.setdefault(section, {}).update(pairs)
        return merged


def check(plan: Plan) -> None:
    """Refuse impossible options before anything is made.

    :raises BadConfig: names the option and the reason
    """
    if len(plan.root) > MAX_ROOT_CHARS:
        raise BadConfig('--root has %d characters; Unix sockets below it '
                        'allow %d' % (len(plan.root), MAX_ROOT_CHARS))
    for option, count in (('--nodes', len(plan.nodes)),
                          ('--proxies', len(plan.proxies))):
        if not 1 <= count <= MAX_MEMBERS:
            raise BadConfig('%s %d: 1 to %d' % (option, count, MAX_MEMBERS))
    drives = plan.drives * len(plan.nodes)
    if drives < MIN_DRIVES:
        raise BadConfig(
            '%d nodes with %d drives each: three replicas need three '
            'drives; give more --devices' % (len(plan.nodes), plan.drives))
    if min(plan.ssd_bytes, plan.hdd_bytes) < layout.MIN_IMAGE_BYTES:
        raise BadConfig('XFS needs images of at least %d MiB'
                        % (layout.MIN_IMAGE_BYTES // MIB))
    if not 0 <= plan.zones <= len(plan.nodes):
        raise BadConfig('--zones %d: 1 to %d, the number of nodes'
                        % (plan.zones, len(plan.nodes)))


def fitting_drives(nodes: int) -> int:
    """Drives of a node, so that the whole bed has three."""
    return -(-MIN_DRIVES // max(1, nodes))


def new(root: str, nodes: int, proxies: int = 1, drives: int = 0,
        **options: Any) -> Plan:
    """A bed of so many nodes, by the names ``n1``, ``n2``, ...

    :param drives: of a node; 0 makes as many as the policies need
    """
    return Plan(root=root, nodes=['n%d' % (k + 1) for k in range(nodes)],
                proxies=['p%d' % (k + 1) for k in range(proxies)],
                drives=drives or fitting_drives(nodes), **options)


def save(plan: Plan) -> None:
    """Write down the running bed."""
    path = plan.path(BED_FILE)
    # The keys open the cluster.
    file_fd = os.open(path + '.new', os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
                      0o600)
    with os.fdopen(file_fd, 'w') as out:
        json.dump(dataclasses.asdict(plan), out, indent=2, sort_keys=True)
        out.write('\n')
    os.replace(path + '.new', path)


def exists(root: str) -> bool:
    """True if there is a bed, or remains of one."""
    return os.path.exists(os.path.join(root, BED_FILE))


def load(root: str) -> Plan:
    """The bed that was last started in ``root``.

    :raises BadConfig: there was none
    """
    try:
        with open(os.path.join(root, BED_FILE)) as source:
            return Plan(**json.load(source))
    except OSError as err:
        raise BadConfig('no bed in %s (%s); start one with "swift-dss aio '
                        'start --nodes 3 --root %s"'
                        % (root, err.strerror, root)) from err
    except (ValueError, TypeError) as err:
        raise BadConfig('%s/%s: %s' % (root, BED_FILE, err)) from err
