"""Bytes that wait to be sent, and their MD5.

Swift compares what it stored with the MD5 that a request brought, so a
segment is hashed before it is sent. One stream of MD5 leaves most of a core
idle (:mod:`swift_dss.io.md5_lanes`). So a pass takes along the bytes that
later segments have already, and little is left to do when their turn comes.
Where that module was not compiled, each is hashed by itself.
"""

from __future__ import annotations

import hashlib
import mmap
import threading
from typing import Any, Dict, List, Optional, Tuple

try:
    from swift_dss.io import md5_lanes
except ImportError:
    md5_lanes = None  # type: ignore[assignment]

#: Bytes of a piece. One buffer that grew to a segment's size would be copied
#: on its way, and be there twice while it is.
_PIECE_BYTES = 1 << 20
#: Its pages are there when they are written; not those of a small object.
_PRIVATE: Dict[str, Any] = {'flags': mmap.MAP_PRIVATE} \
    if hasattr(mmap, 'MAP_PRIVATE') else {}
#: A digest, a piece, and the bytes of it that come next.
_Run = Tuple[Any, Any, int, int]


class Body:
    """What is sent as one object.

    One thread appends to the last body of a file, while others hash it and
    those before.

    :param before: the body whose bytes come before in the same file
    """

    def __init__(self, before: Optional[Body] = None) -> None:
        #: All but the last are full.
        self._pieces: List[mmap.mmap] = []
        self._length = self._hashed = 0
        self._digest: Any = hashlib.md5() if md5_lanes is None \
            else md5_lanes.Digest()
        self._later: Optional[Body] = None
        #: Both are the file's. The lock is held by the thread that hashes;
        #: spare memory is used again, as fresh pages cost a fault each.
        self._lock: threading.Lock
        self._spare: List[mmap.mmap]
        if before is None:
            self._lock, self._spare = threading.Lock(), []
        else:
            self._lock, self._spare = before._lock, before._spare
            before._later = self

    def __len__(self) -> int:
        return self._length

    @property
    def pieces(self) -> List[memoryview]:
        """Its bytes; nothing may be appended while they are used."""
        return [memoryview(piece)[:self._length - _PIECE_BYTES * number]
                for number, piece in enumerate(self._pieces)]

    @property
    def etag(self) -> str:
        """MD5 of its bytes, in hexadecimal; see :meth:`hash`."""
        self.hash()
        return str(self._digest.hexdigest())

    def append(self, data: memoryview) -> None:
        """Copy bytes behind those that are there."""
        while len(data):
            at = self._length % _PIECE_BYTES
            if not at:
                self._pieces.append(self._new_piece())
            part = data[:_PIECE_BYTES - at]
            self._pieces[-1][at:at + len(part)] = part
            # Only now: another thread hashes what is counted.
            self._length += len(part)
            data = data[len(part):]

    def hash(self) -> None:
        """Hash all of it, and with it what is there of later bodies.

        Blocks. Nothing is appended to it any more; to later ones, it may be.
        """
        with self._lock:
            while self._hashed < self._length:
                beside = self._beside()
                _hash([body._next_run() for body in beside])
                for body in beside:
                    body._hashed = min(body._hashed + _PIECE_BYTES,
                                       body._length)

    def free(self) -> None:
        """Give its memory to the bodies to come.

        It is stored. A request that was given up may be on its way still;
        Swift refuses that for its ETag if other bytes come with it.
        """
        self._spare += self._pieces
        self._pieces, self._later = [], None

    def _beside(self) -> List[Body]:
        """Itself, and the later bodies that have a full piece to hash."""
        beside, later = [self], self._later
        while md5_lanes is not None and later is not None \
                and len(beside) < md5_lanes.LANES:
            if later._length - later._hashed >= _PIECE_BYTES:
                beside.append(later)
            later = later._later
        return beside

    def _next_run(self) -> _Run:
        return (self._digest, self._pieces[self._hashed // _PIECE_BYTES], 0,
                min(_PIECE_BYTES, self._length - self._hashed))

    def _new_piece(self) -> mmap.mmap:
        try:
            return self._spare.pop()
        except IndexError:
            return mmap.mmap(-1, _PIECE_BYTES, **_PRIVATE)


def _hash(runs: List[_Run]) -> None:
    if md5_lanes is not None:
        md5_lanes.update(runs)
        return
    for digest, piece, start, stop in runs:
        digest.update(memoryview(piece)[start:stop])
