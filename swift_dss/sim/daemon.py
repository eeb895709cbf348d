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
from typing import Callable, Dict, List, Sequence, Tuple

from swift_dss.core.classes import ClassTable
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import DssError
from swift_dss.core.version import VersionId
from swift_dss.gateway.collect.keys import Wish
from swift_dss.gateway.parts import Outside
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
from swift_dss.tier.local.copies import Copies
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
        ranks = SimRanks(around.ring, around.name)
        self.local.mover.copies = Copies(in_force, self.local.devices, ranks)
        self.gateway = Gateway(
            conf, lambda: table, self.local, logger, metrics,
            outside=Outside(
                ranks=ranks,
                connect=lambda *_: around.bucket.client(around.name),
                primaries=SimPrimaries(around.ring, around.ask),
                world=World(clock, workers.inline, dice)))
        mend = self.gateway.parts.mend
        self.local.witness = mend.witness
        self.local.put_aside_if = mend.asides.put_aside
        departures = Departures(self.local, self.gateway,
                                self._due, metrics)
        keepers = Keepers(self.local, departures, metrics, None,
                          World(pool=workers.inline, dice=dice))
        self.keeper = keepers.add(self.local.devices.get(DEVICE))
        self.ledger = Ledger(self.local, departures, keepers,
                             self.gateway, metrics)
        #: Its threads that look for work, in their order here.
        self._threads: Dict[str, Callable[[], object]] = {
            **self.gateway.looks(),
            'rounds': self.gateway.parts.rounds.look,
            'keeper': self.keeper.round}
        #: Threads in the midst of their work.
        self._working: List[str] = []
        #: Its answers at its socket.
        self.answers = FetchServer('', self.local, self.gateway, metrics)

    def work(self, said: Sequence[Event], parts: Sequence[str]) -> None:
        """Apply the object servers' events, then let parts have their turn."""
        if said:
            self.ledger.apply(said)
        for thread in self._threads:
            if ('keeper' if thread == 'keeper' else 'gateway') in parts:
                self._turn(thread)

    def work_beside(self, said: Sequence[Event], dice: random.Random) -> str:
        """The same of all threads beside the one that is at work; which
        ones."""
        self.ledger.apply(said)
        idle = [thread for thread in self._threads
                if thread not in self._working]
        dice.shuffle(idle)
        for thread in idle:
            self._turn(thread)
        return ', '.join(['events'] * bool(said) + idle)

    def _turn(self, thread: str) -> None:
        self._working.append(thread)
        try:
            self._threads[thread]()
        finally:
            self._working.remove(thread)

    def sweep(self) -> None:
        """Walk the device."""
        Survey(self.local, self.ledger, self._metrics).device(
            self.local.devices.get(DEVICE), 0, True, lambda progress: None)
        self._due.walked()

    def scrub(self, versions: Sequence[Tuple[VersionId, str]]) -> None:
        """Prove S3's copies of these."""
        for version, partition in versions:
            with contextlib.suppress(DssError):
                self.gateway.parts.mend.scrubber.look(version, partition)

    def demote(self, versions: Sequence[Tuple[VersionId, str]]) -> None:
        """Drop the local bytes of these, as an operator asks for it."""
        for version, partition in versions:
            with contextlib.suppress(DssError):
                self.local.demote(version, partition, to_hdd=False)

    def collect(self, wish: Wish) -> None:
        """Look for keys that nothing needs, as ``gateway gc`` does."""
        with contextlib.suppress(DssError):
            self.gateway.collect(wish)

    def believes(self, key: str) -> bool:
        """True if an answer of S3 about a key is young enough."""
        return self.gateway.parts.mend.witness.said(key) is not None

    def backlog(self) -> int:
        """The backlog for S3, and versions that wait to be mended."""
        return self.gateway.backlog() + self.keeper.duties.mender.waiting

    def close(self) -> None:
        """Let files and threads go; nothing is written any more."""
        self.index.file.close()
        with contextlib.suppress(Exception):
            self.gateway.stop()
