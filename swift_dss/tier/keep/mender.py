"""Mend versions with blocks that a disk changed.

Readers and moves report them. A device mends its own, some in each round of
its keeper, before any bytes leave: the tier that they would leave may have the
only right copy.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict

from swift_dss.core.errors import DssError, VersionGone
from swift_dss.core.version import VersionId
from swift_dss.tier.local.local import Local
from swift_dss.tier.metrics import Metrics

#: Versions that wait; the next reader reports a dropped one again.
_MAX_WAITING = 10000
#: A round mends no longer than this; the rest is the next round's.
_TURN_SECONDS = 2.0


class Mender:
    """Mends the versions of one device."""

    def __init__(self, local: Local, metrics: Metrics,
                 logger: logging.Logger) -> None:
        self._local = local
        self._metrics = metrics
        self._logger = logger
        self._waiting: OrderedDict[VersionId, str] = OrderedDict()
        self._guard = threading.Lock()

    def add(self, version: VersionId, partition: str) -> None:
        """Some of it is not as it was written. Never blocks on a disk."""
        with self._guard:
            if len(self._waiting) < _MAX_WAITING:
                self._waiting[version] = partition

    def turn(self) -> bool:
        """Mend waiting versions; False if some is left for later."""
        until = time.monotonic() + _TURN_SECONDS
        while True:
            with self._guard:
                if not self._waiting:
                    return True
                if time.monotonic() > until:
                    return False
                version, partition = self._waiting.popitem(last=False)
            try:
                self._mend(version, partition)
            except VersionGone:
                pass
            except (DssError, OSError) as err:
                # Its next reader tells of it again.
                self._metrics.count('tier.mend_errors')
                self._logger.error('%s: %s is not mended: %s',
                                   version.device, version.key, err)

    def _mend(self, version: VersionId, partition: str) -> None:
        rot = self._local.mend(version, partition)
        for what, ranges in (
                ('SSD; brought back from the HDD', rot.ssd),
                ('HDD; brought back from the SSD', rot.hdd),
                ('disks; given up, S3 has the right ones', rot.in_s3),
                ('disks, and no tier has the right ones: it is in '
                 'quarantine, for another replica to bring it back',
                 rot.lost)):
            if ranges:
                self._logger.error(
                    '%s: %s: %d ranges, the first at byte %d, could not be '
                    'read, or had other bytes than were written, on the %s',
                    version.device,
                    version.key, len(ranges), ranges[0][0], what)
