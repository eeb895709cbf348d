"""Versions that left a device without a word: rows without a data file.

Swift's replicator removes whole partitions in its own process, and its
relinker and operators remove files, too. No diskfile of ours is asked. So the
``objects`` folders are compared with the partitions that the index claims. A
folder whose time stamp has not changed costs one ``stat``; rows of partitions
that are gone cost a few statements for some hundreds.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import (
    Collection, Dict, Iterable, List, Optional, Sequence, Tuple)

from swift_dss.core.errors import (
    DamagedRecord, DssError, TierUnavailable, VersionGone)
from swift_dss.core.version import VersionId
from swift_dss.gateway.service import Gateway
from swift_dss.io.workers import Clock
from swift_dss.tier.devices import Device
from swift_dss.tier.index.due import Due
from swift_dss.tier.index.rows import Departing, VersionRow
from swift_dss.tier.local.local import Local
from swift_dss.tier.metrics import Metrics
from swift_dss.wire import layout

#: A folder is compared until it has been as it is for this long: events of
#: a partition that left may still be on their way into the index.
SETTLE_SECONDS = 30.0


class Departures:
    """Forgets versions that left or were replaced, and frees their bytes.
    Safe to use from any thread.

    :param gateway: None where there is no remote tier
    """

    def __init__(self, local: Local, gateway: Optional[Gateway],
                 due: Due, metrics: Metrics,
                 clock: Optional[Clock] = None) -> None:
        self._local = local
        self._mover = local.mover
        self._index = local.index
        self._gateway = gateway
        self._metrics = metrics
        self._logger = metrics.logger
        self._clock = clock or Clock()
        self.due = due
        #: One comparison at a time: a second one would find nothing to do.
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
        if self._mover.exists(row.version, row.partition):
            return False
        device = self._local.devices.get(row.version.device)
        for partition in device.partitions_of(row.version):
            if self._mover.exists(row.version, partition):
                self._mover.track(row.version, partition)
                return False
        newest = self._local.newest(row.version, row.partition)
        if newest is not None and newest > row.version.timestamp:
            self._index.remove_all(self.release([row]))
        # Or it only left this device: its copy in S3 belongs to the primaries,
        # and a quarantined version keeps its bytes on the HDD.
        elif self._local.release(row.version, row.partition):
            self._index.remove(row.version)
        return True

    def heard(self, version: VersionId) -> None:
        """Look for a version that is said to have left."""
        row = self._index.get(version)
        if row is not None and self.check(row):
            self._metrics.count('tier.departed')

    def release(self, rows: Iterable[VersionRow]) -> List[VersionId]:
        """Free the bytes of obsolete versions; those whose rows may go."""
        gone = [row for row in rows if self.due.keep(
            lambda row=row: self._local.release(  # type: ignore[misc]
                row.version, row.partition))]
        in_s3 = [row for row in gone if row.on_remote or row.wants_remote]
        # Before the rows go: after a crash in between, index or queue must
        # still know the key. The gateway never deletes a newest version.
        if self._gateway is not None and in_s3 and not self.due.keep(
                lambda: self._queue_deletes(in_s3)):
            gone = [row for row in gone if row not in in_s3]
        if gone:
            self._metrics.count('tier.reclaimed', len(gone))
        return [row.version for row in gone]

    # -- inside ----------------------------------------------------------

    def _queue_deletes(self, rows: Iterable[VersionRow]) -> bool:
        assert self._gateway is not None
        self._gateway.enqueue_deletes(
            [(row.version, row.partition) for row in rows])
        return True

    def _compare(self, device: Device, policy: int) -> int:
        folder = _folder(device, policy)
        try:
            stamp = os.stat(folder).st_mtime_ns
        except FileNotFoundError:
            return 0
        seen, since = self._seen.get(folder, (0, 0.0))
        now = self._clock.monotonic()
        if seen == stamp and now - since > SETTLE_SECONDS:
            return 0
        if seen != stamp:
            self._seen[folder] = (stamp, now)
        claimed = self._index.leaving.partitions(device.name, policy)
        claimed.difference_update(os.listdir(folder))
        # In transactions of some 20 ms each.
        forgotten = sum(
            self._forget_rows(device, policy, row_ids) for row_ids
            in self._index.leaving.row_ids(device.name, policy, claimed))
        if forgotten:
            self._logger.info('%s: %d versions left with %d partitions of '
                              'policy %d', device.name, forgotten,
                              len(claimed), policy)
        return forgotten

    def _forget_rows(self, device: Device, policy: int,
                     row_ids: Sequence[int]) -> int:
        """Forget rows whose partitions are not there, all at once."""
        device.require_mounted()
        rows = self._index.leaving.departing(device.name, policy, row_ids)
        folder = _folder(device, policy)
        # A partition may come back during this.
        here = set(os.listdir(folder))
        rows = [row for row in rows if row.partition not in here]
        unsure = [row for row in rows
                  if _may_be_relinked(device, row, here)]
        kept = {row.row_id for row in unsure if not self._try(row)}
        gone = [row for row in rows
                if row.row_id not in kept and self._free(row)]
        self._index.leaving.remove_departed(gone)
        here = set(os.listdir(folder))
        for row in rows:
            if row.partition in here:
                # It came back while its rows went, maybe with this one.
                with contextlib.suppress(VersionGone, DamagedRecord):
                    self._mover.track(row.version, row.partition)
        self._metrics.count('tier.departed', len(gone))
        return len(gone)

    def _free(self, row: Departing) -> bool:
        """Free the HDD's bytes; False if the version is here after all."""
        if row.on_hdd:
            return self._local.release(row.version, row.partition)
        self._local.watcher.on_left(row.version, None)
        return True

    def _try(self, row: Departing) -> bool:
        """True if a version that may have been relinked is not here."""
        known = self._index.get(row.version)
        if known is None:
            return True
        try:
            return self.check(known)
        except TierUnavailable:
            raise
        except (DssError, OSError) as err:
            self._logger.error('%s: %s: %s', row.version.device,
                               row.version.key, err)
            return False


def _folder(device: Device, policy: int) -> str:
    return os.path.join(device.path, layout.data_dir_name(policy))


def _may_be_relinked(device: Device, row: Departing,
                     here: Collection[str]) -> bool:
    """True if the version may be in another partition by now: that which
    the next power of the ring gives it.

    :param here: partitions of the policy on the device
    """
    head, number = int(row.version.object_hash[:8], 16), int(row.partition)
    if number:
        shift = head.bit_length() - number.bit_length()
        if shift < 1 or head >> shift != number:
            return True
        number = head >> shift - 1
    else:
        # Partition 0 is split into itself, which is not here, and 1.
        number = 1
    return str(number) in here and os.path.isdir(layout.hash_dir(
        device.path, row.version.policy, str(number),
        row.version.object_hash))
