"""Which requests to the origin go on where another ended."""

from __future__ import annotations

from typing import List

STREAMS = 32
_SECTORS_MAX = 0xffffffff


class _Stream:
    __slots__ = ('next_sector', 'sectors', 'used_at')

    def __init__(self) -> None:
        self.next_sector = 0
        self.sectors = 0
        self.used_at = 0


class Streams:
    """The last 32 of them; ``dss_core_run()``."""

    def __init__(self) -> None:
        self._streams: List[_Stream] = [_Stream() for _ in range(STREAMS)]
        self._clock = 0

    def note(self, sector: int, sectors: int) -> int:
        """Sectors of the run that this request belongs to."""
        self._clock += 1
        stream = self._find(sector)
        stream.next_sector = sector + sectors
        stream.sectors = min(stream.sectors + sectors, _SECTORS_MAX)
        stream.used_at = self._clock
        return stream.sectors

    def _find(self, sector: int) -> _Stream:
        for stream in self._streams:
            if stream.sectors and stream.next_sector == sector:
                return stream
        stale = min(self._streams, key=lambda stream: stream.used_at)
        stale.sectors = 0
        return stale
