"""A gateway in a process of its own, to be killed: upload, fill, delete.

``python -m fault.gateway_child ROOT URL ACCESS SECRET VERB NAME [INDEX]``
does one verb on the version that ROOT's expected.json calls NAME and ends.
Starting again with the same ROOT is the daemon's restart.
"""

from __future__ import annotations

import logging
import os
import sys
from types import SimpleNamespace

from support import wait_until
from support.nodes.gateway_node import (
    Collector, CountingMetrics, FixedRanks, FolderVersions, OnlyHere,
    conf_for)

from swift_dss.core.classes import ClassTable
from swift_dss.core.version import VersionId
from swift_dss.gateway.parts import Outside
from swift_dss.gateway.service import Gateway
from swift_dss.wire.control import FetchRequest


def version_of(name: str) -> VersionId:
    """The version that ``expected.json`` calls ``name``."""
    device, _, key = name.partition(' ')
    policy, object_hash, timestamp = key.split('/')
    return VersionId(device, int(policy), object_hash, timestamp)


def main() -> int:
    root, url, access_key, secret_key, verb, name = sys.argv[1:7]
    server = SimpleNamespace(
        url=url, access_key=access_key, secret_key=secret_key)
    conf = conf_for(server, root, prefix='kill/')
    local = FolderVersions(root)
    metrics = CountingMetrics()
    gateway = Gateway(conf, ClassTable, local, logging.getLogger('child'),
                      metrics,
                      outside=Outside(
                          ranks=FixedRanks(), primaries=OnlyHere(local)))
    gateway.start()
    version = version_of(name)
    if verb == 'upload':
        gateway.enqueue_upload(version, '7')
    elif verb == 'delete':
        gateway.enqueue_deletes([(version, '7')])
    elif verb == 'fill':
        sink = Collector()
        length = local.residency(version).content_length
        assert gateway.fetch(FetchRequest(
            version, '7', 0, length, 0, 20.0, True), sink)
        with open(os.path.join(root, 'out'), 'wb') as out:
            out.write(sink.data)
    wait_until(lambda: not any(
        gateway.status()[name] for name in (
            'uploads', 'deletes', 'reading', 'uploading', 'deleting')),
        60, 'all is done')
    gateway.stop()
    print('parts_resumed %d' % metrics.counters.get(
        'gateway.parts_resumed', 0))
    return 0


if __name__ == '__main__':
    sys.exit(main())
