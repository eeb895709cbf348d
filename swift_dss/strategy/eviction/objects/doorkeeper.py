"""Which missed objects come in: all, or those that are missed a second time.

Most objects of many traces are asked for once, and each of them is a write
to the SSD that no reader has anything of. A doorkeeper remembers the keys
that it kept out, for as many bytes of them as ``window`` caches hold, and
lets an object in at its next miss. While the cache has room of its own,
everything comes in: nothing leaves for it.

The price is the second read of each object, which is a miss, too. The rule
is that of LARC (Huang et al., MSST 2013), with a window of a fixed size;
S3-FIFO (Yang et al., SOSP 2023) has the same rule in front of its main queue.
"""

from __future__ import annotations

from typing import Dict, Tuple

from swift_dss.core.errors import BadConfig

#: Names of ``--admit``; the second with ``:WINDOW``.
ALL, SECOND = 'all', 'second'
#: Windows, in sizes of the cache.
DEFAULT_WINDOW = 4
MAX_WINDOW = 64


def parse(option: str, text: str) -> Tuple[str, int]:
    """``all``, ``second`` or ``second:WINDOW``.

    :returns: name and window
    :raises BadConfig: it is none of them
    """
    name, colon, number = text.partition(':')
    if name == ALL and not colon:
        return ALL, 0
    window = DEFAULT_WINDOW if not colon else int(number) \
        if number.isascii() and number.isdigit() else 0
    if name != SECOND or not 1 <= window <= MAX_WINDOW:
        raise BadConfig(
            '%s: %r is not all, second, or second:N with N caches of 1 to %d'
            % (option, text, MAX_WINDOW))
    return SECOND, window


class SecondTouch:
    """Lets in what was missed before.

    Memory MUST be O(keys of ``window_bytes``), and each verb O(1).

    :param window_bytes: sizes of the remembered objects, together; at least 1
    """

    def __init__(self, window_bytes: int) -> None:
        self.window_bytes = window_bytes
        #: Sizes by key, the longest remembered first.
        self._kept_out: Dict[int, int] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept_out)

    def admits(self, key: int, size: int, room_bytes: int) -> bool:
        """Judge a miss, and remember it.

        :param size: bytes, at least 1
        :param room_bytes: that are free without an eviction
        """
        before = self._kept_out.pop(key, 0)
        self._bytes -= before
        if before or size <= room_bytes:
            return True
        self._kept_out[key] = size
        self._bytes += size
        while self._bytes > self.window_bytes:
            oldest = next(iter(self._kept_out))
            self._bytes -= self._kept_out.pop(oldest)
        return False
