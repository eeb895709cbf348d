"""A dry run of a restore: its counts, and nothing is written.

It reads, asks and judges as the restore does. It cannot foresee a server that
does not answer or a device that gets full.
"""

from __future__ import annotations

import json
import os
import sqlite3
from typing import Any, List, Optional, Tuple

from swift_dss.core.errors import BadConfig
from swift_dss.core.version import VersionId
from swift_dss.gateway.bundle.book import Book
from swift_dss.gateway.restore.adopt import Adoption
from swift_dss.gateway.restore.catalog import Held
from swift_dss.gateway.restore.places import Place
from swift_dss.gateway.restore.run import Restore
from swift_dss.gateway.restore.write import (
    PlaceWriter, Target, Writer, registers_there, split_metadata)
from swift_dss.strategy.agreement import Answer
from swift_dss.wire import layout, registers
from swift_dss.wire.registers import Registers

#: In the place of a path: the version would be there by now.
_PLANNED = '+'


class PlannedWriter(Writer):
    """Writes no version, and says if it would have to.

    The bucket may have several records of a version, and older versions of an
    object. So the versions that the restore would have written by now are
    remembered, in a file of SQLite's own that ends with the process: memory
    does not grow with the bucket.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._planned = sqlite3.connect('', isolation_level=None)
        self._planned.execute(
            'CREATE TABLE versions (folder TEXT, stamp TEXT, fragment TEXT,'
            ' registers TEXT, PRIMARY KEY (folder, stamp, fragment))')

    def look(self, version: VersionId, partition: str,
             records: bool = False) -> Answer:
        """See :meth:`Writer.look`."""
        answer = super().look(version, partition, records)
        folder = layout.hash_dir(
            os.path.join(self._conf.devices, version.device),
            version.policy, partition, version.object_hash)
        return answer._replace(timestamp=max(
            answer.timestamp, self._newest_planned(folder)))

    def list_in_container(self, held: Held) -> None:
        """Nothing is listed."""

    # -- inside ----------------------------------------------------------

    def _newest(self, held: Held, target: Target) -> Tuple[str, str]:
        newest, there = super()._newest(held, target)
        folder = self._folder(held, target)
        if not there and self._planned_registers(folder, held):
            there = _PLANNED
        return max(newest, self._newest_planned(folder)), there

    def _make(self, disk_file: Any, held: Held, target: Target) -> None:
        data, post = split_metadata(held)
        values = registers.of_data(data)
        self._note(self._folder(held, target), held, registers.join(
            registers.of_post(post), values) if post else values)

    def _renew(self, disk_file: Any, held: Held, target: Target,
               data_path: str) -> bool:
        _data, post = split_metadata(held)
        if not post:
            return False
        folder = self._folder(held, target)
        there = self._planned_registers(folder, held) or \
            registers_there(data_path)
        after = registers.join(there, registers.of_post(post))
        if after == there:
            return False
        self._note(folder, held, after)
        return True

    def _note(self, folder: str, held: Held, values: Registers) -> None:
        self._planned.execute(
            'INSERT OR REPLACE INTO versions VALUES (?, ?, ?, ?)', (
                folder, *_names(held), json.dumps(values)))

    def _newest_planned(self, folder: str) -> str:
        row = self._planned.execute(
            'SELECT max(stamp) FROM versions WHERE folder = ?',
            (folder,)).fetchone()
        return str(row[0] or '')

    def _planned_registers(self, folder: str,
                           held: Held) -> Optional[Registers]:
        row = self._planned.execute(
            'SELECT registers FROM versions WHERE (folder, stamp, fragment)'
            ' = (?, ?, ?)', (folder, *_names(held))).fetchone()
        return Registers(*json.loads(row[0])) if row else None


class PlannedPlaces(PlaceWriter):
    """Writes no account and no container."""

    def write(self, place: Place) -> None:
        """See :meth:`PlaceWriter.write`."""

    def require(self, held: Held) -> None:
        """See :meth:`PlaceWriter.require`."""


class PlannedAdoption(Adoption):
    """Counts the bundles, and writes no book."""

    def __init__(self) -> None:
        super().__init__(_no_book, 0.0)

    def _keep(self, device: str,
              members: List[Tuple[Held, List[Target]]]) -> None:
        """No book gets it."""


class PlannedRestore(Restore):
    """Begins where the restore would, and leaves no note of its progress."""

    def _note(self, after: Optional[str]) -> None:
        """The restore itself notes it."""

    def _finish(self) -> None:
        """Nor has anything ended."""


def _names(held: Held) -> Tuple[str, str]:
    """Timestamp and fragment of a version."""
    version = held.record.version
    return version.timestamp, str(version.frag_index)


def _no_book(_device: str) -> Book:
    raise BadConfig('a dry run has no book of bundles')
