"""An S3 that refuses uploads still serves reads, and room is made in it."""

from __future__ import annotations


import pytest
from botocore.exceptions import ClientError

from support.nodes.gateway_node import Collector
from test_gateway_deletes import NEW, OLD, Cluster

from swift_dss.gateway.ports import Upload
from swift_dss.wire.control import FetchRequest


@pytest.fixture
def solo(tmp_path):
    made = Cluster(tmp_path, 1)
    yield made
    made.stop()


def refuse_uploads(solo):
    """The quota is used up."""
    def put_object(**_):
        raise ClientError({'Error': {'Code': 'QuotaExceeded'},
                           'ResponseMetadata': {'HTTPStatusCode': 403}},
                          'PutObject')
    solo.s3.put_object = put_object
    for number in range(6):
        solo.gateways[0].enqueue_uploads([Upload(solo.disks[0].put(
            'n%d' % number, b'new', OLD), '7', True)])
        solo.run(30)
    assert solo.gateways[0].status()['state'] == 'distrusted'


def test_readers_are_told_that_s3_answers_and_writers_that_it_refuses(solo):
    version = solo.put('o')
    refuse_uploads(solo)
    gateway, sink = solo.gateways[0], Collector()
    gateway.fetch(FetchRequest(version, '7', 0, 4, 0, 5.0, False), sink)
    assert sink.data == b'body'
    link = gateway.link()
    assert link.up and link.refuses and not link.drains


def test_a_pass_over_the_bucket_makes_room(solo):
    version = solo.put('o')
    # Nothing notes the delete in the queue: a pass finds it.
    solo.disks[0].tombstone(version, NEW)
    refuse_uploads(solo)
    solo.now += 100
    solo.gateways[0].parts.rounds.look()
    assert not solo.has(version)
