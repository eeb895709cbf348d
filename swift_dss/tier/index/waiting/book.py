"""Versions that wait for their classes, in a file that a crash does not lose.

A file of its own: the index may be replaced at any time, and events come
once. Beyond ``MOST`` versions a new one is refused.
"""

from __future__ import annotations

import sqlite3
import threading
from typing import NamedTuple, Optional

from swift_dss.core.version import VersionId
from swift_dss.io.private import private_file
from swift_dss.tier.index.file import TRANSLATED, IndexDamaged, move_aside

#: Rows; each takes some 150 bytes on disk.
MOST = 100_000
_TABLE = '''
CREATE TABLE IF NOT EXISTS waiting (
    device TEXT NOT NULL, key TEXT NOT NULL, partition TEXT NOT NULL,
    class_id INTEGER NOT NULL, due REAL NOT NULL,
    attempts INTEGER NOT NULL, PRIMARY KEY (device, key)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS waiting_due ON waiting (due);
'''


class Waiting(NamedTuple):
    """A version that waits.

    :param class_id: of the bytes that open the file
    :param due: seconds since the epoch
    :param attempts: that were made
    """

    version: VersionId
    partition: str
    class_id: int
    due: float
    attempts: int = 0


class Book:
    """Thread-safe; each call is one transaction.

    :param path: of the file; one that is damaged is put aside
    :raises IndexUnavailable: it can be neither read nor made, nor written by
        a later call
    """

    def __init__(self, path: str) -> None:
        self._lock = threading.Lock()
        try:
            self._file = _opened(path)
        except IndexDamaged:
            with TRANSLATED:
                move_aside(path)
            self._file = _opened(path)
        self._count = int(self._one('SELECT COUNT(*) FROM waiting')[0])

    def __len__(self) -> int:
        return self._count

    def add(self, row: Waiting) -> bool:
        """Keep a version; one that is known stays as it is.

        :returns: False if there are too many
        """
        with TRANSLATED, self._lock, self._file:
            if self._count >= MOST:
                return False
            self._count += self._file.execute(
                'INSERT OR IGNORE INTO waiting VALUES (?, ?, ?, ?, ?, ?)', (
                    row.version.device, row.version.key, row.partition,
                    row.class_id, row.due, row.attempts)).rowcount
        return True

    def first(self) -> Optional[Waiting]:
        """The version that is due first; None if none waits."""
        row = self._one('SELECT device, key, partition, class_id, due, '
                        'attempts FROM waiting ORDER BY due LIMIT 1')
        if row is None:
            return None
        device, key, partition, class_id, due, attempts = row
        return Waiting(VersionId.of_key(key, device), partition, class_id,
                       due, attempts)

    def later(self, row: Waiting, due: float) -> None:
        """Try a version again then."""
        self._change('UPDATE waiting SET due = ?, attempts = attempts + 1 '
                     'WHERE device = ? AND key = ?', due, row)

    def remove(self, row: Waiting) -> None:
        """No more is to be done for a version."""
        with TRANSLATED, self._lock, self._file:
            self._count -= self._file.execute(
                'DELETE FROM waiting WHERE device = ? AND key = ?', (
                    row.version.device, row.version.key)).rowcount

    def close(self) -> None:
        """Let the file go."""
        with self._lock:
            self._file.close()

    def _change(self, statement: str, value: float, row: Waiting) -> None:
        with TRANSLATED, self._lock, self._file:
            self._file.execute(statement, (
                value, row.version.device, row.version.key))

    def _one(self, statement: str) -> sqlite3.Row:
        with TRANSLATED, self._lock:
            row: sqlite3.Row = self._file.execute(statement).fetchone()
        return row


def _opened(path: str) -> sqlite3.Connection:
    with TRANSLATED:
        private_file(path)
        opened = sqlite3.connect(path, check_same_thread=False, timeout=10.0)
        try:
            opened.execute('PRAGMA journal_mode = WAL')
            # An upload whose row a power cut takes is classified by another
            # replica's node, or not at all: its bytes have the rule's class.
            opened.execute('PRAGMA synchronous = NORMAL')
            opened.executescript(_TABLE)
        except BaseException:
            opened.close()
            raise
    return opened
