"""Versions in the order of their rows, page by page.

Each page is read by a connection of its own: a long listing blocks nobody.

The table ``named`` has, for each :data:`NAMED_ROWS` rows, a Bloom filter of
their accounts and containers, so that a small container is found without a
look at all rows. Rows without one are looked at.
"""

from __future__ import annotations

import sqlite3
import zlib
from typing import (
    Any, Iterable, Iterator, List, Mapping, Optional, Set, Tuple)

from swift_dss.core.version import VersionId
from swift_dss.strategy.eviction.warmth import Warmth
from swift_dss.tier.index.file import IndexFile
from swift_dss.tier.index.filters import Filter
from swift_dss.tier.index.schema import NAMED_ROWS
from swift_dss.tier.index.rows import SpanRow, VersionRow

#: Of a row that :func:`whole` and :func:`bare` take; its id comes before.
VERSION_COLUMNS = (
    'v.hash, v.device_id, v.policy, v.frag, v.timestamp, v.partition, '
    'v.size, v.name, v.put_at, v.pinned, v.on_remote, v.wants_remote, '
    'v.pin_rule')
#: Rows that a look for a page of a listing reads at most: tens of
#: milliseconds.
_SCANNED_ROWS = 50000
#: The first look: a millisecond or two.
_FIRST_ROWS = 1000
#: Of a filter: it says yes wrongly for one name in fifteen where each of two
#: rows has a container of its own.
_BITS = 32768


class Pages:
    """Those of one file."""

    def __init__(self, file: IndexFile) -> None:
        self._file = file

    def last_id(self) -> int:
        """The highest row id. Rows that come from now on have higher ones,
        unless the last ones go before."""
        row = self._file.one('SELECT coalesce(max(id), 0) FROM version', ())
        return int(row[0]) if row else 0

    def listing(self, wanted: Filter, limit: int, after_id: int = 0,
                until_id: int = 1 << 62) -> List[Tuple[int, VersionRow]]:
        """(row id, version) pairs after ``after_id``, up to ``until_id``."""
        where = wanted.sql()
        sql = ('SELECT v.id, {0} FROM {1.tables} WHERE {1.row_id} > ? AND '
               '{1.row_id} <= ? {1.conditions} ORDER BY {1.row_id} LIMIT ?'
               .format(VERSION_COLUMNS, where))
        with self._file.reader() as db:
            rows = db.execute(sql, (after_id, until_id, *where.values, limit)
                              ).fetchall()
            return [(row[0], whole(row, self._file.names, db)) for row in rows]

    def count(self, wanted: Filter) -> Tuple[int, int]:
        """(versions, the highest row id of them)."""
        where = wanted.sql()
        with self._file.reader() as db:
            row = db.execute(
                'SELECT count(*), coalesce(max({0.row_id}), 0) FROM '
                '{0.tables} WHERE {0.row_id} > 0 {0.conditions}'.format(
                    where), where.values).fetchone()
            return int(row[0]), int(row[1])

    def all(self, wanted: Filter, limit: int,
            last_id: int = 1 << 62) -> Iterator[List[VersionRow]]:
        """All versions, ``limit`` at a time; some of those that come under
        way are among them.

        :param last_id: of :meth:`count`; later ones are left out
        """
        after_id = 0
        while after_id < last_id:
            page = self.listing(wanted, limit, after_id)
            if not page:
                return
            after_id = page[-1][0]
            yield [row for row_id, row in page if row_id <= last_id]

    def soon(self, wanted: Filter, limit: int) -> Iterator[List[VersionRow]]:
        """The same for someone who waits: a page ends when it is full, or
        when the rows of one look gave some. The first look is at
        :data:`_FIRST_ROWS`, each next one at twice as many, up to
        :data:`_SCANNED_ROWS`.
        """
        without = self._without(wanted.container)
        after_id, rows = 0, min(_FIRST_ROWS, _SCANNED_ROWS)
        while after_id < self.last_id():
            first_id = self._next_of_class(wanted.class_id, after_id)
            if first_id is None:
                return
            first_id, until_id = _open_ids(first_id, rows, without)
            rows = min(2 * rows, _SCANNED_ROWS)
            page = self.listing(wanted, limit, first_id - 1, until_id)
            after_id = page[-1][0] if len(page) == limit else until_id
            if page:
                yield [row for _, row in page]

    def _next_of_class(self, class_id: Optional[int],
                       after_id: int) -> Optional[int]:
        """The next row id that may have a class; None if there is none."""
        if class_id is None:
            return after_id + 1
        step = self._file.one(
            'SELECT version_id FROM span WHERE class_id = ? AND '
            'version_id > ? ORDER BY version_id LIMIT 1',
            (class_id, after_id))
        return int(step[0]) if step else None

    def _without(self, container: str) -> Set[int]:
        """Chunks that have nothing of a container (or of an account)."""
        if not container:
            return set()
        name = '/' + '/'.join(container.strip('/').split('/')[:2])
        with self._file.reader() as db:
            return {chunk for chunk, bits in db.execute(
                'SELECT chunk, bits FROM named')
                if not _may_have(bits, name)}

    def note_names(self) -> bool:
        """Make one filter that is lacking; False if none is. Holds the lock
        for some ten milliseconds.

        Only of rows that others follow: the last ones change too often.
        """
        with self._file.batch():
            db = self._file.db
            there = {row[0] for row in db.execute('SELECT chunk FROM named')}
            chunk = next((chunk for chunk in range(
                self.last_id() // NAMED_ROWS) if chunk not in there), None)
            if chunk is None:
                return False
            names = {name for row in db.execute(
                'SELECT name FROM version WHERE id > ? AND id <= ?',
                (chunk * NAMED_ROWS, (chunk + 1) * NAMED_ROWS))
                for name in _holders(row[0])}
            db.execute('INSERT INTO named VALUES (?, ?)',
                       (chunk, _filter_of(names)))
        return True


def _chunk_of(row_id: int) -> int:
    return (row_id - 1) // NAMED_ROWS


def _open_ids(first_id: int, rows: int, without: Set[int]
              ) -> Tuple[int, int]:
    """The first and last of so many row ids, from one on, that are in none
    of some chunks, and have none of those between them."""
    chunk = _chunk_of(first_id)
    while chunk in without:
        chunk += 1
    first_id = max(first_id, chunk * NAMED_ROWS + 1)
    while chunk not in without and chunk * NAMED_ROWS < first_id + rows:
        chunk += 1
    return first_id, min(first_id - 1 + rows, chunk * NAMED_ROWS)


def _holders(name: str) -> List[str]:
    """Account and container of an object, as far as its name has them."""
    parts = name.split('/', 3)
    return ['/'.join(parts[:end]) for end in range(2, len(parts))]


def _places_of(name: str) -> Tuple[int, int]:
    digest = zlib.crc32(name.encode('utf-8', 'surrogateescape'))
    return digest % _BITS, digest // _BITS % _BITS


def _filter_of(names: Iterable[str]) -> bytes:
    bits = bytearray(_BITS // 8)
    for name in names:
        for place in _places_of(name):
            bits[place >> 3] |= 1 << (place & 7)
    return bytes(bits)


def _may_have(bits: bytes, name: str) -> bool:
    return all(bits[place >> 3] >> (place & 7) & 1
               for place in _places_of(name))


def whole(row: Tuple[Any, ...], names: Mapping[int, str],
          db: sqlite3.Connection) -> VersionRow:
    """A version with its spans."""
    spans = db.execute(
        'SELECT class_id, total, ssd, hdd, remote, dirty, spare, '
        'movable, warmth, read_at FROM span WHERE version_id = ? '
        'ORDER BY class_id', (row[0],)).fetchall()
    version = bare(row, names)
    version.read_at = max([span[9] for span in spans], default=0.0)
    version.spans = [_span_row(span) for span in spans]
    return version


def bare(row: Tuple[Any, ...], names: Mapping[int, str]) -> VersionRow:
    """A version without its spans."""
    return VersionRow(
        VersionId(names[row[2]], row[3], row[1].hex(), row[5],
                  None if row[4] < 0 else row[4]),
        row[6], row[7], row[8], row[9], 0.0, bool(row[10]),
        bool(row[11]), bool(row[12]), pin_rule=row[13])


def _span_row(row: Tuple[Any, ...]) -> SpanRow:
    class_id, total, ssd, hdd, remote, dirty, spare, movable, warmth, _ = \
        row
    return SpanRow(class_id, total, ssd, hdd, remote, dirty, spare,
                   bool(movable), Warmth(warmth))
