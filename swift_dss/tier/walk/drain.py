"""Everything local, or everything remote: the ways out of tiering.

``local`` brings back bytes that only S3 has, puts every byte on the SSD and
pins it there: the data files are then whole, as a stock Swift server wants
them. ``remote`` sends everything to S3 and drops local bytes. Both may be
broken off and asked for again: a finished version costs a look at its row.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, List, Optional, Tuple

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
from swift_dss.tier.walk.relocate import Relocator
from swift_dss.wire.control import FetchReply, FetchRequest

#: Rows looked at in one go, and brought back side by side.
_PAGE = 200
_THREADS = 4
#: Longest wait for a byte of S3 in a full drain.
_DEADLINE_SECONDS = 60.0
_LOOK_SECONDS = 0.02
_SHOWN_FAILURES = 100
#: A version that a mover takes away again is brought back so often.
_TRIES = 3
_LOCAL = Tier.SSD | Tier.HDD
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

    def recall(self, version: VersionId, partition: str) -> None:
        """Bring back a version's bytes that only S3 has.

        :raises RemoteUnavailable: S3 does not give it
        :raises TierFull: there is no room for it here
        """
        for extent in self._away(version, partition):
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
        left = self._landed(version, partition)
        if left:
            raise TierFull('%s: no room for %d bytes from S3' % (
                version.key, sum(extent.length for extent in left)))

    def promote(self, version: VersionId, partition: str) -> None:
        """All bytes of a version on the SSD, wherever they are now."""
        self.recall(version, partition)
        self._local.promote(version, partition)

    def run(self, where: str, seconds: float,
            progress: Progress) -> Dict[str, Any]:
        """Drain all versions of the node.

        :param where: ``local`` or ``remote``
        :raises BadConfig: another word
        :raises TierFull: all of it has no room here; nothing was moved
        """
        if where not in ('local', 'remote'):
            raise BadConfig('%r is neither local nor remote' % where)
        if where == 'local':
            self._require_room()
        done = 0
        failed: List[str] = []
        moved = 0
        for rows in self._local.index.pages(ALL, _PAGE):
            left = [row for row in rows if _to_do(row, where) or (
                where == 'local' and not self._is_whole(row))]
            found = self._to_local(left) if where == 'local' else \
                self._to_remote(left, seconds)
            failed += found
            moved += len(left) - len(found)
            done += len(rows)
            progress({'done': done, 'of': None})
        return {'versions': done, 'moved': moved,
                'failed': failed[:_SHOWN_FAILURES],
                'failures': len(failed)}

    def rekey(self, seconds: float, progress: Progress) -> Dict[str, Any]:
        """Put every copy in S3 under the active key.

        :param seconds: how long to wait for rewritten bundles
        """
        gateway = self._gateway
        if gateway is None:
            raise TierUnavailable('[gateway] is not enabled')
        gateway.require_ours()
        done = changed = 0
        failed: List[str] = []
        for rows in self._local.index.pages(ALL, _PAGE):
            for row in rows:
                try:
                    changed += row.on_remote and gateway.rekey(
                        row.version, row.partition)
                except DssError as err:
                    failed.append('%s on %s: %s' % (
                        row.name or row.version.key, row.version.device,
                        err))
            done += len(rows)
            progress({'done': done, 'of': None})
        deadline = time.monotonic() + seconds
        while gateway.bundles_to_rekey() and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS * 10)
        left = gateway.bundles_to_rekey()
        if left:
            failed.append('%d bundles or more are not rewritten yet'
                          % left)
        return {'versions': done, 'changed': changed,
                'failed': failed[:_SHOWN_FAILURES],
                'failures': len(failed)}

    # -- inside ----------------------------------------------------------

    def _to_local(self, rows: List[VersionRow]) -> List[str]:
        def one(row: VersionRow) -> str:
            said = 'moved away again and again'
            try:
                for _ in range(_TRIES):
                    self.promote(row.version, row.partition)
                    # Or pressure would take them away again.
                    self._local.pin(row.version, row.partition, True)
                    # A mover may have chosen it before it was pinned.
                    if self._is_whole(row):
                        return ''
            except (DssError, OSError) as err:
                said = str(err)
            return '%s on %s: %s' % (row.name or row.version.key,
                                     row.version.device, said)
        with ThreadPoolExecutor(_THREADS) as pool:
            return [text for text in pool.map(one, rows) if text]

    def _is_whole(self, row: VersionRow) -> bool:
        """True if the data file has every byte, whatever the index says;
        also where it is gone."""
        try:
            found = self._local.describe(row.version, row.partition)
        except VersionGone:
            return True
        except (DssError, OSError):
            return False
        return all(extent.tiers & Tier.SSD
                   for extent in found.residency.extents)

    def _to_remote(self, rows: List[VersionRow], seconds: float) -> List[str]:
        gateway = self._gateway
        if gateway is None:
            raise TierUnavailable('[gateway] is not enabled')
        gateway.require_ours()
        gateway.hurry()
        return self._relocator.relocate(
            rows, seconds, lambda done, of: None) if rows else []

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

    def _landed(self, version: VersionId, partition: str) -> List[Extent]:
        """Versions still lacking bytes after all parts have landed: parts may
        land a moment after their reader has every byte.
        """
        gateway = self._gateway
        deadline = time.monotonic() + _DEADLINE_SECONDS
        while True:
            idle = gateway is None or not gateway.reading()[0]
            left = self._away(version, partition)
            if not left or idle or time.monotonic() > deadline:
                return left
            time.sleep(_LOOK_SECONDS)

    def _away(self, version: VersionId, partition: str) -> List[Extent]:
        """Extents that are neither on the SSD nor on the HDD."""
        found = self._local.describe(version, partition)
        return [extent for extent in found.residency.extents
                if not extent.tiers & _LOCAL]


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


def _to_do(row: VersionRow, where: str) -> bool:
    if not row.size:
        return False
    ssd, here = _bytes_of(row)
    if where == 'local':
        return ssd < row.size or not row.pinned
    return here > 0


def _bytes_of(row: VersionRow) -> Tuple[int, int]:
    """(bytes on the SSD, bytes on SSD or HDD, some twice)."""
    ssd = sum(span.ssd_bytes for span in row.spans)
    return ssd, ssd + sum(span.hdd_bytes for span in row.spans)
