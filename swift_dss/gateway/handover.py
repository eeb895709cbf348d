"""The notes of a shard's files on a device, handed to another shard.

The index is not handed over: the new shard reads the device. What no device
tells is: which uploads were begun, and what is still to be deleted in S3.
Neither shard may run meanwhile. A crash at any step leaves rows in both
files, and doing it again leaves them in one.
"""

from __future__ import annotations

import os
from typing import Sequence

from swift_dss.core.config import NodeConf
from swift_dss.gateway.bundle.book import Book
from swift_dss.gateway.bundle.pack import book_path
from swift_dss.gateway.queue import Queue, queue_path
from swift_dss.io import steps


def hand_over(old: NodeConf, new: NodeConf, devices: Sequence[str]) -> int:
    """Move what one shard has written down of devices to another shard.

    :param old: of the shard that had them
    :param new: of the shard that has them from now on
    :returns: number of uploads, deletes and renewals that went over
    :raises BadConfig, TierUnavailable: a file cannot be opened or written
    """
    moved = 0
    if os.path.exists(queue_path(old)):
        # Opened for a moment: an old file gets the tables it lacks.
        Queue(queue_path(old)).close()
        queue = Queue(queue_path(new))
        try:
            for table in ('uploads', 'deletes'):
                moved += queue.take_over(queue_path(old), table, devices)
                steps.reached('handover.' + table)
        finally:
            queue.close()
    if os.path.exists(book_path(old.state_dir)):
        before = Book(book_path(old.state_dir))
        book = Book(book_path(new.state_dir))
        try:
            moved += book.take_over(book_path(old.state_dir), 'renewals',
                                    devices)
            steps.reached('handover.renewals')
            before.leave_devices(devices)
            steps.reached('handover.holders')
        finally:
            book.close()
            before.close()
    return moved
