"""Does a device's SSD or HDD fail as a whole? Asked while something is wrong.

Some versions of each are drawn from the index, and a block of each is read
from the disk itself: see ``strategy.health``. Nothing is read while nothing
is wrong.
"""

from __future__ import annotations

import random
import time
from typing import Dict, List, Optional, Set, Tuple

from swift_dss.core.errors import DamagedRecord, DssError, VersionGone
from swift_dss.core.residency import Tier
from swift_dss.core.version import VersionId
from swift_dss.strategy.health import Health
from swift_dss.tier.devices import Device
from swift_dss.tier.index.rows import VersionRow
from swift_dss.tier.local.local import Local
from swift_dss.tier.metrics import Metrics

#: Versions of a disk that are read at a time, and how often.
SAMPLE = 8
SAMPLE_SECONDS = 60.0
#: Draws for a sample, and versions of a partition that are drawn from.
_TRIES = 8 * SAMPLE
_OF_A_PARTITION = 1000


class DiskChecks:
    """Of one device; called by one thread."""

    def __init__(self, device: Device, local: Local, metrics: Metrics,
                 dice: random.Random) -> None:
        self._device = device
        self._local = local
        self._logger = metrics.logger
        self._dice = dice
        self._health: Dict[Tier, Health[VersionId]] = {
            Tier.SSD: Health(), Tier.HDD: Health()}
        self._due = 0.0

    def why(self, tier: Tier) -> str:
        """Why a disk is called failing; '' if it is not."""
        health = self._health[tier]
        return '%d of %d versions that were drawn at random cannot be ' \
            'read' % (health.failures, health.reads) \
            if health.is_failing else ''

    @property
    def is_failing(self) -> bool:
        """True if one of them fails as a whole."""
        return any(health.is_failing for health in self._health.values())

    def look(self, something_is_wrong: bool) -> bool:
        """The same, after a look if it is time for one.

        :param something_is_wrong: versions are known that cannot be read
        """
        now = time.monotonic()
        if now < self._due or not (something_is_wrong or self.is_failing):
            return self.is_failing
        self._due = now + SAMPLE_SECONDS
        was = self.is_failing
        for tier, health in self._health.items():
            self._sample(tier, health)
            health.judge(now)
        if self.is_failing and not was:
            self._local.devices.failing.add(self._device.name)
            self._logger.critical(
                '%s fails as a whole (%s): nothing of it is put into '
                'quarantine or mended until it reads again, or is replaced',
                self._device.name, ', '.join(
                    '%s: %s' % (tier.name, self.why(tier))
                    for tier in self._health if self.why(tier)))
        elif was and not self.is_failing:
            self._local.devices.failing.discard(self._device.name)
            self._logger.warning('%s does not fail as a whole any more',
                                 self._device.name)
        return self.is_failing

    def _sample(self, tier: Tier, health: Health[VersionId]) -> None:
        read = 0
        for row in self._drawn(tier):
            failed = self._reads(row, tier)
            if failed is not None:
                health.read(row.version, failed, time.monotonic())
                read += 1
        if not read:
            health.forget()

    def _drawn(self, tier: Tier) -> List[VersionRow]:
        """Some versions with bytes on a disk; fewer if it has few.

        By partitions, which the index knows without a scan.
        """
        index, name = self._local.index, self._device.name
        partitions = [
            (policy, partition)
            for policy in sorted(self._local.devices.policies.ours)
            for partition in sorted(index.leaving.partitions(name, policy))]
        rows: Dict[VersionId, VersionRow] = {}
        # A device of few versions is drawn from again and again.
        ids_of: Dict[Tuple[int, str], List[int]] = {}
        drawn: Set[int] = set()
        for _ in range(_TRIES if partitions else 0):
            policy, partition = where = self._dice.choice(partitions)
            if where not in ids_of:
                ids_of[where] = index.leaving.ids_of_partitions(
                    name, policy, [partition], _OF_A_PARTITION, 0)
            ids = ids_of[where]
            row_id = self._dice.choice(ids) if ids else None
            if row_id is None or row_id in drawn:
                continue
            drawn.add(row_id)
            for candidate in index.leaving.departing(
                    name, policy, [row_id]):
                row = index.get(candidate.version)
                if row is not None and any(
                        span.ssd_bytes if tier is Tier.SSD
                        else span.hdd_bytes for span in row.spans):
                    rows[row.version] = row
            if len(rows) == SAMPLE:
                break
        return list(rows.values())

    def _reads(self, row: VersionRow, tier: Tier) -> Optional[bool]:
        """True if a read of a version failed; None if it says nothing."""
        try:
            return self._local.fails(row.version, row.partition, tier,
                                     self._dice.random())
        except (VersionGone, DamagedRecord):
            return None
        except (DssError, OSError):
            # Its folder, its attributes, its file on the HDD.
            return True
