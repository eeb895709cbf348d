"""The surroundings of the gateway's parts."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field

from swift_dss.core.config import GatewayConf
from swift_dss.gateway.ports import Logger, Metrics, TableSource
from swift_dss.io.workers import CLOCK, Clock, Pool, threads


@dataclass(frozen=True)
class Around:
    """One process as its parts see it. It holds no part.

    :param table: gives the class table in force
    :param stopping: set when the daemon ends
    :param trusted: the clock for ages; see ``TrustedClock``
    """

    conf: GatewayConf
    table: TableSource
    metrics: Metrics
    logger: Logger
    stopping: threading.Event = field(default_factory=threading.Event)
    clock: Clock = CLOCK
    trusted: Clock = CLOCK
    pool: Pool = threads
    dice: random.Random = field(default_factory=random.Random)
