"""The index's file: its connection, its lock, its transactions, its errors.

Rows are read and changed through it alone. Safe to use from any thread.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from types import TracebackType
from typing import (
    Any, ContextManager, Dict, Iterator, List, Optional, Tuple, Type)

from swift_dss.core.errors import DssError
from swift_dss.core.version import VersionId
from swift_dss.io.private import private_file
from swift_dss.tier.index import schema
from swift_dss.tier.index.placing import Placing

#: Values of one statement; SQLite's own limit is 999 in old versions.
ASKED_AT_ONCE = 500
#: Rows changed in one transaction when many change: keeps the time that
#: other threads wait under some tens of milliseconds.
CHUNK_ROWS = 5000
#: An object on a device; and of its versions, those of one fragment.
OBJECT = 'hash = ? AND device_id = ? AND policy = ?'
KEY = OBJECT + ' AND frag = ?'
#: Free pages stay while they are less than this part of the file.
_FREE_PART = 5


class IndexUnavailable(DssError):
    """The index cannot be written now: its disk is full or read-only."""

    http_status = 507
    exit_code = 75
    counter = 'index_unavailable'


class IndexDamaged(DssError):
    """The index file is not one any more: move it aside and rebuild."""

    exit_code = 65
    counter = 'index_damaged'


class IndexFile:
    """One open file.

    :param path: of the file; made if it is not there
    :param order: what orders victims inside classes; LRU if None. Its state
        changes in the transactions of this file.
    :raises IndexDamaged: there is a file and it is not a sound index
    :raises IndexUnavailable: it cannot be made or written
    :ivar db: use it under :meth:`held` or :meth:`batch` alone
    :ivar devices: ids of devices, by their names
    :ivar names: the other way round
    :ivar replaced: how often a damaged file was replaced under way
    """

    def __init__(self, path: str, order: Optional[Placing] = None) -> None:
        self.path = path
        self.order = order or Placing()
        self.lock = threading.RLock()
        self._held = _Held(self.lock)
        self._depth = 0
        self.devices: Dict[str, int] = {}
        self.names: Dict[int, str] = {}
        self.replaced = 0
        self._open()

    def _open(self) -> None:
        with TRANSLATED:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            private_file(self.path)
            self.db = sqlite3.connect(self.path, isolation_level=None,
                                      check_same_thread=False)
            try:
                self._prepare()
            except BaseException:
                self.db.close()
                raise

    def _prepare(self) -> None:
        for pragma in schema.PRAGMAS:
            self.db.execute(pragma)
        version, = self.db.execute('PRAGMA user_version').fetchone()
        if not version:
            with self.batch():
                self._define(schema.TABLES, schema.TRIGGERS)
        elif version == 3:
            with self.batch():
                self._define(schema.FROM_3, schema.SPAN_TRIGGERS)
        elif version != schema.VERSION:
            raise IndexDamaged('%s has schema %d instead of %d' % (
                self.path, version, schema.VERSION))
        for statement in schema.LATER:
            self.db.execute(statement)
        for device_id, name in self.db.execute(
                'SELECT id, name FROM device'):
            self.devices[name] = device_id
            self.names[device_id] = name

    def _define(self, tables: str, triggers: str) -> None:
        for statement in _statements(tables):
            self.db.execute(statement)
        for statement in triggers.strip().split('\nEND;'):
            if statement.strip():
                self.db.execute(statement + '\nEND;')
        self.db.execute('PRAGMA user_version = %d' % schema.VERSION)

    def replace(self) -> str:
        """Move a file that proved damaged aside and begin an empty one.

        :returns: where the damaged file is now
        """
        with self.lock:
            with contextlib.suppress(sqlite3.Error):
                self.db.close()
            self.devices.clear()
            self.names.clear()
            self.order.forget()
            aside = move_aside(self.path)
            self._open()
            self.replaced += 1
            return aside

    def shrink(self, pages: int) -> bool:
        """Give up to so many pages that became free back to the file system;
        True if there are more. Does nothing while they are fewer than a fifth
        of the file: those are used again.

        A file of an older daemon keeps its size: it was made without what
        this needs.
        """
        with self.held():
            free, total = self.free_pages()
            if free * _FREE_PART < total:
                return False
            # One transaction; rows and their ids stay as they are. execute()
            # would take one step, which is one page.
            self.db.executescript('PRAGMA incremental_vacuum(%d)' % pages)
            left, total = self.free_pages()
        return left < free and left * _FREE_PART >= total

    def free_pages(self) -> Tuple[int, int]:
        """(pages that are free, all pages)."""
        return self._pragma('freelist_count'), self._pragma('page_count')

    def _pragma(self, name: str) -> int:
        return int(self.db.execute('PRAGMA ' + name).fetchone()[0])

    def close(self) -> None:
        """Close the file; the index must not be used after it."""
        with self.lock:
            self.db.close()

    @contextlib.contextmanager
    def batch(self) -> Iterator[None]:
        """Make the calls inside it one transaction, all or nothing."""
        with self.held():
            self._depth += 1
            try:
                if self._depth > 1:
                    yield
                    return
                self.db.execute('BEGIN IMMEDIATE')
                try:
                    yield
                    self.order.flush(self.db)
                except BaseException:
                    self.order.forget()
                    with contextlib.suppress(sqlite3.Error):
                        self.db.execute('ROLLBACK')
                    raise
                self.db.execute('COMMIT')
            finally:
                self._depth -= 1

    def get_state(self, name: str, default: str = '') -> str:
        """A fact about the index itself, such as its last clean stop."""
        row = self.one('SELECT value FROM state WHERE name = ?', (name,))
        return row[0] if row else default

    def set_state(self, name: str, value: str) -> None:
        """Remember a fact; durable on return."""
        with self.batch():
            self.db.execute('REPLACE INTO state VALUES (?, ?)',
                            (name, value))

    def key(self, version: VersionId) -> Tuple[Any, ...]:
        """Values of :data:`KEY`."""
        frag = -1 if version.frag_index is None else version.frag_index
        return (bytes.fromhex(version.object_hash),
                self.device_id(version.device), version.policy, frag)

    def device_id(self, name: str) -> int:
        """The id of a device; given to it now if it has none."""
        known = self.devices.get(name)
        if known is not None:
            return known
        with self.lock:
            if name not in self.devices:
                with self.batch():
                    made = self.db.execute(
                        'INSERT INTO device (name) VALUES (?)', (name,))
                self.devices[name] = int(made.lastrowid or 0)
                self.names[self.devices[name]] = name
            return self.devices[name]

    def one(self, sql: str,
            values: Tuple[Any, ...]) -> Optional[Tuple[Any, ...]]:
        """The first row of an answer; None if there is none."""
        with self.held():
            row: Optional[Tuple[Any, ...]] = self.db.execute(
                sql, values).fetchone()
            return row

    def held(self) -> ContextManager[None]:
        """Have the connection alone, and SQLite's errors as ours."""
        return self._held

    @contextlib.contextmanager
    def reader(self) -> Iterator[sqlite3.Connection]:
        """A connection of its own for long reads: it blocks no other call."""
        with TRANSLATED, contextlib.closing(sqlite3.connect(
                'file:%s?mode=ro' % self.path, uri=True)) as db:
            yield db


def move_aside(path: str) -> str:
    """Rename a file that is none any more; its name now."""
    aside = '%s.damaged-%d' % (path, time.time())
    for suffix in ('', '-wal', '-shm'):
        if os.path.exists(path + suffix):
            os.rename(path + suffix, aside + suffix)
    return aside


def _statements(text: str) -> List[str]:
    return [part for part in text.split(';') if part.strip()]


class _Translated:
    """The context in which errors of SQLite and of the disk become ours."""

    def __enter__(self) -> None:
        """See the class."""

    def __exit__(self, kind: Optional[Type[BaseException]],
                 error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if isinstance(error, (sqlite3.OperationalError, OSError)):
            raise IndexUnavailable('index: %s' % error) from error
        if isinstance(error, sqlite3.DatabaseError):
            raise IndexDamaged('index: %s' % error) from error


class _Held(_Translated):
    """The same, with the connection alone. A class, as each look at the index
    is inside one: a generator's context costs three times as much."""

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, kind: Optional[Type[BaseException]],
                 error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self._lock.release()
        super().__exit__(kind, error, trace)


#: For files of the index's kind.
TRANSLATED = _Translated()
