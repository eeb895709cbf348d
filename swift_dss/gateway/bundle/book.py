"""The book of bundles and their members, in SQLite beside the queue.

A cache of residency records and the bundles themselves: without it all data
can still be read, and a new book is filled from these (``collect.regain``).

States of a bundle: ``planned`` (its key is known here before S3 can have
it; no record names it), ``sealed`` (proven in S3), ``replaced`` (its live
members are in another, its *heir*, but not every record says so yet),
``leaving`` (not needed any more; its key goes at ``drop_at``). States of a
member: ``waiting``, ``packed`` (in a planned bundle), ``there`` (in a sealed
one, its residency records are yet to be written), ``live``, ``dead`` (not yet
noted in S3) and ``told``. A member's *holders* are the devices of this node
whose records name it; ``renew`` is 1 while S3 has an old record of it, and 2
once the new one was sent beside the bundle. A device whose record names a
bundle that another node keeps *leans* on it.

Two more tables hold further news for the bucket: *renewals* (versions whose
metadata changed after they went up) and *places* (containers and accounts,
whose metadata the bucket keeps too). *facts* are the book's own.
"""

# long: every statement on the two tables, in the one class that locks them.
from __future__ import annotations

import itertools
import sqlite3
import uuid
from contextlib import closing
from dataclasses import dataclass, replace
from typing import (
    Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional,
    Sequence, Set, Tuple)

from swift_dss.core.version import VersionId
from swift_dss.gateway.store import Store
from swift_dss.strategy.bundling import Kept, Waiting

_SCHEMA = """
CREATE TABLE IF NOT EXISTS bundles (
    id INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL, state TEXT NOT NULL,
    grp TEXT NOT NULL, created REAL NOT NULL, seal TEXT NOT NULL,
    size INTEGER NOT NULL, dead INTEGER NOT NULL, untold INTEGER NOT NULL,
    live INTEGER NOT NULL, drop_at REAL NOT NULL, heir INTEGER NOT NULL,
    ask_at REAL NOT NULL DEFAULT 0);
CREATE INDEX IF NOT EXISTS bundles_state ON bundles (state, drop_at);
CREATE INDEX IF NOT EXISTS bundles_dead ON bundles (dead)
    WHERE state = 'sealed' AND dead > 0;
CREATE INDEX IF NOT EXISTS bundles_untold ON bundles (untold)
    WHERE state = 'sealed' AND untold > 0;
CREATE TABLE IF NOT EXISTS members (
    key TEXT PRIMARY KEY, state TEXT NOT NULL, device TEXT NOT NULL,
    policy INTEGER NOT NULL, hash TEXT NOT NULL, timestamp TEXT NOT NULL,
    frag INTEGER, partition TEXT NOT NULL, grp TEXT NOT NULL,
    size INTEGER NOT NULL, etag TEXT NOT NULL, parked_at REAL NOT NULL,
    bundle INTEGER NOT NULL, number INTEGER NOT NULL,
    offset INTEGER NOT NULL, stored INTEGER NOT NULL,
    renew INTEGER NOT NULL DEFAULT 0,
    record BLOB NOT NULL DEFAULT x'') WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS members_waiting ON members (grp, parked_at)
    WHERE state = 'waiting';
CREATE INDEX IF NOT EXISTS members_there ON members (bundle)
    WHERE state = 'there';
CREATE INDEX IF NOT EXISTS members_bundle ON members (bundle);
CREATE TABLE IF NOT EXISTS holders (
    key TEXT NOT NULL, device TEXT NOT NULL, partition TEXT NOT NULL,
    leans TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (key, device)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS renewals (
    key TEXT NOT NULL, device TEXT NOT NULL, policy INTEGER NOT NULL,
    hash TEXT NOT NULL, timestamp TEXT NOT NULL, frag INTEGER,
    partition TEXT NOT NULL, not_before REAL NOT NULL,
    PRIMARY KEY (key, device)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS renewals_due ON renewals (not_before);
CREATE TABLE IF NOT EXISTS places (
    path TEXT PRIMARY KEY, look_at REAL NOT NULL, digest TEXT NOT NULL)
    WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS places_due ON places (look_at);
CREATE TABLE IF NOT EXISTS facts (
    name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
#: Columns that books of earlier releases lack.
_LATER = {
    ('members', 'record'): "ALTER TABLE members ADD COLUMN record BLOB NOT "
                           "NULL DEFAULT x''",
    ('bundles', 'ask_at'): "ALTER TABLE bundles ADD COLUMN ask_at REAL NOT "
                           "NULL DEFAULT 0",
    ('holders', 'leans'): "ALTER TABLE holders ADD COLUMN leans TEXT NOT "
                          "NULL DEFAULT ''"}
#: After the columns: they name some that an old book has to get first.
_LATER_INDEX = """
CREATE INDEX IF NOT EXISTS bundles_ask ON bundles (ask_at) WHERE ask_at > 0;
CREATE INDEX IF NOT EXISTS holders_leans ON holders (leans, key, device)
    WHERE leans != '';
"""
#: A bundle's sums over its members. Update them in the transaction that
#: changes the members: a delete that is not in the sums is never noted in S3.
_SUMS = """
UPDATE bundles SET (dead, untold, live) = (
    SELECT coalesce(sum(CASE WHEN state IN ('dead', 'told')
                        THEN max(stored, 1) END), 0),
           coalesce(sum(state = 'dead'
                        OR renew = 1 AND state IN ('there', 'live')), 0),
           coalesce(sum(state IN ('there', 'live', 'packed')), 0)
    FROM members WHERE bundle = bundles.id)
"""
#: A book below this number, of an earlier release, was not lost if the bucket
#: was looked at since.
_REGAINS = 2
#: In a book below this number, of an earlier release, a member that died
#: while its bundle was packed stands for the bundle's first member.
_ONLY_PLACED = 3
#: Members that died before their bundle had them, if it is proven: data begins
#: behind the head, so no member that it has is at offset 0.
_UNPLACED = "members WHERE state IN ('dead', 'told') AND offset = 0 AND bundle"
_PLANNED = "(SELECT id FROM bundles WHERE state = 'planned')"
#: Have the bucket hear again of the members that these stood for.
_PLACED_AGAIN = (
    'UPDATE members SET renew = 1 WHERE number = 0 AND offset > 0 AND state '
    "IN ('there', 'live') AND bundle IN (SELECT bundle FROM %s NOT IN %s)"
    % (_UNPLACED, _PLANNED))
_Statement = Tuple[str, Tuple[Any, ...]]
#: Facts: under which this node writes; the bucket was looked at; the records
#: of this node were.
_WRITER, _LOOKED_THROUGH, _REGAINED = 'writer', 'looked_through', 'regained'
#: Values of one statement; SQLite's own limit is 999 in old versions.
_ASKED_AT_ONCE = 500
#: Bundles that are worked on before anything else is done.
_SOME = 100
_COLUMNS = ('key, state, device, policy, hash, timestamp, frag, partition, '
            'grp, size, etag, parked_at, bundle, number, offset, stored')


class Member(NamedTuple):
    """One version that waits for a bundle, or is in one.

    :param record: of a planned one, as :class:`Parked` has it
    """

    version: VersionId
    partition: str
    state: str
    group: str
    size: int
    etag: str
    bundle: int = 0
    number: int = 0
    offset: int = 0
    stored: int = 0
    record: bytes = b''


class Parked(NamedTuple):
    """A version that waits for a bundle of its group.

    :param record: its record in the bundle, packed; b'' lets the packer make
        it
    """

    version: VersionId
    partition: str
    group: str
    size: int
    etag: str
    record: bytes = b''


@dataclass(frozen=True)
class Bundle:
    """One S3 object of many."""

    id: int
    key: str
    state: str
    group: str
    seal: str = ''
    size: int = 0


class Book(Store):
    """The tables of one node; see :class:`Store`."""

    def __init__(self, path: str) -> None:
        super().__init__(path, 'bundle book')
        self._waiting: Dict[str, Waiting] = {}
        self._recount_all()

    @staticmethod
    def prepare(opened: sqlite3.Connection) -> None:
        """See :meth:`Store.prepare`."""
        tables = {row[0] for row in opened.execute(
            'SELECT name FROM sqlite_master')}
        opened.executescript(_SCHEMA)
        if 'members' in tables and 'facts' not in tables:
            # Of an earlier release, and so not lost.
            opened.execute(*_stated(_LOOKED_THROUGH, 'yes'))
        for (table, column), statement in _LATER.items():
            if all(row[1] != column for row in opened.execute(
                    'PRAGMA table_info(%s)' % table)):
                opened.execute(statement)
        opened.executescript(_LATER_INDEX)
        version = opened.execute('PRAGMA user_version').fetchone()[0]
        if version < _REGAINS:
            opened.execute(
                'INSERT OR REPLACE INTO facts SELECT ?, value FROM facts '
                'WHERE name = ?', (_REGAINED, _LOOKED_THROUGH))
        if version < _ONLY_PLACED:
            opened.execute(_PLACED_AGAIN)
            opened.execute('DELETE FROM %s NOT IN %s' % (
                _UNPLACED, _PLANNED))
            opened.execute(_SUMS)
            opened.execute('PRAGMA user_version = %d' % _ONLY_PLACED)

    def writer(self) -> str:
        """Under which this book's node says in the bucket what it knows of
        bundles that another one keeps; a new book has a new one."""
        with self._lock:
            writer = self._fact(_WRITER)
            if not writer:
                writer = uuid.uuid4().hex[:16]
                self._write(True, [_stated(_WRITER, writer)])
            return writer

    @property
    def is_looked_through(self) -> bool:
        """False as long as bundles are not found again that a lost book
        knew, and what is dead in them."""
        return bool(self._fact(_LOOKED_THROUGH))

    def looked_through(self) -> None:
        """The whole bucket was looked at since the book is new; durable.
        """
        self._write(True, [_stated(_LOOKED_THROUGH, 'yes')])

    @property
    def is_regained(self) -> bool:
        """False as long as the book may lack bundles that records here name.
        """
        return bool(self._fact(_REGAINED))

    def regained(self) -> None:
        """Every record here was looked at since the book is new; durable."""
        self._write(True, [_stated(_REGAINED, 'yes')])

    # -- waiting ---------------------------------------------------------

    def park(self, members: Sequence[Parked], now: float) -> List[bool]:
        """Have members wait for a bundle, all or none. Idempotent.

        :returns: for each: False if the book knows the version already
        """
        with self._lock:
            known = self.known([parked.version.key for parked in members])
            new: List[bool] = []
            for parked in members:
                new.append(parked.version.key not in known)
                known.add(parked.version.key)
            self._write(False, itertools.chain((
                ('INSERT INTO members (%s, record) VALUES '
                 "(?,'waiting',?,?,?,?,?,?,?,?,?,?,0,0,0,0,?)" % _COLUMNS,
                 (parked.version.key, parked.version.device,
                  parked.version.policy, parked.version.object_hash,
                  parked.version.timestamp,
                  parked.version.frag_index, parked.partition, parked.group,
                  parked.size, parked.etag, now, parked.record))
                for parked, is_new in zip(members, new) if is_new), (
                    _held(parked.version, parked.partition)
                    for parked in members)))
            for parked, is_new in zip(members, new):
                if is_new:
                    self._add(parked.group, parked.size, now)
            return new

    def find_all(self, keys: Iterable[str]
                 ) -> Dict[str, Tuple[Member, Bundle]]:
        """:meth:`find` for many; those that it finds."""
        with self._lock:
            return {key: where for key in self.known(keys)
                    for where in [self.find(key)] if where is not None}

    def known(self, keys: Iterable[str]) -> Set[str]:
        """Keys that wait, or are in a bundle of this node."""
        known: Set[str] = set()
        for page in _slices(keys):
            known.update(row[0] for row in self._read(
                'SELECT key FROM members WHERE key IN (%s)'
                % ','.join('?' * len(page)), page))
        return known

    def buried(self, keys: Iterable[str]) -> Set[str]:
        """Keys that are in a bundle and dead there."""
        buried: Set[str] = set()
        for page in _slices(keys):
            buried.update(row[0] for row in self._read(
                "SELECT key FROM members WHERE state IN ('dead', 'told') "
                'AND key IN (%s)' % ','.join('?' * len(page)), page))
        return buried

    def hold(self, version: VersionId, partition: str,
             bundle: str = '') -> None:
        """A device's record is about to name its place; durable.

        :param bundle: the key of that; '' is one of this node's
        """
        self.hold_all([(version, partition)], bundle)

    def hold_all(self, leaning: Iterable[Tuple[VersionId, str]],
                 bundle: str) -> None:
        """The same for several, all or none."""
        self._write(True, [_held(version, partition, bundle)
                           for version, partition in leaning])

    def leaned_on(self, after: str = '') -> Iterator[str]:
        """Keys of bundles that other nodes keep and records here name,
        behind ``after``."""
        key: Optional[str] = after
        while True:
            # One look into an index for each, however many lean on it.
            key = self._read("SELECT min(leans) FROM holders WHERE "
                             "leans != '' AND leans > ?", (key,))[0][0]
            if key is None:
                return
            yield key

    def leaners(self, bundle: str, after: Tuple[str, str],
                limit: int) -> List[Tuple[str, str, str]]:
        """(version key, device, partition) of devices that lean on a
        bundle, behind the version key and device ``after``."""
        return [(row[0], row[1], row[2]) for row in self._read(
            "SELECT key, device, partition FROM holders WHERE leans = ? AND "
            "leans != '' AND (key, device) > (?, ?) ORDER BY key, device "
            'LIMIT ?', (bundle,) + after + (limit,))]

    def holders(self, members: Iterable[Member]
                ) -> Dict[str, List[Tuple[VersionId, str]]]:
        """Versions (and partitions) of this node with the keys of these
        members, by key."""
        by_key = {member.version.key: member.version for member in members}
        holders: Dict[str, List[Tuple[VersionId, str]]] = {
            key: [] for key in by_key}
        for page in _slices(by_key):
            for key, device, partition in self._read(
                    'SELECT key, device, partition FROM holders WHERE '
                    'key IN (%s)' % ','.join('?' * len(page)), page):
                known = by_key[key]
                holders[key].append((
                    known if known.device == device
                    else replace(known, device=device), partition))
        return holders

    def let_go(self, version: VersionId) -> None:
        """The version left this device."""
        self._write(False, [(
            'DELETE FROM holders WHERE key = ? AND device = ?',
            (version.key, version.device))])

    def leave_devices(self, devices: Sequence[str]) -> None:
        """Versions on these devices are nothing to this book any more.
        Durable; idempotent.

        A version that waits on another device too waits there; all others
        wait no more. Members of bundles stay: the other primaries are
        asked about them before a byte goes.
        """
        marks = ','.join('?' * len(devices))
        names = tuple(devices)
        with self._lock:
            self._write(True, [
                ('DELETE FROM holders WHERE device IN (%s)' % marks, names),
                ("DELETE FROM members WHERE state IN ('waiting', 'packed') "
                 'AND key NOT IN (SELECT key FROM holders)', ()),
                ('UPDATE members SET (device, partition) = (SELECT device, '
                 'partition FROM holders WHERE holders.key = members.key '
                 "LIMIT 1) WHERE state IN ('waiting', 'packed') AND device "
                 'IN (%s)' % marks, names)])
            self._recount_all()

    def unpark(self, key: str) -> None:
        """Forget a version that is not (yet) in S3."""
        self._write(False, [
            ("DELETE FROM members WHERE key = ? AND state IN "
             "('waiting', 'packed')", (key,)),
            ('DELETE FROM holders WHERE key = ?', (key,))])
        self._recount_all()

    def send_alone(self, group: str) -> List[VersionId]:
        """Forget the waiting members of a group; it is to get keys of its own.
        On each device of this node.
        """
        with self._lock:
            members = [_member(row) for row in self._read(
                "SELECT %s FROM members WHERE grp = ? AND state = 'waiting'"
                % _COLUMNS, (group,))]
            versions = [version for holders in self.holders(members).values()
                        for version, _ in holders]
            for member in members:
                self.unpark(member.version.key)
            return versions

    def waiting(self) -> List[Waiting]:
        """All groups that wait; costs nothing."""
        with self._lock:
            return list(self._waiting.values())

    # -- bundles ---------------------------------------------------------

    def plan(self, group: str, bundle_key: str, most_bytes: int,
             most: int, now: float) -> Tuple[int, List[Member]]:
        """Claim members for one bundle, longest waiting first; durable.

        :returns: the bundle's id and its members (none: nothing waits)
        """
        with self._lock:
            chosen: List[Member] = []
            room = most_bytes
            with closing(self._rows(
                    "SELECT %s, record FROM members WHERE grp = ? AND state = "
                    "'waiting' ORDER BY parked_at LIMIT ?" % _COLUMNS,
                    (group, most))) as rows:
                for row in rows:
                    member = _member(row)
                    if chosen and member.size > room:
                        break
                    room -= member.size
                    chosen.append(member)
            if not chosen:
                return 0, []
            # Before S3 can have it: a crash must leave its key known.
            self._write(True, [_begun(bundle_key, group, now)] + [(
                "UPDATE members SET state = 'packed', bundle = "
                '(SELECT id FROM bundles WHERE key = ?) WHERE key = ?',
                (bundle_key, member.version.key)) for member in chosen])
            self._take_out((group, member.size) for member in chosen)
            return self._id_of(bundle_key), chosen

    def plan_anew(self, group: str, bundle_key: str, now: float) -> int:
        """The same for a bundle of members that are in S3; its id."""
        with self._lock:
            self._write(True, [_begun(bundle_key, group, now)])
            return self._id_of(bundle_key)

    def seal(self, bundle_id: int, seal: str, size: int,
             placed: Iterable[Tuple[str, int, int, int]],
             replaces: int = 0) -> None:
        """The bundle is proven in S3; durable.

        :param placed: (version key, number, offset, stored bytes); those that
            became dead since stay so. Others that died are forgotten: the
            bundle never had them.
        :param replaces: the bundle that they were in before
        """
        with self._lock:
            # Planned members name the bundle already, and writing an unchanged
            # column costs an index as much as changing it.
            moved = 'bundle = %d, ' % bundle_id if replaces else ''
            place = (
                'UPDATE members SET %snumber = ?, offset = ?, stored = ?, '
                "state = CASE WHEN state IN ('dead', 'told') THEN 'dead' "
                "ELSE 'there' END, renew = 0, record = x'' WHERE key = ?"
                % moved)
            self._write(True, [
                ("UPDATE bundles SET state = 'sealed', seal = ?, size = ? "
                 'WHERE id = ?', (seal, size, bundle_id)),
                ('UPDATE bundles SET ask_at = (SELECT max(ask_at) FROM '
                 'bundles WHERE id IN (?1, ?2)) WHERE id = ?1',
                 (bundle_id, replaces)),
                ("UPDATE bundles SET state = 'replaced', heir = ? WHERE "
                 "id = ? AND state = 'sealed'", (bundle_id, replaces))] + [
                    (place, (number, offset, stored, key))
                    for key, number, offset, stored in placed]
                + [('DELETE FROM ' + _UNPLACED + ' = ?', (bundle_id,)),
                   _summed(bundle_id)])

    def wait_again(self, keys: Iterable[str]) -> None:
        """These found no room in the bundle that they were planned for."""
        with self._lock:
            self._write(True, [(
                "UPDATE members SET state = 'waiting', bundle = 0 WHERE "
                "key = ? AND state = 'packed'", (key,)) for key in keys])
            self._recount_all()

    def give_up(self, bundle_id: int) -> None:
        """A planned bundle came to nothing: its members wait again, its
        key goes. Durable. One that is sealed stays."""
        with self._lock:
            given_up = self.bundle(bundle_id)
            if given_up is None or given_up.state != 'planned':
                return
            self._write(True, [
                ("DELETE FROM members WHERE bundle = ? AND state = 'dead'",
                 (bundle_id,)),
                ("UPDATE members SET state = 'waiting', bundle = 0 "
                 "WHERE bundle = ? AND state = 'packed'", (bundle_id,)),
                ("UPDATE bundles SET state = 'leaving', drop_at = 0 "
                 'WHERE id = ?', (bundle_id,))])
            self._recount_all()

    def settled(self, keys: Iterable[str]) -> None:
        """Others have packed these, and records here name that: they are
        in no bundle of this node."""
        self._write(True, [(
            "DELETE FROM members WHERE key = ? AND state = 'packed'",
            (key,)) for key in keys])

    def contest(self, bundle_id: int, ask_at: float) -> None:
        """Others may have packed members of a bundle: they are to be asked
        then; 0: no more. Durable."""
        self._write(True, [('UPDATE bundles SET ask_at = ? WHERE id = ?',
                            (ask_at, bundle_id))])

    def oldest_of(self, bundle_id: int) -> str:
        """The earliest timestamp of a bundle's members; '' if none is left.
        """
        return str(self._read('SELECT min(timestamp) FROM members WHERE '
                              'bundle = ?', (bundle_id,))[0][0] or '')

    def contested(self, now: float) -> List[Tuple[Bundle, float]]:
        """(proven bundle, when it was begun) of those to ask about now."""
        return [(Bundle(*row[:6]), row[6]) for row in self._read(
            'SELECT id, key, state, grp, seal, size, created FROM bundles '
            "WHERE ask_at > 0 AND ask_at <= ? AND state = 'sealed' "
            'ORDER BY ask_at LIMIT ?', (now, _SOME))]

    def recorded(self, keys: Iterable[str]) -> None:
        """The residency records of these name their bundle now."""
        self._write(False, [(
            "UPDATE members SET state = 'live' WHERE key = ? "
            "AND state = 'there'", (key,)) for key in keys])

    def leave(self, bundle_id: int, drop_at: float) -> None:
        """Let the bundle go after ``drop_at``."""
        self._write(True, [(
            "UPDATE bundles SET state = 'leaving', drop_at = ? "
            'WHERE id = ?', (drop_at, bundle_id))])

    def reseal(self, bundle_id: int, seal: str) -> None:
        """The same data key, under another key of the key file; durable:
        the old one may leave the file from here on."""
        self._write(True, [('UPDATE bundles SET seal = ? WHERE id = ?',
                            (seal, bundle_id))])

    def forget(self, bundle_id: int) -> None:
        """S3 no longer has it."""
        self._write(False, [
            ('DELETE FROM bundles WHERE id = ?', (bundle_id,)),
            ('DELETE FROM members WHERE bundle = ?', (bundle_id,))])

    def replaced(self) -> List[int]:
        """Replaced bundles that no record of this node names any more."""
        return [int(row[0]) for row in self._read(
            "SELECT id FROM bundles WHERE state = 'replaced' AND NOT EXISTS "
            "(SELECT 1 FROM members WHERE bundle = heir AND state = "
            "'there')", ())]

    def adopt(self, key: str, group: str, seal: str, size: int,
              members: Iterable[Member], now: float) -> int:
        """Know a bundle again that is in S3; members that the book has
        elsewhere stay there. Idempotent."""
        with self._lock:
            if self.size_of(key) is None:
                self._write(True, _adopted(
                    key, group, seal, size, members, now))
                self._recount_all()
            return self._id_of(key)

    # -- members ---------------------------------------------------------

    def find(self, key: str) -> Optional[Tuple[Member, Bundle]]:
        """Where a version is, if it is in a proven bundle."""
        with self._lock:
            rows = self._read(
                'SELECT %s FROM members WHERE key = ?' % _COLUMNS, (key,))
            if not rows or rows[0][1] not in ('there', 'live'):
                return None
            member = _member(rows[0])
            bundle = self.bundle(member.bundle)
        return None if bundle is None else (member, bundle)

    def place_of(self, key: str) -> str:
        """The key of the proven bundle that a version is in, or that a record
        of this node names or named last; '' if none is known."""
        rows = self._read(
            'SELECT bundles.key FROM members JOIN bundles ON bundles.id = '
            "members.bundle WHERE members.key = ?1 AND members.state IN "
            "('there', 'live') UNION ALL SELECT leans FROM holders WHERE "
            "key = ?1 AND leans != '' LIMIT 1", (key,))
        return str(rows[0][0]) if rows else ''

    def knows(self, key: str) -> bool:
        """True if the version waits, or is in a bundle of this node."""
        return bool(self._read('SELECT 1 FROM members WHERE key = ?',
                               (key,)))

    def bury(self, keys: Iterable[str]) -> List[str]:
        """These versions are obsolete; those of them the book knew.
        Durable."""
        with self._lock:
            known: Dict[str, int] = {}
            waited: List[Tuple[str, int]] = []
            for page in _slices(keys):
                for key, bundle_id, state, group, size in self._read(
                        'SELECT key, bundle, state, grp, size FROM members '
                        'WHERE key IN (%s)' % ','.join('?' * len(page)),
                        page):
                    if state == 'waiting' and key not in known:
                        waited.append((group, size))
                    known[key] = bundle_id
            if not known:
                return []
            self._write(True, [
                (statement, (key,)) for statement in (
                    "DELETE FROM holders WHERE key = ? AND leans = ''",
                    "DELETE FROM members WHERE key = ? AND "
                    "state = 'waiting'",
                    "UPDATE members SET state = 'dead' WHERE key = ? AND "
                    "state IN ('packed', 'there', 'live')")
                for key in known] + [
                    _summed(number) for number in set(known.values()) - {0}])
            self._take_out(waited)
            return list(known)

    def members(self, bundle_id: int,
                states: Tuple[str, ...]) -> List[Member]:
        """Members of a bundle in these states, in their order in it."""
        marks = ','.join('?' * len(states))
        return [_member(row) for row in self._read(
            'SELECT %s FROM members WHERE bundle = ? AND state IN (%s) '
            'ORDER BY number' % (_COLUMNS, marks), (bundle_id,) + states)]

    def tell(self, bundle_id: int, numbers: Iterable[int],
             renewed: Iterable[int]) -> None:
        """Note that S3 knows these members as dead, and the records of those.
        """
        self._write(False, [(
            "UPDATE members SET state = 'told' WHERE bundle = ? AND "
            "number = ? AND state = 'dead'", (bundle_id, number))
            for number in numbers] + [(
                'UPDATE members SET renew = 2 WHERE bundle = ? AND '
                'number = ? AND renew = 1', (bundle_id, number))
                for number in renewed] + [_summed(bundle_id)])

    def tell_again(self, key: str) -> None:
        """Note that S3 has lost what it was told of a bundle's members, if it
        was told something. Durable.
        """
        with self._lock:
            for bundle_id, in self._read(
                    "SELECT DISTINCT bundles.id FROM bundles JOIN members ON "
                    "members.bundle = bundles.id WHERE bundles.key = ? AND "
                    "bundles.state = 'sealed' AND (members.state = 'told' "
                    "OR members.renew = 2)", (key,)):
                self._write(True, [
                    ("UPDATE members SET state = 'dead' WHERE bundle = ? AND "
                     "state = 'told'", (bundle_id,)),
                    ('UPDATE members SET renew = 1 WHERE bundle = ? AND '
                     'renew = 2', (bundle_id,)), _summed(bundle_id)])

    def renew(self, key: str) -> bool:
        """Note that a member's record must be sent again; False if the version
        is in no proven bundle. Durable.
        """
        with self._lock:
            member = self.find(key)
            if member is None:
                return False
            self._write(True, [
                ('UPDATE members SET renew = 1 WHERE key = ?', (key,)),
                _summed(member[1].id)])
            return True

    def renewed(self, bundle_id: int) -> List[Member]:
        """Live members whose record beside the bundle is newer than the
        one in it."""
        return [_member(row) for row in self._read(
            'SELECT %s FROM members WHERE bundle = ? AND renew > 0 AND '
            "state IN ('there', 'live') ORDER BY number" % _COLUMNS,
            (bundle_id,))]

    # -- further news for the bucket --------------------------------------

    def add_renewals(self, wanted: Iterable[Tuple[VersionId, str, float]]
                     ) -> None:
        """The metadata of these changed: (version, partition, not_before)
        of each. Durable; idempotent."""
        self._write(True, [(
            'INSERT OR REPLACE INTO renewals (key, device, policy, hash, '
            'timestamp, frag, partition, not_before) VALUES '
            '(?,?,?,?,?,?,?,?)', (
                version.key, version.device, version.policy,
                version.object_hash, version.timestamp, version.frag_index,
                partition, not_before))
            for version, partition, not_before in wanted])

    def due_renewals(self, now: float,
                     limit: int) -> List[Tuple[VersionId, str, float]]:
        """(version, partition, not_before) of those to look at now."""
        return [(VersionId(*row[:5]), row[5], row[6])
                for row in self._read(
                    'SELECT device, policy, hash, timestamp, frag, '
                    'partition, not_before FROM renewals WHERE '
                    'not_before <= ? ORDER BY not_before LIMIT ?',
                    (now, limit))]

    def finish_renewal(self, version: VersionId, not_before: float) -> None:
        """The bucket knows; a change since then keeps its row."""
        self._write(False, [(
            'DELETE FROM renewals WHERE key = ? AND device = ? AND '
            'not_before = ?', (version.key, version.device, not_before))])

    def note_places(self, paths: Iterable[str]) -> None:
        """Something of these accounts and containers went up."""
        self._write(False, [(
            'INSERT OR IGNORE INTO places (path, look_at, digest) '
            "VALUES (?, 0, '')", (path,)) for path in paths])

    def due_places(self, now: float, limit: int) -> List[Tuple[str, str]]:
        """(path, digest of the bucket's record) of places to look at."""
        return [(row[0], row[1]) for row in self._read(
            'SELECT path, digest FROM places WHERE look_at <= ? '
            'ORDER BY look_at LIMIT ?', (now, limit))]

    def looked_at(self, path: str, again_at: float, digest: str) -> None:
        """Note the bucket's record of a place, and when to look again."""
        self._write(False, [(
            'UPDATE places SET look_at = ?, digest = ? WHERE path = ?',
            (again_at, digest, path))])

    def forget_place(self, path: str) -> None:
        """The place is gone."""
        self._write(False, [('DELETE FROM places WHERE path = ?', (path,))])

    # -- looking ---------------------------------------------------------

    def bundle(self, bundle_id: int) -> Optional[Bundle]:
        """One bundle."""
        rows = self._read('SELECT id, key, state, grp, seal, size FROM '
                          'bundles WHERE id = ?', (bundle_id,))
        return Bundle(*rows[0]) if rows else None

    def size_of(self, key: str) -> Optional[int]:
        """Bytes of a bundle that is in S3; None if it is not known."""
        rows = self._read('SELECT size FROM bundles WHERE key = ? AND '
                          'size > 0', (key,))
        return int(rows[0][0]) if rows else None

    def in_state(self, state: str, until: float = 0.0,
                 limit: int = 100) -> List[Bundle]:
        """Bundles in a state whose ``drop_at`` is not after ``until``."""
        return [Bundle(*row) for row in self._read(
            'SELECT id, key, state, grp, seal, size FROM bundles WHERE '
            'state = ? AND drop_at <= ? ORDER BY drop_at LIMIT ?',
            (state, until, limit))]

    def has_bundle(self, key: str) -> bool:
        """True if the book has this key, in any state."""
        return bool(self._read('SELECT 1 FROM bundles WHERE key = ?',
                               (key,)))

    def leaves(self, key: str) -> bool:
        """True if the book lets go of this key."""
        return bool(self._read(
            "SELECT 1 FROM bundles WHERE key = ? AND state = 'leaving'",
            (key,)))

    def walk(self, after: str, limit: int) -> List[Tuple[Member, str]]:
        """(member, key of its bundle) of members that live in proven
        bundles, in the order of version keys, behind ``after``."""
        columns = ', '.join('members.' + name.strip()
                            for name in _COLUMNS.split(','))
        return [(_member(row), row[-1]) for row in self._read(
            'SELECT %s, \'\', bundles.key FROM members JOIN bundles ON '
            "bundles.id = members.bundle WHERE members.key > ? AND "
            "members.state = 'live' AND bundles.state = 'sealed' "
            'ORDER BY members.key LIMIT ?' % columns, (after, limit))]

    def replaced_at(self, bundle_id: int) -> float:
        """When the bundle was begun that a bundle's members are in now; 0
        if it has no such heir."""
        rows = self._read(
            'SELECT heir.created FROM bundles JOIN bundles AS heir ON '
            'heir.id = bundles.heir WHERE bundles.id = ?', (bundle_id,))
        return float(rows[0][0]) if rows else 0.0

    def drop_at(self, bundle_id: int) -> Optional[float]:
        """When a bundle's key is to go."""
        rows = self._read('SELECT drop_at FROM bundles WHERE id = ?',
                          (bundle_id,))
        return float(rows[0][0]) if rows else None

    def sealed_otherwise(self, prefix: str, states: Sequence[str],
                         is_due: Callable[[int], bool]
                         = lambda bundle_id: True) -> List[Bundle]:
        """Bundles in these states whose seal does not begin with
        ``prefix``, and that are due: some, if many."""
        return self._some(
            "state IN (%s) AND seal != '' AND substr(seal, 1, ?) != ?"
            % ','.join('?' * len(states)),
            (*states, len(prefix), prefix), is_due)

    def unrecorded(self) -> List[int]:
        """Sealed bundles with members whose records are not written."""
        return [int(row[0]) for row in self._read(
            "SELECT DISTINCT bundle FROM members WHERE state = 'there'",
            ())]

    def untold(self, is_due: Callable[[int], bool]
               = lambda bundle_id: True) -> List[Bundle]:
        """Bundles of whose members S3 knows too little, and that are due:
        some, if many."""
        return self._some("state = 'sealed' AND untold > 0", (), is_due)

    def with_dead(self, is_due: Callable[[int], bool], limit: int
                  ) -> List[Tuple[int, Kept, int]]:
        """(id, bundle, live members) of those that are due, or have no live
        member, those with most dead bytes first."""
        with closing(self._rows(
                'SELECT id, key, size, dead, live FROM bundles WHERE '
                "state = 'sealed' AND dead > 0 ORDER BY dead DESC",
                ())) as rows:
            return [(row[0], Kept(row[1], row[2], row[3]), row[4])
                    for row in itertools.islice(
                        (row for row in rows if not row[4] or is_due(row[0])),
                        limit)]

    def renewals(self) -> int:
        """Versions whose records in the bucket are to be renewed."""
        return int(self._read('SELECT count(*) FROM renewals', ())[0][0])

    def counts(self) -> Dict[str, Any]:
        """For status."""
        waiting = self.waiting()
        row = self._read(
            'SELECT count(*), coalesce(sum(size), 0), '
            "coalesce(sum(dead), 0), coalesce(sum(live), 0) FROM bundles "
            "WHERE state = 'sealed'", ())[0]
        leaving = self._read("SELECT count(*) FROM bundles WHERE state IN "
                             "('leaving', 'replaced')", ())[0][0]
        return {
            'leaving': leaving, 'renewals': self.renewals(),
            'waiting': sum(group.count for group in waiting),
            'waiting_bytes': sum(group.length for group in waiting),
            'groups': len(waiting), 'bundles': row[0], 'bytes': row[1],
            'dead_bytes': row[2], 'live': row[3]}

    # -- inside ----------------------------------------------------------

    def _fact(self, name: str) -> str:
        rows = self._read('SELECT value FROM facts WHERE name = ?', (name,))
        return str(rows[0][0]) if rows else ''

    def _some(self, where: str, values: Tuple[Any, ...],
              is_due: Callable[[int], bool]) -> List[Bundle]:
        """Some bundles that are due. Bundles that were put off must not fill
        every answer."""
        with closing(self._rows(
                'SELECT id, key, state, grp, seal, size FROM bundles WHERE '
                + where, values)) as rows:
            return [Bundle(*row) for row in itertools.islice(
                (row for row in rows if is_due(row[0])), _SOME)]

    def _id_of(self, key: str) -> int:
        return int(self._read('SELECT id FROM bundles WHERE key = ?',
                              (key,))[0][0])

    def _add(self, group: str, size: int, now: float) -> None:
        gathered = self._waiting.get(group) or Waiting(group, 0, 0, now)
        self._waiting[group] = Waiting(
            group, gathered.length + size, gathered.count + 1,
            min(gathered.oldest_at, now))

    def _take_out(self, rows: Iterable[Tuple[str, int]]) -> None:
        """These, (group, size) of each, do not wait any more."""
        for group, sizes in itertools.groupby(rows, lambda row: row[0]):
            length, count = 0, 0
            for _, size in sizes:
                length += size
                count += 1
            was = self._waiting[group]
            if was.count == count:
                del self._waiting[group]
                continue
            # One look into an index, however many there are.
            oldest, = self._read(
                'SELECT min(parked_at) FROM members WHERE grp = ? AND '
                "state = 'waiting'", (group,))[0]
            self._waiting[group] = Waiting(
                group, was.length - length, was.count - count, oldest)

    def _recount_all(self) -> None:
        with self._lock:
            waiting = {row[0]: Waiting(*row) for row in self._read(
                'SELECT grp, sum(size), count(*), min(parked_at) FROM '
                "members WHERE state = 'waiting' GROUP BY grp", ())}
            self._waiting = waiting


def _stated(name: str, value: str) -> _Statement:
    return 'INSERT OR REPLACE INTO facts VALUES (?, ?)', (name, value)


def _slices(keys: Iterable[str]) -> Iterator[Tuple[str, ...]]:
    """Some at a time: a statement has a limit of values."""
    left = iter(keys)
    while True:
        page = tuple(itertools.islice(left, _ASKED_AT_ONCE))
        if not page:
            return
        yield page


def _summed(bundle_id: int) -> _Statement:
    return _SUMS + 'WHERE id = ?', (bundle_id,)


def _begun(key: str, group: str, now: float) -> _Statement:
    return ('INSERT INTO bundles (key, state, grp, created, seal, size, '
            "dead, untold, live, drop_at, heir) VALUES (?, 'planned', ?, ?, "
            "'', 0, 0, 0, 0, 0, 0)", (key, group, now))


def _adopted(key: str, group: str, seal: str, size: int,
             members: Iterable[Member], now: float) -> Iterator[_Statement]:
    """Have a bundle of S3 and its members."""
    # A row that was never sealed, as after a crash, keeps its id: a daemon
    # that runs may be about to seal it.
    yield ('INSERT INTO bundles (key, state, grp, created, seal, size, '
           "dead, untold, live, drop_at, heir) VALUES (?, 'sealed', ?, ?, "
           '?, ?, 0, 0, 0, 0, 0) ON CONFLICT (key) DO UPDATE SET state = '
           "'sealed', seal = excluded.seal, size = excluded.size, "
           'drop_at = 0', (key, group, now, seal, size))
    for member in members:
        yield ('INSERT INTO members (%s) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,'
               '(SELECT id FROM bundles WHERE key = ?),?,?,?) '
               'ON CONFLICT (key) DO UPDATE SET number = excluded.number, '
               'offset = excluded.offset, stored = excluded.stored, '
               "record = x'', state = CASE state WHEN 'packed' THEN 'there' "
               'ELSE state END WHERE bundle = excluded.bundle' % _COLUMNS, (
                   member.version.key, member.state, member.version.device,
                   member.version.policy, member.version.object_hash,
                   member.version.timestamp, member.version.frag_index,
                   member.partition, group, member.size, member.etag, now, key,
                   member.number, member.offset, member.stored))
    yield ('DELETE FROM ' + _UNPLACED
           + ' = (SELECT id FROM bundles WHERE key = ?)', (key,))
    yield _SUMS + 'WHERE key = ?', (key,)


def _held(version: VersionId, partition: str,
          bundle: str = '') -> _Statement:
    return ('INSERT OR REPLACE INTO holders (key, device, partition, leans) '
            'SELECT ?, ?, ?, CASE WHEN EXISTS (SELECT 1 FROM bundles WHERE '
            "key = ?4) THEN '' ELSE ?4 END",
            (version.key, version.device, partition, bundle))


def _member(row: Tuple[Any, ...]) -> Member:
    return Member(VersionId(row[2], row[3], row[4], row[5], row[6]), row[7],
                  row[1], row[8], row[9], row[10], *row[12:17])
