"""Read S3's copies back slowly, before a client needs them.

One version after another is read back and proven as a reader would prove
it, at ``scrub_bytes_per_second``, as work that waits until the link is idle. A
copy that is missing or wrong in S3 is sent again if all bytes are here with
the right digest; if not, it is reported, and nothing is changed.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Callable, Dict, List, Optional

from swift_dss.core.errors import (
    DssError, RemoteCorrupt, RemoteUnavailable, VersionGone)
from swift_dss.core.version import VersionId
from swift_dss.gateway.around import Around
from swift_dss.gateway.down.supply import Supply
from swift_dss.gateway.form.one_key import Tries
from swift_dss.gateway.link.client import S3Missing
from swift_dss.gateway.mend.repair import Repaired
from swift_dss.gateway.mend.repairs import Repairs
from swift_dss.gateway.ports import Listed, LocalVersion, LocalVersions

#: The next versions with a copy in S3 behind a place; none at the end.
Lister = Callable[[int], List[Listed]]
#: Pause after everything was read, before the next pass.
REST_SECONDS = 3600.0
#: While S3 does not answer.
_AGAIN_SECONDS = 30.0


#: The outcomes for a wrong version, in words.
_ENDS = {Repaired.SENT: 'sent again',
         Repaired.FOUND: 'found under its own key',
         Repaired.ASIDE: 'put into quarantine here; another node has it and '
                         'sends it'}


class Scrubber:
    """The thread that does it, and its counters."""

    def __init__(self, around: Around, supply: Supply, local: LocalVersions,
                 repairs: Repairs) -> None:
        self._conf = around.conf
        self._supply = supply
        self._local = local
        self._repairs = repairs
        self._metrics = around.metrics
        self._logger = around.logger
        self._stopping = around.stopping
        self._thread: Optional[threading.Thread] = None
        self._counts = {'versions': 0, 'bytes': 0, 'wrong': 0,
                        'sent_anew': 0, 'passes': 0}

    def start(self, lister: Lister, at: int = 0,
              note: Callable[[int], None] = lambda at: None) -> None:
        """Begin, unless the rate is 0.

        :param at: where an earlier daemon had come to
        :param note: told where it has come to
        """
        if self._conf.scrub_bytes_per_second > 0:
            self._thread = threading.Thread(
                target=self._run, args=(lister, at, note),
                name='dss-s3-scrub', daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Wait for its end. ``stopping`` MUST be set."""
        if self._thread is not None:
            self._thread.join()

    def status(self) -> Dict[str, Any]:
        """Plain values."""
        return dict(self._counts)

    def _run(self, lister: Lister, at: int,
             note: Callable[[int], None]) -> None:
        while not self._stopping.is_set():
            try:
                page = lister(at)
                for _row, version, partition in page:
                    if not self._paced(version, partition):
                        return
                at = page[-1][0] if page else 0
                note(at)
            except Exception:
                # The index was replaced, or the disk is full.
                self._logger.exception('gateway: scrub')
                page = []
            if not page:
                self._counts['passes'] += 1
                self._stopping.wait(REST_SECONDS)

    def _paced(self, version: VersionId, partition: str) -> bool:
        """One version, then the rest of its time; False to end."""
        began = time.monotonic()
        tries = Tries()
        while not self._stopping.is_set():
            try:
                length = self.look(version, partition)
            except RemoteUnavailable as err:
                # S3 is away: it is not known to be wrong.
                self._metrics.count('gateway.%s' % err.counter)
                if not tries.are_used_up(err):
                    self._stopping.wait(_AGAIN_SECONDS)
                    continue
                self._logger.warning(
                    'gateway: scrub: S3 does not give %s (%s); the next one '
                    'is read', version.key, err)
                length = 0
            except DssError as err:
                # A fault of our own disk, which others report.
                self._metrics.count('gateway.%s' % err.counter)
                length = 0
            self._stopping.wait(max(
                0.0, length / self._conf.scrub_bytes_per_second
                - (time.monotonic() - began)))
            break
        return not self._stopping.is_set()

    def look(self, version: VersionId, partition: str) -> int:
        """Read one version back; how many bytes that were.

        :raises DssError: it cannot be said now
        """
        try:
            local = self._local.describe(version, partition)
        except VersionGone:
            return 0
        if local.residency.remote is None:
            return 0
        try:
            self._supply.prove(local)
        except (RemoteCorrupt, S3Missing) as err:
            self._wrong(local, err)
        self._counts['versions'] += 1
        self._counts['bytes'] += local.content_length
        self._metrics.count('gateway.scrubbed_bytes', local.content_length)
        return local.content_length

    def _wrong(self, seen: LocalVersion, err: DssError) -> None:
        version, partition = seen.version, seen.partition
        try:
            outcome = self._repairs.repair([(version, partition)])
        except RemoteCorrupt as refused:
            self._count_wrong()
            self._logger.error(
                'gateway: scrub: %s on %s cannot be put right from here: %s',
                seen.metadata.get('name', version.key), version.device,
                refused)
            return
        if outcome in (Repaired.RIGHT, Repaired.OBSOLETE):
            return  # it was sent again, or is being removed
        self._count_wrong()
        if outcome is not Repaired.ASIDE:
            self._counts['sent_anew'] += 1
            self._metrics.count('gateway.scrub_sent_anew')
        self._logger.warning(
            'gateway: scrub: %s was wrong in S3 (%s); it was %s',
            seen.metadata.get('name', version.key), err, _ENDS[outcome])

    def _count_wrong(self) -> None:
        self._counts['wrong'] += 1
        self._metrics.count('gateway.scrub_wrong')
