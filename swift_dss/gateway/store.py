"""A small SQLite file of a node, for several threads and for power cuts.

The queue and the bundle book share this base: one connection, one lock, a
statement or a list of them at a time. A file that is not a database is set
aside, and a new one is made. A rotten page shows only when it is read: that
leaves a mark beside the file, and the next start checks the whole file.
"""

from __future__ import annotations

import abc
import os
import sqlite3
import threading
from contextlib import closing
from itertools import groupby
from operator import itemgetter
from types import TracebackType
from typing import (
    Any, Callable, Generator, Iterable, List, Optional, Sequence, Tuple, Type)

from swift_dss.core.errors import BadConfig, TierUnavailable
from swift_dss.io.private import private_file


#: Beside a file that proved damaged while it was in use.
_MARK = '.suspect'
#: Texts of SQLite's errors: Python has its error codes since 3.11 only.
_DAMAGED = ('malformed', 'not a database')


class Store(abc.ABC):
    """One file. Thread-safe; calls block on disk.

    Every method raises :class:`TierUnavailable` when its disk is full or
    fails; nothing is changed then.

    :param path: the SQLite file; made if missing, set aside if it is not
        one, or if it proved damaged since it was opened last
    :param title: its name in errors
    :raises BadConfig: it cannot be opened or made
    """

    def __init__(self, path: str, title: str) -> None:
        self._lock = threading.RLock()
        self._held = _Held(self)
        self._what = title
        self._mark = path + _MARK
        #: Where a file that was no database went, or ''.
        self.damaged_path = ''
        try:
            self._db = _open(path, self.prepare,
                             os.path.exists(self._mark))
        except sqlite3.OperationalError as err:
            raise BadConfig('%s %s: %s' % (title, path, err)) from err
        except sqlite3.DatabaseError:
            # The file is kept for a look at it.
            self.damaged_path = path + '.damaged'
            os.replace(path, self.damaged_path)
            for suffix in ('-wal', '-shm'):
                if os.path.exists(path + suffix):
                    os.replace(path + suffix, self.damaged_path + suffix)
            self._db = _open(path, self.prepare)
        # Last: after a kill before this, the next start checks again.
        if os.path.exists(self._mark):
            os.unlink(self._mark)

    @staticmethod
    @abc.abstractmethod
    def prepare(opened: sqlite3.Connection) -> None:
        """Make missing tables and columns. Idempotent."""

    def close(self) -> None:
        """Let the file go."""
        with self._lock:
            self._db.close()

    def _read(self, statement: str,
              values: Tuple[Any, ...]) -> List[Tuple[Any, ...]]:
        with self._held:
            return self._db.execute(statement, values).fetchall()

    def _rows(self, statement: str, values: Tuple[Any, ...]
              ) -> Generator[Tuple[Any, ...], None, None]:
        """Like :meth:`_read`, but yields rows one at a time, for callers that
        may stop early.
        """
        with self._held, closing(
                self._db.execute(statement, values)) as cursor:
            yield from cursor

    def _write(self, through_power_cut: bool,
               statements: Iterable[Tuple[str, Tuple[Any, ...]]]) -> int:
        """All or none; how many rows changed."""
        with self._held:
            before = self._db.total_changes
            self._db.execute('PRAGMA synchronous=%s' % (
                'FULL' if through_power_cut else 'NORMAL'))
            self._db.execute('BEGIN IMMEDIATE')
            try:
                # Neighbours often have the same text, so they go together.
                for text, batch in groupby(statements, itemgetter(0)):
                    self._db.executemany(text, map(itemgetter(1), batch))
                changed = self._db.total_changes - before
                # With FULL, it fsyncs the journal: the rows are durable.
                self._db.execute('COMMIT')
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute('ROLLBACK')
                raise
            return changed

    def take_over(self, path: str, table: str,
                  devices: Sequence[str]) -> int:
        """Have the rows of a table that name these devices, and that another
        file of the same kind has; how many came.

        Durable here before they go there, and idempotent: a crash leaves
        them in both.
        """
        marks = ','.join('?' * len(devices))
        with self._held:
            columns = ', '.join(
                str(row[1]) for row in self._db.execute(
                    'PRAGMA main.table_info(%s)' % table))
            self._db.execute('PRAGMA synchronous=FULL')
            self._db.execute('ATTACH DATABASE ? AS other', (path,))
            try:
                came = self._db.execute(
                    'INSERT OR IGNORE INTO main.%s (%s) SELECT %s FROM '
                    'other.%s WHERE device IN (%s)' % (
                        table, columns, columns, table, marks),
                    tuple(devices)).rowcount
                self._db.execute('DELETE FROM other.%s WHERE device IN (%s)'
                                 % (table, marks), tuple(devices))
            finally:
                self._db.execute('DETACH DATABASE other')
            return came

    def _failed(self, err: sqlite3.Error) -> TierUnavailable:
        """A full or failing disk under it is an unavailable tier."""
        text = '%s: %s' % (self._what, err)
        if any(said in str(err) for said in _DAMAGED):
            self._leave_mark()
            text += '; the next start of the daemon sets the file aside'
        return TierUnavailable(text)

    def _leave_mark(self) -> None:
        try:
            with open(self._mark, 'w', encoding='ascii'):
                pass
        except OSError:
            return  # a full disk; the next statement tries again


class _Held:
    """The context in which a thread has the connection alone. A class, as
    each look at a file is inside one: a generator's context costs three times
    as much.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def __enter__(self) -> None:
        self._store._lock.acquire()

    def __exit__(self, kind: Optional[Type[BaseException]],
                 error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        try:
            if isinstance(error, sqlite3.Error):
                raise self._store._failed(error) from error
        finally:
            self._store._lock.release()


def _open(path: str, prepare: Callable[[sqlite3.Connection], object],
          is_suspect: bool = False) -> sqlite3.Connection:
    try:
        private_file(path)
    except OSError as err:
        raise BadConfig('%s: %s' % (path, err)) from err
    made = sqlite3.connect(
        path, check_same_thread=False, isolation_level=None, timeout=30.0)
    try:
        made.execute('PRAGMA journal_mode=WAL')
        prepare(made)
        if is_suspect:
            # A bit that flipped on its way here is no damage of the file.
            said = made.execute('PRAGMA integrity_check(1)').fetchone()[0]
            if said != 'ok':
                raise sqlite3.DatabaseError(said)
    except sqlite3.Error:
        made.close()
        raise
    return made
