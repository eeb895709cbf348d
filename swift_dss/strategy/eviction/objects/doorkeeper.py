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

#: No limit but that of the bytes.
ANY = 1 << 62
_NONE = 0, 0


class SecondTouch:
    """Lets in what was missed before.

    Memory MUST be O(keys of ``window_bytes``), and each verb O(1) amortised.

    :param window_bytes: sizes of the remembered objects, together; at least 1
    :param most_keys: that are remembered, whatever their sizes
    """

    def __init__(self, window_bytes: int, most_keys: int = ANY) -> None:
        self.window_bytes = window_bytes
        self.most_keys = most_keys
        #: Size and read by key, the longest remembered first.
        self._kept_out: Dict[int, Tuple[int, int]] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept_out)

    def hear(self, key: int, size: int, class_id: int, sequential: bool,
             is_written: bool) -> None:
        """An access, before it is known whether it hits.

        :param is_written: a client's bytes, which come in without question
        """

    def removed(self, key: int) -> None:
        """An object was deleted, or will be written anew."""

    def admits(self, key: int, size: int, room_bytes: int,
               read: int = 0) -> bool:
        """Judge a miss, and remember it.

        :param size: bytes, at least 1
        :param room_bytes: that are free without an eviction
        :param read: the number of the read that it is part of, whose misses
            count once; 0: it is a read of its own
        """
        size_before, read_before = self._kept_out.pop(key, _NONE)
        self._bytes -= size_before
        if size <= room_bytes or size_before and (
                not read or read != read_before):
            return True
        self._kept_out[key] = size, read
        self._bytes += size
        while self._bytes > self.window_bytes or \
                len(self._kept_out) > self.most_keys:
            oldest = next(iter(self._kept_out))
            self._forget(oldest)
        return False

    def _forget(self, key: int) -> None:
        self._bytes -= self._kept_out.pop(key, _NONE)[0]
