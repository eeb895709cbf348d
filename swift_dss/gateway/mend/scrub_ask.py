"""Ask S3 for every version's key now and then, by default.

Reading everything back costs traffic; asking whether a key is still there,
with its size and ETag, costs one HEAD: $0.40 a million versions at list
prices. So every version is asked for once in ``scrub_days``, spread evenly, by
the first of its replicas alone. A missing key is sent again while its bytes
are still here; a key that differs is read back and repaired.

A listing names 1,000 keys for the price of 12.5 HEADs, but keys are in order
of hash and rows are not: to compare the two, a node would have to hold all its
keys in memory, or list the bucket once for each page of rows. At a million
versions that would save $0.39 a month.
"""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, NamedTuple, Optional

from swift_dss.core.errors import (
    DssError, RemoteCorrupt, RemoteUnavailable, VersionGone)
from swift_dss.core.version import VersionId
from swift_dss.gateway.around import Around
from swift_dss.gateway.form.one_key import Tries
from swift_dss.gateway.mend.scrub import Lister
from swift_dss.gateway.peers.succession import Succession
from swift_dss.gateway.ports import LocalVersions, NotProven, Witness

#: While S3 does not answer.
_AGAIN_SECONDS = 30.0
#: No wait is longer, so that a changed number of versions is noticed.
_LOOK_SECONDS = 3600.0
#: The place of a pass is noted after every version if they are so far
#: apart, and after every page if they are not.
_NOTE_SECONDS = 1.0


class Pass(NamedTuple):
    """The place of a pass over all versions.

    :param at: row up to which versions were asked for
    :param began: seconds since the epoch
    """

    at: int
    began: float


class Rounds(NamedTuple):
    """The daemon's functions for the scrub.

    :param lister: the next versions with a copy in S3
    :param versions: how many there are, about
    :param note: notes the place of the pass durably
    """

    lister: Lister
    versions: Callable[[], int]
    note: Callable[[Pass], None]


class AskScrubber:
    """The thread that asks, and its counters.

    :param line: the first in it asks
    """

    def __init__(self, around: Around, local: LocalVersions,
                 witness: Witness, line: Succession) -> None:
        self._period = around.conf.scrub_days * 86400.0
        self._local = local
        self._witness = witness
        self._line = line
        self._metrics = around.metrics
        self._logger = around.logger
        self._stopping = around.stopping
        self._clock = around.clock
        self._thread: Optional[threading.Thread] = None
        self._pass = Pass(0, 0.0)
        self._counts = {'asked': 0, 'missing': 0, 'lost': 0, 'passes': 0}

    def start(self, rounds: Rounds, begin: Pass) -> None:
        """Begin, unless ``scrub_days`` is 0.

        :param begin: where an earlier daemon had come to
        """
        if self._period <= 0:
            return
        # A clock that was set back must not make a pass wait for years.
        began = min(begin.began or self._clock.wall(), self._clock.wall())
        self._pass = Pass(begin.at, began)
        self._thread = threading.Thread(
            target=self._run, args=(rounds,), name='dss-s3-scrub-ask',
            daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Wait for its end. ``stopping`` MUST be set."""
        if self._thread is not None:
            self._thread.join()

    def status(self) -> Dict[str, Any]:
        """Plain values."""
        return dict(self._counts, pass_began=self._pass.began or None,
                    days=self._period / 86400.0)

    def _run(self, rounds: Rounds) -> None:
        while not self._stopping.is_set():
            try:
                self._page(rounds)
            except Exception:
                # The index was replaced, or the disk is full.
                self._logger.exception('gateway: scrub')
                self._stopping.wait(_AGAIN_SECONDS)

    def _page(self, rounds: Rounds) -> None:
        """Some versions, then the rest of their time."""
        page = rounds.lister(self._pass.at)
        if not page:
            self._end_pass(rounds)
            return
        for row, version, partition in page:
            pace = self._pace(rounds)
            if self._stopping.wait(pace):
                break
            tries = Tries()
            while not self._ask(version, partition, tries):
                if self._stopping.wait(_AGAIN_SECONDS):
                    break
            else:
                self._pass = self._pass._replace(at=row)
            if pace >= _NOTE_SECONDS:
                rounds.note(self._pass)
        rounds.note(self._pass)

    def _pace(self, rounds: Rounds) -> float:
        """Seconds between two versions."""
        return min(_LOOK_SECONDS, self._period / max(1, rounds.versions()))

    def _end_pass(self, rounds: Rounds) -> None:
        """All were asked for: the next pass begins when it is its time."""
        left = self._pass.began + self._period - self._clock.wall()
        if left > 0:
            # Versions that come during a pass are behind the others.
            self._stopping.wait(min(left, _LOOK_SECONDS))
            return
        self._counts['passes'] += bool(self._pass.at)
        self._pass = Pass(0, self._clock.wall())
        rounds.note(self._pass)
        if not rounds.lister(0):
            self._stopping.wait(min(self._period, _LOOK_SECONDS))

    def _ask(self, version: VersionId, partition: str,
             tries: Tries) -> bool:
        """Ask for one version; False if it is to be tried again."""
        try:
            if self._line.rank(version):
                return True  # the first of its replicas asks
            local = self._local.describe(version, partition)
            if local.residency.remote is None:
                return True
            self._witness.proven(local)
        except VersionGone:
            return True
        except NotProven:
            self._counts['missing'] += 1
        except RemoteCorrupt:
            self._counts['lost'] += 1
        except RemoteUnavailable as err:
            self._metrics.count('gateway.%s' % err.counter)
            if not tries.are_used_up(err):
                return False
            self._logger.warning(
                'gateway: scrub: S3 does not answer for %s (%s); the next '
                'one is asked for', version.key, err)
            return True
        except DssError as err:
            # A fault of our own disk, which others report.
            self._metrics.count('gateway.%s' % err.counter)
            return True
        self._counts['asked'] += 1
        self._metrics.count('gateway.scrub_asked')
        return True
