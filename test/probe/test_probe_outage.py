"""The cloud is gone for a while."""

from __future__ import annotations

import contextlib
import time

import pytest
from support import quarantined, wait_until
from support.rigs import remote_stubs as stubs
from swiftclient import ClientException

pytestmark = pytest.mark.cluster

#: ``deadline_seconds`` and its grace, over all replicas, and a busy machine.
DEADLINE_SECONDS = 25.0


def test_without_the_cloud_all_that_is_local_goes_on(
        objects, ec_objects, cluster):
    sides = [_Side(objects), _Side(ec_objects)]
    before = len(quarantined(cluster))
    with _outage(cluster):
        for side in sides:
            side.go_on()
        for name in ('object-auditor', 'object-replicator',
                     'object-reconstructor'):
            cluster.run_once(name)
        assert len(quarantined(cluster)) == before
        for side in sides:
            assert not side.objects.all_remote(side.written)
    for side in sides:
        side.recover()
    assert len(quarantined(cluster)) == before
    stubs.say('outage: 503 with Retry-After after at most %.1f s; local '
              'reads and writes went on, 0 false quarantines' % max(
                  side.seconds for side in sides))


class _Side:
    """Objects of one storage policy through the outage."""

    def __init__(self, objects):
        self.objects = objects
        self.made = objects.make_all(('whole',) + stubs.ALL_STUBS)
        self.remote, self.mixed = self.made[-2:]

    def go_on(self):
        """What has to work meanwhile, and what has to fail, and how."""
        objects, remote, mixed = self.objects, self.remote, self.mixed
        for obj in self.made[:3]:
            assert objects.get(obj) == obj.body
        status, headers, self.seconds = _refused(objects, remote)
        assert status == 503 and headers['retry-after'] == '7'
        assert self.seconds < DEADLINE_SECONDS
        # Known to be down by now, which needs no deadline to pass.
        assert _refused(objects, remote)[0] == 503
        assert _head(objects, remote) == len(remote.body)
        assert _range(objects, mixed, 0, 1000) == mixed.body[:1001]
        self.written = _put(objects)
        assert objects.get(self.written) == self.written.body

    def recover(self):
        """What has to come back by itself."""
        wait_until(lambda: _readable(self.objects, self.remote), 60,
                   'reads from the cloud')
        for obj in self.made:
            assert self.objects.get(obj) == obj.body
        wait_until(lambda: self.objects.all_remote(self.written), 90,
                   'upload of what was put meanwhile')


@contextlib.contextmanager
def _outage(cluster):
    cluster.stop_cloud()
    try:
        yield
    finally:
        cluster.start_cloud()


def _refused(objects, obj):
    """Status, headers and seconds of a GET that is not retried."""
    connection = objects.cluster.connection()
    connection.retries = 0
    begin = time.monotonic()
    try:
        with pytest.raises(ClientException) as caught:
            connection.get_object(obj.container, obj.name)
    finally:
        connection.close()
    headers = {name.lower(): value for name, value
               in caught.value.http_response_headers.items()}
    return caught.value.http_status, headers, time.monotonic() - begin


def _readable(objects, obj):
    try:
        return objects.get(obj) == obj.body
    except ClientException as err:
        assert err.http_status == 503
        return False


def _head(objects, obj):
    return int(objects.swift.head_object(
        obj.container, obj.name)['content-length'])


def _range(objects, obj, first, last):
    return objects.swift.get_object(
        obj.container, obj.name,
        headers={'Range': 'bytes=%d-%d' % (first, last)})[1]


def _put(objects):
    obj = stubs.Object(objects.container, 'meanwhile',
                       b'meanwhile' * 40000, objects.policy)
    objects.swift.put_object(obj.container, obj.name, obj.body, headers={
        'X-DSS-Object-Class': 'cloud'})
    return obj
