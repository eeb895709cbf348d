"""Places of spans in the order of their class, as bytes come, are read, leave.

Call inside a transaction of the file.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Tuple

from swift_dss.core.version import VersionId
from swift_dss.strategy.eviction.warmth import Warmth, is_hot
from swift_dss.tier.index import placing
from swift_dss.tier.index.file import IndexFile
from swift_dss.tier.index.rows import SpanRow

#: Of a version, by its key and timestamp.
SPANS_OF = (
    'SELECT v.id, s.class_id, s.read_at, s.ssd, s.warmth, s.put_at, %s '
    'FROM version v JOIN span s ON s.version_id = v.id WHERE v.hash = ? '
    'AND v.device_id = ? AND v.policy = ? AND v.frag = ? AND '
    'v.timestamp = ? ORDER BY s.class_id' % placing.COLUMNS)


class Places:
    """Those of one file."""

    def __init__(self, file: IndexFile) -> None:
        self._file = file

    def came(self, device_id: int, span: SpanRow) -> placing.Stored:
        """The place of a row that is new. Cold ones have none: they leave
        before all that have."""
        if not span.ssd_bytes or span.warmth is Warmth.COLD:
            return placing.NOWHERE
        return self._file.order.came(self._file.db, device_id, span.class_id,
                                     span.ssd_bytes)

    def moved(self, version_id: int, device_id: int, span: SpanRow,
              ssd_before: int, warmth_before: Warmth) -> None:
        """Bytes of a row may have come to the SSD, or left it."""
        class_id = span.class_id
        if span.warmth is Warmth.COLD or warmth_before is Warmth.COLD:
            # As if cold bytes were not there.
            if span.warmth is Warmth.COLD:
                span = replace(span, ssd_bytes=0)
            if warmth_before is Warmth.COLD:
                ssd_before = 0
        if not self._file.order.names_order(class_id) or \
                not ssd_before and not span.ssd_bytes:
            return
        stored = self._file.db.execute(
            'SELECT %s FROM span WHERE version_id = ? AND class_id = ?'
            % placing.COLUMNS, (version_id, class_id)).fetchone()
        if ssd_before and span.ssd_bytes:
            stored = self._file.order.ensure(
                self._file.db, device_id, class_id, span.ssd_bytes, stored)
        elif ssd_before:
            stored = self._file.order.left(
                self._file.db, device_id, class_id, ssd_before, stored)
        else:
            stored = self._file.order.came(
                self._file.db, device_id, class_id, span.ssd_bytes, stored)
        self._file.db.execute(
            'UPDATE span SET %s WHERE version_id = ? AND class_id = ?'
            % placing.SET_PLACE, stored + (version_id, class_id))

    def read_cold(self, version: VersionId, span: Tuple[Any, ...],
                  at: float, again: bool) -> None:
        """A cold row of ``SPANS_OF`` was read: it may be a hot one now."""
        version_id, class_id, read_at, size, _, put_at = span[:6]
        if not again and not is_hot(put_at, read_at, at):
            return
        stored = self._file.order.came(
            self._file.db, self._file.device_id(version.device), class_id,
            size) \
            if size else span[6:]
        self._file.db.execute(
            'UPDATE span SET warmth = ?, %s WHERE version_id = ? AND '
            'class_id = ?' % placing.SET_PLACE,
            (int(Warmth.HOT), *stored, version_id, class_id))

    def read(self, version: VersionId, span: Tuple[Any, ...],
             sequential: bool) -> None:
        """Place a row of ``SPANS_OF`` after a read."""
        version_id, class_id, _, size = span[:4]
        if not self._file.order.names_order(class_id):
            return
        stored = self._file.order.read(
            self._file.db, self._file.device_id(version.device), class_id,
            size, span[6:], sequential)
        if stored != span[6:]:
            self._file.db.execute(
                'UPDATE span SET %s WHERE version_id = ? AND class_id = ?'
                % placing.SET_PLACE, stored + (version_id, class_id))

    def ensure(self, version_id: int) -> None:
        """Rows that may leave again stand in a queue."""
        for row in self._file.db.execute(
                'SELECT device_id, class_id, ssd - dirty, %s FROM span '
                'WHERE version_id = ? AND warmth != 1' % placing.COLUMNS,
                (version_id,)).fetchall():
            if self._file.order.names_order(row[1]):
                self._file.db.execute(
                    'UPDATE span SET %s WHERE version_id = ? AND '
                    'class_id = ?' % placing.SET_PLACE,
                    self._file.order.ensure(
                        self._file.db, row[0], row[1], row[2], row[3:])
                    + (version_id, row[1]))
