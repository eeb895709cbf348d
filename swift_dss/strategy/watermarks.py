"""When moving starts and how far it goes."""

from __future__ import annotations


def bytes_to_free(room_bytes: int, used_bytes: int, high: float,
                  low: float) -> int:
    """0 up to the high watermark; above it, the bytes down to the low one.

    :param high: share of the room (0..1) where freeing starts
    :param low: share where it stops
    """
    if used_bytes <= room_bytes * high:
        return 0
    return max(0, used_bytes - int(room_bytes * low))


def used_bytes(room_bytes: int, tracked_bytes: int, disk_used_bytes: int,
               disk_free_bytes: int) -> int:
    """How much of the room counts as used.

    A room smaller than its disk is a budget, and only the index knows what
    counts against it. But the index may be behind: replication takes files
    away that it has not heard of. So no more than the disk holds counts as
    used. The disk also holds metadata, other folders and files that the
    index has not heard of: bytes that are not free on it count too.
    """
    return max(min(tracked_bytes, disk_used_bytes),
               room_bytes - disk_free_bytes)
