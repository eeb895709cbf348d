"""Walk over disks to find versions and files that the index lacks.

The only full scans there are. They read at a bounded pace, hold no lock
for longer than one version, and may be broken off and repeated at will.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import asdict, dataclass, replace
from typing import (
    AbstractSet, Any, Callable, Dict, Iterator, List, Optional, Sequence,
    Tuple)

from swift_dss.core.errors import (
    DamagedRecord, TierUnavailable, VersionGone)
from swift_dss.core.version import VersionId
from swift_dss.io.switch import listdir
from swift_dss.tier.devices import Device
from swift_dss.tier.hear.ledger import Ledger
from swift_dss.tier.index.filters import Filter
from swift_dss.tier.index.rows import VersionRow
from swift_dss.tier.local.local import Local
from swift_dss.tier.metrics import Metrics
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
    """Walks one device at a time.

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
        found = Found(device.name)
        device.require_mounted()
        pace = _Pace(files_per_second, self._ends)
        found.stage = 'read'
        self._read(device, pace, found, progress)
        found.stage = 'prune'
        self._prune(device, pace, found, progress)
        if orphans and device.capacity.configured:
            found.stage = 'orphans'
            self._orphans(device, pace, found, progress)
        found.stage = 'done'
        progress(asdict(found))
        return found

    def _read(self, device: Device, pace: _Pace, found: Found,
              progress: Callable[[Dict[str, Any]], None]) -> None:
        rows: List[VersionRow] = []
        for version, partition in data_files(device, self._ours()):
            if self.is_over:
                return
            pace.step()
            try:
                rows.append(self._mover.row(version, partition))
            except VersionGone:
                continue
            except DamagedRecord as err:
                found.unreadable += 1
                self._logger.error('%s: %s cannot be tracked: %s',
                                   device.name, version.key, err)
                continue
            found.versions += 1
            if len(rows) >= _BATCH:
                self._store(rows)
                progress(asdict(found))
        self._store(rows)

    def _ours(self) -> AbstractSet[int]:
        return self._local.devices.policies.ours

    def _store(self, rows: List[VersionRow]) -> None:
        with self._index.batch():
            known = self._index.add(rows)
        # Others may be at work on those, and tell the index of it: the facts
        # read from their files above may be old by now.
        for row in known:
            said = self._index.get(row.version)
            if said is None or said != replace(
                    row, put_at=said.put_at, read_at=said.read_at):
                with contextlib.suppress(VersionGone):
                    self._mover.track(row.version, row.partition)
        self._ledger.settle(rows, known)
        del rows[:]

    def _prune(self, device: Device, pace: _Pace, found: Found,
               progress: Callable[[Dict[str, Any]], None]) -> None:
        """Forget rows whose data file is gone (a handoff that left)."""
        for rows in self._index.pages(Filter(device=device.name), _BATCH):
            if self.is_over:
                return
            for row in rows:
                pace.step()
                found.forgotten += self._ledger.departures.check(row)
            progress(asdict(found))

    def _orphans(self, device: Device, pace: _Pace, found: Found,
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
                found.orphans += 1
                found.orphan_bytes += length
                progress(asdict(found))

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

    def step(self) -> None:
        """Count one; wait if that was too early."""
        self._steps += 1
        if self._per_second and not self._steps % 16:
            due = self._started + self._steps / self._per_second
            wait_seconds = due - time.monotonic()
            if wait_seconds > 0:
                self._end.wait(wait_seconds)
            elif wait_seconds < -5:
                # Time lost to a busy disk is not made up in a burst.
                self._started, self._steps = time.monotonic(), 0


def data_files(device: Device, policies: AbstractSet[int]
               ) -> Iterator[Tuple[VersionId, str]]:
    """(version, partition) of every data file of a device.

    :param policies: indexes of those that are looked at
    """
    for datadir in sorted(map(layout.data_dir_name, policies)):
        for partition in _names(device.path, datadir):
            if not partition.isdigit():
                continue
            for suffix in _names(device.path, datadir, partition):
                for object_hash in _names(device.path, datadir, partition,
                                          suffix):
                    folder = os.path.join(device.path, datadir, partition,
                                          suffix, object_hash)
                    for name in _names(folder):
                        version = layout.version_of_path(
                            device.name, os.path.join(folder, name))
                        if version is not None:
                            yield version, partition


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
    return sorted(listdir(os.path.join(*parts)))
