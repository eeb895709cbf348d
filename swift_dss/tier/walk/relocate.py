"""Send versions to S3 and drop them here on request.

Three ways, one mechanism: ``swift-dss gateway relocate`` and the admin
verb behind it; a share of the room (``spill_at``) above which the least
recently used versions go; and a stop that may send versions that S3 lacks
(``relocate_stop_seconds``). Local bytes go only from versions whose copy was
verified, as everywhere; a few threads do it side by side.
"""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from swift_dss.core.classes import RemoteMode
from swift_dss.core.errors import (
    DssError, RemoteUnavailable, TierUnavailable)
from swift_dss.core.version import VersionId
from swift_dss.gateway.ports import NotProven
from swift_dss.gateway.ports import Upload
from swift_dss.gateway.service import Gateway
from swift_dss.io.moves import LOCAL
from swift_dss.tier.devices import Device
from swift_dss.tier.index.rows import Candidate, VersionRow
from swift_dss.tier.local.local import Local
from swift_dss.tier.metrics import Metrics

#: Versions looked at in one go.
_BATCH = 64
_LOOK_SECONDS = 0.1
#: A version that is not in S3 by then is told of as not moved.
DEFAULT_WAIT_SECONDS = 600.0


@dataclass
class Planned:
    """What a relocation or a drain would do, in versions and bytes.

    :param versions: those that were looked at
    :param moves: those of them that are not where they are wanted
    :param stays: those of ``moves`` whose class keeps them on this cluster
    :param sent_bytes: that S3 does not have yet
    :param fetched_bytes: that S3 alone has
    :param freed_bytes: of SSD and HDD
    """

    versions: int = 0
    moves: int = 0
    stays: int = 0
    sent_bytes: int = 0
    fetched_bytes: int = 0
    freed_bytes: int = 0

    def plain(self) -> Dict[str, Any]:
        """As the daemon answers it."""
        return {
            'versions': self.versions, 'moves': self.moves,
            'stays': self.stays, 'sent_bytes': self.sent_bytes,
            'fetched_bytes': self.fetched_bytes,
            'freed_bytes': self.freed_bytes, 'dry_run': True}


class Relocator:
    """Sends and drops versions of one node. Thread-safe.

    :param gateway: None where there is no remote tier
    :param stopping: set when the daemon ends; nothing is waited for then
    """

    def __init__(self, local: Local, gateway: Optional[Gateway],
                 metrics: Metrics, stopping: threading.Event) -> None:
        self._local = local
        self._gateway = gateway
        self._metrics = metrics
        self._stopping = stopping

    def relocate(self, rows: List[VersionRow], seconds: float,
                 progress: Callable[[int, int], None],
                 class_ids: Sequence[int] = ()) -> Dict[VersionId, str]:
        """Send versions now, and drop their local bytes.

        :param seconds: how long to wait for S3
        :param class_ids: only bytes of these are dropped; none means all
        :returns: why, of each that could not go
        """
        gateway = self._ready_gateway()
        deadline = time.monotonic() + seconds
        why = {row.version: 'its class stays on this cluster'
               for row in rows if self._stays(row)}
        rows = [row for row in rows if row.version not in why]
        gateway.enqueue_uploads([
            Upload(row.version, row.partition, True) for row in rows
            if not row.on_remote])
        done = 0

        def failure_of(row: VersionRow) -> str:
            try:
                self._drop(row, class_ids, deadline)
            except DssError as err:
                return str(err)
            return ''

        with ThreadPoolExecutor(self._threads(),
                                thread_name_prefix='dss-relocate') as pool:
            for at in range(0, len(rows), _BATCH):
                batch = rows[at:at + _BATCH]
                self._ask_ahead([row for row in batch if row.on_remote])
                for row, text in zip(batch, pool.map(failure_of, batch)):
                    done += 1
                    if text:
                        why[row.version] = text
                    progress(done, len(rows))
        return why

    def plan(self, rows: Sequence[VersionRow], into: Planned,
             class_ids: Sequence[int] = ()) -> None:
        """Add what :meth:`relocate` would do with rows, and do nothing."""
        for row in rows:
            here = sum(span.ssd_bytes + span.hdd_bytes
                       for span in row.spans_of(class_ids))
            into.moves += bool(here or not row.on_remote)
            if self._stays(row):
                into.stays += 1
                continue
            into.sent_bytes += 0 if row.on_remote else row.size
            into.freed_bytes += here

    def spill(self, device: Device) -> int:
        """Above ``spill_at``, send and drop the least recently used versions.
        Those that the SSD keeps lose their copy on the HDD alone.

        :returns: versions whose local bytes went
        :raises TierUnavailable: SSD or HDD is not mounted
        """
        conf = self._local.in_force.conf
        if not conf.gateway.spill_at or self._gateway is None:
            return 0
        need = self._over(device, conf.gateway.spill_at)
        if need <= 0:
            return 0
        index = self._local.index
        class_ids = [class_id for class_id in index.occupancy(device.name)
                     if self._may_leave(class_id)]
        there = [
            *index.victims.least_recent_remote(device.name, class_ids, _BATCH),
            *index.victims.least_recent_spare(device.name, class_ids, _BATCH)]
        dropped = 0
        with ThreadPoolExecutor(self._threads(),
                                thread_name_prefix='dss-spill') as pool:
            chosen = []
            for candidate in there:
                if need <= 0:
                    break
                need -= candidate.length
                chosen.append(candidate)
            self._ask_ahead(chosen)
            dropped = sum(pool.map(self._drop_quietly, chosen))
        if need > 0:
            self._send_more(device, class_ids, need)
        self._metrics.count('tier.spilled', dropped)
        return dropped

    def before_stop(self, seconds: float) -> int:
        """Send versions that S3 lacks, as far as the time allows.

        :returns: versions that are left
        """
        gateway = self._ready_gateway()
        deadline = time.monotonic() + seconds
        gateway.hurry()
        while True:
            left = int(gateway.status()['uploads'])
            if not left or time.monotonic() >= deadline:
                return left
            time.sleep(_LOOK_SECONDS)

    # -- inside ----------------------------------------------------------

    def _ready_gateway(self) -> Gateway:
        if self._gateway is None:
            raise TierUnavailable('no gateway is configured')
        self._gateway.require_ours()
        return self._gateway

    def _threads(self) -> int:
        return max(1, self._local.in_force.conf.tier.movers)

    def _stays(self, row: VersionRow) -> bool:
        return row.pinned or not all(
            self._may_leave(span.class_id) for span in row.spans)

    def _may_leave(self, class_id: int) -> bool:
        spec = self._local.in_force.table.spec(class_id)
        return spec.remote is not RemoteMode.NEVER and not spec.pin

    def _over(self, device: Device, share: float) -> int:
        """Bytes above that share of SSD and HDD together."""
        device.require_mounted()
        total = free = 0
        paths = [device.path]
        if device.has_hdd:
            device.capacity.check()
            paths.append(device.capacity.path)
        for number, path in enumerate(paths):
            stat = os.statvfs(path)
            size = stat.f_blocks * stat.f_frsize
            room = stat.f_bavail * stat.f_frsize
            budget = self._local.in_force.conf.tier.ssd_bytes
            if not number and budget and budget < size:
                used = sum(sums['ssd'] for sums in self._local.index
                           .occupancy(device.name).values())
                size, room = budget, max(0, budget - used)
            total += size
            free += room
        return int(total - free - total * share)

    def _ask_ahead(self, rows: Sequence[Union[VersionRow, Candidate]]
                   ) -> None:
        self._local.ask_ahead(
            [(row.version, row.partition) for row in rows], LOCAL)

    def _drop(self, row: VersionRow, class_ids: Sequence[int],
              deadline: float) -> None:
        """Wait for the copy, then let local bytes go."""
        while True:
            row_now = self._local.index.get(row.version)
            if row_now is None:
                return  # overwritten or deleted by now
            if row_now.on_remote:
                try:
                    self._drop_now(row.version, row.partition, class_ids)
                    return
                except NotProven:
                    again = self._local.index.get(row.version)
                    if again is None or again.on_remote:
                        raise
                    continue  # it was missing, and is sent again
            if time.monotonic() >= deadline or \
                    self._stopping.wait(_LOOK_SECONDS):
                raise RemoteUnavailable('not in S3 yet', 1)

    def _drop_now(self, version: VersionId, partition: str,
                  class_ids: Sequence[int], off_ssd: bool = True) -> None:
        local = self._local
        if off_ssd:
            local.demote(version, partition, class_ids, to_hdd=False,
                         spare_pins=True)
        device = local.devices.get(version.device)
        if device.has_hdd:
            local.drop_capacity(version, partition, class_ids,
                                spare_pins=True)

    def _drop_quietly(self, candidate: Candidate) -> bool:
        version = candidate.version
        row = self._local.index.get(version)
        if row is None or not row.on_remote:
            return False
        class_ids = [candidate.class_id]
        try:
            self._drop_now(version, row.partition, class_ids, off_ssd=all(
                span.movable for span in row.spans_of(class_ids)))
            return True
        except DssError as err:
            self._metrics.count('tier.spill_errors')
            self._metrics.logger.warning('spill of %s: %s',
                                         version.key, err)
            return False

    def _send_more(self, device: Device, class_ids: List[int],
                   need: int) -> None:
        """The next ones go up, so that a later round can drop them."""
        index = self._local.index
        wanted = []
        for candidate in (
                *index.victims.least_recent_dirty(
                    device.name, class_ids, _BATCH),
                *index.victims.least_recent(device.name, class_ids, _BATCH)):
            row = index.get(candidate.version)
            if need <= 0:
                break
            if row is not None and not row.on_remote and row.wants_remote:
                need -= row.size
                wanted.append(Upload(row.version, row.partition, True))
        if wanted:
            self._ready_gateway().enqueue_uploads(wanted)
