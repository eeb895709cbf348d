"""A policy with Swift's own diskfile on the devices of ours.

The tier daemon makes room as if it were short of it. It must not touch a
file of that policy: stock Swift quarantines a stub at the first read.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from typing import Any, Dict, Iterator, List, Tuple

import pytest
from support import data_files, md5, pattern, quarantined, tier, wait_until
from tuned_cluster import TunedCluster

from swift_dss.aio import layout, processes, storage
from swift_dss.aio.cluster import printer
from swift_dss.wire import names

pytestmark = pytest.mark.cluster

ACCOUNT = 'AUTH_test'
SIZE = 128 << 10
NUMBER = 40
OURS, STOCK = 'dss', 'vanilla'


class Tight(TunedCluster):
    """A cluster that is under pressure from its first objects on."""

    options = {
        'tier': {'ssd_bytes': '2m', 'clean_after_seconds': '1',
                 'min_demote_bytes': '1024', 'interval_seconds': '1'},
        'gateway': {'remote_after_seconds': '1'}}


@pytest.fixture(scope='module')
def tight() -> Iterator[TunedCluster]:
    root = tempfile.mkdtemp(prefix='dss-ours-', dir='/var/tmp')
    kind = 'folders' if storage.why_no_loops() else 'loops'
    made = Tight(layout.AioConf(
        root=root, storage=kind, hdd_iops=0, background=False,
        base_port=processes.free_base_port(layout.PORTS, first=19480)),
        printer())
    made.start()
    yield made
    made.stop()
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def client(tight: TunedCluster) -> Iterator[Any]:
    made = tight.connection()
    yield made
    made.close()


def _put(client: Any, policy: str) -> Tuple[str, Dict[str, bytes]]:
    container = 'ours-%s' % uuid.uuid4().hex[:8]
    client.put_container(container, headers={'X-Storage-Policy': policy})
    bodies = {'o%02d' % number: pattern(SIZE, container + str(number))
              for number in range(NUMBER)}
    for name, body in bodies.items():
        client.put_object(container, name, body)
    return container, bodies


def _marked(cluster: TunedCluster, container: str, name: str) -> List[str]:
    """Data files of an object that have a record of ours."""
    return [file.path for file in data_files(
        cluster, ACCOUNT, container, name, layout.POLICIES.index(STOCK))
        if names.XATTR_RESIDENCY in os.listxattr(file.path)]


def test_a_stock_policy_beside_ours_is_never_touched(
        tight: TunedCluster, client: Any) -> None:
    theirs, stock_bodies = _put(client, STOCK)
    tier(tight, 'sweep')
    ours, our_bodies = _put(client, OURS)
    wait_until(lambda: len(tier(
        tight, 'ls', '--container', '%s/%s' % (ACCOUNT, ours),
        '--on', 'hdd')) >= NUMBER, 60, 'copies of ours on the HDD')
    # Whole rounds of the keepers, with all that pressure asks of them.
    for _ in range(3):
        tier(tight, 'settle')
        tier(tight, 'sweep')
    for container, bodies in ((theirs, stock_bodies), (ours, our_bodies)):
        for name, body in bodies.items():
            got = client.get_object(container, name)[1]
            assert md5(got) == md5(body)
    assert not tier(tight, 'ls', '--container', '%s/%s' % (ACCOUNT, theirs))
    assert not [name for name in stock_bodies
                if _marked(tight, theirs, name)]
    assert quarantined(tight) == []
