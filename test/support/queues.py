"""Rows of a gateway's queue, one at a time."""

from __future__ import annotations

from swift_dss.core.version import VersionId
from swift_dss.gateway.queue import Queue


def add_upload(queue: Queue, version: VersionId, partition: str,
               not_before: float, now: float) -> None:
    """Note an upload of class 0."""
    queue.add_uploads([(version, partition, not_before, 0)], now)
