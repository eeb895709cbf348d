"""Versions that are no longer this index's: partitions, devices and
policies that went elsewhere.
"""

from __future__ import annotations

from typing import (
    AbstractSet, Collection, Iterable, Iterator, List, Sequence, Set)

from swift_dss.core.version import VersionId
from swift_dss.tier.index.file import (
    ASKED_AT_ONCE, CHUNK_ROWS, KEY, IndexFile)
from swift_dss.tier.index.rows import Departing

#: Row ids held at once: 4 MB.
_IDS = 100000
#: Steps from one partition to the next in their index: SQLite's DISTINCT
#: would read every entry.
_PARTITIONS = (
    'WITH RECURSIVE step(claimed) AS (SELECT min(partition) FROM version '
    'WHERE device_id = ?1 AND policy = ?2 UNION ALL SELECT (SELECT '
    'min(partition) FROM version WHERE device_id = ?1 AND policy = ?2 AND '
    'partition > step.claimed) FROM step WHERE claimed IS NOT NULL) '
    'SELECT claimed FROM step WHERE claimed IS NOT NULL')


class Leaving:
    """Those of one file."""

    def __init__(self, file: IndexFile) -> None:
        self._file = file

    def partitions(self, device: str, policy: int) -> Set[str]:
        """Partitions of a policy that have versions on a device. Costs
        one look for each partition, however many versions it has."""
        with self._file.reader() as db:
            return {row[0] for row in db.execute(
                _PARTITIONS, (self._file.device_id(device), policy))}

    def ids_of_partitions(self, device: str, policy: int,
                          partitions: Collection[str], limit: int,
                          after_id: int) -> List[int]:
        """The lowest row ids after ``after_id`` of versions of some
        partitions. Reads the partition index alone.

        :param partitions: at most :data:`ASKED_AT_ONCE`
        """
        with self._file.reader() as db:
            return [row[0] for row in db.execute(
                'SELECT id FROM version WHERE device_id = ? AND policy = ? '
                'AND partition IN (%s) AND id > ? ORDER BY id LIMIT ?'
                % ','.join('?' * len(partitions)),
                (self._file.device_id(device), policy, *partitions, after_id,
                 limit))]

    def row_ids(self, device: str, policy: int,
                partitions: Collection[str]) -> Iterator[List[int]]:
        """Row ids of all versions of some partitions, at most
        :data:`ASKED_AT_ONCE` at a time.

        In the order of the rows, as far as can be, and not of the partitions:
        each page of the file has rows of many.
        """
        names = sorted(partitions)
        for at in range(0, len(names), ASKED_AT_ONCE):
            ids = [0]
            while ids:
                ids = self.ids_of_partitions(
                    device, policy, names[at:at + ASKED_AT_ONCE], _IDS,
                    ids[-1])
                for first in range(0, len(ids), ASKED_AT_ONCE):
                    yield ids[first:first + ASKED_AT_ONCE]

    def departing(self, device: str, policy: int,
                  row_ids: Sequence[int]) -> List[Departing]:
        """Where versions lie, and the facts of them that are needed after
        their rows go.

        :param row_ids: at most :data:`ASKED_AT_ONCE`; those that are not
            of this device and policy any more are left out
        """
        with self._file.held():
            return [Departing(
                row[0], VersionId(
                    self._file.names[row[2]], row[3], row[1].hex(), row[5],
                    None if row[4] < 0 else row[4]),
                row[6], bool(row[7]))
                for row in self._file.db.execute(
                    'SELECT v.id, v.hash, v.device_id, v.policy, v.frag, '
                    'v.timestamp, v.partition, EXISTS (SELECT 1 FROM span '
                    'WHERE version_id = v.id AND hdd > 0) FROM version v '
                    # "+": not by way of the partitions' index.
                    'WHERE v.id IN (%s) AND +v.device_id = ? AND +v.policy '
                    '= ? ORDER BY v.id' % ','.join('?' * len(row_ids)),
                    (*row_ids, self._file.device_id(device), policy))]

    def remove_departed(self, rows: Iterable[Departing]) -> None:
        """Forget versions by their row ids; not where the row is of another
        version or partition by now.

        Cheapest in the order of the ids: each page of the file is then
        read and written once.
        """
        known = [(row.row_id, row.partition, row.version.timestamp)
                 + self._file.key(row.version) for row in rows]
        with self._file.batch():
            self._file.db.executemany(
                'DELETE FROM version WHERE id = ? AND partition = ? AND '
                'timestamp = ? AND ' + KEY, known)
            self._file.db.executemany(
                'DELETE FROM span WHERE version_id = ?1 AND NOT EXISTS '
                '(SELECT 1 FROM version WHERE id = ?1)',
                [row[:1] for row in known])

    def keep_policies(self, policies: AbstractSet[int]) -> Set[int]:
        """Forget every version of other policies; returns those policies.

        Reads all rows, page by page, without a lock between pages.
        """
        return self._forget_unless('policy', policies)

    def keep_devices(self, names: AbstractSet[str]) -> Set[str]:
        """Forget every version on other devices; which those were.

        Reads all rows, page by page, and holds no lock between pages.
        """
        devices = self._file.devices
        ids = {devices[name] for name in names if name in devices}
        if ids == set(self._file.names):
            return set()
        return {self._file.names[device_id] for device_id
                in self._forget_unless('device_id', ids)}

    def _forget_unless(self, column: str, kept: AbstractSet[int]
                       ) -> Set[int]:
        """Forget versions with another value in a column; those values."""
        dropped: Set[int] = set()
        after_id = 0
        wanted = ','.join(map(str, sorted(kept))) or '-1'
        while True:
            with self._file.batch():
                rows = self._file.db.execute(
                    'SELECT id, %s FROM version WHERE id > ? AND '
                    '%s NOT IN (%s) ORDER BY id LIMIT %d' % (
                        column, column, wanted, CHUNK_ROWS),
                    (after_id,)).fetchall()
                ids = [row[:1] for row in rows]
                self._file.db.executemany(
                    'DELETE FROM span WHERE version_id = ?', ids)
                self._file.db.executemany(
                    'DELETE FROM version WHERE id = ?', ids)
            dropped.update(row[1] for row in rows)
            if len(rows) < CHUNK_ROWS:
                return dropped
            after_id = rows[-1][0]
