"""MD5 of several streams at once (md5_lanes.c)."""

from typing import Sequence, Tuple

#: Streams that share one pass.
LANES: int
#: What blocks can be hashed with on this processor, fastest first.
KERNELS: Tuple[str, ...]

class Digest:
    """MD5 of one stream of bytes; for one thread at a time."""

    def hexdigest(self) -> str:
        """MD5 of all bytes so far, as hashlib says it."""

def update(runs: Sequence[Tuple[Digest, bytes, int, int]]) -> None:
    """Go on with up to LANES streams: (digest, data, start, stop) each."""

def use(kernel: str) -> None:
    """Hash with another of KERNELS from now on, for tests."""
