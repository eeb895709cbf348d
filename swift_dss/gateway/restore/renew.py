"""Renew the bucket's record of a version after a POST.

Data in S3 is never changed in place, and neither is the record in its user
metadata. The newer record goes to ``<key>.meta`` (or, for a member of a
bundle, beside the bundle), where readers of the bucket look first. For a
bundle that another node keeps, ``gateway.bundle.say`` writes it.
"""

from __future__ import annotations

from functools import partial
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import (
    DamagedRecord, DssError, VersionGone)
from swift_dss.core.version import VersionId
from swift_dss.gateway.bundle.book import Book
from swift_dss.gateway.bundle.read import is_bundle
from swift_dss.gateway.form import metadata
from swift_dss.gateway.form.own_record import OwnRecords
from swift_dss.gateway.link.client import S3Client, S3Down
from swift_dss.gateway.ports import LocalVersion, LocalVersions, Metrics
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

    :param say: tells of versions, whose records name a bundle that another
        node keeps
    :param note: is told why one was put off
    """

    def __init__(self, conf: GatewayConf, client: S3Client,
                 local: LocalVersions, queue: Queue, book: Book,
                 metrics: Metrics, now: Callable[[], float],
                 records: OwnRecords,
                 say: Callable[[str, Sequence[LocalVersion]], None],
                 note: Callable[[DssError], None]) -> None:
        self._conf = conf
        self._client = client
        self._local = local
        self._queue = queue
        self._book = book
        self._metrics = metrics
        self._now = now
        self._records = records
        self._say = say
        self._note = note

    def run(self) -> None:
        """Renew due records; one that fails is put off.

        :raises S3Down: the rest another time
        """
        elsewhere: Dict[str, List[Tuple[_Due, LocalVersion]]] = {}
        for due in self._book.due_renewals(self._now(), _AT_ONCE):
            self._settle([due], partial(self._renew, due, elsewhere))
        for key, some in elsewhere.items():
            self._settle([due for due, _ in some], partial(
                self._say, key, [local for _, local in some]))

    def _settle(self, some: Sequence[_Due],
                work: Callable[[], Optional[float]]) -> None:
        """Let rows go, unless ``work`` says when to look again."""
        try:
            again = work()
        except S3Down:
            raise
        except DssError as err:
            # A drive that is away, or a key that S3 refuses.
            self._note(err)
            again = self._now() + _AGAIN_SECONDS
        for version, partition, at in some:
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
                return self._now() + _UPLOADING_SECONDS
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
