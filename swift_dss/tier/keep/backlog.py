"""Sums of a device's bytes that wait for S3, for admission."""

from __future__ import annotations

import os
from typing import Dict, Mapping, Optional

from swift_dss.core.classes import ClassTable, RemoteMode
from swift_dss.core.config import NodeConf
from swift_dss.core.pressure import Backlog, Link
from swift_dss.strategy import admission
from swift_dss.tier.devices import Device


def pending_bytes(sums: Mapping[int, Mapping[str, int]],
                  table: ClassTable) -> int:
    """Bytes of a device that S3 lacks and is to have.

    Sums by class: a version of which one class stays here (and with it
    the version) counts for its other classes, which wait in vain.
    """
    return sum(part['total'] - part['remote']
               for class_id, part in sums.items()
               if table.spec(class_id).remote is not RemoteMode.NEVER)


def of_device(device: Device, sums: Dict[int, Dict[str, int]],
              table: ClassTable, conf: NodeConf, ssd_room: int,
              ssd_used: int, hdd_ready: bool,
              link: Optional[Link]) -> Optional[Backlog]:
    """The backlog of a device; None where nothing goes to S3.

    :param ssd_room: bytes that objects share on the SSD, of which
        ``ssd_used`` are taken
    :raises OSError: the HDD cannot be looked at
    """
    if link is None or not conf.gateway.admission:
        return None
    free = max(0, ssd_room - ssd_used)
    total = ssd_room
    untracked = max(0, ssd_used - sum(part['ssd'] for part in sums.values()))
    if hdd_ready and not device.is_block:
        stat = os.statvfs(device.capacity.path)
        free += stat.f_bavail * stat.f_frsize
        total += stat.f_blocks * stat.f_frsize
        untracked += max(0, (stat.f_blocks - stat.f_bavail) * stat.f_frsize
                         - sum(part['hdd'] for part in sums.values()))
    pending = pending_bytes(sums, table)
    room = admission.room(
        free, sum(part['ssd'] + part['hdd'] for part in sums.values()),
        sum(part['total'] - part['remote'] for part in sums.values()),
        int(total * conf.gateway.headroom))
    budget, reserve = admission.budgets(
        conf.gateway.dirty_bytes, conf.gateway.dirty_reserve, pending, room)
    return Backlog(
        pending, budget, reserve, room, link.drain_rate, link.up,
        link.probe_seconds, conf.gateway.throttle_at,
        conf.gateway.throttle_seconds, untracked, conf.gateway.dirty_bytes,
        conf.gateway.dirty_reserve, link.refuses)
