"""A Swift that lives as long as one measurement in a guest.

All of it, with its logs, is gone when the guest ends, so failures are reported
before that.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import Iterator, TypeVar

from swift_dss.aio import processes
from swift_dss.aio.cluster import Cluster

AnyCluster = TypeVar('AnyCluster', bound=Cluster)


@contextmanager
def running(cluster: AnyCluster) -> Iterator[AnyCluster]:
    """Start it, stop it; if anything fails, the ends of all its logs go to
    the standard error first."""
    try:
        cluster.start()
        yield cluster
    except BaseException:
        folder = cluster.conf.log
        # The first failure may come before there are any logs.
        for name in sorted(os.listdir(folder)
                           if os.path.isdir(folder) else ()):
            print('== %s\n%s' % (name, processes.tail(
                cluster.conf.path('log', name))), file=sys.stderr)
        raise
    finally:
        cluster.stop()
