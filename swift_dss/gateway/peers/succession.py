"""The turns of primaries to send a version: one after another.

The first primary begins when a version is old enough, the next one
``take_over_seconds`` later, and so on. Time without S3 does not count: no
primary could have sent the version then.
"""

from __future__ import annotations

import math

from swift_dss.core.config import GatewayConf
from swift_dss.core.version import VersionId
from swift_dss.gateway.link.outages import Outages
from swift_dss.gateway.link.retry import Backoff
from swift_dss.gateway.peers.ranks import NoRing, Ranks
from swift_dss.io.workers import Clock

#: First wait of a replica that looks for another's upload.
LOOK_SECONDS = 2.0


class Succession:
    """Thread-safe; one thread alone calls :meth:`saw`.

    :param ranks: of this node's devices
    :param retry: gives the dice for waits
    """

    def __init__(self, conf: GatewayConf, ranks: Ranks, retry: Backoff,
                 clock: Clock) -> None:
        self.ranks = ranks
        self._conf = conf
        self._retry = retry
        self._clock = clock
        self._outages = Outages()

    def saw(self, is_up: bool) -> None:
        """Note whether S3 answers now; costs nothing."""
        self._outages.saw(is_up, self._clock.wall())

    def rank(self, version: VersionId) -> int:
        """The rank of a version's device among the primaries, from 0."""
        return self.ranks.rank(version)

    def partition(self, version: VersionId, partition: str) -> str:
        """The partition; that of the ring, if it is ''."""
        return partition or self.ranks.partition(version)

    def turn_after(self, version: VersionId) -> float:
        """Seconds from when a version was seen until its device may send it,
        if no other has; 0 for the first primary."""
        rank = self.rank(version)
        return rank and self._conf.remote_after_seconds \
            + rank * self._conf.take_over_seconds

    def is_alone(self, version: VersionId) -> bool:
        """True if this device is the first primary, and the version so young
        that no other one's turn can have come."""
        stamp, _, _ = version.timestamp.partition('_')
        return not self.turn_after(version) and \
            self._clock.wall() - float(stamp) < \
            self._conf.remote_after_seconds + self._conf.take_over_seconds

    def first_look_after(self, version: VersionId) -> float:
        """Seconds from when a version is old enough until its device looks
        for it in S3: the first primary sends it just then, so a look at the
        same time would be in vain."""
        try:
            return LOOK_SECONDS if self.turn_after(version) else 0.0
        except NoRing:
            return 0.0  # its job says so

    def may_send(self, version: VersionId, first_seen: float) -> bool:
        """True if it is this device's turn.

        :param first_seen: seconds since the epoch
        """
        now, turn = self._clock.wall(), self.turn_after(version)
        return not turn or now - first_seen - self._outages.seconds(
            first_seen, now) >= turn

    def seen_for_turn(self, version: VersionId) -> float:
        """When a version must have been seen for its turn to be now."""
        now = self._clock.wall()
        return now - self.turn_after(version) - self._outages.seconds(
            -math.inf, now)

    def look_again_at(self, attempts: int) -> float:
        """When to check again if another replica has sent a version.

        :param attempts: looks so far
        """
        look = Backoff(LOOK_SECONDS, max(
            LOOK_SECONDS, self._conf.take_over_seconds / 4),
            self._retry.dice)
        return self._clock.wall() + look.seconds(attempts + 1)
