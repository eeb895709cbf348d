"""Mend versions with blocks that a disk changed or cannot read.

Readers and moves report them. A device mends its own, some in each round of
its keeper, before any bytes leave: the tier that they would leave may have the
only right copy.

A version that no tier has right is put aside if another primary has proven its
own, so that replication brings it again. Otherwise it stays, and the mender
tries again after a pause, as it does after an error. While the device fails as
a whole the mender changes nothing.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import Dict, Set

from swift_dss.core.errors import DssError, VersionGone
from swift_dss.core.version import VersionId
from swift_dss.io.mending import Rot
from swift_dss.io.workers import Pool
from swift_dss.strategy.agreement import Aside
from swift_dss.strategy.pauses import Pauses
from swift_dss.tier.keep.checks import DiskChecks
from swift_dss.tier.local.local import Local
from swift_dss.tier.metrics import Metrics

#: Versions that wait; the next reader reports a dropped one again.
_MAX_WAITING = 10000
#: A round mends no longer than this; the rest is the next round's.
_TURN_SECONDS = 2.0
#: Before a version is looked at again that could not be mended or put aside;
#: twice as long each time, up to the second.
PAUSE_SECONDS = 60.0
_LONGEST_PAUSE_SECONDS = 3600.0
#: Why a version stays that no tier has right.
_WHY = {Aside.NOBODY: 'no other primary is known to have it',
        Aside.FAILING: 'the device fails as a whole'}


class Mender:
    """Mends the versions of one device. One thread calls :meth:`turn`.

    :param checks: of the device, which may fail as a whole
    :param pool: asks other nodes
    """

    def __init__(self, device: str, local: Local, metrics: Metrics,
                 checks: DiskChecks, pool: Pool) -> None:
        self._local = local
        self._metrics = metrics
        self._logger = metrics.logger
        self._checks = checks
        #: Each with its partition.
        self._waiting: OrderedDict[VersionId, str] = OrderedDict()
        self._pauses: Pauses[VersionId] = Pauses(
            PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS, _MAX_WAITING)
        #: Versions that lack bytes and stay, and why.
        self._lacking: Dict[VersionId, Aside] = {}
        self._asking: Set[VersionId] = set()
        self._guard = threading.Lock()
        self._asker = pool(1, 'dss-aside-' + device)

    def stop(self) -> None:
        """Let the thread end that asks."""
        self._asker.shutdown(wait=True)

    def add(self, version: VersionId, partition: str) -> None:
        """Some of it is not as it was written. Never blocks on a disk."""
        with self._guard:
            if len(self._waiting) < _MAX_WAITING:
                self._waiting.setdefault(version, partition)

    def holds(self, version: VersionId) -> bool:
        """True of one that waits, and MUST NOT be moved: a move would only
        meet the same places again."""
        return version in self._waiting

    @property
    def waiting(self) -> int:
        """Versions that wait, for their pause to end or for their turn."""
        return len(self._waiting)

    @property
    def lacking(self) -> int:
        """Versions that no tier here has right, and that stay."""
        return len(self._lacking)

    def turn(self) -> bool:
        """Mend waiting versions; False if some is left to do at once."""
        with self._guard:
            waiting = list(self._waiting.items())
        if self._checks.look(bool(waiting)):
            return True
        until = time.monotonic() + _TURN_SECONDS
        for version, partition in waiting:
            if time.monotonic() > until:
                return False
            with self._guard:
                may_try = version not in self._asking and \
                    self._pauses.may_try(version, time.monotonic())
            if may_try:
                self._try(version, partition)
        return True

    # -- inside ----------------------------------------------------------

    def _try(self, version: VersionId, partition: str) -> None:
        """Mend one; what is left to do about it is done after its pause."""
        try:
            rot = self._local.mend(version, partition)
        except VersionGone:
            self._done(version)
            return
        except (DssError, OSError) as err:
            self._metrics.count('tier.mend_errors')
            self._logger.error('%s: %s is not mended: %s',
                               version.device, version.key, err)
            return
        if version not in self._lacking:
            self._say(version, rot)
        if rot.lost:
            with self._guard:
                self._asking.add(version)
            self._asker.submit(self._ask, version, partition)
        else:
            # Its pause goes on, so a report of nothing waits too.
            with self._guard:
                self._waiting.pop(version, None)
                self._lacking.pop(version, None)

    def _ask(self, version: VersionId, partition: str) -> None:
        """Put a version aside, if it may go. In the asker's thread."""
        try:
            verdict = self._local.put_aside_if(
                self._local.describe(version, partition))
        except VersionGone:
            self._done(version)
        except (DssError, OSError) as err:
            self._metrics.count('tier.mend_errors')
            self._logger.error('%s: %s is not put aside: %s',
                               version.device, version.key, err)
        except Exception:
            # No caller looks at the thread's result.
            self._metrics.count('tier.mend_errors')
            self._logger.exception('%s: %s is not put aside',
                                   version.device, version.key)
        else:
            self._decided(version, verdict)
        finally:
            with self._guard:
                self._asking.discard(version)

    def _decided(self, version: VersionId, verdict: Aside) -> None:
        if verdict is Aside.YES:
            self._done(version)
            self._metrics.count('tier.rotten_versions_lost')
            self._logger.error(
                '%s: %s is in quarantine, for another replica to bring it '
                'back', version.device, version.key)
            return
        self._metrics.count('tier.rotten_versions_kept')
        with self._guard:
            before = self._lacking.get(version)
            self._lacking[version] = verdict
        if before is not verdict:
            self._logger.error(
                '%s: %s stays in its place, and its readable bytes are '
                'read: %s', version.device, version.key, _WHY[verdict])

    def _done(self, version: VersionId) -> None:
        with self._guard:
            self._waiting.pop(version, None)
            self._lacking.pop(version, None)
            self._pauses.worked(version)

    def _say(self, version: VersionId, rot: Rot) -> None:
        for kind, ranges in (
                ('SSD; brought back from the HDD', rot.ssd),
                ('HDD; brought back from the SSD', rot.hdd),
                ('disks; given up, S3 has the right ones', rot.in_s3),
                ('disks, and no tier has the right ones', rot.lost)):
            if ranges and not (rot.lost and ranges is not rot.lost):
                self._logger.error(
                    '%s: %s: %d ranges, the first at byte %d, could not be '
                    'read, or had other bytes than were written, on the %s',
                    version.device,
                    version.key, len(ranges), ranges[0][0], kind)
