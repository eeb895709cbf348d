"""The parts of a daemon, put together."""

from __future__ import annotations

import functools
import logging
import os
import threading
import time
from dataclasses import dataclass, field
from typing import Optional

from swift_dss.block.engine import BlockView
from swift_dss.core.limits import EVENT_BATCH_SECONDS
from swift_dss.gateway.form import verify
from swift_dss.gateway.peers.aside import Asides
from swift_dss.gateway.peers.primaries import RingPrimaries, looks_at
from swift_dss.gateway.peers.ranks import Ranks
from swift_dss.gateway.parts import Outside
from swift_dss.gateway.service import Gateway
from swift_dss.io import carriers
from swift_dss.tier.classify.telling import Teller
from swift_dss.tier.classify.worker import FILE as CLASSIFY_FILE
from swift_dss.tier.classify.worker import Classifier
from swift_dss.tier.devices import Devices
from swift_dss.tier.hear.intake import Intake
from swift_dss.tier.hear.ledger import Ledger
from swift_dss.tier.index.due import Due
from swift_dss.tier.index.index import Index, open_or_replace
from swift_dss.tier.index.placing import Placing
from swift_dss.tier.inforce import InForce
from swift_dss.tier.keep.keepers import Keepers
from swift_dss.tier.local.copies import Copies
from swift_dss.tier.local.departures import Departures
from swift_dss.tier.local.local import Local
from swift_dss.tier.metrics import Metrics
from swift_dss.tier.ours import Ours
from swift_dss.tier.prefetch.service import Prefetcher
from swift_dss.tier.space import SpaceWatch, index_path
from swift_dss.tier.walk.relocate import Relocator
from swift_dss.tier.walk.sweeper import Sweeper


@dataclass(frozen=True)
class Node:
    """The parts of a daemon. A part gets those others that it uses, and
    never all of them.

    :param gateway: None where there is no remote tier
    """

    in_force: InForce
    metrics: Metrics
    index: Index
    devices: Devices
    ours: Ours
    local: Local
    gateway: Optional[Gateway]
    departures: Departures
    keepers: Keepers
    ledger: Ledger
    intake: Intake
    prefetcher: Prefetcher
    sweeper: Sweeper
    due: Due
    relocator: Relocator
    space: SpaceWatch
    classifier: Classifier
    block: BlockView
    started_at: float = field(default_factory=time.time)

    def settle(self, deadline: float) -> bool:
        """Apply all events and let every keeper make a round; True if that
        was done in time (monotonic seconds)."""
        # Reads that an object server has kept to send several at once.
        time.sleep(EVENT_BATCH_SECONDS * 1.5)
        self.intake.read_spools()
        return self.intake.wait_until_idle(
            deadline - time.monotonic()) and self.keepers.settle(deadline)


def assembled(in_force: InForce, stopping: threading.Event,
              logger: logging.Logger) -> Node:
    """Open the index, and put the parts together; none is at work yet.

    :param stopping: set when the daemon ends
    :raises BadConfig: swift.conf, or a part of the configuration
    """
    index, aside = open_or_replace(index_path(in_force.conf),
                                   Placing(in_force))
    if aside:
        logger.error('the index was damaged: moved to %s; rebuilding '
                     'it from the devices', aside)
    try:
        metrics = Metrics(in_force.conf, logger)
        return _around(in_force, index, Due(index, metrics, bool(aside)),
                       stopping, metrics)
    except BaseException:
        index.file.close()
        raise


def _around(in_force: InForce, index: Index, due: Due,
            stopping: threading.Event, metrics: Metrics) -> Node:
    """The parts around an index."""
    # long: the one place where the parts of the daemon meet.
    conf, logger = in_force.conf, metrics.logger
    choice = carriers.choose(conf.io.carrier)
    logger.info('carrier: %s%s', choice.carrier.name, ''.join(
        '; not %s' % reason for reason in choice.refused))
    devices = Devices(conf)
    ours = Ours(in_force, devices, index, due, metrics)
    ours.check_replicator(conf)
    ours.take_policies()
    ours.take_devices()
    local = Local(in_force, devices, index, metrics, choice.carrier)
    ranks = Ranks(conf.swift_dir, shard=conf.shard)
    local.mover.copies = Copies(in_force, devices, ranks)
    gateway = Gateway(
        conf, lambda: in_force.table, local, logger, metrics,
        Outside(ranks)) if conf.gateway.enabled else None
    departures = Departures(local, gateway, due, metrics)
    keepers = Keepers(local, departures, metrics, gateway)
    intake = Intake(os.path.join(conf.sockets_dir, 'events.sock'), devices,
                    due, metrics)
    prefetcher = Prefetcher(local, gateway, keepers, intake, metrics)
    local.knows_all = lambda: not due.rebuild
    # These work on versions, and hear of what happens to them.
    local.watcher = prefetcher
    local.on_remote = keepers.left_for_s3
    if gateway is not None:
        local.witness = gateway.parts.mend.witness
        asides = gateway.parts.mend.asides
    else:
        asides = Asides(local, RingPrimaries(
            ranks, looks_at(local),
            is_sound=functools.partial(verify.is_sound, local)), metrics)
    local.put_aside_if = asides.put_aside
    ledger = Ledger(local, departures, keepers, gateway, metrics)
    classifier = Classifier(os.path.join(conf.state_dir, CLASSIFY_FILE),
                            local, Teller(ranks), metrics)
    ledger.on_put = classifier.heard
    return Node(
        in_force, metrics, index, devices, ours, local, gateway, departures,
        keepers, ledger, intake, prefetcher,
        Sweeper(local, ledger, keepers, due, stopping, metrics), due,
        Relocator(local, gateway, metrics, stopping),
        SpaceWatch(in_force, gateway, metrics), classifier,
        BlockView(conf.run_dir, conf.class_table, logger))
