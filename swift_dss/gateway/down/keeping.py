"""A part of a version on its way to a local tier, as its reader sees it."""

from __future__ import annotations

from typing import Callable, Optional

from swift_dss.core.errors import DssError
from swift_dss.gateway.ports import LocalFill, LocalVersions, Metrics
from swift_dss.wire.control import FetchRequest


class Keeping:
    """Storing a part locally, which may fail without harm to its reader."""

    def __init__(self, metrics: Metrics, fill: Optional[LocalFill]) -> None:
        self._metrics = metrics
        self._fill = fill

    @property
    def going(self) -> bool:
        """False when nothing is being stored."""
        return self._fill is not None

    def write(self, offset: int, block: bytes) -> None:
        """Store some of it, if it goes."""
        self._attempt(lambda fill: fill.write(offset, block))

    def commit(self) -> bool:
        """Let it be read from here; False if it is not stored."""
        self._attempt(lambda fill: fill.commit())
        stored = self._fill is not None
        self._fill = None
        return stored

    def abort(self) -> None:
        """Drop uncommitted bytes."""
        if self._fill is not None:
            self._fill.abort()
            self._fill = None

    def _attempt(self, step: Callable[[LocalFill], None]) -> None:
        if self._fill is None:
            return
        try:
            step(self._fill)
        except (DssError, OSError) as err:
            self._metrics.count('gateway.%s' % getattr(
                err, 'counter', 'fill_failed'))
            self.abort()


def begin_fill(local: LocalVersions, metrics: Metrics,
               request: FetchRequest, offset: int,
               length: int) -> Optional[LocalFill]:
    """Room for a part that a request brings; None if it is not kept."""
    if not request.keep:
        return None
    try:
        return local.begin_fill(request.version, request.partition, offset,
                                length, request.class_id)
    except (DssError, OSError) as err:
        # Not being able to keep them is no reason not to serve them.
        metrics.count('gateway.%s' % getattr(err, 'counter', 'fill_failed'))
        return None
