"""Notes of a comparison, in temporary files: in the worst case they are of
every version or key there is, so memory cannot hold them.

No index: nothing here outlives its context manager. One thread at a time.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from typing import Any, Iterator, List, Optional, Tuple

from swift_dss.core.version import VersionId

#: Kinds of problems: S3's bytes, a device's bytes, the bucket's record.
REMOTE, LOCAL, RECORD = 'remote', 'local', 'record'
#: A version that Swift has taken out of its place.
QUARANTINED = 'quarantined'
#: S3's first: what is wrong on a device may then be fetched.
KINDS = (QUARANTINED, REMOTE, LOCAL, RECORD)
#: Versions of one request: its line is short of 64 KiB.
PAGE = 200
#: A version as a request has it.
Plain = List[Any]


class _Notes:
    """A table in a temporary file. A context manager."""

    _TABLE = ''

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix='dss-verify-')
        self._rows = sqlite3.connect(os.path.join(self._folder.name, 'db'))
        self._rows.execute(self._TABLE)

    def __enter__(self: Any) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self._rows.close()
        self._folder.cleanup()


class WrongList(_Notes):
    """Versions to repair, each once."""

    _TABLE = (
        'CREATE TABLE wrong (kind TEXT, device TEXT, policy INTEGER, '
        'hash TEXT, timestamp TEXT, frag INTEGER, part TEXT, PRIMARY '
        'KEY (kind, hash, policy, timestamp, frag, device))')

    #: Problems noted so far, each as often as it was; a record that is
    #: older than metadata here is none.
    problems = 0

    def add(self, kind: str, version: VersionId, partition: str) -> None:
        """Note a problem. A fault in S3 concerns every device."""
        self.problems += kind != RECORD
        # NULL is never equal to NULL: no fragment is -1.
        frag = version.frag_index
        self._rows.execute(
            'INSERT OR IGNORE INTO wrong VALUES (?,?,?,?,?,?,?)', (
                kind, version.device if kind in (LOCAL, QUARANTINED)
                else '',
                version.policy, version.object_hash, version.timestamp,
                -1 if frag is None else frag, partition))

    def __len__(self) -> int:
        return int(self._rows.execute(
            'SELECT count(*) FROM wrong').fetchone()[0])

    def pages(self) -> Iterator[Tuple[str, List[Plain]]]:
        """(kind, versions as a request for their repair has them)."""
        for kind in KINDS:
            rows = self._rows.execute(
                'SELECT device, policy, hash, timestamp, frag, part FROM '
                'wrong WHERE kind = ? ORDER BY hash', (kind,))
            while True:
                page = rows.fetchmany(PAGE)
                if not page:
                    break
                yield kind, [[*row[:4], None if row[4] < 0 else row[4],
                              row[5]] for row in page]


class KeyList(_Notes):
    """The keys of a bucket, and which of them a record names."""

    _TABLE = ('CREATE TABLE keys (key TEXT PRIMARY KEY, size INTEGER, '
              'etag TEXT, used INTEGER) WITHOUT ROWID')

    def add(self, key: str, size: int, etag: str) -> None:
        """Note a key that the bucket lists."""
        self._rows.execute('INSERT OR REPLACE INTO keys VALUES (?, ?, ?, 0)',
                           (key, size, etag))

    def find(self, key: str) -> Optional[Tuple[int, str]]:
        """(size, ETag) of a listed key, or None."""
        id_and_key: Optional[Tuple[int, str]] = self._rows.execute(
            'SELECT size, etag FROM keys WHERE key = ?', (key,)).fetchone()
        return id_and_key

    def use(self, key: str) -> bool:
        """A record names a key; False if the bucket does not list it, or
        another record names it too."""
        return bool(self._rows.execute(
            'UPDATE keys SET used = 1 WHERE key = ? AND used = 0',
            (key,)).rowcount)

    def unused(self) -> Iterator[Tuple[str, int]]:
        """(key, size) of those that no record names."""
        yield from self._rows.execute(
            'SELECT key, size FROM keys WHERE used = 0')
