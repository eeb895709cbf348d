"""Rows that a pin keeps, by class or by rule."""

from __future__ import annotations

from typing import List, Sequence, Tuple

from swift_dss.tier.index.file import CHUNK_ROWS, IndexFile
from swift_dss.tier.index.places import Places


class PinRows:
    """Those of one file."""

    def __init__(self, file: IndexFile, places: Places) -> None:
        self._file = file
        self._places = places

    def set_movable(self, class_id: int, movable: bool,
                    min_demote_bytes: int) -> int:
        """A class was pinned or unpinned: bring its rows up to date."""
        changed = 0
        while True:
            with self._file.batch():
                done = self._file.db.execute(
                    'UPDATE span SET movable = ? WHERE class_id = ? AND '
                    'version_id IN (SELECT s.version_id FROM span s JOIN '
                    'version v ON v.id = s.version_id WHERE s.class_id = ? '
                    'AND s.movable != ? AND v.pinned = 0 AND '
                    'v.pin_rule != 2 AND v.size > ? '
                    'LIMIT ?)', (int(movable), class_id, class_id,
                                 int(movable), min_demote_bytes,
                                 CHUNK_ROWS)).rowcount
            changed += done
            if not done:
                break
        if changed and movable and self._file.order.names_order(class_id):
            with self._file.batch():
                for device_id in self._file.names:
                    self._file.order.unsettle(self._file.db, device_id,
                                              class_id)
        return changed

    def sizes(self, device: str) -> List[Tuple[int, int, int]]:
        """(bucket, versions, bytes) of versions that the pin rule fits."""
        with self._file.held():
            return self._file.db.execute(
                'SELECT bucket, count, bytes FROM pin_sizes WHERE '
                'device_id = ? AND count > 0 ORDER BY bucket',
                (self._file.device_id(device),)).fetchall()

    def up_to(self, device: str, size: int, class_ids: Sequence[int],
              min_demote_bytes: int) -> int:
        """Pin versions that the rule fits up to a size, and release the rest,
        a chunk at a time; how many changed (0: all are right).

        :param class_ids: of classes that are pinned themselves
        """
        device_id = self._file.device_id(device)
        with self._file.batch():
            pin = [row[0] for row in self._file.db.execute(
                'SELECT id FROM version WHERE device_id = ? AND pin_rule = 3 '
                'AND size <= ? LIMIT ?', (device_id, size, CHUNK_ROWS))]
            free = [row[0] for row in self._file.db.execute(
                'SELECT id FROM version WHERE device_id = ? AND pin_rule = 2 '
                'AND size > ? LIMIT ?', (device_id, size, CHUNK_ROWS))]
            self._set_pins(pin, 2, (), 0)
            self._set_pins(free, 3, class_ids, min_demote_bytes)
        return len(pin) + len(free)

    def look(self, device: str, after_id: int, limit: int,
             idle_before: float, class_ids: Sequence[int],
             min_demote_bytes: int) -> int:
        """Of the next ``limit`` rows, release pins of versions unused since
        ``idle_before``, and pin used ones again. Returns where to go on (0:
        from the beginning).
        """
        with self._file.batch():
            rows = self._file.db.execute(
                'SELECT v.id, v.pin_rule, max(s.read_at) FROM version v '
                'JOIN span s ON s.version_id = v.id WHERE v.device_id = ? '
                'AND v.pin_rule > 0 AND v.id > ? GROUP BY v.id '
                'ORDER BY v.id LIMIT ?',
                (self._file.device_id(device), after_id, limit)).fetchall()
            self._set_pins([row[0] for row in rows if row[1] != 4
                            and row[2] < idle_before], 4, class_ids,
                           min_demote_bytes)
            self._set_pins([row[0] for row in rows if row[1] == 4
                            and row[2] >= idle_before], 3, class_ids,
                           min_demote_bytes)
        return int(rows[-1][0]) if len(rows) == limit else 0

    def _set_pins(self, ids: Sequence[int], rule: int,
                  class_ids: Sequence[int], min_demote_bytes: int) -> None:
        self._file.db.executemany(
            'UPDATE version SET pin_rule = ? WHERE id = ?',
            [(rule, row_id) for row_id in ids])
        if rule == 2:
            self._file.db.executemany('UPDATE span SET movable = 0 WHERE '
                                      'version_id = ?',
                                      [(version_id,) for version_id in ids])
            return
        # "NOT IN ()" is true, and SQLite takes it.
        self._file.db.executemany(
            'UPDATE span SET movable = 1 WHERE version_id = ?1 AND '
            '(SELECT pinned = 0 AND size > ?2 FROM version WHERE id = ?1) '
            'AND class_id NOT IN (%s)' % ','.join(
                '?%d' % number for number in range(3, 3 + len(class_ids))),
            [(version_id, min_demote_bytes) + tuple(class_ids)
             for version_id in ids])
        for version_id in ids:
            self._places.ensure(version_id)
