"""Orders to delete: versions that were overwritten or deleted here."""

from __future__ import annotations

from typing import Iterable, Tuple

from swift_dss.core.version import VersionId
from swift_dss.gateway.around import Around
from swift_dss.gateway.bundle.book import Book
from swift_dss.gateway.collect.keys import Deletions
from swift_dss.gateway.up.deletes import Agreement
from swift_dss.gateway.up.jobs import Jobs


class Orders(Deletions):
    """Takes orders to delete. Thread-safe."""

    def __init__(self, around: Around, jobs: Jobs, book: Book,
                 agreement: Agreement) -> None:
        self._conf = around.conf
        self._jobs = jobs
        self._line = jobs.line
        self._book = book
        self._agreement = agreement
        self._clock = around.clock

    def delete(self, obsolete: Iterable[Tuple[VersionId, str]]) -> None:
        """Note that the keys of these versions (and their partitions, or '')
        must go, in one transaction. Idempotent, durable; an upload of one
        that is running ends.

        :raises TierUnavailable: the queue's disk is full; none was noted
        """
        asked = list(obsolete)
        if not asked:
            return
        due = self._clock.wall() + self._conf.delete_delay_seconds
        # No other node marks members of this node's bundles.
        ours = self._book.known(version.key for version, _ in asked)
        self._jobs.cancel([(version, partition, due + (
            0.0 if version.key in ours else self._line.rank(version)
            * self._conf.take_over_seconds)) for version, partition in asked])
        self._agreement.kick()
