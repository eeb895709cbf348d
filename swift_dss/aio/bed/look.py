"""Find objects in a bed, by its rings and by its disks."""

from __future__ import annotations

import hashlib
import os
import struct
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from swift.common import utils
from swift.common.ring import Ring

from swift_dss.aio import survey, tables
from swift_dss.aio.bed.plan import Plan
from swift_dss.aio.layout import POLICIES, AioConf
from swift_dss.core.residency import Residency, tier_text
from swift_dss.wire import layout as wire_layout


class Place(NamedTuple):
    """A device that may hold an object.

    :param primary: its number among the primaries; None for a handoff
    """

    node: str
    device: str
    partition: int
    port: int
    primary: Optional[int]


class Found(NamedTuple):
    """One file of an object on a node's disk.

    :param kind: ``data``, ``ts`` (a tombstone) or ``meta``
    :param residency: of a data file; None if it can't be read
    """

    node: str
    device: str
    policy: int
    path: str
    kind: str
    timestamp: str
    residency: Optional[Residency]

    @property
    def tiers(self) -> str:
        """Where the bytes are, for people; '' if it has none."""
        return tier_text(self.residency.tiers) if self.residency else ''


def hash_of(plan: Plan, path: str) -> str:
    """Swift's hash of ``/account/container/object``."""
    prefix, suffix = plan.keys[0], plan.keys[1]
    return hashlib.md5(  # nosec: Swift's hash
        prefix.encode('latin1') + path.encode('utf-8')
        + suffix.encode('latin1')).hexdigest()


def locate(plan: Plan, path: str, policy: int = 0) -> List[Place]:
    """Where an object belongs: its primaries in ring order, then the
    handoffs.

    :param path: ``/account/container/object``; an account's or a
        container's path is looked up in the ring of its kind
    :param policy: index of the storage policy
    """
    depth = path.count('/', 0, len(path)) if path.count('/') < 3 else 3
    name = {1: 'account', 2: 'container'}.get(depth) or \
        wire_layout.data_dir_name(policy).replace('objects', 'object', 1)
    _let_swift_read_rings(plan)
    ring = Ring(plan.path('etc'), ring_name=name)
    digest = bytes.fromhex(hash_of(plan, path))
    part = struct.unpack_from('>I', digest)[0] >> (32 - ring.part_power)
    by_host = {plan.host(node): node for node in plan.nodes}
    places = []
    for number, device in enumerate(ring.get_part_nodes(part)):
        places.append(_place(by_host, device, part, number))
    for device in ring.get_more_nodes(part):
        places.append(_place(by_host, device, part, None))
    return places


def _let_swift_read_rings(plan: Plan) -> None:
    # Swift reads no ring before it has read some swift.conf, though a ring
    # has nothing from there.
    if not os.path.exists(utils.SWIFT_CONF_FILE):
        utils.set_swift_dir(plan.conf(plan.nodes[0]).etc)


def _place(by_host: Dict[str, str], device: Dict[str, Any], part: int,
           number: Optional[int]) -> Place:
    host = str(device['ip'])
    return Place(by_host.get(host, host), str(device['device']), part,
                 int(str(device['port'])), number)


def files(plan: Plan, node: str, path: str) -> List[Found]:
    """Every file of one object on a node's disks, in any policy."""
    conf = plan.conf(node)
    wanted = hash_of(plan, path)
    return [placed for placed in every_file(plan, node, wanted[-3:])
            if os.path.basename(os.path.dirname(placed.path)) == wanted
            ] if conf.devices else []


def every_file(plan: Plan, node: str,
               suffix: str = '') -> Iterator[Found]:
    """Every object file of a node.

    :param suffix: only of hashes that end so
    """
    conf = plan.conf(node)
    classes = tables.read_classes(conf)
    for device in conf.device_names:
        for policy in range(len(POLICIES)):
            top = conf.path('devices', device,
                            wire_layout.data_dir_name(policy))
            for folder in _hash_folders(top, suffix):
                for name in _listdir(folder):
                    stem, kind = os.path.splitext(name)
                    if kind not in ('.data', '.ts', '.meta'):
                        continue
                    where = os.path.join(folder, name)
                    replica = survey.replica(
                        device, policy, where, classes) \
                        if kind == '.data' else None
                    yield Found(node, device, policy, where, kind[1:],
                                stem.partition('#')[0],
                                replica.residency if replica else None)


def quarantined(conf: AioConf) -> List[str]:
    """Everything that servers of a node have quarantined."""
    paths: List[str] = []
    for device in conf.device_names:
        for folder, _folders, names in os.walk(
                conf.path('devices', device, 'quarantined')):
            paths += [os.path.join(folder, name) for name in names]
    return paths


def _hash_folders(top: str, suffix: str) -> Iterator[str]:
    for partition in _listdir(top):
        for middle in [suffix] if suffix else _listdir(
                os.path.join(top, partition)):
            for last in _listdir(os.path.join(top, partition, middle)):
                yield os.path.join(top, partition, middle, last)


def _listdir(path: str) -> List[str]:
    try:
        return sorted(os.listdir(path))
    except (FileNotFoundError, NotADirectoryError):
        return []
