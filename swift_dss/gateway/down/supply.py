"""S3's proven bytes: the threads that bring them, and the parts on their way.

Readers and proofs share the threads: a proof waits until the link is idle.
"""

from __future__ import annotations

import random
from typing import Tuple

from swift_dss.gateway.around import Around
from swift_dss.gateway.down.flights import Flights
from swift_dss.gateway.down.plans import Plans
from swift_dss.gateway.down.source import Source
from swift_dss.gateway.link import wan
from swift_dss.gateway.link.client import S3Client
from swift_dss.gateway.link.fair_pool import FairPool
from swift_dss.gateway.ports import LocalVersion
from swift_dss.io.workers import inline

#: Flights in memory for each one that may be reading from S3.
HELD_PER_FILL = 2
#: One of so many leaders, at least one, is kept for the top class.
RESERVED = 4


class Supply:
    """The parts that fills and proofs share. Thread-safe.

    :param dice: decide how long a failed read waits
    """

    def __init__(self, around: Around, client: S3Client,
                 dice: random.Random) -> None:
        conf = around.conf
        self.source = Source(conf, client, around.metrics,
                             around.stopping.wait, dice)
        self.flights = Flights(HELD_PER_FILL * conf.fills)
        self.leaders = FairPool(
            conf.fills, max(1, conf.fills // RESERVED), around.table,
            'dss-fill', around.clock, around.pool is inline)
        self.plans = Plans(self.source, self.leaders)

    def prove(self, local: LocalVersion) -> None:
        """Read all of a version from S3 while the link is idle.

        :raises RemoteCorrupt, S3Missing: S3 has it wrong or not at all
        :raises DssError: the answer is unknown
        """
        self.leaders.submit(wan.scrub(local.class_map.rest),
                            self.read_through, local).result()

    def read_through(self, local: LocalVersion) -> None:
        """The same in the caller's thread, at once."""
        plan = self.source.plan(local)
        if self.source.too_big_to_hold(plan):
            for _ in self.source.unproven(local):
                pass
            return
        offset = 0
        while offset < local.content_length:
            start, length = plan.part(offset)
            for _ in self.source.blocks(local, plan, start, length):
                pass
            offset = start + length

    def abandon(self) -> None:
        """S3 was found dead: readers that come after it is back must not
        wait for answers that were lost."""
        self.flights.abandon()
        self.plans.abandon()

    def counts(self) -> Tuple[int, int]:
        """(parts on their way from S3, parts in memory)."""
        return self.flights.counts()

    def stop(self) -> None:
        """Wait for leaders. ``stopping`` MUST be set."""
        self.leaders.shutdown()
