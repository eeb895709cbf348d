"""The published state of each device: in status, and in pressure files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Optional

from swift_dss.tier.metrics import Metrics
from swift_dss.wire.node import pressure as wire_pressure
from swift_dss.wire.node.pressure import Pressure


@dataclass
class DeviceState:
    """One device as its keeper sees it; empty before its first round.

    :param ssd_state: ``ready``, ``unmounted`` or ``failing``
    :param hdd_state: ``ready``, ``full``, ``unmounted``, ``failing`` or
        ``none``
    :param room_state: ``short`` while pressure cannot be relieved: all
        that is left is dirty, pinned or under a floor, or S3 alone would
        have it and does not answer
    :param room_why: in the last case, what S3 said
    :param round_state: ``failing`` while rounds end by an error: nothing is
        moved then, and the SSD may fill up
    """

    ssd_state: str = ''
    hdd_state: str = ''
    room_state: str = ''
    room_why: str = ''
    round_state: str = ''
    index_state: str = ''
    publish_state: str = ''
    pressure: Optional[Pressure] = None


def publish(run_dir: str, device: str, pressure: Pressure) -> None:
    """Replace the device's pressure file."""
    folder = os.path.join(run_dir, 'state')
    os.makedirs(folder, exist_ok=True)
    replace_whole(os.path.join(folder, device + '.json'),
                  wire_pressure.encode(pressure))


def replace_whole(path: str, raw: bytes) -> None:
    """Replace a file of ``run_dir``, so that readers see the old one or this.

    No fsync: a power cut empties the folder, or leaves an old file, which
    only steers placement or says its age.
    """
    with open(path + '.tmp', 'wb') as target:
        target.write(raw)
    os.rename(path + '.tmp', path)


class StateBook:
    """A device's state, and the log of its changes."""

    def __init__(self, device: str, metrics: Metrics) -> None:
        self.state = DeviceState()
        self._device = device
        self._metrics = metrics

    def say(self, part: str, value: str, why: Any = '') -> None:
        """Change a state; one line in the log when it changes, not more."""
        before = getattr(self.state, part)
        if before == value:
            return
        setattr(self.state, part, value)
        good = value in ('ready', 'none')
        if before or not good:
            logger = self._metrics.logger
            level = logger.info if good else logger.error
            level('%s: %s is %s%s', self._device,
                  part.replace('_state', ''), value,
                  ': %s' % why if str(why) else '')
        self._metrics.count('tier.state.%s.%s' % (part, value))
