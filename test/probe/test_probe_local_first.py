"""One replica has the bytes, the others would have to ask S3."""

from __future__ import annotations

import contextlib
import os
import shutil
import time

import pytest
from support import hash_of, wait_until
from support.rigs import remote_stubs as stubs
from swift.common.ring import RingBuilder
from swiftclient import ClientException

from swift_dss.proxy.reads.warm_first import HOT_READS
from swift_dss.strategy.eviction.warmth import rank_of

pytestmark = pytest.mark.cluster

READS = 100
#: An object that is read more often is asked for anywhere.
FEW_READS = HOT_READS // 2


def test_reads_go_to_the_replica_that_has_the_bytes(any_objects, cluster):
    """Of fragments, to the two that make the object."""
    obj = any_objects.make(stubs.BACKED)
    copies = any_objects.copies(obj)
    lacking = copies[:2] if any_objects.policy_name == 'dss' else copies[:1]
    for copy in lacking:
        wait_until(lambda copy=copy: not stubs.admin(
            cluster, 'demote', container=obj.path.rpartition('/')[0],
            to='remote',
            device=copy.device)['failed'], 20, 'demotion of one copy')
    tiers = [copy.residency.tiers for copy in any_objects.copies(obj)]
    assert tiers.count(stubs.Tier.REMOTE) == len(lacking), tiers
    before = stubs.cloud_reads(cluster)
    for _number in range(READS):
        assert any_objects.get(obj) == obj.body
    asked = stubs.cloud_reads(cluster) - before
    assert asked <= READS // 100
    if any_objects.policy_name == 'dss':
        for _number in range(READS):
            answer = any_objects.swift.get_object(
                obj.container, obj.name, headers={'Range': 'bytes=5-9'})
            assert answer[1] == obj.body[5:10]
        assert stubs.cloud_reads(cluster) - before <= READS // 50
    stubs.say('%s, %d of 3 only in S3: %d of %d GETs reached S3' % (
        any_objects.policy_name, len(lacking), asked, READS))


@pytest.mark.parametrize('rank', [1, 2])
def test_an_old_version_is_not_preferred_for_its_bytes(
        rank, objects, cluster):
    """Two other servers have the newest in S3, and are asked first."""
    with _old_version(objects, cluster, rank) as (_before, obj):
        for _number in range(FEW_READS):
            assert objects.get(obj) == obj.body
    stubs.say('dss, an old version is local at rank %d, the newest in S3: '
              '%d GETs got the newest' % (rank, FEW_READS))


def test_an_old_version_that_is_asked_first_lasts_until_replication(
        objects, cluster):
    """Swift takes the first answer, and each GET asks the same server first:
    that of rank 0. ``X-Newest`` asks all of them."""
    with _old_version(objects, cluster, 0) as (before, obj):
        assert objects.get(obj) == before.body
        assert objects.swift.get_object(obj.container, obj.name, headers={
            'X-Newest': 'true'})[1] == obj.body
        objects.heal()
        for _number in range(FEW_READS):
            assert objects.get(obj) == obj.body


@contextlib.contextmanager
def _old_version(objects, cluster, rank):
    """A node that was away has the version before, with its bytes; the
    others have the newest in S3. Gives both versions.

    :param rank: of the copy on that node
    """
    before = objects.make('whole', name='old')
    copy, = [copy for copy in objects.copies(before)
             if _rank(cluster, before, copy) == rank]
    folder = os.path.dirname(copy.path)
    kept = os.path.join(os.path.dirname(cluster.conf.path('run')), 'kept')
    shutil.copytree(folder, kept)
    try:
        obj = objects.make(stubs.REMOTE, name='old')
        objects.lose(objects.copy_on(obj, copy.device))
        shutil.copytree(kept, folder)
    finally:
        shutil.rmtree(kept)
    assert before.body != obj.body
    stale = objects.direct(before, copy)
    assert stale.body == before.body, 'the test shows nothing'
    yield before, obj


def _rank(cluster, obj, copy):
    builder = RingBuilder.load(cluster.conf.path(
        'etc', 'object-%d.builder' % obj.policy if obj.policy
        else 'object.builder'))
    devices = [device['device'] for device in builder.get_part_devices(
        int(copy.partition))]
    return rank_of(hash_of(cluster.conf, *obj.path[1:].split('/', 2)),
                   devices.index(copy.device), len(devices))


def test_what_nobody_has_comes_from_s3_and_what_is_not_there_is_404(
        any_objects, cluster):
    obj = any_objects.make(stubs.REMOTE)
    for _number in range(3):
        assert any_objects.get(obj) == obj.body
    with pytest.raises(ClientException) as caught:
        any_objects.swift.get_object(obj.container, 'not-there')
    assert caught.value.http_status == 404


def test_a_cloud_that_is_known_to_be_dead_is_503_at_once(
        any_objects, cluster):
    made = any_objects.make_all([stubs.REMOTE] * 2)
    cluster.stop_cloud()
    try:
        wait_until(lambda: _seconds(any_objects, made[0]) < 1.0, 120,
                   'an answer at once')
        slowest = max(_seconds(any_objects, made[number % 2])
                      for number in range(20))
        assert slowest < 1.0
    finally:
        cluster.start_cloud()
    for obj in made:
        wait_until(lambda obj=obj: _readable(any_objects, obj), 90,
                   'reads from the cloud')
    stubs.say('%s, dead cloud: 503 after at most %.2f s' % (
        any_objects.policy_name, slowest))


def _seconds(objects, obj):
    connection = objects.cluster.connection()
    connection.retries = 0
    connection.get_auth()
    begin = time.monotonic()
    try:
        with pytest.raises(ClientException) as caught:
            connection.get_object(obj.container, obj.name)
        assert caught.value.http_status == 503
        return time.monotonic() - begin
    finally:
        connection.close()


def _readable(objects, obj):
    try:
        return objects.get(obj) == obj.body
    except ClientException:
        return False
