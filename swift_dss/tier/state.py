"""What the daemon says of each device: in status, and in pressure files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Optional

from swift_dss.wire import pressure as wire_pressure
from swift_dss.wire.pressure import Pressure


@dataclass
class DeviceState:
    """One device as its keeper sees it; empty before its first round.

    :param ssd_state: ``ready``, ``unmounted`` or ``failing``
    :param hdd_state: ``ready``, ``full``, ``unmounted`` or ``none``
    :param room_state: ``short`` while pressure cannot be relieved: all
        that is left is dirty, pinned or under a floor
    """

    ssd_state: str = ''
    hdd_state: str = ''
    room_state: str = ''
    index_state: str = ''
    publish_state: str = ''
    pressure: Optional[Pressure] = None


def publish(run_dir: str, device: str, pressure: Pressure) -> None:
    """Replace the device's pressure file as a whole.

    No fsync: after a power cut a missing or old file only steers
    placement.
    """
    folder = os.path.join(run_dir, 'state')
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, device + '.json')
    with open(path + '.tmp', 'wb') as target:
        target.write(wire_pressure.encode(pressure))
    os.rename(path + '.tmp', path)
