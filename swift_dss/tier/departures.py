"""Versions that left a device without a word: rows without a data file.

Swift's replicator removes whole partitions in its own process, and its
relinker and operators remove what they like. No diskfile of ours is asked.
So the ``objects`` folders are compared with the partitions that the index
claims. A folder whose time stamp has not changed costs one ``stat``; each
partition that is gone costs a statement for some hundreds of its rows.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from typing import Callable, Dict, List, Tuple

from swift_dss.core.errors import (
    DamagedRecord, DssError, TierUnavailable, VersionGone)
from swift_dss.core.version import VersionId
from swift_dss.tier.devices import Device
from swift_dss.tier.local import Local
from swift_dss.tier.metrics import Metrics
from swift_dss.tier.rows import VersionRow
from swift_dss.wire import layout

#: Rows of one index transaction: some 20 ms.
_BATCH = 500
#: A folder is compared until it has been as it is for this long: events of
#: a partition that left may still be on their way into the index.
SETTLE_SECONDS = 30.0


class Departures:
    """Forgets versions that left. Safe to use from any thread.

    :param retire: gets each row of a version that a newer one replaced
    """

    def __init__(self, local: Local, retire: Callable[[VersionRow], None],
                 metrics: Metrics, logger: logging.Logger,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._local = local
        self._index = local.index
        self._retire = retire
        self._metrics = metrics
        self._logger = logger
        self._clock = clock
        #: One comparison at a time: who comes second finds nothing to do.
        self._looking = threading.Lock()
        #: By folder: its time stamp, and when that was seen first.
        self._seen: Dict[str, Tuple[int, float]] = {}

    def look(self, device: Device) -> int:
        """Forget the rows of partitions that are not on a device any more.

        :returns: how many rows that were
        :raises TierUnavailable: the device is not mounted
        """
        forgotten = 0
        with self._looking:
            device.require_mounted()
            for policy in self._local.devices.policies.ours:
                forgotten += self._compare(device, policy)
        return forgotten

    def check(self, row: VersionRow) -> bool:
        """Is a version still here? If not, forget it; if it is in another
        partition (after a relink), note that.

        :returns: True if it was forgotten
        :raises TierUnavailable: its device is not mounted
        """
        if self._local.exists(row.version, row.partition):
            return False
        device = self._local.devices.get(row.version.device)
        for partition in device.partitions_of(row.version):
            if self._local.exists(row.version, partition):
                self._local.track(row.version, partition)
                return False
        newest = self._local.newest(row.version, row.partition)
        if newest is not None and newest > row.version.timestamp:
            self._retire(row)
        else:
            # It only left this device: its copy in S3 is the primaries',
            # and what is in quarantine keeps its bytes on the HDD.
            self._local.reclaim(row)
        return True

    def heard(self, version: VersionId) -> None:
        """Somebody said that a version left: see for ourselves."""
        row = self._index.get(version)
        if row is not None and self.check(row):
            self._metrics.count('tier.departed')

    # -- inside ----------------------------------------------------------

    def _compare(self, device: Device, policy: int) -> int:
        folder = _folder(device, policy)
        try:
            stamp = os.stat(folder).st_mtime_ns
        except FileNotFoundError:
            return 0
        seen, since = self._seen.get(folder, (0, 0.0))
        now = self._clock()
        if seen == stamp and now - since > SETTLE_SECONDS:
            return 0
        if seen != stamp:
            self._seen[folder] = (stamp, now)
        claimed = self._index.partitions(device.name, policy)
        claimed.difference_update(os.listdir(folder))
        return sum(self._forget_partition(device, policy, partition)
                   for partition in sorted(claimed))

    def _forget_partition(self, device: Device, policy: int,
                          partition: str) -> int:
        """Forget the rows of a partition that is not there."""
        forgotten = after_id = 0
        # It may come back meanwhile.
        while not os.path.isdir(_folder(device, policy, partition)):
            page = self._index.of_partition(device.name, policy, partition,
                                            _BATCH, after_id)
            if not page:
                break
            after_id = page[-1][0]
            forgotten += self._forget_rows(device, [row for _, row in page])
        if forgotten:
            self._logger.info('%s: %d versions left with partition %s of '
                              'policy %d', device.name, forgotten, partition,
                              policy)
        return forgotten

    def _forget_rows(self, device: Device, rows: List[VersionRow]) -> int:
        """Forget rows whose partition is not there, all at once."""
        device.require_mounted()
        unsure = [row for row in rows if _may_be_relinked(device, row)]
        kept = {row.version for row in unsure if not self._try(row)}
        gone = [row.version for row in rows
                if row.version not in kept and self._free(row)]
        self._index.remove_all(gone)
        if os.path.isdir(_folder(device, rows[0].version.policy,
                                 rows[0].partition)):
            # It came back while its rows went, maybe with one of these.
            for row in rows:
                with contextlib.suppress(VersionGone, DamagedRecord):
                    self._local.track(row.version, row.partition)
        self._metrics.count('tier.departed', len(gone))
        return len(gone)

    def _free(self, row: VersionRow) -> bool:
        """Free what the HDD has; False if the version is here after all."""
        version = row.version
        if any(span.hdd_bytes for span in row.spans):
            return self._local.release(version, row.partition)
        self._local.watcher.on_left(version, None)
        return True

    def _try(self, row: VersionRow) -> bool:
        try:
            return self.check(row)
        except TierUnavailable:
            raise
        except (DssError, OSError) as err:
            self._logger.error('%s: %s: %s', row.version.device,
                               row.version.key, err)
            return False


def _folder(device: Device, policy: int, partition: str = '') -> str:
    return os.path.join(device.path, layout.data_dir_name(policy), partition)


def _may_be_relinked(device: Device, row: VersionRow) -> bool:
    """True if the version may be in another partition by now: that which
    the next power of the ring gives it."""
    head, number = int(row.version.object_hash[:8], 16), int(row.partition)
    shift = head.bit_length() - number.bit_length()
    if not number or shift < 1 or head >> shift != number:
        return True
    return os.path.isdir(layout.hash_dir(
        device.path, row.version.policy, str(head >> shift - 1),
        row.version.object_hash))
