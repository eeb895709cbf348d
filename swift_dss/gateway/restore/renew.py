"""Renew the bucket's record of a version after a POST.

Data in S3 is never changed in place, and neither is the record in its user
metadata. The newer record goes to ``<key>.meta`` (or, for a member of a
bundle, beside the bundle), where readers of the bucket look first. For a
bundle that another node keeps, ``gateway.bundle.say`` writes it.
"""

from __future__ import annotations

from functools import partial
from typing import Callable, Dict, Iterable, List, Optional, Sequence, Tuple

from swift_dss.core.errors import (
    DamagedRecord, DssError, VersionGone)
from swift_dss.core.version import VersionId
from swift_dss.gateway.around import Around
from swift_dss.gateway.bundle.read import is_bundle
from swift_dss.gateway.bundle.say import Sayer
from swift_dss.gateway.bundle.shelves import Shelves
from swift_dss.gateway.bundle.troubles import Troubles
from swift_dss.gateway.form import metadata
from swift_dss.gateway.form.own_record import OwnRecords
from swift_dss.gateway.link.client import S3Down
from swift_dss.gateway.ports import LocalVersion, LocalVersions
from swift_dss.gateway.queue import Queue

#: An upload that is under way may have read the old metadata.
_UPLOADING_SECONDS = 30.0
#: One that failed is tried again after this.
_AGAIN_SECONDS = 600.0
_AT_ONCE = 100
#: (version, partition, not_before) of a row.
_Due = Tuple[VersionId, str, float]


class Renewer:
    """Brings records up to date. Called by one thread at a time.

    :param sayer: tells of versions whose records name a bundle that another
        node keeps
    :param troubles: is told why one was put off
    """

    def __init__(self, around: Around, shelves: Shelves,
                 local: LocalVersions, queue: Queue, sayer: Sayer,
                 troubles: Troubles) -> None:
        self._conf = around.conf
        self._client = shelves.client
        self._local = local
        self._queue = queue
        self._book = shelves.book
        self._metrics = around.metrics
        self._clock = around.clock
        self._records = OwnRecords(shelves.client, shelves.keys)
        self._sayer = sayer
        self._troubles = troubles

    def note(self, changed: Iterable[Tuple[VersionId, str, int]]) -> bool:
        """The metadata of these changed: (version, partition, rank of this
        device). Durable, idempotent. False if there are none.

        :raises TierUnavailable: the book's disk is full; nothing was noted
        """
        now = self._clock.wall()
        rows = [(version, partition, now
                 + (not self._book.knows(version.key) and rank)
                 * self._conf.take_over_seconds)
                for version, partition, rank in changed]
        if rows:
            self._book.add_renewals(rows)
        return bool(rows)

    def run(self) -> bool:
        """Renew due records; one that fails is put off. True if there may be
        more.

        :raises S3Down: the rest another time
        """
        elsewhere: Dict[str, List[Tuple[_Due, LocalVersion]]] = {}
        dues = self._book.due_renewals(self._clock.wall(), _AT_ONCE)
        for due in dues:
            self._settle([due], partial(self._renew, due, elsewhere))
        for key, pairs in elsewhere.items():
            self._settle([due for due, _ in pairs], partial(
                self._sayer.say, key, [local for _, local in pairs]))
        return len(dues) == _AT_ONCE

    def _settle(self, dues: Sequence[_Due],
                work: Callable[[], Optional[float]]) -> None:
        """Let rows go, unless ``work`` says when to look again."""
        try:
            again = work()
        except S3Down:
            raise
        except DssError as err:
            # A drive that is away, or a key that S3 refuses.
            self._troubles.note(err)
            again = self._clock.wall() + _AGAIN_SECONDS
        for version, partition, at in dues:
            if again is None:
                self._book.finish_renewal(version, at)
            elif again > at:
                self._book.add_renewals([(version, partition, again)])

    def _renew(self, due: _Due, elsewhere: Dict[
            str, List[Tuple[_Due, LocalVersion]]]) -> Optional[float]:
        """When to look again; None if the bucket knows, or need not.

        :param elsewhere: gets those whose bundle another node keeps
        """
        version, partition, at = due
        try:
            local = self._local.describe(version, partition)
        except (VersionGone, DamagedRecord):
            return None
        if self._book.renew(version.key):
            return None
        remote = local.residency.remote
        if remote is None and local.content_length:
            if self._queue.uploads_of(version.key):
                return self._clock.wall() + _UPLOADING_SECONDS
            return None
        key = metadata.own_key(self._conf.prefix, version)
        if remote is not None and remote.key != key:
            if is_bundle(self._conf.prefix, remote.key):
                elsewhere.setdefault(remote.key, []).append((due, local))
                return at
            return None
        self.write(key, local, partition)
        return None

    def write(self, key: str, local: LocalVersion, partition: str) -> None:
        """Have ``<key>.meta`` tell of each POST that ``local`` knows.
        Idempotent."""
        remote = local.residency.remote
        if not self._records.bring(key, local, remote.seal if remote else ''):
            return
        self._metrics.count('gateway.renewed')
        newest = self._local.newest(local.version, partition)
        if newest is not None and newest > local.version.timestamp:
            # Deleted by now: its side cars may have gone before this.
            self._client.delete(key + metadata.META_SUFFIX)
