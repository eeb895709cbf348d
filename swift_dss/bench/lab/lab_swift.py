"""A whole Swift on modelled disks, in a guest, in virtual time.

Each row of the table is one guest and one kind of disk: three devices of
it, three replicas, account and container databases beside the objects, all
of it on XFS. The client is in the same guest and does one request at a
time. Computing takes no time there, so the table shows the disks' part of a
request: its writes, flushes and reads through Swift.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Sequence

from swift_dss.bench.figures import median, percentile, size_text
from swift_dss.bench.lab import lab_swift_guest
from swift_dss.block import lab
from swift_dss.core.errors import BadConfig

#: Bytes of the objects that are written and read.
SIZES = (4 << 10, 64 << 10, 1 << 20)

#: The server: stock Swift, or ours with an SSD and an HDD at each device.
POLICIES = ('stock', 'dss')


@dataclass(frozen=True)
class Row:
    """Latencies of one method, size and kind of disk, in milliseconds."""

    disk: str
    method: str
    size_bytes: int
    values: Sequence[float]

    def cells(self) -> Sequence[object]:
        """For a table."""
        return [self.disk, self.method, size_text(self.size_bytes)] + [
            '%.2f' % value for value in (
                median(self.values), percentile(self.values, 90),
                percentile(self.values, 99), max(self.values))]


HEADS = ('data on', '', 'size>', 'p50 ms>', 'p90 ms>', 'p99 ms>', 'max ms>')


def run(policy: str, ssd: str, hdd: str, requests: int, timeout: float,
        say: Callable[[str], None]) -> List[Row]:
    """Measure, with ``ssd`` and ``hdd`` as ``PRESET[,KEY=VALUE...]:SIZE``.

    :param requests: of each size, PUT and then GET
    :raises BadConfig: an unknown policy, or a size that XFS refuses
    :raises lab.GuestDied: the cluster did not come up; with its words
    """
    if policy not in POLICIES:
        raise BadConfig('--policy %s: one of %s' % (
            policy, ', '.join(POLICIES)))
    if policy == 'dss':
        return _guest(policy, ['ssd', 'hdd'], {'ssd': ssd, 'hdd': hdd},
                      requests, timeout, say)
    rows: List[Row] = []
    for disk, spec in (('ssd', ssd), ('hdd', hdd)):
        # Stock Swift knows one disk a device, and calls it the SSD.
        rows += _guest(policy, [disk], {'ssd': spec}, requests, timeout,
                       say)
    return rows


def _guest(policy: str, disks: List[str], specs: Dict[str, str],
           requests: int, timeout: float,
           say: Callable[[str], None]) -> List[Row]:
    devices = [lab.parse_device('%s-d%d=%s' % (kind, number, spec))
               for number in (1, 2, 3) for kind, spec in specs.items()]
    if policy == 'dss':
        devices.append(lab.parse_device('cloud=raw:512M'))
    for device in devices:
        if device.size_bytes < lab_swift_guest.MIN_BYTES:
            raise BadConfig('%s has %s; XFS needs %s' % (
                device.name, size_text(device.size_bytes),
                size_text(lab_swift_guest.MIN_BYTES)))
    say('%s Swift with its data on %s' % (policy, ' and '.join(disks)))
    result = lab.run(
        os.path.abspath(lab_swift_guest.__file__),
        [json.dumps({'policy': policy, 'disks': disks,
                     'sizes': SIZES, 'requests': requests})],
        devices=devices, memory='3G', timeout=timeout, say=say,
        sink=_progress(say))
    if result.status or result.complaints:
        raise lab.GuestDied('status %d%s\n%s\n%s' % (
            result.status, ', killed' if result.killed else '',
            '\n'.join(result.complaints),
            result.stderr.decode('utf-8', 'replace')[-4000:]))
    say('%.1f s of virtual time in %.1f s' % (
        result.virtual_seconds, result.real_seconds))
    rows: List[Dict[str, Any]] = json.loads(result.output)
    return [Row(row['disk'], row['method'], row['size'], row['values'])
            for row in rows]


def _progress(say: Callable[[str], None]) -> lab.machine.Sink:
    def sink(name: str, data: bytes) -> None:
        if name == 'stderr':
            for line in data.decode('utf-8', 'replace').splitlines():
                say('  ' + line)
    return sink
