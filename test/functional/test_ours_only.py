"""A policy with Swift's own diskfile on the devices of ours.

The tier daemon makes room as if it were short of it. It must not touch a
file of that policy, whatever the pressure or an operator's verbs say: stock
Swift quarantines a stub at the first read.
"""

from __future__ import annotations

import concurrent.futures
import os
import threading
import uuid
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple

import pytest
from support import (
    await_remote, data_files, md5, pattern, quarantined, tier, tier_command,
    wait_until)
from support.nodes.tuned_cluster import TunedCluster
from swiftclient.exceptions import ClientException

from swift_dss.aio import layout
from swift_dss.wire import names

pytestmark = pytest.mark.cluster

ACCOUNT = 'AUTH_test'
#: Objects in all; 10,000 is a campaign of some ten minutes.
OBJECTS = int(os.environ.get('SWIFT_DSS_OURS_OBJECTS', '120'))
SIZE = 128 << 10 if OBJECTS <= 1000 else 16 << 10
NUMBER = OBJECTS // len(layout.POLICIES)
STOCK = 'vanilla'
#: Uploads and reads at a time.
_BESIDE = 8


class Tight(TunedCluster):
    """A cluster that is under pressure from its first objects on."""

    options = {
        'tier': {'ssd_bytes': '2m', 'clean_after_seconds': '1',
                 'min_demote_bytes': '1024', 'interval_seconds': '1'},
        'gateway': {'remote_after_seconds': '1'}}


@pytest.fixture(scope='module')
def tight() -> Iterator[TunedCluster]:
    with Tight.started('dss-ours-', 19480) as made:
        yield made


class Stored(NamedTuple):
    """The objects of one policy."""

    policy: str
    container: str
    bodies: Dict[str, bytes]

    @property
    def path(self) -> str:
        """Of the container, with its account."""
        return '%s/%s' % (ACCOUNT, self.container)


def _each(cluster: TunedCluster, names: Iterable[str],
          do: Callable[[Any, str], Any]) -> List[Any]:
    """Do something with each object, some at a time, in their order."""
    here = threading.local()

    def done(name: str) -> Any:
        if not hasattr(here, 'client'):
            here.client = cluster.connection()
        return do(here.client, name)
    with concurrent.futures.ThreadPoolExecutor(_BESIDE) as pool:
        return list(pool.map(done, names))


def _put(cluster: TunedCluster, policy: str) -> Stored:
    container = 'ours-%s' % uuid.uuid4().hex[:8]
    client = cluster.connection()
    client.put_container(container, headers={'X-Storage-Policy': policy})
    client.close()
    bodies = {'o%05d' % number: pattern(SIZE, container + str(number))
              for number in range(NUMBER)}
    _each(cluster, bodies, lambda client, name: client.put_object(
        container, name, bodies[name]))
    return Stored(policy, container, bodies)


def _unreadable(cluster: TunedCluster, stored: Stored) -> List[str]:
    """Objects that are 404 or not what was put."""
    def is_wrong(client: Any, name: str) -> bool:
        try:
            got = client.get_object(stored.container, name)[1]
        except ClientException:
            return True
        return bool(md5(got) != md5(stored.bodies[name]))
    return [name for name, wrong in zip(stored.bodies, _each(
        cluster, stored.bodies, is_wrong)) if wrong]


def _marked(cluster: TunedCluster, stored: Stored) -> List[str]:
    """Data files of a stock policy that have a record of ours."""
    return [file.path for name in stored.bodies for file in data_files(
        cluster, ACCOUNT, stored.container, name,
        layout.POLICIES.index(STOCK))
        if names.XATTR_RESIDENCY in os.listxattr(file.path)]


def _verbs(cluster: TunedCluster, stored: Stored) -> None:
    """What an operator says to one container, and to one object of it."""
    path = '/%s/%s' % (stored.path, next(iter(stored.bodies)))
    for words in (('demote',), ('promote',), ('demote', '--to', 'remote'),
                  ('pin',), ('unpin',)):
        tier_command(cluster, *words, '--container', stored.path)
        if stored.policy == STOCK:
            with pytest.raises(AssertionError, match='not on this node'):
                tier_command(cluster, *words, path)
        else:
            await_remote(cluster, path)
            tier_command(cluster, *words, path)
    tier_command(cluster, 'verify', '--repair')


def test_a_stock_policy_beside_ours_is_never_touched(
        tight: TunedCluster) -> None:
    stock = _put(tight, STOCK)
    tier(tight, 'sweep')
    ours = [_put(tight, policy) for policy in layout.POLICIES
            if policy != STOCK]
    for stored in ours:
        wait_until(lambda path=stored.path: len(tier(
            tight, 'ls', '--container', path, '--on', 'hdd')) >= NUMBER,
            60 + NUMBER / 10, 'copies of %s on the HDD' % stored.policy)
    # Whole rounds of the keepers, with all that pressure asks of them.
    for _ in range(3):
        tier(tight, 'settle')
        tier(tight, 'sweep')
    for stored in (stock, *ours):
        _verbs(tight, stored)
    stubs = 0
    for stored in ours:
        stubs += len(tier(tight, 'ls', '--container', stored.path,
                          '--on', 'remote'))
    wrong = {stored.policy: len(_unreadable(tight, stored))
             for stored in (stock, *ours)}
    marked = _marked(tight, stock)
    print('%d objects a policy, %d versions of ours in S3; records of ours '
          'in the stock policy %d; not readable %s; in quarantine %d' % (
              NUMBER, stubs, len(marked), wrong, len(quarantined(tight))))
    assert stubs, 'the pressure did nothing'
    assert not any(wrong.values())
    assert not tier(tight, 'ls', '--container', stock.path)
    assert marked == [] and quarantined(tight) == []
