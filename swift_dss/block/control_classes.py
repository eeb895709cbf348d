"""The live class table: what ``dss-classes.conf`` says, in every device.

:class:`ClassFeed` is asked again and again. A file that does not parse
changes nothing anywhere; each device takes the table as a whole or keeps
its old one, and one that refused is tried again.
"""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from typing import Callable, Dict, Iterable, List, Mapping, Optional, Tuple

from swift_dss.block import control
from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import BadConfig, DssError
from swift_dss.strategy.eviction.chunks import ChunkRow, Flag, Inner
from swift_dss.wire.settings import classtable

Send = Callable[[str, Mapping[int, ChunkRow]], bool]


def read_rows(path: str) -> Dict[int, ChunkRow]:
    """A class table's file as the kernel's rows.

    :raises BadConfig: it does not parse, or the kernel refuses a row
    """
    return checked_rows(read_table(path), path)


def read_table(path: str) -> ClassTable:
    """:raises BadConfig: the file does not parse"""
    try:
        with open(path, encoding='utf-8') as source:
            return classtable.parse(source.read(), path)
    except (OSError, UnicodeDecodeError) as err:
        raise BadConfig('%s: %s' % (path, err)) from err


def rows_of(table: ClassTable) -> Dict[int, ChunkRow]:
    """A class table as the kernel's, with the classes of cold copies."""
    rows = {class_id: ChunkRow.of(spec)
            for class_id, spec in table.specs.items()}
    rows.update((passing, replace(
        rows[class_id], flags=Flag.PASSING, floor_parts=0, inner=Inner.LRU))
        for class_id, passing in table.passing.items())
    return rows


def checked_rows(table: ClassTable, path: str) -> Dict[int, ChunkRow]:
    """Rows of a class table, all of which the kernel would take.

    :raises BadConfig: names the class and the reason
    """
    rows = rows_of(table)
    for class_id, row in rows.items():
        if row.fault():
            raise BadConfig('%s: [class:%d]: %s'
                            % (path, class_id, row.fault()))
    return rows


class ClassFeed:
    """Keeps devices at the class table of one file.

    :param send: gives a device a table; tells whether it had another
    """

    def __init__(self, path: str, logger: logging.Logger,
                 send: Send = control.send_classes) -> None:
        self._path = path
        self._logger = logger
        self._send = send
        self._stamp: Optional[Tuple[int, int, int]] = None
        self._rows: Optional[Dict[int, ChunkRow]] = None
        self._at: Dict[str, Dict[int, ChunkRow]] = {}
        #: The last sound table of the file.
        self.table: Optional[ClassTable] = None
        #: The last error by device ('' is the file); logged once.
        self.errors: Dict[str, str] = {}

    def look(self, devices: Iterable[str]) -> List[str]:
        """Read the file if it changed; send missing rows.

        :returns: devices that were given another table
        """
        self._read()
        return [] if self._rows is None else self._feed(devices, self._rows)

    def forget(self) -> None:
        """Ask every device again for its table."""
        self._at.clear()

    def _feed(self, devices: Iterable[str],
              rows: Dict[int, ChunkRow]) -> List[str]:
        changed = []
        names = list(devices)
        for name in names:
            if self._at.get(name) == rows:
                continue
            try:
                if self._send(name, rows):
                    changed.append(name)
                    self._logger.info('%s: %d classes loaded', name,
                                      len(rows))
            except DssError as err:
                self._fail(name, 'keeps its class table: %s' % err)
                continue
            self._at[name] = rows
            self.errors.pop(name, None)
        for name in set(self._at) - set(names):
            del self._at[name]
        return changed

    def _read(self) -> None:
        try:
            status = os.stat(self._path)
            stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
            if stamp == self._stamp:
                return
            table = read_table(self._path)
            rows = checked_rows(table, self._path)
        except (OSError, DssError) as err:
            self._fail('', 'the class table stays as it was: %s' % err)
            return
        self._stamp, self._rows, self.table = stamp, rows, table
        self.errors.pop('', None)

    def _fail(self, name: str, text: str) -> None:
        if self.errors.get(name) != text:
            self._logger.error('%s%s', name and name + ' ', text)
        self.errors[name] = text
