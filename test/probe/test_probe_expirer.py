"""Swift's object expirer over versions whose bytes lie elsewhere."""

from __future__ import annotations

import os

import pytest
from support import data_files, quarantined, wait_until
from support.rigs import remote_stubs as stubs
from swiftclient import ClientException

pytestmark = pytest.mark.cluster


def test_expired_stubs_leave_every_tier(any_objects, cluster, swift):
    made = any_objects.make_all(('whole',) + stubs.ALL_STUBS)
    keys = [_hash(any_objects.copies(obj)[0]) for obj in made]
    held = [any_objects.capacity_path(copy) for obj in made
            for copy in any_objects.copies(obj)]
    held = [path for path in held if os.path.exists(path)]
    assert held, 'nothing lies on an HDD'
    in_cloud = [key for key in keys if stubs.cloud_keys(cluster, key)]
    assert len(in_cloud) == 2
    recalls = stubs.cloud_reads(cluster)
    quarantines = len(quarantined(cluster))
    for obj in made:
        swift.post_object(obj.container, obj.name,
                          {'X-Delete-After': '1'})
    wait_until(lambda: all(_gone(swift, obj) for obj in made), 20,
               'expiry')
    wait_until(lambda: _expire(cluster, any_objects, made), 60,
               'deletion by the expirer')
    any_objects.settle()
    wait_until(lambda: not any(map(os.path.exists, held)), 20,
               'removal of HDD files')
    wait_until(lambda: not any(stubs.cloud_keys(cluster, key)
                               for key in keys), 60, 'deletes in S3')
    assert stubs.cloud_reads(cluster) == recalls
    assert len(quarantined(cluster)) == quarantines
    stubs.say('expirer, %s: %d expired, %d HDD files and %d objects in S3 '
              'gone, 0 false quarantines, 0 recalls' % (
                  any_objects.policy_name, len(made), len(held),
                  len(in_cloud)))


def _hash(copy):
    return copy.path.split(os.sep)[-2]


def _gone(swift, obj):
    try:
        swift.head_object(obj.container, obj.name)
    except ClientException as err:
        return err.http_status == 404
    return False


def _expire(cluster, objects, made):
    """One pass; tasks may still be on their way to the queue."""
    cluster.run_once('object-updater')
    cluster.run_once('container-updater')
    cluster.run_once('object-expirer')
    return not any(data_files(cluster, stubs.ACCOUNT, obj.container,
                              obj.name, obj.policy) for obj in made)
