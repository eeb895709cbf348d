"""No room: on the SSDs, on the HDDs, on both, for the index.

A file takes the room of a real file system, so that every ``ENOSPC`` is
the kernel's own.
"""

from __future__ import annotations

import contextlib
import os

import pytest
from support import md5, quarantined, wait_until
from support.rigs import remote_stubs as stubs
from swiftclient import ClientException

from swift_dss.core.residency import Tier

pytestmark = [pytest.mark.cluster, pytest.mark.root]

KIB = 1024
#: SSD: under what Swift keeps free (1 %), and over what an inode needs.
LEFT_BYTES = {'devices': 2048 * KIB, 'hdd': 128 * KIB}
BODY = b'full' * 64 * KIB


def test_a_full_ssd_refuses_only_what_must_lie_there(any_objects, loops):
    made = any_objects.make_all(('whole',) + stubs.ALL_STUBS)
    before = len(quarantined(loops))
    with _full(any_objects, 'devices') as fill:
        # What may leave the SSD leaves it now: take that room too.
        wait_until(lambda: fill() or _refusal(
            any_objects, 'pinned') in (503, 507), 40, 'refusal')
        _all_read(any_objects, made, fill)
        wait_until(lambda: _placed(any_objects, 'fast') == Tier.HDD,
                   20.0, 'a class that goes round the SSD')
        counts = stubs.admin(loops, 'promote', object=made[1].path)
        assert counts['failed'], 'promoted into no room'
    _nothing_lost(any_objects, made, before)
    stubs.say('full SSD, %s: a pinned class refused, others went to the '
              'HDD, %d objects read, 0 lost' % (
                  any_objects.policy_name, len(made)))


def test_a_full_hdd_stops_demotion_and_nothing_else(any_objects, loops):
    made = any_objects.make_all(('whole',) + stubs.ALL_STUBS)
    before = len(quarantined(loops))
    with _full(any_objects, 'hdd') as fill:
        counts = stubs.admin(loops, 'demote', object=made[0].path)
        assert counts['failed'], 'demoted into no room'
        assert all(copy.is_whole for copy in any_objects.copies(made[0]))
        # A file system may give room back a moment later: take that too.
        wait_until(lambda: fill() or _placed(any_objects, 'slow') == Tier.SSD,
                   20.0, 'a class that goes to the SSD instead')
        for obj in made:
            assert any_objects.get(obj) == obj.body
    _nothing_lost(any_objects, made, before)
    any_objects.demote(made[0])
    assert any_objects.get(made[0]) == made[0].body
    stubs.say('full HDD, %s: demotion refused, writes went to the SSD, %d '
              'objects read, 0 lost' % (any_objects.policy_name, len(made)))


def test_with_no_room_at_all_writes_are_refused(any_objects, loops):
    made = any_objects.make_all(('whole',) + stubs.ALL_STUBS)
    before = len(quarantined(loops))
    classes = ('fast', 'slow', 'cloud', 'pinned')
    with _full(any_objects, 'hdd') as fill_hdd, \
            _full(any_objects, 'devices') as fill_ssd:
        wait_until(lambda: fill_hdd() or fill_ssd() or all(
            _refusal(any_objects, name) in (503, 507)
            for name in classes), 60, 'refusal of every class')
        _all_read(any_objects, made, fill_hdd, fill_ssd)
    _nothing_lost(any_objects, made, before)
    stubs.say('full SSD and HDD, %s: writes of %d classes refused, %d '
              'objects read, 0 lost' % (any_objects.policy_name,
                                        len(classes), len(made)))


@pytest.mark.slow
def test_a_full_index_disk_costs_no_request(objects, loops):
    made = objects.make_all(('whole',) + stubs.ALL_STUBS)
    before = len(quarantined(loops))
    with _Ballast(loops.conf.path('index'), 0) as fill:
        fill()
        written = [_put(objects, name) for name in (
            'fast', 'slow', 'cloud') for _ in range(40)]
        for obj in made + written[::20]:
            assert objects.get(obj) == obj.body
        assert stubs.admin(loops, 'status')['devices']
    # What was not written down meanwhile is found by itself.
    wait_until(lambda: all(objects.all_remote(obj)
                           for obj in written if 'cloud' in obj.name), 90,
               'upload of what was put meanwhile')
    for obj in (written[0], made[0]):
        objects.demote(obj)
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
        obj = _put(objects, class_name)
    except ClientException:
        return None
    tiers = {copy.residency.tiers for copy in objects.copies(obj)}
    return tiers.pop() if len(tiers) == 1 else None


def _room_everywhere(objects):
    """Does every device take each class to its own tier?"""
    devices = set(objects.cluster.conf.device_names)
    for name, tier in (('pinned', Tier.SSD), ('slow', Tier.HDD),
                       ('fast', Tier.SSD), ('cloud', Tier.SSD)):
        taken = set()
        for _ in range(20):
            try:
                copies = objects.copies(_put(objects, name))
            except ClientException:
                return False
            # Those of ``cloud`` may be in S3 as well by now.
            if any(copy.residency.tiers & ~Tier.REMOTE != tier
                   for copy in copies):
                return False
            taken.update(copy.device for copy in copies)
            if taken == devices:
                break
        else:
            return False  # the proxy avoids one of them
    return True


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
    """Once there is room again, and all servers know it.

    The proxy judges a write by what each device said last, which is older
    than the room: seconds, and not the same for each. A write of fragments
    needs all of its devices, so those of the next test would be refused.

    The tier daemon says it at the end of a round. One that met a full HDD
    may end after the first writes have found room, and object servers then
    pass that HDD over until the next round: so let one begin and end first.
    """
    objects.settle()
    for kind in {objects.policy_name: objects, 'dss-ec': stubs.Objects(
            objects.cluster, objects.swift, 'dss-ec')}.values():
        wait_until(lambda kind=kind: _room_everywhere(kind), 60, 'room again')
    for obj in made:
        assert objects.get(obj) == obj.body
    assert len(quarantined(objects.cluster)) == quarantines


def _all_read(objects, made, *fills):
    """Each object server serves what it has; so does the proxy, right
    after a write that it could not place."""
    connection = objects.cluster.connection()
    connection.retries = 0
    refused = 0
    for obj in made:
        for fill in fills:
            fill()
        for copy in objects.copies(obj):
            reply = objects.direct(obj, copy)
            assert (reply.status, md5(reply.body)) == (200, copy.etag)
        refused += _refusal(objects, 'pinned') in (503, 507)
        assert connection.get_object(obj.container, obj.name)[1] == obj.body
    connection.close()
    assert refused


@contextlib.contextmanager
def _full(objects, kind):
    """Every SSD (``devices``) or HDD (``hdd``) of the cluster.

    Gives a function that takes what room has come back meanwhile.
    """
    conf = objects.cluster.conf
    with contextlib.ExitStack() as stack:
        fills = [stack.enter_context(_Ballast(
            conf.path(kind, device), LEFT_BYTES[kind]))
            for device in conf.device_names]

        def fill():
            for fill in fills:
                fill()
        fill()
        yield fill


class _Ballast:
    """A file that takes all room of a file system but ``left_bytes``."""

    def __init__(self, folder, left_bytes):
        self._folder = folder
        self._left = left_bytes
        self._path = os.path.join(folder, 'ballast')

    def __enter__(self):
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT)
        return self

    def __call__(self):
        """Daemons may take room between the look and the taking."""
        for _ in range(20):
            with contextlib.suppress(OSError):
                return self._take()
        self._take()

    def _take(self):
        stat = os.statvfs(self._folder)
        more = stat.f_bavail * stat.f_frsize - self._left
        if more > 0:
            os.posix_fallocate(self._fd, os.fstat(self._fd).st_size, more)

    def __exit__(self, *_error):
        os.unlink(self._path)
        os.close(self._fd)
