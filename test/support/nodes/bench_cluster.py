"""A cluster in the machine's memory, for benches that ask one as clients do.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from typing import Any, Iterator, Type

from swift_dss.aio import layout, processes
from swift_dss.aio.cluster import Cluster

#: Disks are not behind it.
_FAST = '/dev/shm'
_FIRST_PORT = 19080


@contextlib.contextmanager
def started(kind: Type[Cluster] = Cluster, on: str = _FAST,
            **options: Any) -> Iterator[Cluster]:
    """A cluster in a new folder, for as long as the block.

    :param on: the folder's parent
    :param options: of :class:`~swift_dss.aio.layout.AioConf`
    """
    root = tempfile.mkdtemp(prefix='dss-', dir=on)
    cluster = kind(layout.AioConf(
        root=root, storage='folders', base_port=processes.free_base_port(
            layout.PORTS, first=_FIRST_PORT), **options), lambda line: None)
    try:
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop()
    finally:
        shutil.rmtree(root, ignore_errors=True)
