"""The cluster of the probes: no daemon moves anything unless told to.

Swift's own daemons run one pass at a time (``Cluster.run_once``); the tier
daemon runs, with ages and budgets at which it leaves objects alone, so
that each test decides what is demoted, uploaded and dropped, and when.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any, Dict, Iterator

import pytest
from support.nodes.tuned_cluster import TunedCluster
from support.rigs import remote_stubs as stubs

from swift_dss.aio import configs, layout, processes, storage
from swift_dss.aio.cluster import Cluster, printer

CLASSES = """
[class:0]
name = unclassified
rank = 0
remote = never
[class:20]
name = fast
rank = 900
remote = never
[class:21]
name = slow
rank = 100
allocate = never
remote = never
[class:22]
name = cloud
rank = 500
remote = through
[class:23]
name = attic
rank = 50
remote = only
[class:24]
name = pinned
rank = 950
remote = never
pin = true
"""

#: A demonstration's auditor takes its time; ours is waited for.
AUDIT_PACE = '\nfiles_per_second = 50\n'
FAST_AUDIT = ('\nfiles_per_second = 1000\n'
              'bytes_per_second = 1000000000\n')

#: What differs from the demonstration's dss.conf.
OPTIONS: Dict[str, Dict[str, str]] = {
    # The index's disk of 16 MB is one.
    'dss': {'allow_tmpfs': 'true'},
    'io': {'remote_deadline_seconds': '4'},
    'tier': {'ssd_bytes': '0', 'clean_after_seconds': '86400',
             'dirty_watermark': '1.0', 'min_demote_bytes': '1024',
             'interval_seconds': '1'},
    'gateway': {'delete_delay_seconds': '1', 'take_over_seconds': '8',
                'deadline_seconds': '3', 'retry_after_seconds': '7',
                'remote_after_seconds': '1'},
}


class ProbeCluster(TunedCluster):
    """A cluster with the classes and ages above."""

    options = OPTIONS

    def extra_options(self) -> Dict[str, Dict[str, str]]:
        return {'dss': {'allow_tmpfs': 'true'},
                'tier': {'index_dir': self.conf.path('index')}}

    def _configure(self) -> None:
        super()._configure()
        index = self.conf.path('index')
        os.makedirs(index, exist_ok=True)
        if self.conf.storage == 'loops':
            # A disk of its own, small enough to be filled by a test.
            storage.run('mount', '-t', 'tmpfs', '-o', 'size=16m',
                        'dss-index', index)
        with open(self.conf.path('etc', 'object-server.conf')) as source:
            servers = source.read()
        assert AUDIT_PACE in servers
        configs.write(self.conf, {'etc/object-server.conf': servers.replace(
                                      AUDIT_PACE, FAST_AUDIT),
                                  'etc/dss-classes.conf': CLASSES,
                                  'etc/dss-rules.conf': ''})


def _new(root: str) -> Cluster:
    kind = 'folders' if storage.why_no_loops() else 'loops'
    made = ProbeCluster(layout.AioConf(
        root=root, storage=kind, hdd_iops=0, background=False,
        base_port=processes.free_base_port(layout.PORTS, first=19080)),
        printer())
    made.start()
    return made


def _kept(root: str) -> Cluster:
    if 'proxy-server' in processes.find(root):
        return ProbeCluster(layout.load(root), printer())
    return _new(root)


@pytest.fixture(scope='session')
def cluster() -> Iterator[Cluster]:
    """One cluster for all probes; each leaves it in working order.

    With ``SWIFT_DSS_PROBE_ROOT`` set, the one that runs there is used, or
    started there, and left running.
    """
    kept = os.environ.get('SWIFT_DSS_PROBE_ROOT')
    if kept:
        yield _kept(kept)
        return
    root = tempfile.mkdtemp(prefix='dss-probe-', dir='/var/tmp')
    made = _new(root)
    yield made
    made.stop()
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def loops(cluster: Cluster) -> Cluster:
    """The cluster, if it has file systems that can be unmounted."""
    if cluster.conf.storage != 'loops':
        pytest.skip('needs XFS on loop devices: %s'
                    % storage.why_no_loops())
    return cluster


@pytest.fixture
def objects(cluster: Cluster, swift: Any) -> Iterator[stubs.Objects]:
    """Makes objects and stubs of them, replicated."""
    made = stubs.Objects(cluster, swift, 'dss')
    yield made
    made.delete_all()


@pytest.fixture
def ec_objects(cluster: Cluster, swift: Any) -> Iterator[stubs.Objects]:
    """The same, erasure-coded."""
    made = stubs.Objects(cluster, swift, 'dss-ec')
    yield made
    made.delete_all()


@pytest.fixture(params=['dss', 'dss-ec'])
def any_objects(request: Any, cluster: Cluster, swift: Any
                ) -> Iterator[stubs.Objects]:
    """The same for each storage policy with classes."""
    made = stubs.Objects(cluster, swift, request.param)
    yield made
    made.delete_all()
