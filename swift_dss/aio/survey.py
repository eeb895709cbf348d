"""Find where objects lie by reading the disks themselves.

The tier daemon's index gives the same answer faster. Reading the data files
and their residency records lets a demonstration or a test check the daemon.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import (
    Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple)

from swift_dss.aio import tables
from swift_dss.aio.layout import POLICIES, AioConf
from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import DamagedRecord, VersionGone
from swift_dss.core.residency import Residency, Tier
from swift_dss.core.spans import ClassMap
from swift_dss.io import residency_store
from swift_dss.tier.local import metadata
from swift_dss.wire import layout as wire_layout


class Replica(NamedTuple):
    """One data file of the cluster: a replica or a fragment archive."""

    device: str
    policy: int
    path: str
    name: str
    content_length: int
    class_map: ClassMap
    residency: Residency


@dataclass
class Share:
    """Bytes of one class, all replicas together.

    A byte that lies on two tiers counts on both.
    """

    objects: int = 0
    total: int = 0
    ssd: int = 0
    hdd: int = 0
    remote: int = 0


def replicas(conf: AioConf) -> Iterator[Replica]:
    """Every data file that can be read right now.

    Files that are replaced during the walk are left out.
    """
    classes = tables.read_classes(conf)
    for device in conf.device_names:
        for policy in range(len(POLICIES)):
            top = conf.path('devices', device,
                            wire_layout.data_dir_name(policy))
            for folder, _folders, files in os.walk(top):
                for name in files:
                    if not wire_layout.parse_data_file(name):
                        continue
                    copy = replica(device, policy,
                                   os.path.join(folder, name), classes)
                    if copy is not None:
                        yield copy


def replica(device: str, policy: int, path: str,
            classes: ClassTable) -> Optional[Replica]:
    """One data file; None if it is gone, or nothing that can be trusted."""
    try:
        data_fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        read = metadata.of_version(path, data_fd)
        residency = residency_store.judge(data_fd, read.content_length)
    except (VersionGone, DamagedRecord):
        return None
    finally:
        os.close(data_fd)
    return Replica(device, policy, path, read.name, read.content_length,
                   read.file_map(classes), residency)


def by_class(copies: Sequence[Replica]) -> Dict[int, Share]:
    """Class id -> where its bytes are."""
    shares: Dict[int, Share] = {}
    seen: Dict[int, Set[Tuple[int, str]]] = {}
    for replica in copies:
        for extent in replica.residency.extents:
            for span in replica.class_map.split(extent.offset,
                                                extent.length):
                share = shares.setdefault(span.class_id, Share())
                share.total += span.length
                share.ssd += span.length * bool(extent.tiers & Tier.SSD)
                share.hdd += span.length * bool(extent.tiers & Tier.HDD)
                share.remote += span.length * bool(
                    extent.tiers & Tier.REMOTE)
                seen.setdefault(span.class_id, set()).add(
                    (replica.policy, replica.name))
    for class_id, names in seen.items():
        shares[class_id].objects = len(names)
    return shares


def table(shares: Dict[int, Share], classes: ClassTable) -> List[str]:
    """Lines for people; the class that stays longest in front."""
    order = sorted(shares, key=lambda class_id: -classes.spec(class_id).rank)
    lines = ['%-14s %8s %10s %16s %16s %16s' % (
        'class', 'objects', 'all', 'on SSD', 'on HDD', 'in S3')]
    for class_id in order:
        share = shares[class_id]
        lines.append('%-14s %8d %10s %16s %16s %16s' % (
            classes.name_of(class_id), share.objects, mib(share.total),
            _part(share.ssd, share.total), _part(share.hdd, share.total),
            _part(share.remote, share.total)))
    whole = Share()
    for share in shares.values():
        whole = Share(*(getattr(whole, field) + getattr(share, field)
                        for field in ('objects', 'total', 'ssd', 'hdd',
                                      'remote')))
    lines.append('%-14s %8d %10s %16s %16s %16s' % (
        'all', whole.objects, mib(whole.total),
        _part(whole.ssd, whole.total), _part(whole.hdd, whole.total),
        _part(whole.remote, whole.total)))
    return lines


def mib(count: int) -> str:
    """Bytes as MiB with one decimal."""
    return '%.1f MiB' % (count / float(1 << 20))


def _part(part: int, total: int) -> str:
    if not part:
        return '-'
    return '%s %3d%%' % (mib(part), round(100.0 * part / max(total, 1)))
