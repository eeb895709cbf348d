"""Pass on reads, and departures of bytes.

``prefetch`` decides what to fetch ahead of readers; the parts of the daemon
that see reads and moves only report them here.
"""

from __future__ import annotations

from typing import Optional, Sequence

from swift_dss.core.residency import Residency
from swift_dss.core.version import VersionId
from swift_dss.gateway.ports import Sink
from swift_dss.wire.control import Event, FetchRequest


class Watcher:
    """Hears and does nothing: a node without prefetch. Thread-safe; MUST
    NOT raise, and MUST NOT wait for a disk or the network."""

    def on_fetch(self, request: FetchRequest, sink: Sink) -> Sink:
        """A reader lacks these bytes.

        :returns: the receiver of the bytes in place of ``sink``
        """
        return sink

    def on_reads(self, version: VersionId, partition: str,
                 events: Sequence[Event]) -> None:
        """Object servers read a version without our help."""

    def on_left(self, version: VersionId,
                left: Optional[Residency]) -> None:
        """Bytes of a version left a local tier.

        :param left: where its bytes are now; None if all of it is gone
        """

    def keeps(self, version: VersionId) -> bool:
        """Bytes of a version are the next to leave.

        :returns: True to have it treated as if it had just been read
        """
        return False
