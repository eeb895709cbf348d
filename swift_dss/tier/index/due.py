"""Why the devices have to be walked: facts of the index about itself."""

from __future__ import annotations

import threading
import time
from typing import Callable, Optional, TypeVar

from swift_dss.core.errors import (
    DamagedRecord, DssError, TierUnavailable, VersionGone)
from swift_dss.tier.index.file import IndexUnavailable
from swift_dss.tier.index.index import Index
from swift_dss.tier.metrics import Metrics

_CLEAN_STOP = 'clean_stop'
_REBUILD_NEEDED = 'rebuild_needed'
_SWEPT_AT = 'swept_at'
_Result = TypeVar('_Result')


class Due:
    """Thread-safe.

    :param is_new: the index was replaced just now
    :ivar rebuild: the index lacks versions: a walk is due as fast as it can
        go
    :ivar unclean: the index may be behind: a walk at its usual pace is due
    :ivar missed: events were lost; cleared before a walk begins
    :ivar wake: set to have the sweeper look now
    """

    def __init__(self, index: Index, metrics: Metrics,
                 is_new: bool = False) -> None:
        self._index = index
        self._metrics = metrics
        self.rebuild = is_new or \
            index.file.get_state(_REBUILD_NEEDED, '1') == '1'
        self.unclean = index.file.get_state(_CLEAN_STOP) != '1'
        self.missed = False
        self.wake = threading.Event()

    def keep(self, work: Callable[[], _Result]) -> Optional[_Result]:
        """Apply an event, or a part of it; None where a file, a device, the
        index or the queue does not allow it."""
        try:
            return work()
        except (VersionGone, TierUnavailable, DamagedRecord,
                IndexUnavailable) as err:
            self.failed(err)
            return None

    def failed(self, err: DssError) -> None:
        """Count an event that was not applied."""
        # Gone again, or nothing we can look at: the sweep will.
        self.missed = self.missed or isinstance(
            err, (TierUnavailable, IndexUnavailable))
        self._metrics.count('tier.events_' + (
            'dropped' if isinstance(err, IndexUnavailable)
            else err.counter))

    def replace_index(self, err: DssError) -> None:
        """The index proved damaged: begin an empty one."""
        self._metrics.logger.critical(
            '%s: moved to %s; rebuilding it from the devices', err,
            self._index.file.replace())
        self.wake.set()

    def need_rebuild(self) -> None:
        """Versions have come that no event tells of; durable."""
        self.rebuild = True
        self._index.file.set_state(_REBUILD_NEEDED, '1')
        self.wake.set()

    def begin(self) -> None:
        """From here on, only a clean stop leaves the index as it must be."""
        self._index.file.set_state(_CLEAN_STOP, '0')

    def end(self) -> None:
        """All that was received is in the index, if nothing was missed."""
        if not (self.unclean or self.missed):
            self._index.file.set_state(_CLEAN_STOP, '1')

    def look(self, interval_seconds: float) -> bool:
        """True if a walk is due, which the caller then begins.

        :param interval_seconds: after the last walk that ended
        """
        self.unclean = self.unclean or self.missed
        self.missed = False
        return self.rebuild or self.unclean or time.time() - float(
            self._index.file.get_state(_SWEPT_AT, '0')) > interval_seconds

    def walked(self) -> None:
        """A walk has seen every device to its end."""
        self._index.file.set_state(_REBUILD_NEEDED, '0')
        self._index.file.set_state(_SWEPT_AT, str(time.time()))
        self.rebuild = self.unclean = False
