"""SQLite of simulated daemons: in memory, and kept when a daemon dies.

A daemon opens its index, queue and bundle book by path. The file there is
real and stays empty: it stands for the database, so an unlinked, renamed or
newly made file is another database. Making tables, compiling statements and
closing files took a third of a run, so databases are emptied after it and used
again.

In a run with a power cut ahead, each database that has changed is copied after
each step, and after each commit with ``synchronous=FULL``, which makes all
commits before it durable. A cut leaves one of the copies since then.
"""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
from typing import Any, Dict, Iterator, List, Tuple

#: Databases of runs that are over, empty, by the name of their file.
_spare: Dict[str, List[_Kept]] = {}


#: Of each are kept so many copies that no commit has made durable.
_COPIES = 4


class _Kept(sqlite3.Connection):

    #: States that a power cut may leave, the oldest first.
    copies: List[bytes]
    #: Changes of the connection when the last copy was made.
    copied_at = -1

    def follow(self) -> None:
        """Copy it from now on when it is made durable."""
        self.copies, self.copied_at = [], -1
        real, is_full = self.execute, [False]

        def execute(said: str, *values: Any) -> Any:
            done = real(said, *values)
            if said == 'COMMIT' and is_full[0]:
                del self.copies[:]
                self.copy()
            elif said.startswith('PRAGMA synchronous'):
                is_full[0] = said.endswith('FULL')
            return done
        self.execute = execute  # type: ignore[method-assign]

    def copy(self) -> None:
        """As it is now, if that is not known."""
        if self.total_changes != self.copied_at and not self.in_transaction:
            self.copied_at = self.total_changes
            self.copies = self.copies[-_COPIES:] + [self.serialize()]

    def lose(self, dice: random.Random) -> bool:
        """The power fails; False if nothing was lost."""
        self.close()
        if not self.copies or dice.randrange(len(self.copies) + 1) == 0:
            return False
        self.deserialize(dice.choice(self.copies))
        return True

    def leave(self) -> None:
        """Copy it no more."""
        vars(self).clear()

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


class Databases:
    """Those of a run."""

    def __init__(self) -> None:
        self.kept: Dict[Tuple[int, int], Tuple[str, _Kept]] = {}
        #: A power cut is ahead.
        self.is_followed = False

    def copy(self) -> None:
        """All that have changed."""
        for _, database in self.kept.values():
            database.copy()

    def lose(self, path: str, dice: random.Random) -> bool:
        """The power of its node fails; False if nothing was lost."""
        _, database = self.kept.get(_identity(path), ('', None))
        return database is not None and database.lose(dice)


@contextlib.contextmanager
def installed() -> Iterator[Databases]:
    """Have databases of this process live in memory until the end."""
    real = sqlite3.connect
    databases = Databases()
    kept = databases.kept
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
            if databases.is_followed:
                kept[key][1].follow()
        return kept[key][1]

    sqlite3.connect = connect  # type: ignore[assignment]
    try:
        yield databases
    finally:
        sqlite3.connect = real
        for opened in files:
            os.close(opened)
        for name, database in kept.values():
            database.leave()
            if database.empty():
                _spare.setdefault(name, []).append(database)


def _identity(path: str) -> Tuple[int, int]:
    stat = os.stat(path)
    return stat.st_dev, stat.st_ino
