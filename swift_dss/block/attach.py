"""Make the device of a cache that is there, as at boot."""

from __future__ import annotations

from typing import Mapping, Optional

from swift_dss.block import control, control_life, tab
from swift_dss.strategy.eviction.chunks import ChunkRow


def attach(entry: tab.Entry, rows: Optional[Mapping[int, ChunkRow]] = None
           ) -> bool:
    """Make it, with the cache that its SSD has. May be called twice.

    :param rows: the class table; None leaves the cache its own
    :returns: False if the device is there already
    :raises control_life.Refused: the SSD has no cache, or
        :func:`control_life.create` refuses
    """
    if control.exists(entry.name):
        control.need(entry.name)
        return False
    control_life.create(control_life.Wanted(
        entry.name, entry.ssd, entry.origin, mode=entry.mode,
        strategy=entry.strategy, meta_class=entry.meta_class,
        high=entry.high, low=entry.low, idle_ms=entry.idle_ms, rows=rows,
        stage=entry.stage, warm=True))
    return True
