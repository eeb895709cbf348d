"""Caches of whole objects in C, for replays (fast.c)."""

from typing import Any, Tuple

#: Of one class: the number of its order (lru 0, sieve 1, s3fifo 2, gdsf 3),
#: rank, floor and cap in bytes, weight, allocate (always 0, room 1, never 2),
#: pin, and its weight in the cost of GDSF.
Row = Tuple[int, int, int, int, float, int, int, float]

class Cache:
    """Decides as ``PlainCache`` and ``ClassedCache`` do.

    :param capacity: bytes, at least 1
    :param plain: the order of class 0 has all classes
    :param weighted: classes share by weight
    :param cost: of a miss for GDSF, in microseconds, without its bytes
    :param rate: bytes a second; 0: all misses cost the same
    :param rows: of the classes 0..31
    :param window: of ``SecondTouch``, in bytes; 0: all missed objects come in
    :raises ValueError: an argument is out of bounds
    """

    #: Of all objects.
    used_bytes: int
    #: The most objects so far that were there at a time, with those that an
    #: order remembers after they left.
    remembered: int

    def __init__(self, capacity: int, plain: bool, weighted: bool,
                 cost: float, rate: float, rows: Tuple[Row, ...],
                 window: int) -> None: ...

    def play(self, keys: Any, sizes: Any, class_ids: Any, verbs: Any,
             results: Any, came: Any, begin: int) -> None:
        """Play accesses, one a row of buffers of one length.

        :param keys, sizes: of eight bytes each; sizes are at least 1
        :param class_ids: a byte each, 0..31
        :param verbs: a byte each: 0 access, 1 remove and access, 2 remove, 3
            write, 4 remove and write; empty: all are accesses
        :param results: a byte each, written: ``HIT``, ``MISS``, ``BYPASS``,
            or 3 for what was only removed
        :param came: four bytes each, written: the number of the access that
            brought in what was hit; its own of any other
        :param begin: the number of the first access
        :raises ValueError: a column or a value is out of bounds
        :raises MemoryError: the cache MUST not be used again
        """
