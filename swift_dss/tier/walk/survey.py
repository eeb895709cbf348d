"""Walk over disks to find versions and files that the index lacks.

The only full scans there are. They read at a bounded pace, hold no lock
for longer than one version, and may be broken off and repeated at will.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time
from dataclasses import asdict, dataclass
from typing import (
    AbstractSet, Any, Callable, Dict, Iterator, List, NamedTuple, Optional,
    Sequence, Tuple)

from swift_dss.core.errors import (
    DamagedRecord, TierUnavailable, VersionGone)
from swift_dss.core.version import VersionId
from swift_dss.gateway.link.turns import Baton
from swift_dss.io import steps
from swift_dss.io.switch import listdir
from swift_dss.tier.devices import Device
from swift_dss.tier.hear.ledger import Ledger
from swift_dss.tier.index.rows import VersionRow
from swift_dss.tier.local.local import Local
from swift_dss.tier.metrics import Metrics
from swift_dss.tier.walk.turns import VERSIONS, Pieces
from swift_dss.wire import layout

#: A capacity file younger than this may belong to a PUT that has not
#: renamed its data file yet.
ORPHAN_SECONDS = 3600.0
_BATCH = 200


@dataclass
class Found:
    """The results of a walk."""

    device: str = ''
    stage: str = ''
    versions: int = 0
    unreadable: int = 0
    forgotten: int = 0
    orphans: int = 0
    orphan_bytes: int = 0


class Survey:
    """Walks one device a call; threads may walk several side by side.

    :param ledger: hears of the rows that were read from disk, and forgets
        those of versions that are gone
    :param ends: the walk is broken off when one of these is set
    """

    def __init__(self, local: Local, ledger: Ledger, metrics: Metrics,
                 ends: Sequence[threading.Event] = ()) -> None:
        self._local = local
        self._mover = local.mover
        self._index = local.index
        self._logger = metrics.logger
        self._ledger = ledger
        self._ends = ends
        self._baton = Baton()

    @property
    def is_over(self) -> bool:
        """True when the walk is to be broken off."""
        return any(end.is_set() for end in self._ends)

    def device(self, device: Device, files_per_second: float,
               orphans: bool,
               progress: Callable[[Dict[str, Any]], None]) -> Found:
        """Bring the index up to date with one device's files.

        :param files_per_second: pace; 0 is as fast as it goes
        :param orphans: also remove capacity files that no version refers to
        :raises TierUnavailable: the device is not mounted
        """
        counts = Found(device.name)
        device.require_mounted()
        pace = _Pace(files_per_second, self._ends)
        counts.stage = 'read'
        last_id = self._index.pages.last_id()
        self._read(device, pace, counts, progress)
        counts.stage = 'prune'
        self._prune(device, last_id, pace, counts, progress)
        steps.reached('walk.pruned')
        if orphans and device.capacity.configured:
            counts.stage = 'orphans'
            self._orphans(device, pace, counts, progress)
        counts.stage = 'done'
        progress(asdict(counts))
        return counts

    def _read(self, device: Device, pace: _Pace, counts: Found,
              progress: Callable[[Dict[str, Any]], None]) -> None:
        files = data_files(device, self._ours())
        rows: List[VersionRow] = []
        pieces = Pieces(self._baton)
        looked = VERSIONS
        while looked == VERSIONS:
            if self.is_over:
                return
            with pieces.piece():
                looked = self._read_some(device, files, rows, counts)
                is_stored = len(rows) >= _BATCH or looked < VERSIONS
                if is_stored:
                    self._store(device, rows)
            if is_stored:
                progress(asdict(counts))
            pace.step(looked)

    def _read_some(self, device: Device, files: Iterator[DataFile],
                   rows: List[VersionRow], counts: Found) -> int:
        """Add rows of the next files; how many files there were."""
        looked = 0
        for item in itertools.islice(files, VERSIONS):
            looked += 1
            try:
                rows.append(self._mover.row(
                    item.version, item.partition, beside=item.beside))
                counts.versions += 1
            except VersionGone:
                pass
            except DamagedRecord as err:
                counts.unreadable += 1
                self._logger.error('%s: %s cannot be tracked: %s',
                                   device.name, item.version.key, err)
        return looked

    def _ours(self) -> AbstractSet[int]:
        return self._local.devices.policies.ours

    def _store(self, device: Device, rows: List[VersionRow]) -> None:
        # It may have gone while they were read: what then lies under its name
        # is not of it.
        device.require_mounted()
        with self._index.file.batch():
            known = self._index.add(rows)
        steps.reached('walk.indexed')
        # Others may be at work on those, and tell the index of it: the facts
        # read from their files above may be old by now.
        for row in known:
            said = self._index.get(row.version)
            if said is not None:
                row.put_at, row.read_at = said.put_at, said.read_at
            if said != row:
                with contextlib.suppress(VersionGone):
                    self._mover.track(row.version, row.partition)
        seen = {row.version for row in known}
        for row in rows:
            # It may have left before its row came: no event tells of it now.
            if (not seen or row.version not in seen) and \
                    not self._mover.exists(
                    row.version, row.partition):
                self._ledger.departures.check(row)
        self._ledger.settle_walked(rows, known)
        steps.reached('walk.settled')
        del rows[:]

    def _prune(self, device: Device, last_id: int, pace: _Pace,
               counts: Found,
               progress: Callable[[Dict[str, Any]], None]) -> None:
        """Forget rows whose data file is gone (a handoff that left).

        :param last_id: of a row when the walk began: later ones are of files
            that were there since
        """
        for policy in sorted(self._ours()) if last_id else ():
            for row_ids in self._index.leaving.row_ids(
                    device.name, policy, self._index.leaving.partitions(
                        device.name, policy)):
                if self.is_over:
                    return
                if row_ids[0] > last_id:
                    continue
                for row in self._index.leaving.departing(device.name, policy,
                                                         row_ids):
                    pace.step()
                    counts.forgotten += not self._mover.exists(
                        row.version, row.partition) and self._forget(
                            row.version)
                progress(asdict(counts))

    def _forget(self, version: VersionId) -> bool:
        row = self._index.get(version)
        return row is not None and self._ledger.departures.check(row)

    def _orphans(self, device: Device, pace: _Pace, counts: Found,
                 progress: Callable[[Dict[str, Any]], None]) -> None:
        try:
            device.capacity.check()
        except TierUnavailable as err:
            self._logger.error('%s: orphans not looked for: %s',
                               device.name, err)
            return
        for version, path in capacity_files(device, self._ours()):
            if self.is_over:
                return
            pace.step()
            length = self._orphan_bytes(device, version, path)
            if length is not None:
                counts.orphans += 1
                counts.orphan_bytes += length
                progress(asdict(counts))

    def _orphan_bytes(self, device: Device, version: VersionId,
                      path: str) -> Optional[int]:
        """Remove a capacity file if no version refers to it; returns its size.
        """
        with self._mover.locks.hold(version):
            try:
                stat = os.stat(path)
            except FileNotFoundError:
                return None
            if time.time() - stat.st_mtime < ORPHAN_SECONDS or \
                    self._index.get(version) is not None or any(
                        self._mover.exists(version, part)
                        for part in device.partitions_of(version)):
                return None
            # After the look for its data file, which may go into quarantine
            # just now.
            if device.quarantine.holds(version):
                return None
            device.capacity.remove(version)
        self._logger.info('%s: removed orphan %s, %d bytes', device.name,
                          version.key, stat.st_size)
        return stat.st_blocks * 512


class _Pace:
    """No more than so many steps a second."""

    def __init__(self, per_second: float,
                 ends: Sequence[threading.Event]) -> None:
        self._per_second = per_second
        # A daemon that stops does not wait for the pace.
        self._end = ends[0] if ends else threading.Event()
        self._started = time.monotonic()
        self._steps = 0

    def step(self, count: int = 1) -> None:
        """Count some; wait if that was too early."""
        before, self._steps = self._steps, self._steps + count
        if self._per_second and self._steps // 16 > before // 16:
            due = self._started + self._steps / self._per_second
            wait_seconds = due - time.monotonic()
            if wait_seconds > 0:
                self._end.wait(wait_seconds)
            elif wait_seconds < -5:
                # Time lost to a busy disk is not made up in a burst.
                self._started, self._steps = time.monotonic(), 0


class DataFile(NamedTuple):
    """A data file that a walk came by.

    :param beside: all names in its folder, a moment ago
    """

    version: VersionId
    partition: str
    beside: List[str]


def data_files(device: Device,
               policies: AbstractSet[int]) -> Iterator[DataFile]:
    """Every data file of a device.

    :param policies: indexes of those that are looked at
    """
    for policy in sorted(policies):
        root = os.path.join(device.path, layout.data_dir_name(policy))
        for partition in _names(root):
            if not partition.isdigit():
                continue
            for suffix in _names(root, partition):
                folder = '%s/%s/%s' % (root, partition, suffix)
                for object_hash in _names(folder):
                    beside = _names(folder, object_hash)
                    for name in beside:
                        parsed = layout.parse_data_file(name)
                        if parsed is not None:
                            yield DataFile(VersionId(
                                device.name, policy, object_hash,
                                *parsed[:2]), partition, beside)


def capacity_files(device: Device, policies: AbstractSet[int]
                   ) -> Iterator[Tuple[VersionId, str]]:
    """(version, path) of every capacity file of some policies."""
    root = os.path.join(device.capacity.path, 'data')
    for number in sorted(map(str, policies)):
        for abc in _names(root, number):
            for object_hash in _names(root, number, abc):
                for name in _names(root, number, abc, object_hash):
                    timestamp, _, frag = name.partition('#')
                    if frag and not frag.isdigit():
                        continue
                    yield VersionId(
                        device.name, int(number), object_hash, timestamp,
                        int(frag) if frag else None), os.path.join(
                            root, number, abc, object_hash, name)


def _names(*parts: str) -> List[str]:
    # Not os.path.join: once or more a version.
    return sorted(listdir('/'.join(parts)))
