"""Who may change a prefix, by the mark in it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from botocore.exceptions import ReadTimeoutError
from support.clocks import ClockOf
from support.edges.memory_s3 import MemoryS3

from support.nodes.gateway_node import conf_for

from swift_dss.core.errors import RemoteUnavailable
from swift_dss.gateway.form.owner import (
    DELETE_SECONDS, WRITE_SECONDS, NotOurs, Owner)
from swift_dss.gateway.link.breaker import Breaker
from swift_dss.gateway.link.client import S3Client

SECRET = SimpleNamespace(url='https://s3', access_key='a', secret_key='s')


class Clusters:
    """Two of them, and one prefix."""

    def __init__(self, root):
        self.now = 1000.0
        self.s3 = MemoryS3()
        conf = conf_for(SECRET, str(root)).gateway
        self.clients = [
            S3Client(conf, Breaker(), 1, connect=self.s3.connect)
            for _ in 'ab']
        self.first, self.second = (
            Owner(conf, client, name * 32, ClockOf(self))
            for name, client in zip('ab', self.clients))


@pytest.fixture
def clusters(tmp_path):
    return Clusters(tmp_path)


def test_the_first_that_comes_has_the_prefix(clusters):
    clusters.first.guard('put_object')
    for operation in ('put_object', 'delete_object'):
        with pytest.raises(NotOurs):
            clusters.second.guard(operation)
    clusters.first.guard('delete_object')


def test_the_mark_is_read_again_before_keys_are_deleted(clusters):
    clusters.first.guard('delete_object')
    clusters.second.take()
    clusters.now += DELETE_SECONDS
    clusters.first.guard('put_object')
    with pytest.raises(NotOurs):
        clusters.first.guard('delete_object')
    with pytest.raises(NotOurs):
        clusters.first.guard('put_object')


def test_writes_ask_once_in_a_while(clusters):
    clusters.first.guard('put_object')
    clusters.second.take()
    clusters.now += WRITE_SECONDS
    with pytest.raises(NotOurs):
        clusters.first.guard('put_object')


def test_the_client_itself_asks(clusters):
    clusters.first.guard('put_object')
    client = clusters.clients[1]
    client.guard = clusters.second.guard
    clusters.s3.keys['p/key'] = b'theirs', {}
    for change in (lambda: client.put('p/key', b'x', b''),
                   lambda: client.delete('p/key')):
        with pytest.raises(NotOurs):
            change()
    assert clusters.s3.keys['p/key'][0] == b'theirs'
    assert client.head('p/key').size == 6


def test_those_who_wait_while_s3_hangs_are_told_by_one_request(clusters):
    """The one that asks holds the lock over its request: the others would
    ask one after the other, each for a whole time-out."""
    asked = []

    def get_object(**_):
        asked.append(clusters.now)
        clusters.now += 10.0  # the time-out
        raise ReadTimeoutError(endpoint_url='x')
    inner, clusters.s3.get_object = clusters.s3.get_object, get_object
    for _ in range(12):
        with pytest.raises(RemoteUnavailable):
            clusters.first.guard('put_object')
    assert len(asked) == 1
    # A second later it is asked again.
    clusters.now += 1.0
    with pytest.raises(RemoteUnavailable):
        clusters.first.guard('put_object')
    assert len(asked) == 2
    clusters.now += 1.0
    clusters.s3.get_object = inner
    clusters.first.guard('put_object')
