"""The index of the versions on this node's devices, in one SQLite file.

It is a cache of the data files' records: losing it costs a rebuild and never a
byte, and no read of an object needs it. Safe to use from any thread; every
call is one short transaction. Nothing of the population is held in memory, and
opening costs the same for any size.
"""

from __future__ import annotations

from dataclasses import replace
from typing import (
    Any, Collection, Dict, Iterable, List, Mapping, Optional, Tuple)

from swift_dss.core.version import VersionId
from swift_dss.strategy.eviction.warmth import Warmth, kept
from swift_dss.tier.index import placing
from swift_dss.tier.index.file import (
    ASKED_AT_ONCE, KEY, OBJECT, IndexDamaged, IndexFile, move_aside)
from swift_dss.tier.index.leaving import Leaving
from swift_dss.tier.index.pages import VERSION_COLUMNS, Pages, bare, whole
from swift_dss.tier.index.pin_rows import PinRows
from swift_dss.tier.index.places import SPANS_OF, Places
from swift_dss.tier.index.placing import Placing
from swift_dss.tier.index.rows import VersionRow
from swift_dss.tier.index.victims import Victims

_SPAN_COLUMNS = 'movable, total, ssd, hdd, remote, dirty, spare, warmth'
_ADD_VERSION = (
    'INSERT INTO version (hash, device_id, policy, frag, timestamp, put_at, '
    'partition, size, name, pinned, on_remote, wants_remote, pin_rule) '
    'VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) '
    'ON CONFLICT (hash, device_id, policy, frag, timestamp) DO NOTHING')
_ADD_SPAN = (
    'INSERT INTO span (version_id, class_id, device_id, %s, read_at, put_at, '
    '%s) VALUES (%s)' % (_SPAN_COLUMNS, placing.COLUMNS, ', '.join('?' * 17)))
#: When a version was read, and which of its classes (None: all of them).
Touch = Tuple[float, Optional[Collection[int]]]


class Index:
    """The rows of versions and their classes, and what reads them otherwise.

    :param path: see :class:`IndexFile`
    :param order: see :class:`IndexFile`
    :raises IndexDamaged: as :class:`IndexFile`
    :raises IndexUnavailable: as :class:`IndexFile`
    """

    def __init__(self, path: str, order: Optional[Placing] = None) -> None:
        self.file = IndexFile(path, order)
        self._places = Places(self.file)
        self.victims = Victims(self.file)
        self.pin_rows = PinRows(self.file, self._places)
        self.pages = Pages(self.file)
        self.leaving = Leaving(self.file)

    def put(self, row: VersionRow) -> None:
        """Add a version or bring its rows up to date.

        ``put_at`` and ``read_at`` of a version that is there are kept, and
        so is its name where ``row`` has none.
        """
        with self.file.batch():
            key = self.file.key(row.version)
            known_row = self.file.one(
                'SELECT id FROM version WHERE %s AND timestamp = ?' % KEY,
                key + (row.version.timestamp,))
            facts = (row.partition, row.size, row.name, int(row.pinned),
                     int(row.on_remote), int(row.wants_remote),
                     row.pin_rule)
            if known_row:
                version_id = known_row[0]
                self.file.db.execute(
                    "UPDATE version SET partition = ?, size = ?, name = "
                    "coalesce(nullif(?, ''), name), pinned = ?, "
                    "on_remote = ?, wants_remote = ?, pin_rule = ? "
                    "WHERE id = ?",
                    facts + (version_id,))
            else:
                version_id = self.file.db.execute(
                    _ADD_VERSION,
                    key + (row.version.timestamp, row.put_at) + facts
                ).lastrowid
            self._put_spans(version_id, row)

    def _put_spans(self, version_id: int, row: VersionRow) -> None:
        device_id = self.file.device_id(row.version.device)
        there = {stored[0]: stored[1:9] for stored in self.file.db.execute(
            'SELECT class_id, %s FROM span WHERE version_id = ?'
            % _SPAN_COLUMNS, (version_id,))}
        for span in row.spans:
            old = there.pop(span.class_id, None)
            if old is not None:
                span = replace(span, warmth=kept(
                    Warmth(old[7]), span.warmth, span.ssd_bytes))
            values = (int(span.movable), span.total_bytes, span.ssd_bytes,
                      span.hdd_bytes, span.remote_bytes, span.dirty_bytes,
                      span.spare_bytes, int(span.warmth))
            if old is None:
                self.file.db.execute(
                    _ADD_SPAN,
                    (version_id, span.class_id, device_id) + values
                    + (row.read_at or row.put_at, row.put_at)
                    + self._places.came(device_id, span))
            elif old != values:
                self._places.moved(version_id, device_id, span, old[2],
                                   Warmth(old[7]))
                self.file.db.execute(
                    'UPDATE span SET movable = ?, total = ?, ssd = ?, '
                    'hdd = ?, remote = ?, dirty = ?, spare = ?, warmth = ? '
                    'WHERE version_id = ? AND class_id = ?',
                    values + (version_id, span.class_id))
        for class_id in there:
            self.file.db.execute(
                'DELETE FROM span WHERE version_id = ? AND class_id = ?',
                (version_id, class_id))

    def add(self, rows: Iterable[VersionRow]) -> List[VersionRow]:
        """Add versions; returns those that were there, which stay unchanged.

        The daemon does not move a version that is not in the index, so facts
        read of a new version stay true; those of a known one may be old.
        """
        known: List[VersionRow] = []
        spans: List[Tuple[Any, ...]] = []
        with self.file.batch():
            for row in rows:
                key = self.file.key(row.version)
                made = self.file.db.execute(_ADD_VERSION, key + (
                    row.version.timestamp, row.put_at, row.partition,
                    row.size, row.name, row.pinned, row.on_remote,
                    row.wants_remote, row.pin_rule))
                if not made.rowcount:
                    known.append(row)
                    continue
                read_at = row.read_at or row.put_at
                spans += [(
                    made.lastrowid, span.class_id, key[1], span.movable,
                    span.total_bytes, span.ssd_bytes, span.hdd_bytes,
                    span.remote_bytes, span.dirty_bytes, span.spare_bytes,
                    int(span.warmth), read_at, row.put_at)
                    + self._places.came(key[1], span) for span in row.spans]
            self.file.db.executemany(_ADD_SPAN, spans)
        return known

    def arrived(self, versions: Iterable[VersionId]) -> List[VersionId]:
        """S3 has every byte of these; those of them that are not here."""
        with self.file.batch():
            by_key = {self.file.key(version) + (version.timestamp,): version
                      for version in versions}
            hashes = [key[0] for key in by_key]
            ids: List[Tuple[int]] = []
            for at in range(0, len(hashes), ASKED_AT_ONCE):
                page = hashes[at:at + ASKED_AT_ONCE]
                for version_id, *key in self.file.db.execute(
                        'SELECT id, hash, device_id, policy, frag, timestamp '
                        'FROM version WHERE hash IN (%s)'
                        % ','.join('?' * len(page)), page):
                    if by_key.pop(tuple(key), None) is not None:
                        ids.append((version_id,))
            self.file.db.executemany(
                'UPDATE version SET on_remote = 1 WHERE id = ?', ids)
            self.file.db.executemany(
                'UPDATE span SET remote = total, dirty = 0, spare = hdd '
                'WHERE version_id = ?', ids)
        return list(by_key.values())

    def touch(self, reads: Mapping[VersionId, Touch],
              sequential: Collection[VersionId] = (),
              again: Collection[VersionId] = ()) -> Dict[VersionId, List[int]]:
        """Note accesses; returns the classes of each known version.

        :param sequential: of them, those that go on where the last ended
        :param again: of them, those that were read more than once
        """
        class_ids_by_version: Dict[VersionId, List[int]] = {}
        touched: List[Tuple[Any, ...]] = []
        with self.file.batch():
            for version, (at, class_ids) in reads.items():
                spans = self.file.db.execute(
                    SPANS_OF, self.file.key(version) + (version.timestamp,)
                ).fetchall()
                if spans:
                    class_ids_by_version[version] = [span[1] for span in spans]
                for span in spans:
                    if span[2] < at and (
                            class_ids is None or span[1] in class_ids):
                        touched.append((at, *span[:2]))
                        if span[4] == Warmth.COLD:
                            self._places.read_cold(version, span, at,
                                                   version in again)
                        else:
                            self._places.read(version, span,
                                              version in sequential)
            self.file.db.executemany(
                'UPDATE span SET read_at = ? WHERE version_id = ? AND '
                'class_id = ?', touched)
        return class_ids_by_version

    def renew(self, versions: Iterable[VersionId], at: float) -> None:
        """Place versions as if they had just come: they leave last."""
        with self.file.batch():
            for version in versions:
                device_id = self.file.device_id(version.device)
                for span in self.file.db.execute(
                        SPANS_OF, self.file.key(version)
                        + (version.timestamp,)).fetchall():
                    stored = self.file.order.came(
                        self.file.db, device_id, span[1], span[3]) \
                        if span[3] and span[4] != Warmth.COLD else span[6:]
                    self.file.db.execute(
                        'UPDATE span SET read_at = max(read_at, ?), %s '
                        'WHERE version_id = ? AND class_id = ?'
                        % placing.SET_PLACE, (at, *stored, *span[:2]))

    def remove(self, version: VersionId) -> None:
        """Forget a version."""
        self.remove_all([version])

    def remove_all(self, versions: Iterable[VersionId]) -> None:
        """Forget versions; those that are not there do not matter."""
        keys = [self.file.key(version) + (version.timestamp,)
                for version in versions]
        with self.file.batch():
            self.file.db.executemany(
                'DELETE FROM span WHERE version_id = (SELECT id FROM version '
                'WHERE %s AND timestamp = ?)' % KEY, keys)
            self.file.db.executemany(
                'DELETE FROM version WHERE %s AND timestamp = ?' % KEY,
                keys)

    def obsolete(self, versions: Iterable[VersionId]) -> List[VersionRow]:
        """Versions of the same objects that these make obsolete, each
        once, in one look and without their spans.

        A tombstone (no fragment index) does so for every fragment.
        """
        rows_by_id: Dict[int, Tuple[Any, ...]] = {}
        with self.file.held():
            for version in versions:
                key = self.file.key(version)
                where = KEY
                if version.frag_index is None:
                    where, key = OBJECT, key[:3]
                for row in self.file.db.execute(
                        'SELECT v.id, %s FROM version v WHERE %s AND '
                        'timestamp < ?' % (VERSION_COLUMNS, where),
                        key + (version.timestamp,)):
                    rows_by_id[row[0]] = row
            return [bare(row, self.file.names) for row in rows_by_id.values()]

    def get(self, version: VersionId) -> Optional[VersionRow]:
        """The version's rows, or None."""
        rows = self._versions(
            'WHERE %s AND timestamp = ?' % KEY,
            self.file.key(version) + (version.timestamp,))
        return rows[0] if rows else None

    def of_object(self, object_hash: str) -> List[VersionRow]:
        """Every version of an object on every device of the node."""
        return self._versions('WHERE hash = ?',
                              (bytes.fromhex(object_hash),))

    def occupancy(self, device: str) -> Dict[int, Dict[str, int]]:
        """Sums of a device by class id; keys are the schema's columns."""
        return self.victims.occupancy(device)

    def _versions(self, where: str,
                  values: Tuple[Any, ...]) -> List[VersionRow]:
        with self.file.held():
            rows = self.file.db.execute('SELECT v.id, %s FROM version v %s' % (
                VERSION_COLUMNS, where), values).fetchall()
            return [whole(row, self.file.names, self.file.db) for row in rows]


def open_or_replace(path: str, order: Optional[Placing] = None
                    ) -> Tuple[Index, str]:
    """The index at ``path``; a damaged one is moved aside first.

    :param order: see :class:`Index`
    :returns: the index and where the damaged file went ('' if it was fine)
    """
    try:
        return Index(path, order), ''
    except IndexDamaged:
        aside = move_aside(path)
        return Index(path, order), aside
