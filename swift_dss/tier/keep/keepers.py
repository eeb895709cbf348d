"""The keepers of a daemon's devices."""

from __future__ import annotations

import time
from typing import Dict, Iterator, List, Mapping, Optional, Sequence

from swift_dss.core.errors import DssError
from swift_dss.core.version import VersionId
from swift_dss.gateway.service import Gateway
from swift_dss.io import switch
from swift_dss.io.workers import World
from swift_dss.tier.devices import Device
from swift_dss.tier.index.rows import VersionRow
from swift_dss.tier.keep.keeper import Keeper
from swift_dss.tier.keep.wishes import Access, Wish
from swift_dss.tier.local.departures import Departures
from swift_dss.tier.local.local import Local
from swift_dss.tier.metrics import Metrics


class Keepers:
    """Has one for each device from its discovery on. Thread-safe, but for
    :meth:`discover`.

    :param gateway: None where there is no remote tier
    """

    def __init__(self, local: Local, departures: Departures,
                 metrics: Metrics, gateway: Optional[Gateway],
                 world: Optional[World] = None) -> None:
        self._local = local
        self._departures = departures
        self._metrics = metrics
        self._gateway = gateway
        self._world = world
        self._of: Dict[str, Keeper] = {}

    def __iter__(self) -> Iterator[Keeper]:
        """Those of now, by name of the device."""
        return iter([keeper for _, keeper in sorted(self._of.items())])

    @property
    def names(self) -> List[str]:
        """Of their devices."""
        return sorted(self._of)

    def of(self, device: str) -> Optional[Keeper]:
        """The keeper of a device; None before its discovery."""
        return self._of.get(device)

    def discover(self) -> None:
        """Start a keeper for each device that has none."""
        for device in self._local.devices.discover():
            if device.name not in self._of:
                self._tidy(device)
                self.add(device).start()

    def add(self, device: Device) -> Keeper:
        """A keeper of a device, which does not run yet."""
        keeper = self._of[device.name] = Keeper(
            device, self._local, self._departures, self._metrics,
            self._gateway, self._world)
        return keeper

    def stop(self) -> None:
        """End them all; running moves end before it returns."""
        for keeper in self:
            keeper.stop()

    def kick(self, device: str = '') -> None:
        """Have a device's keeper (or all) look now."""
        for keeper in self:
            if not device or keeper.device.name == device:
                keeper.kick()

    def wish(self, wish: Wish) -> None:
        """A reader had to take these classes from a slower tier."""
        keeper = self.of(wish.version.device)
        if keeper is not None:
            keeper.wish(wish)

    def heard(self, accesses: Sequence[Access],
              written: Sequence[VersionRow],
              gone: Sequence[VersionId]) -> None:
        """Tell doorkeepers that learn from it of reads and uploads, and of
        versions that are not wanted any more."""
        for keeper in self:
            keeper.duties.doorkeeper.heard(accesses, written, gone)

    def to_mend(self, version: VersionId, partition: str) -> None:
        """A reader met a block that is not as it was written."""
        keeper = self.of(version.device)
        if keeper is not None:
            keeper.to_mend(version, partition)

    def came(self, changed: Mapping[str, int]) -> None:
        """Devices changed, and got so many bytes each."""
        for device, length in changed.items():
            keeper = self.of(device)
            if keeper is not None:
                keeper.came(length)

    def left_for_s3(self, version: VersionId, length: int) -> None:
        """S3 has got a version: it may be one to drop here."""
        if self._gateway is not None:
            self._gateway.throughput.drain.moved(length)
        self.kick(version.device)

    def settle(self, deadline: float) -> bool:
        """Let every keeper make a round; True if all did so in time."""
        return all(keeper.wait_round(deadline - time.monotonic())
                   for keeper in self)

    def _tidy(self, device: Device) -> None:
        try:
            device.require_mounted()
            removed = switch.clean_tmp(device.path, device.capacity.path)
        except (DssError, OSError) as err:
            self._metrics.logger.warning('%s: %s', device.name, err)
            return
        if removed:
            self._metrics.logger.info(
                '%s: removed %d files of interrupted moves', device.name,
                removed)
