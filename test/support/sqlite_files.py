"""SQLite between a node's stores and their files: watched, or failing."""

from __future__ import annotations

import os
import sqlite3
from typing import Any, Dict, List, Optional, Tuple

import pytest

_connect = sqlite3.connect


class SqliteFiles:
    """Takes the place of ``sqlite3.connect`` until the test ends.

    Make it before the stores that it is to see. A file has its name here,
    without its folder.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        #: Statements of each file as SQLite ran them.
        self.said: Dict[str, List[str]] = {}
        #: The newest connection of a store to each file.
        self.opened: Dict[str, sqlite3.Connection] = {}
        #: How many commits :meth:`fail_commit` had fail.
        self.failed = 0
        self._failing = ''
        self._left = 0
        self._error: Optional[BaseException] = None
        patch.setattr(sqlite3, 'connect', self._open)

    def fail_commit(self, name: str, number: int,
                    error: BaseException) -> None:
        """Raise at commit ``number`` to a file from now on (1 is the next),
        and at all behind it; nothing of these transactions is kept."""
        self._failing, self._left, self._error = name, number, error

    def end_failing(self) -> None:
        """Commits go through again."""
        self._failing = ''

    def transactions(self, name: str) -> int:
        """How many were begun in a file."""
        return self.said.get(name, []).count('BEGIN IMMEDIATE')

    def commit(self, name: str) -> None:
        """A store is about to commit to a file."""
        if name != self._failing:
            return
        self._left -= 1
        if self._left <= 0 and self._error is not None:
            self.failed += 1
            raise self._error

    def _open(self, path: str, **options: Any) -> sqlite3.Connection:
        name, files = os.path.basename(path), self

        class Watched(sqlite3.Connection):
            def execute(self, text: str, *values: Any) -> sqlite3.Cursor:
                if text == 'COMMIT':
                    files.commit(name)
                return super().execute(text, *values)
        made = _connect(path, factory=Watched, **options)
        made.set_trace_callback(self.said.setdefault(name, []).append)
        self.opened[name] = made
        return made


def rows_of(path: str, statement: str) -> List[Tuple[Any, ...]]:
    """Rows of a database as its file has them, while a store uses it."""
    reader = _connect(path)
    try:
        return reader.execute(statement).fetchall()
    finally:
        reader.close()
