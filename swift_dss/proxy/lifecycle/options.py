"""Options of the filter about lifecycle rules and RestoreObject."""

from __future__ import annotations

from typing import NamedTuple

from swift_dss.strategy.s3.lifecycle import DAY_SECONDS


class Options(NamedTuple):
    """How the work of ``proxy.lifecycle`` is done.

    :param interval: seconds between two rounds over a bucket; 0: no rounds,
        and no configurations
    :param per_second: objects that a round looks at
    :param day_seconds: of a day in rules; others than 86,400 are for tests
    """

    interval: int = 3600
    per_second: int = 100
    day_seconds: int = DAY_SECONDS

    @property
    def look_seconds(self) -> float:
        """Between two looks for rows that are due."""
        return max(1.0, min(20.0, self.interval / 4)) if self.interval \
            else 20.0

    @property
    def lease_seconds(self) -> float:
        """After which another proxy goes on in the place of one that died."""
        return max(10.0, 3 * self.look_seconds)
