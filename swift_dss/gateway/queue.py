"""The uploads and deletes that S3 still lacks, in SQLite.

Two tables. *Uploads*: one row per version on a device that S3 may not have
yet; a row leaves when the copy is verified and recorded, or the version is
obsolete. *Deletes*: one row per S3 key whose version is overwritten or
deleted here; a tombstone that leaves only when all primaries agreed and S3
acknowledged. The backlog lives here and not in memory.

After a power cut: a delete that was enqueued is there (synchronous FULL);
an upload enqueued in the last moments may be missing (NORMAL), and the
daemon's sweep finds its version dirty and enqueues it again.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

from swift_dss.core.config import NodeConf
from swift_dss.core.version import VersionId
from swift_dss.gateway.store import Store

FILE = 'gateway.db'

_SCHEMA = """
CREATE TABLE IF NOT EXISTS uploads (
    device TEXT NOT NULL, key TEXT NOT NULL, policy INTEGER NOT NULL,
    hash TEXT NOT NULL, timestamp TEXT NOT NULL, frag INTEGER,
    partition TEXT NOT NULL, first_seen REAL NOT NULL,
    not_before REAL NOT NULL, attempts INTEGER NOT NULL,
    failures INTEGER NOT NULL, upload_id TEXT NOT NULL,
    error TEXT NOT NULL, PRIMARY KEY (device, key)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS uploads_due ON uploads (not_before);
CREATE INDEX IF NOT EXISTS uploads_key ON uploads (key);
CREATE TABLE IF NOT EXISTS deletes (
    s3_key TEXT NOT NULL PRIMARY KEY, device TEXT NOT NULL,
    policy INTEGER NOT NULL, hash TEXT NOT NULL, timestamp TEXT NOT NULL,
    frag INTEGER, partition TEXT NOT NULL, first_seen REAL NOT NULL,
    not_before REAL NOT NULL, attempts INTEGER NOT NULL,
    error TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS marks (
    name TEXT PRIMARY KEY, value REAL NOT NULL) WITHOUT ROWID;
"""
_VERSION_COLUMNS = 'device, policy, hash, timestamp, frag, partition'
#: Columns that queues of earlier releases lack.
_LATER = {name: 'ALTER TABLE uploads ADD COLUMN %s INTEGER NOT NULL '
          'DEFAULT 0' % name for name in ('class_id', 'alone')}
_LATER_DELETES = ('ALTER TABLE deletes ADD COLUMN agreed INTEGER NOT NULL '
                  'DEFAULT 0')
#: After the columns: it names some that an old queue has to get first.
_LATER_INDEX = """
CREATE INDEX IF NOT EXISTS deletes_agreed ON deletes (
    agreed, not_before, timestamp);
DROP INDEX IF EXISTS deletes_due;
CREATE INDEX IF NOT EXISTS uploads_alone ON uploads (
    class_id, alone, not_before);
DROP INDEX IF EXISTS uploads_class;
"""
#: Classes that have something due, however many rows there are: one look
#: into the index for each class.
_DUE_CLASSES = """
WITH RECURSIVE found (id) AS (
    SELECT min(class_id) FROM uploads UNION ALL
    SELECT (SELECT min(class_id) FROM uploads WHERE class_id > id)
    FROM found WHERE id IS NOT NULL)
SELECT id FROM found WHERE id IS NOT NULL AND (EXISTS (
    SELECT 1 FROM uploads WHERE class_id = id AND alone = 0
    AND not_before <= ?1) OR EXISTS (
    SELECT 1 FROM uploads WHERE class_id = id AND alone = 1
    AND not_before <= ?1))
"""
_UPLOAD_COLUMNS = _VERSION_COLUMNS + (
    ', first_seen, not_before, attempts, failures, upload_id, error, '
    'class_id')
_DELETE_COLUMNS = 's3_key, ' + _VERSION_COLUMNS + (
    ', first_seen, not_before, attempts, error')
#: An upload was begun, but S3's answer was not noted yet.
BEGINNING = '?'
#: An error text in a row is for status, not a log.
_MAX_ERROR = 200


@dataclass(frozen=True)
class UploadJob:
    """A version that S3 may lack.

    :param first_seen: seconds since the epoch; the take-over clock
    :param not_before: when to try (again)
    :param attempts: tries and looks; ``failures`` those that failed
    :param upload_id: multipart upload in progress, ``BEGINNING``, or ''
    :param class_id: the class that it shares the link with
    :param alone: it shares no S3 object with others
    """

    version: VersionId
    partition: str
    first_seen: float
    not_before: float
    attempts: int = 0
    failures: int = 0
    upload_id: str = ''
    error: str = ''
    class_id: int = 0
    alone: bool = False


@dataclass(frozen=True)
class DeleteJob:
    """A key that S3 must lose."""

    s3_key: str
    version: VersionId
    partition: str
    first_seen: float
    not_before: float
    attempts: int = 0
    error: str = ''


class Queue(Store):
    """The durable queue of one node; see :class:`Store`.

    A file that is no queue is set aside: uploads come back with the
    daemon's sweep, and deletes with the collector's first pass.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, 'gateway queue')

    @staticmethod
    def prepare(opened: sqlite3.Connection) -> None:
        """See :meth:`Store.prepare`."""
        opened.executescript(_SCHEMA)
        there = _columns(opened, 'uploads')
        for name, statement in _LATER.items():
            if name not in there:
                opened.execute(statement)
        if 'agreed' not in _columns(opened, 'deletes'):
            opened.execute(_LATER_DELETES)
        opened.executescript(_LATER_INDEX)

    def add_uploads(
            self, wanted: Iterable[Tuple[VersionId, str, float, int]],
            now: float) -> None:
        """Note that S3 may lack versions, all or none. Idempotent: a row
        that is there keeps its history and at most becomes due earlier.

        :param wanted: (version, partition, not_before, class id) of each
        """
        self._write(False, [(
            'INSERT INTO uploads (key, %s) '
            'VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?) '
            'ON CONFLICT (device, key) DO UPDATE SET not_before = '
            'min(not_before, excluded.not_before), '
            'class_id = excluded.class_id' % _UPLOAD_COLUMNS,
            (version.key,) + _version_row(version, partition)
            + (now, not_before, 0, 0, '', '', class_id))
            for version, partition, not_before, class_id in wanted])

    def add_delete(self, s3_key: str, version: VersionId, partition: str,
                   not_before: float, now: float) -> None:
        """Note, durably, that ``s3_key`` must go. Idempotent."""
        self._write(True, [_delete_added(s3_key, version, partition,
                                         not_before, now)])

    def replace_uploads(
            self, obsolete: Iterable[Tuple[str, VersionId, str, float]],
            now: float) -> None:
        """Note, durably and all or none, that the keys of these versions
        must go; their uploads go too, but for those that have begun.

        :param obsolete: (s3_key, version, partition, not_before) of each
        """
        rows = list(obsolete)
        self._write(True, itertools.chain((
            _delete_added(*row, now) for row in rows), ((
                "DELETE FROM uploads WHERE device = ? AND key = ? AND "
                "upload_id = ''", (version.device, version.key))
                for _, version, _, _ in rows)))

    def hurry(self, now: float) -> None:
        """Every upload that was never tried is due at once."""
        self._write(False, [(
            'UPDATE uploads SET not_before = ? WHERE attempts = 0 AND '
            'not_before > ?', (now, now))])

    def look_now(self, version: VersionId, now: float) -> int:
        """Note that S3 has this version: replicas on other devices of the node
        look at once, without waiting for their turn or behind uploads. Returns
        their number.
        """
        return self._write(False, [(
            'UPDATE uploads SET not_before = min(first_seen, ?) '
            'WHERE key = ? AND device != ? AND failures = 0',
            (now, version.key, version.device))])

    def again(self, now: float) -> None:
        """S3 is back: uploads that failed are due in the order of their
        age, and not when their waits happen to end."""
        self._write(False, [(
            'UPDATE uploads SET not_before = first_seen WHERE failures > 0 '
            'AND not_before > first_seen AND first_seen < ?', (now,))])

    def due_classes(self, now: float) -> List[int]:
        """Classes with an upload to try now."""
        return [row[0] for row in self._read(_DUE_CLASSES, (now,))]

    def due_uploads(self, now: float, limit: int,
                    class_id: Optional[int] = None,
                    fresh: bool = False,
                    alone: Optional[bool] = None) -> List[UploadJob]:
        """Up to ``limit`` uploads to try now, longest due first.

        :param class_id: only of this class
        :param fresh: only those that were never tried
        :param alone: only those that share no S3 object with others
            (True), or may share one as far as known (False)
        """
        where, values = 'not_before <= ?', [now]
        if class_id is not None:
            where += ' AND class_id = ?'
            values.append(class_id)
        if fresh:
            where += ' AND attempts = 0'
        if alone is not None:
            where += ' AND alone = ?'
            values.append(int(alone))
        rows = self._read(
            'SELECT %s, alone FROM uploads WHERE %s ORDER BY not_before '
            'LIMIT ?' % (_UPLOAD_COLUMNS, where), (*values, limit))
        return [_upload(row) for row in rows]

    def due_deletes(self, now: float, limit: int,
                    agreed: bool) -> List[DeleteJob]:
        """Up to ``limit`` deletes to try now; of one object, the oldest
        version first.

        :param agreed: those that the primaries agreed to; or those that
            they are to be asked about
        """
        rows = self._read(
            'SELECT %s FROM deletes WHERE agreed = ? AND not_before <= ? '
            'ORDER BY not_before, timestamp LIMIT ?' % _DELETE_COLUMNS,
            (int(agreed), now, limit))
        return [DeleteJob(row[0], _version(row[1:]), row[6], *row[7:])
                for row in rows]

    def uploads_of(self, key: str) -> List[UploadJob]:
        """Uploads of a version key (one per device that holds it)."""
        rows = self._read('SELECT %s, alone FROM uploads WHERE key = ?'
                          % _UPLOAD_COLUMNS, (key,))
        return [_upload(row) for row in rows]

    def retry_upload(self, version: VersionId, not_before: float,
                     error: str, failed: bool = True) -> None:
        """Try again later; the multipart upload in progress is kept.

        :param failed: False for a wait that is no failure
        """
        self._write(False, [_retried(version, not_before, error, failed)])

    def wait(self, wishes: Iterable[Tuple[VersionId, float]]) -> None:
        """Look at these again later, each at its time: no failure."""
        self._write(False, [_retried(version, at, '', False)
                            for version, at in wishes])

    def go_alone(self, versions: Iterable[VersionId]) -> None:
        """These share no S3 object with others."""
        self._write(False, [(
            'UPDATE uploads SET alone = 1 WHERE device = ? AND key = ?',
            (version.device, version.key)) for version in versions])

    def note_upload_id(self, version: VersionId, upload_id: str) -> None:
        """Remember, durably, the multipart upload in progress."""
        self._write(True, [(
            'UPDATE uploads SET upload_id = ? WHERE device = ? AND key = ?',
            (upload_id, version.device, version.key))])

    def agree(self, s3_keys: Iterable[str]) -> None:
        """All primaries have something newer than these: they may go."""
        self._write(False, [(
            "UPDATE deletes SET agreed = 1, attempts = 0, error = '' "
            'WHERE s3_key = ?', (s3_key,)) for s3_key in s3_keys])

    def retry_delete(self, s3_key: str, not_before: float,
                     error: str) -> None:
        """Try again later."""
        self.retry_deletes([(s3_key, not_before)], error)

    def retry_deletes(self, wishes: Iterable[Tuple[str, float]],
                      error: str) -> None:
        """The same for several, each at its time."""
        self._write(False, [(
            'UPDATE deletes SET not_before = ?, attempts = attempts + 1, '
            'error = ? WHERE s3_key = ?',
            (not_before, error[:_MAX_ERROR], s3_key))
            for s3_key, not_before in wishes])

    def finish_uploads(self, versions: Iterable[VersionId]) -> None:
        """Their copies are recorded, or the versions are no more; all or
        none."""
        self._write(False, [(
            'DELETE FROM uploads WHERE device = ? AND key = ?',
            (version.device, version.key)) for version in versions])

    def finish_delete(self, s3_key: str) -> None:
        """S3 acknowledged."""
        self._write(False, [('DELETE FROM deletes WHERE s3_key = ?',
                             (s3_key,))])

    def mark(self, name: str, value: float) -> None:
        """Remember a number for as long as the queue lasts; durable."""
        self._write(True, [(
            'INSERT OR REPLACE INTO marks (name, value) VALUES (?, ?)',
            (name, value))])

    def marked(self, name: str) -> float:
        """The number; 0 if there is none, as in a queue that is new."""
        rows = self._read('SELECT value FROM marks WHERE name = ?', (name,))
        return float(rows[0][0]) if rows else 0.0

    def next_due(self, after: float) -> Optional[float]:
        """When the first job later than ``after`` becomes due."""
        rows = self._read(
            'SELECT min(t) FROM (SELECT min(not_before) AS t FROM uploads '
            'WHERE not_before > ?1 UNION ALL SELECT min(not_before) '
            'FROM deletes WHERE agreed = 1 AND not_before > ?1)', (after,))
        soonest = rows[0][0]
        return None if soonest is None else float(soonest)

    def next_question(self) -> Optional[float]:
        """When the first delete without an agreement is due."""
        soonest = self._read('SELECT min(not_before) FROM deletes '
                             'WHERE agreed = 0', ())[0][0]
        return None if soonest is None else float(soonest)

    def counts(self) -> Dict[str, Any]:
        """Rows, the oldest, and the last errors, for status."""
        uploads, oldest = self._read(
            'SELECT count(*), min(first_seen) FROM uploads', ())[0]
        deletes, since, held = self._read(
            'SELECT count(*), min(first_seen), coalesce(sum(agreed = 0 AND '
            'attempts > 0), 0) FROM deletes', ())[0]
        errors = [row[0] for row in self._read(
            "SELECT DISTINCT error FROM uploads WHERE error != '' UNION "
            "SELECT DISTINCT error FROM deletes WHERE error != '' LIMIT 5",
            ())]
        return {'uploads': uploads, 'oldest_upload': oldest,
                'deletes': deletes, 'oldest_delete': since,
                'deletes_held': held, 'errors': errors}


def queue_path(conf: NodeConf) -> str:
    """Where the queue of a node, or of a shard, lies."""
    return os.path.join(conf.queue_dir, FILE)


def _columns(queue_db: sqlite3.Connection, table: str) -> Set[str]:
    return {str(row[1]) for row in queue_db.execute(
        'PRAGMA table_info(%s)' % table)}


def _retried(version: VersionId, not_before: float, error: str,
             failed: bool) -> Tuple[str, Tuple[Any, ...]]:
    return ('UPDATE uploads SET not_before = ?, attempts = attempts + 1, '
            'failures = failures + ?, error = ? WHERE device = ? AND '
            'key = ?', (not_before, int(failed), error[:_MAX_ERROR],
                        version.device, version.key))


def _delete_added(s3_key: str, version: VersionId, partition: str,
                  not_before: float, now: float
                  ) -> Tuple[str, Tuple[Any, ...]]:
    return ('INSERT OR IGNORE INTO deletes (%s) VALUES '
            '(?,?,?,?,?,?,?,?,?,?,?)' % _DELETE_COLUMNS,
            (s3_key,) + _version_row(version, partition)
            + (now, not_before, 0, ''))


def _version_row(version: VersionId, partition: str) -> Tuple[Any, ...]:
    return (version.device, version.policy, version.object_hash,
            version.timestamp, version.frag_index, partition)


def _version(row: Tuple[Any, ...]) -> VersionId:
    return VersionId(row[0], row[1], row[2], row[3], row[4])


def _upload(row: Tuple[Any, ...]) -> UploadJob:
    return UploadJob(_version(row), row[5], *row[6:])
