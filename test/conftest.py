"""What all tests share: figures, and the fixtures of a running cluster.

A cluster is started once a session, on free ports and in a folder of its
own; with ``SWIFT_DSS_AIO_ROOT`` set, the cluster that runs there is used
and left running.

A test that measures or counts something prints it with the name of the
claim in front (``R34: 18432 cases, 0 wrong``), or with ``figure:``. pytest
captures it as it captures everything, and all such lines are shown at the
end of the run, whether or not workers ran the tests.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import uuid
from typing import Any, Iterator

import pytest
from support import nursery
from support.nodes.tuned_cluster import TunedCluster

from swift_dss.aio import layout, processes, storage
from swift_dss.aio.cluster import Cluster, printer


nursery.install()

#: A line for the record.
_FIGURE = re.compile(r'^(?:[RS]\d\d\b|figure:).*$', re.M)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Repeat the figures that passing tests printed."""
    figures = [figure for report in terminalreporter.stats.get('passed', ())
               if report.when == 'call'
               for figure in _FIGURE.findall(report.capstdout)]
    if figures:
        terminalreporter.section('figures')
        for figure in figures:
            terminalreporter.line(figure)


def _start(**options: Any) -> Cluster:
    root = tempfile.mkdtemp(prefix='dss-', dir='/var/tmp')
    kind = 'folders' if storage.why_no_loops() else 'loops'
    # Far from the ports that a developer's own cluster takes.
    conf = layout.AioConf(
        root=root, storage=kind, base_port=processes.free_base_port(
            layout.PORTS, first=18080), **options)
    made = TunedCluster(conf, printer())
    made.start()
    return made


def _remove(made: Cluster) -> None:
    made.stop()
    shutil.rmtree(made.conf.root, ignore_errors=True)


@pytest.fixture(scope='session')
def cluster() -> Iterator[Cluster]:
    """The session's cluster; tests leave it in working order."""
    running = os.environ.get('SWIFT_DSS_AIO_ROOT')
    if running:
        yield Cluster(layout.load(running), printer())
        return
    # The disks' group is there, with a limit that nobody waits for.
    made = _start(background=False, hdd_iops=5000)
    yield made
    _remove(made)


@pytest.fixture
def swift(cluster: Cluster) -> Iterator[Any]:
    """A swiftclient connection of test:tester."""
    connection = cluster.connection()
    yield connection
    connection.close()


@pytest.fixture
def container(swift: Any) -> str:
    """A new container of the replicated policy with classes."""
    return _new_container(swift, 'dss')


@pytest.fixture(params=['dss', 'dss-ec'])
def any_container(request: Any, swift: Any) -> str:
    """A new container, of each policy with classes."""
    return _new_container(swift, request.param)


def _new_container(swift: Any, policy: str) -> str:
    name = 'test-%s' % uuid.uuid4().hex[:12]
    swift.put_container(name, headers={'X-Storage-Policy': policy})
    return name


@pytest.fixture
def s3(cluster: Cluster) -> Any:
    """A boto3 client of test:tester against the cluster's s3api."""
    import boto3
    from botocore.config import Config
    return boto3.client(
        's3', endpoint_url=cluster.conf.s3_url, region_name='us-east-1',
        aws_access_key_id='test:tester', aws_secret_access_key='testing',
        config=Config(s3={'addressing_style': 'path'},
                      retries={'max_attempts': 2}))


@pytest.fixture(autouse=True)
def _no_quarantine(request: Any) -> Iterator[None]:
    """No test on a cluster may make a server quarantine anything, unless
    it says so with the ``damage`` marker."""
    if 'cluster' not in request.fixturenames \
            or request.node.get_closest_marker('damage'):
        yield
        return
    from support import quarantined
    made = request.getfixturevalue('cluster')
    before = set(quarantined(made))
    yield
    new = set(quarantined(made)) - before
    assert not new, 'quarantined: %s' % ', '.join(sorted(new))
