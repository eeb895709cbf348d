"""Candidates to leave the SSD and the HDD, in the order of leaving."""

from __future__ import annotations

import contextlib
from typing import (
    Any, Collection, Dict, Iterable, List, Optional, Sequence, Tuple)

from swift_dss.core.version import VersionId
from swift_dss.tier.index import placing, schema
from swift_dss.tier.index.file import IndexFile
from swift_dss.tier.index.places import SPANS_OF
from swift_dss.tier.index.rows import Candidate

_EVICTABLE = 'movable = 1 AND ssd > dirty AND '
#: Bytes that S3 has, of versions that have nothing on the HDD: a record that
#: names an HDD which is away cannot be changed.
_OFF_HDD = (' AND remote > 0 AND NOT EXISTS (SELECT 1 FROM span o WHERE '
            'o.version_id = s.version_id AND o.hdd > 0)')


class _Undo(Exception):
    """Take a transaction back that was only a trial."""


class Victims:
    """Those of one file. Dirty and pinned bytes are never among bytes that
    may leave."""

    def __init__(self, file: IndexFile) -> None:
        self._file = file

    def occupancy(self, device: str) -> Dict[int, Dict[str, int]]:
        """Sums of a device by class id; keys are the schema's columns."""
        with self._file.held():
            rows = self._file.db.execute(
                'SELECT class_id, %s FROM occupancy WHERE device_id = ?'
                % ', '.join(schema.COLUMNS),
                (self._file.device_id(device),)).fetchall()
        return {row[0]: dict(zip(schema.COLUMNS, row[1:])) for row in rows}

    def next(self, device: str, class_ids: Sequence[int], wanted: int,
             limit: int, skipped: Collection[VersionId] = ()
             ) -> List[Candidate]:
        """Evictable bytes that leave next, in the order of their classes.

        Some orders update their state when asked for victims. Evict every
        candidate returned, or pass it in ``skipped`` next time.

        :param class_ids: one order over all of them
        :param wanted: bytes; no more rows than it takes
        """
        if not class_ids or not self._file.order.names_order(class_ids[0]):
            return [candidate for candidate in self.least_recent(
                device, class_ids, limit + len(skipped))
                if candidate.version not in skipped]
        device_id, more = self._file.device_id(device), True
        hidden = self._spans_of_all(skipped)
        victims: List[placing.Victim] = []
        while more and not victims:
            with self._file.batch():
                victims, more = self._file.order.victims(
                    self._file.db, device_id, class_ids, wanted, limit, hidden)
        candidates = [self._candidate(device, victim) for victim in victims]
        return candidates or [candidate for candidate in self.least_recent(
            device, class_ids, limit + len(skipped))
            if candidate.version not in skipped]

    def next_if_clean(self, device: str, class_ids: Sequence[int],
                      wanted: int) -> Optional[List[Candidate]]:
        """Dirty bytes among those that would leave next if all were clean;
        None if that is the least recently used one. Changes nothing."""
        if not class_ids or not self._file.order.names_order(class_ids[0]):
            return None
        victims: List[placing.Victim] = []
        with contextlib.suppress(_Undo), self._file.batch():
            victims, _ = self._file.order.victims(
                self._file.db, self._file.device_id(device), class_ids, wanted,
                placing.STEPS, (), dirty=True)
            raise _Undo
        return [self._candidate(device, victim) for victim in victims
                if self._is_dirty(victim)]

    def settle_orders(self, device: str) -> bool:
        """Give a place to rows that have none in the order in force, some
        at a time; False if there are more."""
        device_id = self._file.device_id(device)
        with self._file.held():
            left = self._file.order.to_settle(self._file.db, device_id,
                                              self.occupancy(device))
        for class_id in left:
            with self._file.batch():
                self._file.order.settle(self._file.db, device_id, class_id)
        return not left

    def least_recent(self, device: str, class_ids: Iterable[int],
                     limit: int, off_hdd: bool = False) -> List[Candidate]:
        """Evictable bytes of these classes but cold copies, least recently
        used first.

        :param off_hdd: only those that may leave without the HDD. Looks at
            every row before them
        """
        return self._merge(device, class_ids, limit, 'ssd - dirty',
                           _EVICTABLE + 'warmth != 1'
                           + off_hdd * _OFF_HDD, 'read_at')

    def cold(self, device: str, class_ids: Iterable[int], limit: int,
             off_hdd: bool = False) -> List[Candidate]:
        """The same of cold copies."""
        return self._merge(device, class_ids, limit, 'ssd - dirty',
                           _EVICTABLE + 'warmth = 1' + off_hdd * _OFF_HDD,
                           'read_at')

    def cold_dirty(self, device: str, class_ids: Iterable[int],
                   limit: int) -> List[Candidate]:
        """Bytes of cold copies that could leave if they were clean."""
        return self._merge(device, class_ids, limit, 'dirty',
                           'movable = 1 AND dirty > 0 AND warmth = 1',
                           'read_at')

    def least_recent_spare(self, device: str, class_ids: Iterable[int],
                           limit: int) -> List[Candidate]:
        """HDD bytes with a verified remote copy, in the same order; of a
        pinned version only if the SSD has them too."""
        return self._merge(
            device, class_ids, limit, 'spare',
            'spare > 0 AND (v.pinned = 0 OR s.ssd = s.total)', 'read_at')

    def least_recent_remote(self, device: str, class_ids: Iterable[int],
                            limit: int, off_hdd: bool = False
                            ) -> List[Candidate]:
        """Movable versions with local bytes whose copy in S3 is verified.

        :param off_hdd: as in :meth:`least_recent`
        """
        in_s3 = _OFF_HDD if off_hdd else ' AND remote > 0'
        candidates = [candidate for warmth in ('warmth = 1', 'warmth != 1')
                      for candidate in self._merge(
                          device, class_ids, limit, 'ssd',
                          _EVICTABLE + warmth + in_s3, 'read_at')]
        return candidates[:limit]

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
        with self._file.held():
            rows = [self._file.db.execute(
                'SELECT put_at FROM span WHERE device_id = ? AND class_id '
                '= ? AND movable = 1 AND dirty > 0 ORDER BY put_at LIMIT 1',
                (self._file.device_id(device), class_id)).fetchone()
                for class_id in self.occupancy(device)]
        return min((row[0] for row in rows if row), default=None)

    def _is_dirty(self, victim: placing.Victim) -> bool:
        row = self._file.one(
            'SELECT ssd = dirty FROM span WHERE version_id = ? '
            'AND class_id = ?', victim[:2])
        return bool(row and row[0])

    def _spans_of_all(self, versions: Iterable[VersionId]
                      ) -> List[Tuple[int, int]]:
        with self._file.held():
            return [span[:2] for version in versions
                    for span in self._file.db.execute(
                        SPANS_OF, self._file.key(version)
                        + (version.timestamp,))]

    def _candidate(self, device: str, victim: placing.Victim) -> Candidate:
        row = self._file.one(
            'SELECT hash, timestamp, frag, policy, partition, size FROM '
            'version WHERE id = ?', (victim.version_id,))
        assert row is not None  # A span without its version cannot be.
        return Candidate(
            VersionId(device, row[3], row[0].hex(), row[1],
                      None if row[2] < 0 else row[2]),
            row[4], row[5], victim.class_id, victim.length)

    def _merge(self, device: str, class_ids: Iterable[int], limit: int,
               length: str, where: str, order: str,
               before: Optional[float] = None) -> List[Candidate]:
        """One order over several classes, each read from its own index."""
        until = '' if before is None else ' AND s.%s <= ?' % order
        bound = () if before is None else (before,)
        rows: List[Tuple[Any, ...]] = []
        with self._file.held():
            for class_id in class_ids:
                rows += self._file.db.execute(
                    'SELECT s.{2}, v.hash, v.timestamp, v.frag, v.policy, '
                    'v.partition, v.size, s.class_id, {0} FROM span s JOIN '
                    'version v ON v.id = s.version_id WHERE s.device_id = ? '
                    'AND s.class_id = ? AND {1}{3} ORDER BY s.{2} LIMIT ?'
                    .format(length, where, order, until),
                    (self._file.device_id(device), class_id, *bound, limit))
        rows.sort(key=lambda row: row[0])
        return [Candidate(VersionId(device, row[4], row[1].hex(), row[2],
                                    None if row[3] < 0 else row[3]),
                          row[5], row[6], row[7], row[8])
                for row in rows[:limit]]
