"""``swift-dss trace record`` on a running cluster: nothing is missing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from swift_dss.replay.traces import readers
from swift_dss.wire import tracing

pytestmark = pytest.mark.cluster

#: Sizes that no other test has.
SIZES = (7771, 7772, 7773)
READS = 5


def test_every_request_of_a_client_is_in_the_trace(
        cluster, swift, container, tmp_path):
    out = tmp_path / 'node.trace.xz'
    conf = cluster.conf.path('etc', 'dss.conf')
    order = tracing.path_in(cluster.conf.path('run'))
    record = subprocess.Popen(
        [sys.executable, '-m', 'swift_dss.cli.main', 'trace', 'record',
         '--config', conf, '--seconds', '300', '-o', str(out)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 60
        while not os.path.exists(order):
            assert record.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        # What object servers may take to notice, by contract.
        time.sleep(1.5)
        for size in SIZES:
            swift.put_object(container, 'o%d' % size, b'x' * size,
                             headers={'X-DSS-Object-Class': 'gold'})
            for _ in range(READS):
                swift.get_object(container, 'o%d' % size)
            swift.get_object(container, 'o%d' % size,
                             headers={'Range': 'bytes=100-199'})
    finally:
        record.send_signal(signal.SIGINT)
        said = record.communicate(timeout=120)[0].decode()
    assert record.returncode == 0, said
    assert not os.path.exists(order)
    trace = readers.read_file(str(out), keep_names=True)
    for size in SIZES:
        rows = trace.sizes == size
        reads = rows & (trace.verbs == 0)
        assert int((rows & (trace.verbs == 1)).sum()) == 3  # replicas
        assert int(reads.sum()) == READS + 1
        ranged = reads & (trace.starts == 100)
        assert trace.lengths[ranged].tolist() == [100]
        assert set(trace.class_ids[rows].tolist()) == {25}
    assert not any(container in name for name in trace.object_names)
