"""SQLite of simulated daemons: in memory, and kept when a daemon dies.

A daemon opens its index, queue and bundle book by path. The file there is
real and stays empty: it stands for the database, so an unlinked, renamed or
newly made file is another database. Making tables, compiling statements and
closing files took a third of a run, so databases are emptied after it and used
again.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from typing import Any, Dict, Iterator, List, Tuple

#: Databases of runs that are over, empty, by the name of their file.
_spare: Dict[str, List[_Kept]] = {}


class _Kept(sqlite3.Connection):

    def close(self) -> None:
        """The process is gone: its uncommitted changes are, too."""
        if self.in_transaction:
            self.execute('ROLLBACK')

    def empty(self) -> bool:
        """Delete all rows; False if some could not be."""
        self.close()
        tables = [row[0] for row in self.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'")]
        # Triggers may write while others are emptied.
        for _ in range(2):
            self.execute('BEGIN')
            for name in tables:
                self.execute('DELETE FROM %s' % name)
            self.execute('COMMIT')
        return not any(self.execute('SELECT 1 FROM %s LIMIT 1' % name)
                       .fetchall() for name in tables)


class _Reader:
    """A second connection, which sees committed changes."""

    def __init__(self, kept: _Kept) -> None:
        assert not kept.in_transaction
        self.execute = kept.execute

    def close(self) -> None:
        """It holds nothing."""


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Have databases of this process live in memory until the end."""
    real = sqlite3.connect
    kept: Dict[Tuple[int, int], Tuple[str, _Kept]] = {}
    #: An inode that is open is no other file's, even when it is unlinked.
    files: List[int] = []

    def connect(path: str, **named: Any) -> Any:
        if named.pop('uri', False):
            path = path[len('file:'):].partition('?')[0]
            return _Reader(kept[_identity(path)][1])
        key = _identity(path)
        if key not in kept:
            files.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
            name = os.path.basename(path)
            spare = _spare.get(name)
            kept[key] = name, spare.pop() if spare else real(
                ':memory:', factory=_Kept, **named)
        return kept[key][1]

    sqlite3.connect = connect  # type: ignore[assignment]
    try:
        yield
    finally:
        sqlite3.connect = real
        for opened in files:
            os.close(opened)
        for name, one in kept.values():
            if one.empty():
                _spare.setdefault(name, []).append(one)


def _identity(path: str) -> Tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino
