"""Shared by studies: a cluster, and the way that it comes to rest."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import tempfile
from typing import Iterator

from swift_dss.core.config import GatewayConf
from swift_dss.gateway.collect.keys import Wish
from swift_dss.sim import server
from swift_dss.sim.cluster import Cluster
from swift_dss.sim.conf import SCHEMES, Scheme
from swift_dss.sim.node import Node
from swift_dss.sim.world import databases
from swift_dss.sim.world.clock import Clock, installed

#: Each node looks through its part of the bucket once in so long.
ROUND_SECONDS = GatewayConf().gc_interval_seconds
#: Older than what ``gc --absent`` leaves alone.
_WEEK_SECONDS = 8 * 86400.0
_SETTLE_ROUNDS = 60
_QUIET_ROUNDS = 3
_SETTLE_SECONDS = 60.0
_SWEPT_EVERY, _SWEPT_AT = 5, 1


@contextlib.contextmanager
def stage(dice: random.Random, nodes: int, hdds: bool = True,
          scheme: Scheme = SCHEMES[0]) -> Iterator[Cluster]:
    """A new cluster, which is gone afterwards."""
    folder = '/dev/shm' if os.access('/dev/shm', os.W_OK) else None
    root = tempfile.mkdtemp(prefix='dss-sim-', dir=folder)
    clock = Clock(dice)
    with installed(clock), databases.installed(), server.installed(scheme):
        cluster = Cluster(root, nodes, dice, clock, hdds=hdds)
        try:
            yield cluster
        finally:
            cluster.close()
            shutil.rmtree(root, ignore_errors=True)


def settle(cluster: Cluster) -> None:
    """Let daemons, replicators and reconstructors work until nothing moves.
    """
    quiet = 0
    for number in range(_SETTLE_ROUNDS):
        cluster.clock.pass_(_SETTLE_SECONDS)
        moved = 0
        for name, node in cluster.nodes.items():
            node.work(sweep=number % _SWEPT_EVERY == _SWEPT_AT)
            moved += cluster.replicate(name) + node.backlog()
        quiet = 0 if moved else quiet + 1
        if quiet >= _QUIET_ROUNDS and number > _SWEPT_EVERY:
            break


def collect(cluster: Cluster) -> None:
    """Collect absent keys as an operator does after a week without faults.

    Each node collects, and then one for the whole bucket: a part of it may
    have more absent keys than live ones. Bundles that nodes rewrote for it
    go by and by.
    """
    nodes = list(cluster.nodes.values())
    cluster.clock.pass_(_WEEK_SECONDS)
    for node in nodes:
        node.collect(Wish(absent=True))
    nodes[0].collect(Wish(absent=True, everything=True))
    settle(cluster)


def lose(node: Node) -> None:
    """A node loses its disks and all state."""
    node.new_ssd()
    node.new_hdd()
    node.lose(lambda name: True)
