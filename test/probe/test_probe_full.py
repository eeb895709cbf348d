"""No room: on the SSDs, on the HDDs, on both, for the index.

A file takes the room of a real file system, so that every ``ENOSPC`` is
the kernel's own.
"""

from __future__ import annotations

import contextlib
import os

import pytest
import stubs
from support import quarantined, wait_until
from swiftclient import ClientException

from swift_dss.core.residency import Tier

pytestmark = [pytest.mark.cluster, pytest.mark.root]

KIB = 1024
#: Under what Swift keeps free (1 %), and over what an inode needs.
LEFT_BYTES = 2048 * KIB
BODY = b'full' * 64 * KIB


def test_a_full_ssd_refuses_only_what_must_lie_there(any_objects, loops):
    made = any_objects.make_all(('whole',) + stubs.ALL_STUBS)
    before = len(quarantined(loops))
    with _full(loops, 'devices'):
        wait_until(lambda: _placed(any_objects, 'fast') == Tier.HDD, 20,
                   'a class that may go round the SSD')
        refused = _refusal(any_objects, 'pinned')
        assert refused in (503, 507)
        found = stubs.admin(loops, 'promote', object=made[1].path)
        assert found['failed'], 'promoted into no room'
        for one in made:
            assert any_objects.get(one) == one.body
    wait_until(lambda: _refusal(any_objects, 'pinned') == 201, 20,
               'writes once there is room')
    _nothing_lost(any_objects, made, before)
    stubs.say('full SSD, %s: pinned refused with %d, others went to the '
              'HDD, %d objects read, 0 lost' % (
                  any_objects.policy_name, refused, len(made)))


def test_a_full_hdd_stops_demotion_and_nothing_else(any_objects, loops):
    made = any_objects.make_all(('whole',) + stubs.ALL_STUBS)
    before = len(quarantined(loops))
    with _full(loops, 'hdd'):
        found = stubs.admin(loops, 'demote', object=made[0].path)
        assert found['failed'], 'demoted into no room'
        assert all(copy.is_whole for copy in any_objects.copies(made[0]))
        assert _placed(any_objects, 'slow') == Tier.SSD
        for one in made:
            assert any_objects.get(one) == one.body
    wait_until(lambda: not stubs.admin(
        loops, 'demote', object=made[0].path)['failed'], 20, 'demotion')
    wait_until(lambda: _placed(any_objects, 'slow') == Tier.HDD, 20,
               'placement on the HDD')
    _nothing_lost(any_objects, made, before)
    stubs.say('full HDD, %s: demotion refused, writes went to the SSD, %d '
              'objects read, 0 lost' % (any_objects.policy_name, len(made)))


def test_with_no_room_at_all_writes_are_refused(any_objects, loops):
    made = any_objects.make_all(('whole',) + stubs.ALL_STUBS)
    before = len(quarantined(loops))
    with _full(loops, 'hdd'), _full(loops, 'devices'):
        refused = {name: _refusal(any_objects, name)
                   for name in ('fast', 'slow', 'cloud', 'pinned')}
        assert set(refused.values()) <= {503, 507}, refused
        for one in made:
            assert any_objects.get(one) == one.body
    wait_until(lambda: all(
        _refusal(any_objects, name) == 201 for name in refused), 20,
        'writes once there is room')
    _nothing_lost(any_objects, made, before)
    stubs.say('full SSD and HDD, %s: writes refused with %s, %d objects '
              'read, 0 lost' % (any_objects.policy_name, sorted(set(
                  refused.values())), len(made)))


def test_a_full_index_disk_costs_no_request(objects, loops):
    made = objects.make_all(('whole',) + stubs.ALL_STUBS)
    before = len(quarantined(loops))
    with _full_file_system(loops.conf.path('index'), 0):
        written = [_put(objects, name) for name in (
            'fast', 'slow', 'cloud') for _ in range(40)]
        for one in made + written[::20]:
            assert objects.get(one) == one.body
        assert stubs.admin(loops, 'status')['devices']
    # What was not written down meanwhile is found by itself.
    wait_until(lambda: all(objects.all_remote(one)
                           for one in written if 'cloud' in one.name), 90,
               'upload of what was put meanwhile')
    for one in (written[0], made[0]):
        objects.demote(one)
    _nothing_lost(objects, made + written, before)
    stubs.say('full index disk: %d writes taken, all found again, 0 lost'
              % len(written))


def _put(objects, class_name):
    name = '%s-%d' % (class_name, _put.count)
    _put.count += 1
    objects.swift.put_object(objects.container, name, BODY, headers={
        'X-DSS-Object-Class': class_name})
    return stubs.Object(objects.container, name, BODY, objects.policy)


_put.count = 0


def _placed(objects, class_name):
    """The tier that a new object goes to; None if it is refused."""
    try:
        one = _put(objects, class_name)
    except ClientException:
        return None
    found = {copy.residency.tiers for copy in objects.copies(one)}
    return found.pop() if len(found) == 1 else None


def _refusal(objects, class_name):
    """Status of a PUT, without retries."""
    connection = objects.cluster.connection()
    connection.retries = 0
    try:
        connection.put_object(objects.container, 'r-' + class_name, BODY,
                              headers={'X-DSS-Object-Class': class_name})
    except ClientException as err:
        return err.http_status
    finally:
        connection.close()
    return 201


def _nothing_lost(objects, made, quarantines):
    for one in made:
        assert objects.get(one) == one.body
    assert len(quarantined(objects.cluster)) == quarantines


@contextlib.contextmanager
def _full(cluster, kind):
    """Every SSD (``devices``) or HDD (``hdd``) of the cluster."""
    with contextlib.ExitStack() as stack:
        for device in cluster.conf.device_names:
            stack.enter_context(_full_file_system(
                cluster.conf.path(kind, device), LEFT_BYTES))
        yield


@contextlib.contextmanager
def _full_file_system(folder, left_bytes):
    path = os.path.join(folder, 'ballast')
    stat = os.statvfs(folder)
    with open(path, 'wb') as out:
        try:
            os.posix_fallocate(
                out.fileno(), 0,
                stat.f_bavail * stat.f_frsize - left_bytes)
            yield
        finally:
            os.unlink(path)
