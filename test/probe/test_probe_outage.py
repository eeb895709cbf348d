"""The cloud is gone for a while."""

from __future__ import annotations

import contextlib
import time

import pytest
import stubs
from support import quarantined, wait_until
from swiftclient import ClientException

pytestmark = pytest.mark.cluster

#: ``deadline_seconds`` and its grace, over all replicas, and a busy machine.
DEADLINE_SECONDS = 25.0


def test_without_the_cloud_all_that_is_local_goes_on(any_objects, cluster):
    made = any_objects.make_all(('whole',) + stubs.ALL_STUBS)
    local = [one for one in made if 'remote' not in one.name]
    remote, mixed = made[-2:]
    assert remote.name.startswith('remote') and len(local) == 3
    before = len(quarantined(cluster))
    with _outage(cluster):
        for one in local:
            assert any_objects.get(one) == one.body
        status, headers, seconds = _refused(any_objects, remote)
        assert status == 503 and headers['retry-after'] == '7'
        assert seconds < DEADLINE_SECONDS
        # Known to be down by now, which needs no deadline to pass.
        again = _refused(any_objects, remote)
        assert again[0] == 503
        assert _head(any_objects, remote) == len(remote.body)
        assert _range(any_objects, mixed, 0, 1000) == mixed.body[:1001]
        written = _put(any_objects)
        assert any_objects.get(written) == written.body
        for name in ('object-auditor', 'object-replicator',
                     'object-reconstructor'):
            cluster.run_once(name)
        assert len(quarantined(cluster)) == before
        assert not any_objects.all_remote(written)
    wait_until(lambda: _readable(any_objects, remote), 60,
               'reads from the cloud')
    for one in made:
        assert any_objects.get(one) == one.body
    wait_until(lambda: any_objects.all_remote(written), 90,
               'upload of what was put meanwhile')
    assert len(quarantined(cluster)) == before
    stubs.say('outage, %s: 503 with Retry-After after %.1f s, then %.1f s; '
              'local reads and writes went on, 0 false quarantines' % (
                  any_objects.policy_name, seconds, again[2]))


@contextlib.contextmanager
def _outage(cluster):
    cluster.stop_cloud()
    try:
        yield
    finally:
        cluster.start_cloud()


def _refused(objects, one):
    """Status, headers and seconds of a GET that is not retried."""
    connection = objects.cluster.connection()
    connection.retries = 0
    begin = time.monotonic()
    try:
        with pytest.raises(ClientException) as caught:
            connection.get_object(one.container, one.name)
    finally:
        connection.close()
    headers = {name.lower(): value for name, value
               in caught.value.http_response_headers.items()}
    return caught.value.http_status, headers, time.monotonic() - begin


def _readable(objects, one):
    try:
        return objects.get(one) == one.body
    except ClientException as err:
        assert err.http_status == 503
        return False


def _head(objects, one):
    return int(objects.swift.head_object(
        one.container, one.name)['content-length'])


def _range(objects, one, first, last):
    return objects.swift.get_object(
        one.container, one.name,
        headers={'Range': 'bytes=%d-%d' % (first, last)})[1]


def _put(objects):
    one = stubs.Object(objects.container, 'meanwhile',
                       b'meanwhile' * 40000, objects.policy)
    objects.swift.put_object(one.container, one.name, one.body, headers={
        'X-DSS-Object-Class': 'cloud'})
    return one
