"""A proxy without our filters, beside a cluster's own: as after an uninstall.
"""

from __future__ import annotations

import os
import re

from swift_dss.aio import processes
from swift_dss.aio.cluster import Cluster

NAME = 'stock-proxy'


def start(cluster: Cluster) -> int:
    """Start one; its port. End it with :func:`end`."""
    conf = cluster.conf
    port = processes.free_base_port(1, first=conf.base_port + 100)
    with open(os.path.join(conf.etc, 'proxy-server.conf'),
              encoding='utf-8') as source:
        text = source.read()
    text = re.sub(r'(?m)^(pipeline = .*) dss ', r'\1 ', text)
    text = text.replace(' dss_retry_after ', ' ').replace(
        'egg:swift_dss#s3api', 'egg:swift#s3api')
    text = re.sub(r'(?m)^bind_port = \d+', 'bind_port = %d' % port, text)
    path = os.path.join(conf.etc, NAME + '.conf')
    with open(path, 'w', encoding='utf-8') as target:
        target.write(text)
    log = os.path.join(conf.log, NAME + '.log')
    processes.spawn(conf.root, NAME, log, [
        '-m', 'swift_dss.aio.run', conf.etc, 'proxy-server', path])
    assert processes.wait(lambda: processes.listening(port), 30.0), \
        processes.tail(log)
    return port


def end(cluster: Cluster) -> None:
    """End it."""
    processes.end(cluster.conf.root, [NAME])
