"""The workload of this node, measured as it runs, for advice.

Busiest minute, largest object, longest outage, most writers at a time as
far as the daemon sees them. A few numbers, kept in the index's state, so
that they outlive the daemon.
"""

from __future__ import annotations

import json
import threading
import time
from typing import Any, Dict, Iterable

from swift_dss.tier.index.file import IndexFile
from swift_dss.wire.control import Event, EventKind

#: Ingest is looked at minute by minute.
WINDOW_SECONDS = 60.0
_STATE = 'workload'
_NAMES = ('ingest_rate', 'objects_rate', 'largest_bytes', 'outage_seconds')


class Workload:
    """Thread-safe.

    :param file: has the numbers of earlier lives
    :param now: seconds since the epoch
    """

    def __init__(self, file: IndexFile, now: float = 0.0) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._most: Dict[str, float] = dict.fromkeys(_NAMES, 0.0)
        self._saved = file.get_state(_STATE)
        try:
            fields = json.loads(self._saved or '{}')
            for name in _NAMES:
                self._most[name] = max(0.0, float(fields.get(name, 0.0)))
        except (ValueError, TypeError, AttributeError):
            pass  # the figures are measured again
        self._since = now or time.time()
        self._bytes = 0
        self._objects = 0
        self._down_since = 0.0

    def heard(self, batch: Iterable[Event]) -> None:
        """Writes came."""
        with self._lock:
            for event in batch:
                if event.kind is EventKind.PUT:
                    self._bytes += event.size
                    self._objects += 1
                    self._raise('largest_bytes', event.size)

    def look(self, now: float, drains: bool) -> None:
        """Time went by.

        :param drains: S3 takes uploads
        """
        with self._lock:
            passed = now - self._since
            if passed >= WINDOW_SECONDS:
                self._raise('ingest_rate', self._bytes / passed)
                self._raise('objects_rate', self._objects / passed)
                self._bytes = self._objects = 0
                self._since = now
            if drains:
                self._down_since = 0.0
            elif not self._down_since:
                self._down_since = now
            else:
                self._raise('outage_seconds', now - self._down_since)

    def numbers(self) -> Dict[str, Any]:
        """The most of each that was seen."""
        with self._lock:
            return dict(self._most)

    def save(self) -> None:
        """Keep what has changed for another life."""
        text = json.dumps(self.numbers())
        if text != self._saved:
            self._file.set_state(_STATE, text)
            self._saved = text

    def _raise(self, name: str, value: float) -> None:
        self._most[name] = max(self._most[name], value)
