"""The order to record a trace: a JSON file in the node's run_dir.

``swift-dss trace record`` writes it, object servers look at it about once a
second, and stop when it goes or its time is over. Each process writes a
file of its own into ``folder``.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass

from swift_dss.wire.jsonfields import Fields

NAME = 'trace.json'
SUFFIX = '.trace'
#: The file before the last rotation.
OLDER = '.1'


@dataclass(frozen=True)
class TraceOrder:
    """A record in progress.

    :param folder: an existing folder
    :param until: seconds since the epoch
    :param process_bytes: most bytes of one process; beyond them the oldest
        half is dropped
    """

    folder: str
    until: float
    process_bytes: int


def path_in(run_dir: str) -> str:
    """Where the order of a node is."""
    return os.path.join(run_dir, NAME)


def encode(order: TraceOrder) -> bytes:
    """The file's bytes."""
    return json.dumps(asdict(order)).encode('utf-8') + b'\n'


def decode(raw: bytes) -> TraceOrder:
    """The order of a file.

    :raises DamagedRecord: not one of ours
    """
    fields = Fields(raw, 'trace order')
    return TraceOrder(fields.text('folder'), fields.number('until'),
                      fields.whole('process_bytes'))
