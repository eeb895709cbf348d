"""Clocks that tests turn."""

from __future__ import annotations

from typing import Any

from swift_dss.io.workers import Clock


class StillClock(Clock):
    """Stands still until its test moves ``now``, which both clocks tell."""

    def __init__(self, now: float = 100.0) -> None:
        self.now = now

    def wall(self) -> float:
        """``now``."""
        return self.now

    def monotonic(self) -> float:
        """``now``."""
        return self.now


class ClockOf(Clock):
    """Tells the ``now`` of a rig, in both clocks."""

    def __init__(self, rig: Any) -> None:
        self._rig = rig

    def wall(self) -> float:
        """The rig's ``now``."""
        return float(self._rig.now)

    def monotonic(self) -> float:
        """The rig's ``now``."""
        return float(self._rig.now)


class WallOf(Clock):
    """Tells the ``now`` of a rig, as somebody may set a wall clock; the
    monotonic one goes on by itself."""

    def __init__(self, rig: Any) -> None:
        self._rig = rig

    def wall(self) -> float:
        """The rig's ``now``."""
        return float(self._rig.now)
