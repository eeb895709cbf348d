"""Writes objects through a diskfile, as the processes of ``placement.py``.

The job comes as JSON on the standard input.
"""

from __future__ import annotations

import eventlet

eventlet.monkey_patch()

import json  # noqa: E402
import logging  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
from typing import Any, Dict, Iterator  # noqa: E402

from eventlet import greenpool  # noqa: E402
from request_path import prepare  # noqa: E402
from swift.common.utils import Timestamp, get_logger, hash_path  # noqa: E402

#: Of what an object server takes from a connection.
_CHUNK = os.urandom(65536)


def _chunks(size: int) -> Iterator[bytes]:
    for at in range(0, size, len(_CHUNK)):
        yield _CHUNK[:size - at]


def upload(manager: Any, policy: Any, partition: int, name: str,
           size: int) -> None:
    """A PUT of the object, from its first byte to the durable name."""
    diskfile = manager.get_diskfile('d1', str(partition), 'a', 'c', name,
                                    policy=policy)
    stamp = Timestamp.now()
    with diskfile.create(size=size) as writer:
        for chunk in _chunks(size):
            writer.write(chunk)
            # Here the next bytes of another connection are read.
            eventlet.sleep(0)
        count, etag = writer.chunks_finished()
        if count != size:
            raise SystemExit('%s: %d of %d bytes' % (name, count, size))
        writer.put({'X-Timestamp': stamp.internal, 'ETag': etag,
                    'Content-Type': 'application/octet-stream',
                    'Content-Length': str(size)})
        writer.commit(stamp)


def main(job: Dict[str, Any]) -> None:
    """See the module's text."""
    logging.getLogger().addHandler(logging.NullHandler())
    with tempfile.TemporaryDirectory() as root:
        conf = prepare(job['devices'], root)
        from swift.common.storage_policy import POLICIES
        from swift.obj.diskfile import DiskFileRouter
        policy = POLICIES[job['policy']]
        manager = DiskFileRouter(conf, get_logger(conf))[policy]
        waiting = iter(job['objects'])

        def write() -> None:
            for name, size in waiting:
                digest = hash_path('a', 'c', name)
                upload(manager, policy, int(digest[:8], 16)
                       % job['partitions'], name, size)
        pool = greenpool.GreenPool()
        writers = [pool.spawn(write) for _ in range(job['writers'])]
        for writer in writers:
            writer.wait()


if __name__ == '__main__':
    main(json.load(sys.stdin))
