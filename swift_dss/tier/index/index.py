"""The index of the versions on this node's devices, in one SQLite file.

It is a cache of the data files' records: losing it costs a rebuild and never a
byte, and no read of an object needs it. Safe to use from any thread; every
call is one short transaction. Nothing of the population is held in memory, and
opening costs the same for any size.
"""

# long: every statement on the tables, in the one class that may lock them.
from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from typing import (
    AbstractSet, Any, Collection, Dict, Iterable, Iterator, List, Mapping,
    Optional, Sequence, Set, Tuple)

from swift_dss.core.errors import DssError
from swift_dss.core.version import VersionId
from swift_dss.io.private import private_file
from swift_dss.tier.index import placing, schema
from swift_dss.tier.index.filters import Filter
from swift_dss.tier.index.placing import Placing
from swift_dss.tier.index.rows import Candidate, Departing, SpanRow, VersionRow

#: Rows changed in one transaction when a whole class changes: keeps the
#: time that other threads wait under some tens of milliseconds.
_CHUNK_ROWS = 5000
#: Values of one statement; SQLite's own limit is 999 in old versions.
ASKED_AT_ONCE = 500
_OBJECT = 'hash = ? AND device_id = ? AND policy = ?'
_KEY = _OBJECT + ' AND frag = ?'
_SPAN_COLUMNS = 'movable, total, ssd, hdd, remote, dirty, spare'
_ADD_VERSION = (
    'INSERT INTO version (hash, device_id, policy, frag, timestamp, put_at, '
    'partition, size, name, pinned, on_remote, wants_remote, pin_rule) '
    'VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) '
    'ON CONFLICT (hash, device_id, policy, frag, timestamp) DO NOTHING')
_ADD_SPAN = (
    'INSERT INTO span (version_id, class_id, device_id, %s, read_at, put_at, '
    '%s) VALUES (%s)' % (_SPAN_COLUMNS, placing.COLUMNS, ', '.join('?' * 16)))
_SPANS_OF = (
    'SELECT v.id, s.class_id, s.read_at, s.ssd, %s FROM version v JOIN span '
    's ON s.version_id = v.id WHERE v.hash = ? AND v.device_id = ? AND '
    'v.policy = ? AND v.frag = ? AND v.timestamp = ? ORDER BY s.class_id'
    % placing.COLUMNS)
#: Steps from one partition to the next in their index: SQLite's DISTINCT
#: would read every entry.
_PARTITIONS = (
    'WITH RECURSIVE step(claimed) AS (SELECT min(partition) FROM version '
    'WHERE device_id = ?1 AND policy = ?2 UNION ALL SELECT (SELECT '
    'min(partition) FROM version WHERE device_id = ?1 AND policy = ?2 AND '
    'partition > step.claimed) FROM step WHERE claimed IS NOT NULL) '
    'SELECT claimed FROM step WHERE claimed IS NOT NULL')
#: When a version was read, and which of its classes (None: all of them).
Touch = Tuple[float, Optional[Collection[int]]]


class IndexUnavailable(DssError):
    """The index cannot be written now: its disk is full or read-only."""

    http_status = 507
    exit_code = 75
    counter = 'index_unavailable'


class IndexDamaged(DssError):
    """The index file is not one any more: move it aside and rebuild."""

    exit_code = 65
    counter = 'index_damaged'


class _Undo(Exception):
    """Take a transaction back that was only a trial."""


class Index:
    """One open index.

    :param path: the file; made if it is not there
    :param order: what orders victims inside classes; LRU if None
    :raises IndexDamaged: there is a file and it is not a sound index
    :raises IndexUnavailable: it cannot be made or written
    """

    def __init__(self, path: str, order: Optional[Placing] = None) -> None:
        self.path = path
        self._placing = order or Placing()
        self._lock = threading.RLock()
        self._depth = 0
        self._devices: Dict[str, int] = {}
        self._names: Dict[int, str] = {}
        #: How often a damaged file was replaced under way.
        self.replaced = 0
        self._open()

    def _open(self) -> None:
        with _translated():
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            private_file(self.path)
            self._db = sqlite3.connect(self.path, isolation_level=None,
                                       check_same_thread=False)
            try:
                self._prepare()
            except BaseException:
                self._db.close()
                raise

    def _prepare(self) -> None:
        for pragma in schema.PRAGMAS:
            self._db.execute(pragma)
        found, = self._db.execute('PRAGMA user_version').fetchone()
        if not found:
            with self.batch():
                for statement in _statements(schema.TABLES):
                    self._db.execute(statement)
                for statement in schema.TRIGGERS.strip().split('\nEND;'):
                    if statement.strip():
                        self._db.execute(statement + '\nEND;')
                self._db.execute('PRAGMA user_version = %d' % schema.VERSION)
        elif found != schema.VERSION:
            raise IndexDamaged('%s has schema %d instead of %d' % (
                self.path, found, schema.VERSION))
        for statement in schema.LATER:
            self._db.execute(statement)
        for device_id, name in self._db.execute(
                'SELECT id, name FROM device'):
            self._devices[name] = device_id
            self._names[device_id] = name

    def replace(self) -> str:
        """Move a file that proved damaged aside and begin an empty one.

        :returns: where the damaged file is now
        """
        with self._lock:
            with contextlib.suppress(sqlite3.Error):
                self._db.close()
            self._devices.clear()
            self._names.clear()
            self._placing.forget()
            aside = _move_aside(self.path)
            self._open()
            self.replaced += 1
            return aside

    def close(self) -> None:
        """Close the file; the index must not be used after it."""
        with self._lock:
            self._db.close()

    @contextlib.contextmanager
    def batch(self) -> Iterator[None]:
        """Make the calls inside it one transaction, all or nothing."""
        with self._lock, _translated():
            self._depth += 1
            try:
                if self._depth > 1:
                    yield
                    return
                self._db.execute('BEGIN IMMEDIATE')
                try:
                    yield
                    self._placing.flush(self._db)
                except BaseException:
                    self._placing.forget()
                    with contextlib.suppress(sqlite3.Error):
                        self._db.execute('ROLLBACK')
                    raise
                self._db.execute('COMMIT')
            finally:
                self._depth -= 1

    def get_state(self, name: str, default: str = '') -> str:
        """A fact about the index itself, such as its last clean stop."""
        found = self._one('SELECT value FROM state WHERE name = ?', (name,))
        return found[0] if found else default

    def set_state(self, name: str, value: str) -> None:
        """Remember a fact; durable on return."""
        with self.batch():
            self._db.execute('REPLACE INTO state VALUES (?, ?)',
                             (name, value))

    def put(self, row: VersionRow) -> None:
        """Add a version or bring its rows up to date.

        ``put_at`` and ``read_at`` of a version that is there are kept, and
        so is its name where ``row`` has none.
        """
        with self.batch():
            key = self._key(row.version)
            found = self._one(
                'SELECT id FROM version WHERE %s AND timestamp = ?' % _KEY,
                key + (row.version.timestamp,))
            facts = (row.partition, row.size, row.name, int(row.pinned),
                     int(row.on_remote), int(row.wants_remote),
                     row.pin_rule)
            if found:
                version_id = found[0]
                self._db.execute(
                    "UPDATE version SET partition = ?, size = ?, name = "
                    "coalesce(nullif(?, ''), name), pinned = ?, "
                    "on_remote = ?, wants_remote = ?, pin_rule = ? "
                    "WHERE id = ?",
                    facts + (version_id,))
            else:
                version_id = self._db.execute(
                    _ADD_VERSION,
                    key + (row.version.timestamp, row.put_at) + facts
                ).lastrowid
            self._put_spans(version_id, row)

    def _put_spans(self, version_id: int, row: VersionRow) -> None:
        device_id = self._device_id(row.version.device)
        there = {found[0]: found[1:8] for found in self._db.execute(
            'SELECT class_id, %s FROM span WHERE version_id = ?'
            % _SPAN_COLUMNS, (version_id,))}
        for span in row.spans:
            values = (int(span.movable), span.total_bytes, span.ssd_bytes,
                      span.hdd_bytes, span.remote_bytes, span.dirty_bytes,
                      span.spare_bytes)
            old = there.pop(span.class_id, None)
            if old is None:
                self._db.execute(
                    _ADD_SPAN,
                    (version_id, span.class_id, device_id) + values
                    + (row.read_at or row.put_at, row.put_at)
                    + self._came(device_id, span))
            elif old != values:
                self._place(version_id, device_id, span, old[2])
                self._db.execute(
                    'UPDATE span SET movable = ?, total = ?, ssd = ?, '
                    'hdd = ?, remote = ?, dirty = ?, spare = ? '
                    'WHERE version_id = ? AND class_id = ?',
                    values + (version_id, span.class_id))
        for class_id in there:
            self._db.execute(
                'DELETE FROM span WHERE version_id = ? AND class_id = ?',
                (version_id, class_id))

    def _came(self, device_id: int, span: SpanRow) -> placing.Stored:
        """The place of a row that is new."""
        if not span.ssd_bytes:
            return placing.NOWHERE
        return self._placing.came(self._db, device_id, span.class_id,
                                  span.ssd_bytes)

    def _place(self, version_id: int, device_id: int, span: SpanRow,
               ssd_before: int) -> None:
        """Bytes of a row may have come to the SSD, or left it."""
        class_id = span.class_id
        if not self._placing.names_order(class_id) or \
                not ssd_before and not span.ssd_bytes:
            return
        stored = self._db.execute(
            'SELECT %s FROM span WHERE version_id = ? AND class_id = ?'
            % placing.COLUMNS, (version_id, class_id)).fetchone()
        if ssd_before and span.ssd_bytes:
            stored = self._placing.ensure(
                self._db, device_id, class_id, span.ssd_bytes, stored)
        elif ssd_before:
            stored = self._placing.left(
                self._db, device_id, class_id, ssd_before, stored)
        else:
            stored = self._placing.came(
                self._db, device_id, class_id, span.ssd_bytes, stored)
        self._db.execute(
            'UPDATE span SET %s WHERE version_id = ? AND class_id = ?'
            % placing.SET_PLACE, stored + (version_id, class_id))

    def arrived(self, versions: Iterable[VersionId]) -> List[VersionId]:
        """S3 has every byte of these; those of them that are not here."""
        with self.batch():
            by_key = {self._key(version) + (version.timestamp,): version
                      for version in versions}
            hashes = [key[0] for key in by_key]
            ids: List[Tuple[int]] = []
            for at in range(0, len(hashes), ASKED_AT_ONCE):
                some = hashes[at:at + ASKED_AT_ONCE]
                for version_id, *key in self._db.execute(
                        'SELECT id, hash, device_id, policy, frag, timestamp '
                        'FROM version WHERE hash IN (%s)'
                        % ','.join('?' * len(some)), some):
                    if by_key.pop(tuple(key), None) is not None:
                        ids.append((version_id,))
            self._db.executemany(
                'UPDATE version SET on_remote = 1 WHERE id = ?', ids)
            self._db.executemany(
                'UPDATE span SET remote = total, dirty = 0, spare = hdd '
                'WHERE version_id = ?', ids)
        return list(by_key.values())

    def add(self, rows: Iterable[VersionRow]) -> List[VersionRow]:
        """Add versions; returns those that were there, which stay unchanged.

        The daemon does not move a version that is not in the index, so facts
        read of a new version stay true; those of a known one may be old.
        """
        known: List[VersionRow] = []
        spans: List[Tuple[Any, ...]] = []
        with self.batch():
            for row in rows:
                key = self._key(row.version)
                made = self._db.execute(_ADD_VERSION, key + (
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
                    read_at, row.put_at) + self._came(key[1], span)
                    for span in row.spans]
            self._db.executemany(_ADD_SPAN, spans)
        return known

    def touch(self, reads: Mapping[VersionId, Touch],
              sequential: Collection[VersionId] = ()
              ) -> Dict[VersionId, List[int]]:
        """Note accesses; returns the classes of each known version.

        :param sequential: of them, those that go on where the last ended
        """
        found: Dict[VersionId, List[int]] = {}
        touched: List[Tuple[Any, ...]] = []
        with self.batch():
            for version, (at, class_ids) in reads.items():
                spans = self._db.execute(
                    _SPANS_OF, self._key(version) + (version.timestamp,)
                ).fetchall()
                if spans:
                    found[version] = [span[1] for span in spans]
                for span in spans:
                    if span[2] < at and (
                            class_ids is None or span[1] in class_ids):
                        touched.append((at, *span[:2]))
                        self._read(version, span, version in sequential)
            self._db.executemany(
                'UPDATE span SET read_at = ? WHERE version_id = ? AND '
                'class_id = ?', touched)
        return found

    def _read(self, version: VersionId, span: Tuple[Any, ...],
              sequential: bool) -> None:
        """Place a row of ``_SPANS_OF`` after a read."""
        version_id, class_id, _, size = span[:4]
        if not self._placing.names_order(class_id):
            return
        stored = self._placing.read(
            self._db, self._device_id(version.device), class_id, size,
            span[4:], sequential)
        if stored != span[4:]:
            self._db.execute(
                'UPDATE span SET %s WHERE version_id = ? AND class_id = ?'
                % placing.SET_PLACE, stored + (version_id, class_id))

    def renew(self, versions: Iterable[VersionId], at: float) -> None:
        """Place versions as if they had just come: they leave last."""
        with self.batch():
            for version in versions:
                device_id = self._device_id(version.device)
                for span in self._db.execute(
                        _SPANS_OF, self._key(version)
                        + (version.timestamp,)).fetchall():
                    stored = self._placing.came(
                        self._db, device_id, span[1], span[3]) \
                        if span[3] else span[4:]
                    self._db.execute(
                        'UPDATE span SET read_at = max(read_at, ?), %s '
                        'WHERE version_id = ? AND class_id = ?'
                        % placing.SET_PLACE, (at, *stored, *span[:2]))

    def remove(self, version: VersionId) -> None:
        """Forget a version."""
        self.remove_all([version])

    def remove_all(self, versions: Iterable[VersionId]) -> None:
        """Forget versions; those that are not there do not matter."""
        keys = [self._key(version) + (version.timestamp,)
                for version in versions]
        with self.batch():
            self._db.executemany(
                'DELETE FROM span WHERE version_id = (SELECT id FROM version '
                'WHERE %s AND timestamp = ?)' % _KEY, keys)
            self._db.executemany(
                'DELETE FROM version WHERE %s AND timestamp = ?' % _KEY,
                keys)

    def keep_policies(self, policies: AbstractSet[int]) -> Set[int]:
        """Forget every version of other policies; returns those policies.

        Reads all rows, page by page, without a lock between pages.
        """
        return self._forget_unless('policy', policies)

    def keep_devices(self, names: AbstractSet[str]) -> Set[str]:
        """Forget every version on other devices; which those were.

        Reads all rows, page by page, and locks nobody out meanwhile.
        """
        ids = {self._devices[name] for name in names if name in self._devices}
        if ids == set(self._names):
            return set()
        return {self._names[device_id] for device_id
                in self._forget_unless('device_id', ids)}

    def _forget_unless(self, column: str, kept: AbstractSet[int]
                       ) -> Set[int]:
        """Forget versions with another value in a column; those values."""
        dropped: Set[int] = set()
        after_id = 0
        wanted = ','.join(map(str, sorted(kept))) or '-1'
        while True:
            with self.batch():
                rows = self._db.execute(
                    'SELECT id, %s FROM version WHERE id > ? AND '
                    '%s NOT IN (%s) ORDER BY id LIMIT %d' % (
                        column, column, wanted, _CHUNK_ROWS),
                    (after_id,)).fetchall()
                ids = [row[:1] for row in rows]
                self._db.executemany(
                    'DELETE FROM span WHERE version_id = ?', ids)
                self._db.executemany('DELETE FROM version WHERE id = ?', ids)
            dropped.update(row[1] for row in rows)
            if len(rows) < _CHUNK_ROWS:
                return dropped
            after_id = rows[-1][0]

    def obsolete(self, versions: Iterable[VersionId]) -> List[VersionRow]:
        """Versions of the same objects that these make obsolete, each
        once, in one look and without their spans.

        A tombstone (no fragment index) does so for every fragment.
        """
        found: Dict[int, Tuple[Any, ...]] = {}
        with self._lock, _translated():
            for version in versions:
                key = self._key(version)
                where = _KEY
                if version.frag_index is None:
                    where, key = _OBJECT, key[:3]
                for row in self._db.execute(
                        'SELECT v.id, %s FROM version v WHERE %s AND '
                        'timestamp < ?' % (_VERSION_COLUMNS, where),
                        key + (version.timestamp,)):
                    found[row[0]] = row
            return [self._bare(row) for row in found.values()]

    def get(self, version: VersionId) -> Optional[VersionRow]:
        """The version's rows, or None."""
        found = self._versions(
            'WHERE %s AND timestamp = ?' % _KEY,
            self._key(version) + (version.timestamp,))
        return found[0] if found else None

    def of_object(self, object_hash: str) -> List[VersionRow]:
        """Every version of an object on every device of the node."""
        return self._versions('WHERE hash = ?',
                              (bytes.fromhex(object_hash),))

    def occupancy(self, device: str) -> Dict[int, Dict[str, int]]:
        """Sums of a device by class id; keys are the schema's columns."""
        with self._lock, _translated():
            rows = self._db.execute(
                'SELECT class_id, %s FROM occupancy WHERE device_id = ?'
                % ', '.join(schema.COLUMNS),
                (self._device_id(device),)).fetchall()
        return {row[0]: dict(zip(schema.COLUMNS, row[1:])) for row in rows}

    def victims(self, device: str, class_ids: Sequence[int], wanted: int,
                limit: int, skipped: Collection[VersionId] = ()
                ) -> List[Candidate]:
        """Evictable bytes that leave next, in the order of their classes.

        Some orders update their state when asked for victims. Evict every
        candidate returned, or pass it in ``skipped`` next time.

        :param class_ids: one order over all of them
        :param wanted: bytes; no more rows than it takes
        """
        if not class_ids or not self._placing.names_order(class_ids[0]):
            return [one for one in self.least_recent(
                device, class_ids, limit + len(skipped))
                if one.version not in skipped]
        device_id, more = self._device_id(device), True
        hidden = self._spans_of_all(skipped)
        found: List[placing.Victim] = []
        while more and not found:
            with self.batch():
                found, more = self._placing.victims(
                    self._db, device_id, class_ids, wanted, limit, hidden)
        some = [self._candidate(device, victim) for victim in found]
        return some or [one for one in self.least_recent(
            device, class_ids, limit + len(skipped))
            if one.version not in skipped]

    def next_if_clean(self, device: str, class_ids: Sequence[int],
                      wanted: int) -> Optional[List[Candidate]]:
        """Dirty bytes among those that would leave next if all were clean;
        None if that is the least recently used one. Changes nothing."""
        if not class_ids or not self._placing.names_order(class_ids[0]):
            return None
        found: List[placing.Victim] = []
        with contextlib.suppress(_Undo), self.batch():
            found, _ = self._placing.victims(
                self._db, self._device_id(device), class_ids, wanted,
                placing.STEPS, (), dirty=True)
            raise _Undo
        return [self._candidate(device, victim) for victim in found
                if self._is_dirty(victim)]

    def _is_dirty(self, victim: placing.Victim) -> bool:
        found = self._one('SELECT ssd = dirty FROM span WHERE version_id = ? '
                          'AND class_id = ?', victim[:2])
        return bool(found and found[0])

    def settle_orders(self, device: str) -> bool:
        """Give a place to rows that have none in the order in force, some
        at a time; False if there are more."""
        device_id = self._device_id(device)
        with self._lock, _translated():
            left = self._placing.to_settle(self._db, device_id,
                                           self.occupancy(device))
        for class_id in left:
            with self.batch():
                self._placing.settle(self._db, device_id, class_id)
        return not left

    def _spans_of_all(self, versions: Iterable[VersionId]
                      ) -> List[Tuple[int, int]]:
        with self._lock, _translated():
            return [span[:2] for version in versions
                    for span in self._db.execute(
                        _SPANS_OF, self._key(version)
                        + (version.timestamp,))]

    def _candidate(self, device: str, victim: placing.Victim) -> Candidate:
        found = self._one(
            'SELECT hash, timestamp, frag, policy, partition, size FROM '
            'version WHERE id = ?', (victim.version_id,))
        assert found is not None  # A span without its version cannot be.
        return Candidate(
            VersionId(device, found[3], found[0].hex(), found[1],
                      None if found[2] < 0 else found[2]),
            found[4], found[5], victim.class_id, victim.length)

    def least_recent(self, device: str, class_ids: Iterable[int],
                     limit: int) -> List[Candidate]:
        """Evictable bytes of these classes, least recently used first."""
        return self._merge(device, class_ids, limit, 'ssd - dirty',
                           'movable = 1 AND ssd > dirty', 'read_at')

    def least_recent_spare(self, device: str, class_ids: Iterable[int],
                           limit: int) -> List[Candidate]:
        """HDD bytes with a verified remote copy, in the same order."""
        return self._merge(device, class_ids, limit, 'spare', 'spare > 0',
                           'read_at')

    def least_recent_remote(self, device: str, class_ids: Iterable[int],
                            limit: int) -> List[Candidate]:
        """Movable versions with local bytes whose copy in S3 is verified."""
        return self._merge(device, class_ids, limit, 'ssd',
                           'movable = 1 AND ssd > dirty AND remote > 0',
                           'read_at')

    def oldest_dirty(self, device: str, class_ids: Iterable[int],
                     limit: int, before: float) -> List[Candidate]:
        """Movable bytes with one local copy, put before ``before``."""
        return self._merge(device, class_ids, limit, 'dirty',
                           'movable = 1 AND dirty > 0', 'put_at', before)

    def least_recent_dirty(self, device: str, class_ids: Iterable[int],
                           limit: int) -> List[Candidate]:
        """The same bytes in the order in which they would leave."""
        return self._merge(device, class_ids, limit, 'dirty',
                           'movable = 1 AND dirty > 0', 'read_at')

    def oldest_dirty_at(self, device: str) -> Optional[float]:
        """When the oldest dirty bytes of a device were put, or None."""
        with self._lock, _translated():
            found = [self._db.execute(
                'SELECT put_at FROM span WHERE device_id = ? AND class_id '
                '= ? AND movable = 1 AND dirty > 0 ORDER BY put_at LIMIT 1',
                (self._device_id(device), class_id)).fetchone()
                for class_id in self.occupancy(device)]
        return min((row[0] for row in found if row), default=None)

    def set_movable(self, class_id: int, movable: bool,
                    min_demote_bytes: int) -> int:
        """A class was pinned or unpinned: bring its rows up to date."""
        changed = 0
        while True:
            with self.batch():
                done = self._db.execute(
                    'UPDATE span SET movable = ? WHERE class_id = ? AND '
                    'version_id IN (SELECT s.version_id FROM span s JOIN '
                    'version v ON v.id = s.version_id WHERE s.class_id = ? '
                    'AND s.movable != ? AND v.pinned = 0 AND '
                    'v.pin_rule != 2 AND v.size > ? '
                    'LIMIT ?)', (int(movable), class_id, class_id,
                                 int(movable), min_demote_bytes,
                                 _CHUNK_ROWS)).rowcount
            changed += done
            if not done:
                break
        if changed and movable and self._placing.names_order(class_id):
            with self.batch():
                for device_id in self._names:
                    self._placing.unsettle(self._db, device_id, class_id)
        return changed

    def pin_sizes(self, device: str) -> List[Tuple[int, int, int]]:
        """(bucket, versions, bytes) of versions that the pin rule fits."""
        with self._lock, _translated():
            return self._db.execute(
                'SELECT bucket, count, bytes FROM pin_sizes WHERE '
                'device_id = ? AND count > 0 ORDER BY bucket',
                (self._device_id(device),)).fetchall()

    def pin_up_to(self, device: str, size: int, class_ids: Sequence[int],
                  min_demote_bytes: int) -> int:
        """Pin versions that the rule fits up to a size, and release the rest,
        a chunk at a time; how many changed (0: all are right).

        :param class_ids: of classes that are pinned themselves
        """
        device_id = self._device_id(device)
        with self.batch():
            pin = [found[0] for found in self._db.execute(
                'SELECT id FROM version WHERE device_id = ? AND pin_rule = 3 '
                'AND size <= ? LIMIT ?', (device_id, size, _CHUNK_ROWS))]
            free = [found[0] for found in self._db.execute(
                'SELECT id FROM version WHERE device_id = ? AND pin_rule = 2 '
                'AND size > ? LIMIT ?', (device_id, size, _CHUNK_ROWS))]
            self._set_pins(pin, 2, (), 0)
            self._set_pins(free, 3, class_ids, min_demote_bytes)
        return len(pin) + len(free)

    def look_at_pins(self, device: str, after_id: int, limit: int,
                     idle_before: float, class_ids: Sequence[int],
                     min_demote_bytes: int) -> int:
        """Of the next ``limit`` rows, release pins of versions unused since
        ``idle_before``, and pin used ones again. Returns where to go on (0:
        from the beginning).
        """
        with self.batch():
            rows = self._db.execute(
                'SELECT v.id, v.pin_rule, max(s.read_at) FROM version v '
                'JOIN span s ON s.version_id = v.id WHERE v.device_id = ? '
                'AND v.pin_rule > 0 AND v.id > ? GROUP BY v.id '
                'ORDER BY v.id LIMIT ?',
                (self._device_id(device), after_id, limit)).fetchall()
            self._set_pins([row[0] for row in rows if row[1] != 4
                            and row[2] < idle_before], 4, class_ids,
                           min_demote_bytes)
            self._set_pins([row[0] for row in rows if row[1] == 4
                            and row[2] >= idle_before], 3, class_ids,
                           min_demote_bytes)
        return int(rows[-1][0]) if len(rows) == limit else 0

    def _set_pins(self, ids: Sequence[int], rule: int,
                  class_ids: Sequence[int], min_demote_bytes: int) -> None:
        self._db.executemany('UPDATE version SET pin_rule = ? WHERE id = ?',
                             [(rule, one) for one in ids])
        if rule == 2:
            self._db.executemany('UPDATE span SET movable = 0 WHERE '
                                 'version_id = ?', [(one,) for one in ids])
            return
        # "NOT IN ()" is true, and SQLite takes it.
        self._db.executemany(
            'UPDATE span SET movable = 1 WHERE version_id = ?1 AND '
            '(SELECT pinned = 0 AND size > ?2 FROM version WHERE id = ?1) '
            'AND class_id NOT IN (%s)' % ','.join(
                '?%d' % number for number in range(3, 3 + len(class_ids))),
            [(one, min_demote_bytes) + tuple(class_ids) for one in ids])
        for one in ids:
            self._ensure_placed(one)

    def _ensure_placed(self, version_id: int) -> None:
        """Rows that may leave again stand in a queue."""
        for row in self._db.execute(
                'SELECT device_id, class_id, ssd - dirty, %s FROM span '
                'WHERE version_id = ?' % placing.COLUMNS,
                (version_id,)).fetchall():
            if self._placing.names_order(row[1]):
                self._db.execute(
                    'UPDATE span SET %s WHERE version_id = ? AND '
                    'class_id = ?' % placing.SET_PLACE,
                    self._placing.ensure(
                        self._db, row[0], row[1], row[2], row[3:])
                    + (version_id, row[1]))

    def listing(self, wanted: Filter, limit: int,
                after_id: int = 0) -> List[Tuple[int, VersionRow]]:
        """(row id, version) pairs from ``after_id`` on."""
        where, values = wanted.sql()
        sql = ('SELECT v.id, %s FROM version v WHERE v.id > ? %s ORDER BY '
               'v.id LIMIT ?' % (_VERSION_COLUMNS, where))
        with _translated(), contextlib.closing(self.reader()) as db:
            rows = db.execute(sql, (after_id, *values, limit)).fetchall()
            return [(row[0], self._version(row, db)) for row in rows]

    def count(self, wanted: Filter) -> Tuple[int, int]:
        """(versions, the highest row id of them)."""
        where, values = wanted.sql()
        with _translated(), contextlib.closing(self.reader()) as db:
            found = db.execute(
                'SELECT count(*), coalesce(max(v.id), 0) FROM version v '
                'WHERE v.id > 0 ' + where, values).fetchone()
            return int(found[0]), int(found[1])

    def pages(self, wanted: Filter, limit: int,
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

    def partitions(self, device: str, policy: int) -> Set[str]:
        """Partitions of a policy that have versions on a device. Costs
        one look for each partition, however many versions it has."""
        with _translated(), contextlib.closing(self.reader()) as db:
            return {row[0] for row in db.execute(
                _PARTITIONS, (self._device_id(device), policy))}

    def ids_of_partitions(self, device: str, policy: int,
                          partitions: Collection[str], limit: int,
                          after_id: int) -> List[int]:
        """The lowest row ids after ``after_id`` of versions of some
        partitions. Reads the partition index alone.

        :param partitions: at most :data:`ASKED_AT_ONCE`
        """
        with _translated(), contextlib.closing(self.reader()) as db:
            return [row[0] for row in db.execute(
                'SELECT id FROM version WHERE device_id = ? AND policy = ? '
                'AND partition IN (%s) AND id > ? ORDER BY id LIMIT ?'
                % ','.join('?' * len(partitions)),
                (self._device_id(device), policy, *partitions, after_id,
                 limit))]

    def departing(self, device: str, policy: int,
                  row_ids: Sequence[int]) -> List[Departing]:
        """The facts of versions that are needed after their rows go.

        :param row_ids: at most :data:`ASKED_AT_ONCE`; those that are not
            of this device and policy any more are left out
        """
        with self._lock, _translated():
            return [Departing(
                row[0], VersionId(self._names[row[2]], row[3], row[1].hex(),
                                  row[5], None if row[4] < 0 else row[4]),
                row[6], bool(row[7]))
                for row in self._db.execute(
                    'SELECT v.id, v.hash, v.device_id, v.policy, v.frag, '
                    'v.timestamp, v.partition, EXISTS (SELECT 1 FROM span '
                    'WHERE version_id = v.id AND hdd > 0) FROM version v '
                    # "+": not by way of the partitions' index.
                    'WHERE v.id IN (%s) AND +v.device_id = ? AND +v.policy '
                    '= ? ORDER BY v.id' % ','.join('?' * len(row_ids)),
                    (*row_ids, self._device_id(device), policy))]

    def remove_departed(self, rows: Iterable[Departing]) -> None:
        """Forget versions by their row ids; not where the row is of another
        version or partition by now.

        Cheapest in the order of the ids: each page of the file is then
        read and written once.
        """
        known = [(row.row_id, row.partition, row.version.timestamp)
                 + self._key(row.version) for row in rows]
        with self.batch():
            self._db.executemany(
                'DELETE FROM version WHERE id = ? AND partition = ? AND '
                'timestamp = ? AND ' + _KEY, known)
            self._db.executemany(
                'DELETE FROM span WHERE version_id = ?1 AND NOT EXISTS '
                '(SELECT 1 FROM version WHERE id = ?1)',
                [row[:1] for row in known])

    def reader(self) -> sqlite3.Connection:
        """A connection of its own for long reads: it blocks no other call."""
        return sqlite3.connect('file:%s?mode=ro' % self.path, uri=True)

    # -- inside ----------------------------------------------------------

    def _merge(self, device: str, class_ids: Iterable[int], limit: int,
               length: str, where: str, order: str,
               before: Optional[float] = None) -> List[Candidate]:
        """One order over several classes, each read from its own index."""
        until = '' if before is None else ' AND s.%s <= ?' % order
        bound = () if before is None else (before,)
        found: List[Tuple[Any, ...]] = []
        with self._lock, _translated():
            for class_id in class_ids:
                found += self._db.execute(
                    'SELECT s.{2}, v.hash, v.timestamp, v.frag, v.policy, '
                    'v.partition, v.size, s.class_id, {0} FROM span s JOIN '
                    'version v ON v.id = s.version_id WHERE s.device_id = ? '
                    'AND s.class_id = ? AND {1}{3} ORDER BY s.{2} LIMIT ?'
                    .format(length, where, order, until),
                    (self._device_id(device), class_id) + bound + (limit,))
        found.sort(key=lambda row: row[0])
        return [Candidate(VersionId(device, row[4], row[1].hex(), row[2],
                                    None if row[3] < 0 else row[3]),
                          row[5], row[6], row[7], row[8])
                for row in found[:limit]]

    def _versions(self, where: str,
                  values: Tuple[Any, ...]) -> List[VersionRow]:
        with self._lock, _translated():
            rows = self._db.execute('SELECT v.id, %s FROM version v %s' % (
                _VERSION_COLUMNS, where), values).fetchall()
            return [self._version(row, self._db) for row in rows]

    def _version(self, row: Tuple[Any, ...],
                 db: sqlite3.Connection) -> VersionRow:
        spans = db.execute(
            'SELECT class_id, total, ssd, hdd, remote, dirty, spare, '
            'movable, read_at FROM span WHERE version_id = ? '
            'ORDER BY class_id', (row[0],)).fetchall()
        version = self._bare(row)
        version.read_at = max([span[8] for span in spans], default=0.0)
        version.spans = [_span_row(span) for span in spans]
        return version

    def _bare(self, row: Tuple[Any, ...]) -> VersionRow:
        return VersionRow(
            VersionId(self._names[row[2]], row[3], row[1].hex(), row[5],
                      None if row[4] < 0 else row[4]),
            row[6], row[7], row[8], row[9], 0.0, bool(row[10]),
            bool(row[11]), bool(row[12]), pin_rule=row[13])

    def _key(self, version: VersionId) -> Tuple[Any, ...]:
        frag = -1 if version.frag_index is None else version.frag_index
        return (bytes.fromhex(version.object_hash),
                self._device_id(version.device), version.policy, frag)

    def _device_id(self, name: str) -> int:
        with self._lock:
            if name not in self._devices:
                with self.batch():
                    made = self._db.execute(
                        'INSERT INTO device (name) VALUES (?)', (name,))
                self._devices[name] = int(made.lastrowid or 0)
                self._names[self._devices[name]] = name
            return self._devices[name]

    def _one(self, sql: str,
             values: Tuple[Any, ...]) -> Optional[Tuple[Any, ...]]:
        with self._lock, _translated():
            found: Optional[Tuple[Any, ...]] = self._db.execute(
                sql, values).fetchone()
            return found


_VERSION_COLUMNS = (
    'v.hash, v.device_id, v.policy, v.frag, v.timestamp, v.partition, '
    'v.size, v.name, v.put_at, v.pinned, v.on_remote, v.wants_remote, '
    'v.pin_rule')


def _span_row(found: Tuple[Any, ...]) -> SpanRow:
    class_id, total, ssd, hdd, remote, dirty, spare, movable, _ = found
    return SpanRow(class_id, total, ssd, hdd, remote, dirty, spare,
                   bool(movable))


def open_or_replace(path: str, order: Optional[Placing] = None
                    ) -> Tuple[Index, str]:
    """The index at ``path``; a damaged one is moved aside first.

    :param order: see :class:`Index`
    :returns: the index and where the damaged file went ('' if it was fine)
    """
    try:
        return Index(path, order), ''
    except IndexDamaged:
        aside = _move_aside(path)
        return Index(path, order), aside


def _move_aside(path: str) -> str:
    aside = '%s.damaged-%d' % (path, time.time())
    for suffix in ('', '-wal', '-shm'):
        if os.path.exists(path + suffix):
            os.rename(path + suffix, aside + suffix)
    return aside


def _statements(text: str) -> List[str]:
    return [part for part in text.split(';') if part.strip()]


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as err:
        raise IndexUnavailable('index: %s' % err) from err
    except sqlite3.DatabaseError as err:
        raise IndexDamaged('index: %s' % err) from err
    except OSError as err:
        raise IndexUnavailable('index: %s' % err) from err
