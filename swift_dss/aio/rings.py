"""Build the rings of a cluster; the same for the same configuration."""

from __future__ import annotations

import logging
import os
from typing import Sequence

from swift.common.ring.builder import RingBuilder

#: 2**6 partitions: enough for a handful of devices, quick to walk.
PART_POWER = 6


def write(folder: str, name: str, replicas: int, port: int,
          devices: Sequence[str]) -> None:
    """Write ``<name>.ring.gz`` and its builder file.

    :param port: of the one server that has all the devices
    """
    # min_part_hours 0: a test may rebalance at once.
    builder = RingBuilder(PART_POWER, replicas, 0)
    for number, device in enumerate(devices):
        builder.add_dev({
            'region': 1, 'zone': number + 1, 'weight': 100,
            'ip': '127.0.0.1', 'port': port, 'device': device,
            'replication_ip': '127.0.0.1', 'replication_port': port,
            'meta': ''})
    # The builder logs its balance as a warning, which is no news here.
    logging.getLogger('swift.ring.builder').setLevel(logging.ERROR)
    builder.rebalance(seed=1)
    builder.get_ring().save(os.path.join(folder, name + '.ring.gz'))
    builder.save(os.path.join(folder, name + '.builder'))
