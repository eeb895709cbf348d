"""When moving starts and how far it goes."""

from __future__ import annotations


def bytes_to_free(room_bytes: int, used_bytes: int, high: float,
                  low: float) -> int:
    """0 up to the high watermark; above it, what brings it to the low one.

    :param high: share of the room (0..1) where freeing starts
    :param low: share where it stops
    """
    if used_bytes <= room_bytes * high:
        return 0
    return max(0, used_bytes - int(room_bytes * low))


def used_bytes(room_bytes: int, tracked_bytes: int,
               disk_free_bytes: int) -> int:
    """How much of the room counts as used.

    The index counts objects; the disk also holds metadata, other folders
    and what the index has not heard of. Where the disk has less room left
    than the index believes, the disk is right.
    """
    believed_free = max(0, room_bytes - tracked_bytes)
    return max(tracked_bytes,
               room_bytes - min(believed_free, disk_free_bytes))
