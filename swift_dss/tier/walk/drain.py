"""Everything local, or everything remote: the ways out of tiering.

``local`` brings back bytes that only S3 has, puts every byte on the SSD and
pins it there: the data files are then whole, as a stock Swift server wants
them. ``remote`` sends everything to S3 and drops local bytes. Both may be
broken off and asked for again: a finished version costs a look at its file.

Both walk the data files, because the index may not have heard of all of them
yet: once to move, and once more to try again and to name what is left.
"""

from __future__ import annotations

import itertools
import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import (
    Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional,
    Sequence, Tuple)

from swift_dss.core.errors import (
    BadConfig, DssError, RemoteUnavailable, TierFull, TierUnavailable,
    VersionGone)
from swift_dss.core.residency import Extent, Tier
from swift_dss.core.version import VersionId
from swift_dss.gateway.ports import Sink
from swift_dss.gateway.service import Gateway
from swift_dss.tier.index.filters import ALL
from swift_dss.tier.index.rows import VersionRow
from swift_dss.tier.local.local import Local
from swift_dss.tier.walk.relocate import Planned, Relocator
from swift_dss.tier.walk.survey import DataFile, data_files
from swift_dss.tier.walk.told import Told
from swift_dss.wire.control import FetchReply, FetchRequest

#: Versions looked at in one go, and brought back side by side.
_PAGE = 200
_THREADS = 4
#: Longest wait for a byte of S3 in a full drain.
_DEADLINE_SECONDS = 60.0
_LOOK_SECONDS = 0.02
_LOCAL = Tier.SSD | Tier.HDD
#: Failures that no move has told of.
_LEFT = {'local': 'bytes of it are not on the SSD',
         'remote': 'bytes of it are still here'}
Progress = Callable[[Dict[str, Any]], None]


class Drainer:
    """Empties one side of a node's storage. Thread-safe.

    :param gateway: None where there is no remote tier
    """

    def __init__(self, local: Local, gateway: Optional[Gateway],
                 relocator: Relocator) -> None:
        self._local = local
        self._gateway = gateway
        self._relocator = relocator

    def recall(self, version: VersionId, partition: str,
               class_ids: Sequence[int] = ()) -> None:
        """Bring back a version's bytes that only S3 has.

        :param class_ids: only bytes of these; none means all
        :raises RemoteUnavailable: S3 does not give it
        :raises TierFull: there is no room for it here
        """
        for extent in self._away(version, partition, class_ids):
            gateway = self._gateway
            if gateway is None:
                raise TierUnavailable('%s is only in S3, and [gateway] is '
                                      'not enabled' % version.key)
            sink = _Nowhere()
            if not gateway.fetch(FetchRequest(
                    version, partition, extent.offset, extent.length, 0,
                    _DEADLINE_SECONDS, True), sink):
                raise RemoteUnavailable(
                    '%s: %s' % (version.key, sink.said or 'cut short'), 15)
        left = self._landed(version, partition, class_ids)
        if left:
            raise TierFull('%s: no room for %d bytes from S3' % (
                version.key, sum(extent.length for extent in left)))

    def promote(self, version: VersionId, partition: str,
                class_ids: Sequence[int] = ()) -> None:
        """All bytes of a version, or those of some classes, on the SSD,
        wherever they are now."""
        self.recall(version, partition, class_ids)
        self._local.promote(version, partition, class_ids)

    def run(self, where: str, seconds: float,
            progress: Progress) -> Dict[str, Any]:
        """Drain all versions of the node.

        :param where: ``local`` or ``remote``
        :raises BadConfig: another word
        :raises TierFull: all of it has no room here; nothing was moved
        """
        gateway = self._ready(where)
        if gateway is not None:
            gateway.hurry()
        first = self._walk(where, seconds, lambda done: progress(
            {'done': done, 'of': None}))
        # More may have come since, and some of it may have been moved away.
        last = self._walk(where, seconds, lambda done: progress(
            {'done': done, 'of': max(done, first.versions)}))
        return {'versions': last.versions, 'moved': first.moved + last.moved,
                'failed': last.left.lines(), 'failures': last.left.count}

    def plan(self, where: str, progress: Progress) -> Dict[str, Any]:
        """What :meth:`run` would do; refuses what it would refuse."""
        self._ready(where)
        planned, left = Planned(), Told()
        for files in self._pages(left):
            planned.versions += len(files)
            rows = self._all_to_do(files, where)
            if where == 'remote':
                self._relocator.plan(rows, planned)
            else:
                planned.moves += len(rows)
                planned.fetched_bytes += sum(
                    self._away_bytes(row) for row in rows)
            progress({'done': planned.versions, 'of': None})
        return dict(planned.plain(), failed=left.lines(),
                    failures=left.count)

    def rekey(self, seconds: float, progress: Progress,
              dry_run: bool = False) -> Dict[str, Any]:
        """Put every copy in S3 under the active key.

        :param seconds: how long to wait for rewritten bundles
        :param dry_run: count what would change, and change nothing
        """
        gateway = self._ready_gateway()
        done = changed = 0
        failed = Told()
        for rows in self._local.index.pages.all(ALL, _PAGE):
            for row in rows:
                try:
                    changed += row.on_remote and gateway.rekey(
                        row.version, row.partition, dry_run)
                except DssError as err:
                    failed.say('%s on %s: %s' % (
                        row.name or row.version.key, row.version.device,
                        err))
            done += len(rows)
            progress({'done': done, 'of': None})
        if not dry_run:
            self._await_bundles(gateway, seconds, failed)
        return {'versions': done, 'changed': changed,
                'failed': failed.lines(), 'failures': failed.count,
                'dry_run': dry_run}

    # -- inside ----------------------------------------------------------

    @staticmethod
    def _await_bundles(gateway: Gateway, seconds: float,
                       failed: Told) -> None:
        # Only now: what is rewritten during the walk would not be counted.
        gateway.rekey_bundles()
        deadline = time.monotonic() + seconds
        while gateway.bundles_to_rekey() and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS * 10)
        left = gateway.bundles_to_rekey()
        if left:
            failed.say('%d bundles or more are not rewritten yet'
                       % left)

    def _ready(self, where: str) -> Optional[Gateway]:
        """The gateway, if the drain is to S3.

        :raises DssError: as :meth:`run` does, before anything is moved
        """
        if where not in ('local', 'remote'):
            raise BadConfig('%r is neither local nor remote' % where)
        if where == 'remote':
            return self._ready_gateway()
        self._require_room()
        return None

    def _away_bytes(self, row: VersionRow) -> int:
        """Bytes that only S3 has; 0 of a version that cannot be read."""
        try:
            return sum(extent.length for extent in self._away(
                row.version, row.partition))
        except (DssError, OSError):
            return 0

    def _ready_gateway(self) -> Gateway:
        if self._gateway is None:
            raise TierUnavailable('[gateway] is not enabled')
        self._gateway.require_ours()
        return self._gateway

    def _walk(self, where: str, seconds: float,
              progress: Callable[[int], None]) -> _Walked:
        """Move what is not where it must be, on all devices.

        Every version that is still not there afterwards is told of.
        """
        done = moved = 0
        left = Told()
        for files in self._pages(left):
            rows = self._all_to_do(files, where)
            why = self._to_local(rows) if where == 'local' else \
                self._to_remote(rows, seconds)
            for row in rows:
                path = self._path_if_left(row, where)
                if path:
                    left.say('%s on %s: %s (%s)' % (
                        row.name or row.version.key, row.version.device,
                        why.get(row.version) or _LEFT[where], path))
                else:
                    moved += 1
            done += len(files)
            progress(done)
        return _Walked(done, moved, left)

    def _pages(self, left: Told) -> Iterator[List[DataFile]]:
        """All data files, a page with those of several devices."""
        walks = []
        for device in self._local.devices.discover():
            try:
                device.require_mounted()
            except TierUnavailable as err:
                left.say(str(err))
            else:
                walks.append(data_files(device,
                                        self._local.devices.policies.ours))
        together = _in_turn(walks)
        page = list(itertools.islice(together, _PAGE))
        while page:
            yield page
            page = list(itertools.islice(together, _PAGE))

    def _all_to_do(self, files: List[DataFile],
                   where: str) -> List[VersionRow]:
        """Those of :meth:`_to_do`."""
        rows = (self._to_do(file.version, file.partition, where)
                for file in files)
        return [row for row in rows if row is not None]

    def _to_do(self, version: VersionId, partition: str,
               where: str) -> Optional[VersionRow]:
        """The facts of a version that is not where it must be, from its own
        files; without size if they cannot be read."""
        mover = self._local.mover
        try:
            row = mover.row(version, partition)
        except (DssError, OSError):
            return VersionRow(version, partition, 0) if mover.exists(
                version, partition) else None
        ssd, here = _bytes_of(row)
        is_done = here == 0 if where == 'remote' else \
            ssd == row.size and (row.pinned or not row.size)
        return None if is_done else row

    def _path_if_left(self, row: VersionRow, where: str) -> str:
        """The data file of a version that is not where it must be; '' if
        it is, or is gone."""
        now = self._to_do(row.version, row.partition, where)
        if now is None:
            return ''
        device = self._local.devices.get(row.version.device)
        try:
            return device.place(now.version, now.partition, 0).data_file()
        except VersionGone:
            return ''

    def _to_local(self, rows: List[VersionRow]) -> Dict[VersionId, str]:
        """Pin versions and bring them back.

        :returns: the reason for each that did not come; '' for others
        """
        def failure_of(row: VersionRow) -> str:
            try:
                # First, or it might be chosen to leave as soon as it comes.
                self._local.pin(row.version, row.partition, True)
                self.promote(row.version, row.partition)
            except (DssError, OSError) as err:
                return str(err)
            return ''
        with ThreadPoolExecutor(_THREADS) as pool:
            return dict(zip((row.version for row in rows),
                            pool.map(failure_of, rows)))

    def _to_remote(self, rows: List[VersionRow],
                   seconds: float) -> Dict[VersionId, str]:
        """The same of versions that S3 is to have."""
        known: List[VersionRow] = []
        why: Dict[VersionId, str] = {}
        for row in rows:
            try:
                # Only versions with a row are waited for and dropped.
                known.append(self._local.mover.track(row.version,
                                                     row.partition))
            except (DssError, OSError) as err:
                why[row.version] = str(err)
        if known:
            why.update(self._relocator.relocate(known, seconds,
                                                lambda done, of: None))
        return why

    def _require_room(self) -> None:
        """Before the first byte moves: would all of it fit?"""
        for device in self._local.devices.discover():
            missing = sum(
                sums['total'] - sums['ssd'] for sums in
                self._local.index.occupancy(device.name).values())
            stat = os.statvfs(device.path)
            free = stat.f_bavail * stat.f_frsize
            if missing > free:
                raise TierFull('%s: %d bytes would have to come back, and '
                               'the file system has room for %d' % (
                                   device.name, missing, free))

    def _landed(self, version: VersionId, partition: str,
                class_ids: Sequence[int]) -> List[Extent]:
        """Versions still lacking bytes after all parts have landed: parts may
        land a moment after their reader has every byte.
        """
        gateway = self._gateway
        deadline = time.monotonic() + _DEADLINE_SECONDS
        while True:
            idle = gateway is None or not gateway.reading()[0]
            left = self._away(version, partition, class_ids)
            if not left or idle or time.monotonic() > deadline:
                return left
            time.sleep(_LOOK_SECONDS)

    def _away(self, version: VersionId, partition: str,
              class_ids: Sequence[int] = ()) -> List[Extent]:
        """Extents that are neither on the SSD nor on the HDD."""
        residency = self._local.describe(version, partition).residency
        extents = residency.extents
        if class_ids:
            _, ranges, _ = self._local.mover.look_for_move(
                version, partition, class_ids)
            extents = tuple(extent for offset, length in ranges
                            for extent in residency.split(offset, length))
        return [extent for extent in extents if not extent.tiers & _LOCAL]


class _Nowhere(Sink):
    """A sink that keeps nothing: only the fill is wanted."""

    def __init__(self) -> None:
        self.said = ''

    def begin(self, reply: FetchReply) -> None:
        """See :meth:`Sink.begin`."""
        if reply.status != 200:
            self.said = reply.reason

    def write(self, data: bytes) -> None:
        """See :meth:`Sink.write`."""


class _Walked(NamedTuple):
    """The results of a walk over all data files."""

    versions: int
    moved: int
    left: Told


def _in_turn(walks: Iterable[Iterator[DataFile]]) -> Iterator[DataFile]:
    """One file of each walk, and again, until all are at their end."""
    for turn in itertools.zip_longest(*walks):
        yield from (file for file in turn if file is not None)


def _bytes_of(row: VersionRow) -> Tuple[int, int]:
    """(bytes on the SSD, bytes on SSD or HDD, some twice)."""
    ssd = sum(span.ssd_bytes for span in row.spans)
    return ssd, ssd + sum(span.hdd_bytes for span in row.spans)
