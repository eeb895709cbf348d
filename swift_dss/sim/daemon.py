"""The product's tier daemon of one simulated node, without its threads.

Index, ledger, keeper, movers, queue, uploads, bundles, deletes, fills,
scrub and proofs are put together as ``swift-dss-tierd`` does it. Only their
surroundings are simulated.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
from dataclasses import dataclass
from typing import Sequence, Tuple

from swift_dss.core.classes import ClassTable
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import DssError
from swift_dss.core.version import VersionId
from swift_dss.gateway.collect.keys import Wish
from swift_dss.gateway.link.breaker import Breaker, Trust
from swift_dss.gateway.link.retry import Backoff
from swift_dss.gateway.service import Gateway
from swift_dss.io import workers
from swift_dss.io.workers import World
from swift_dss.sim.world.clock import Clock
from swift_dss.sim.world.ring import (
    DEVICE, AskOne, SimPrimaries, SimRanks, SimRing)
from swift_dss.sim.world.s3 import Bucket
from swift_dss.tier.devices import Devices
from swift_dss.tier.doors.fetchd import FetchServer
from swift_dss.tier.hear.ledger import Ledger
from swift_dss.tier.inforce import InForce
from swift_dss.tier.index.due import Due
from swift_dss.tier.index.index import Index
from swift_dss.tier.index.placing import Placing
from swift_dss.tier.keep.keepers import Keepers
from swift_dss.tier.local.departures import Departures
from swift_dss.tier.local.local import Local
from swift_dss.tier.metrics import Metrics
from swift_dss.tier.walk.survey import Survey
from swift_dss.wire.control import Event

#: Threads of a daemon that work side by side: any may be late.
PARTS = ('gateway', 'keeper')


@dataclass
class Surroundings:
    """The environment of a daemon.

    :param ask: see :class:`SimPrimaries`
    """

    name: str
    conf: NodeConf
    table: ClassTable
    bucket: Bucket
    ring: SimRing
    clock: Clock
    dice: random.Random
    logger: logging.Logger
    ask: AskOne


class Daemon:
    """See the module. One life of the process."""

    def __init__(self, around: Surroundings) -> None:
        # long: the one place where the parts of the daemon meet.
        conf, clock, table = around.conf, around.clock, around.table
        logger, dice = around.logger, around.dice
        in_force = InForce(conf, table)
        self.index = Index(os.path.join(conf.tier.index_dir, 'index.db'),
                           Placing(in_force))
        self._metrics = metrics = Metrics(conf, logger)
        self.local = Local(in_force, Devices(conf), self.index, metrics)
        self._due = Due(self.index, metrics)
        self.local.knows_all = lambda: not self._due.rebuild
        self.gateway = Gateway(
            conf, lambda: table, self.local, logger, metrics,
            ranks=SimRanks(around.ring, around.name),
            breaker=Breaker(clock=clock.monotonic, dice=dice),
            trust=Trust(clock=clock.monotonic, dice=dice),
            retry=Backoff(2.0, 600.0, dice), now=clock.wall,
            pool=workers.inline,
            connect=lambda *_: around.bucket.client(around.name),
            primaries=SimPrimaries(around.ring, around.ask),
            clock=clock.monotonic)
        self.local.witness = self.gateway.witness
        self.local.put_aside_if = self.gateway.asides.put_aside
        departures = Departures(self.local, self.gateway,
                                self._due, metrics)
        keepers = Keepers(self.local, departures, metrics, None,
                          World(pool=workers.inline, dice=dice))
        self.keeper = keepers.add(self.local.devices.get(DEVICE))
        self.ledger = Ledger(self.local, departures, keepers,
                             self.gateway, metrics)
        #: Its answers at its socket.
        self.answers = FetchServer('', self.local, self.gateway, metrics)

    def work(self, said: Sequence[Event], parts: Sequence[str]) -> None:
        """Apply the object servers' events, then let parts have their turn."""
        if said:
            self.ledger.apply(said)
        if 'gateway' in parts:
            self.gateway.look()
            self.gateway.rounds.look()
        if 'keeper' in parts:
            self.keeper.round()

    def sweep(self) -> None:
        """Walk the device."""
        Survey(self.local, self.ledger, self._metrics).device(
            self.local.devices.get(DEVICE), 0, True, lambda found: None)
        self._due.walked()

    def scrub(self, versions: Sequence[Tuple[VersionId, str]]) -> None:
        """Prove S3's copies of these."""
        for version, partition in versions:
            with contextlib.suppress(DssError):
                self.gateway.scrubber.look(version, partition)

    def collect(self, wish: Wish) -> None:
        """Look for keys that nothing needs, as ``gateway gc`` does."""
        with contextlib.suppress(DssError):
            self.gateway.collector.run(wish)

    def believes(self, key: str) -> bool:
        """True if an answer of S3 about a key is young enough."""
        return self.gateway.witness.said(key) is not None

    def backlog(self) -> int:
        """The backlog for S3, and versions that wait to be mended."""
        return self.gateway.backlog() + self.keeper.duties.mender.waiting

    def close(self) -> None:
        """Let files and threads go; nothing is written any more."""
        self.index.close()
        with contextlib.suppress(Exception):
            self.gateway.stop()
