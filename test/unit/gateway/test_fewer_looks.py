"""An upload looks at S3 first only where S3 could have the version."""

from __future__ import annotations


import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from test_gateway_deletes import NEW, OLD, Cluster

from swift_dss.gateway.link.client import CONDITION_KEY
from swift_dss.gateway.service import Upload
from swift_dss.wire.layout import remote_key


@pytest.fixture
def node(tmp_path):
    made = Cluster(tmp_path, nodes=1)
    yield made
    made.stop()


@pytest.fixture
def pair(tmp_path):
    made = Cluster(tmp_path, nodes=2)
    yield made
    made.stop()


def send(cluster, version, number=0, urgent=True):
    cluster.gateways[number].enqueue_uploads([Upload(version, '7', urgent)])
    cluster.run(0)


def asked(cluster, version):
    """Verbs of the requests for a version's key, in order."""
    return [verb for verb, key in cluster.s3.asked
            if key == remote_key('p/', version)]


def test_a_fresh_version_is_put_and_proven(node):
    version = node.disks[0].put('o', b'body', OLD)
    send(node, version)
    assert asked(node, version) == ['PUT', 'HEAD']
    assert node.disks[0].residency(version).remote is not None


def tried(cluster):
    return [verb for verb, key in cluster.s3.asked if CONDITION_KEY in key]


def test_a_server_is_tried_once_and_the_key_serves_the_next_daemon(pair):
    """Node 1 cannot mistake the server, whatever node 0 does meanwhile."""
    for number in (0, 0, 1):
        pair.gateways[number].look()
    assert tried(pair) == ['PUT', 'PUT', 'PUT']
    assert all(gateway.parts.link.prefix.conditions.honoured
               for gateway in pair.gateways)
    assert not list(pair.gateways[0].parts.client.listing('p/'))


def test_a_version_that_another_could_have_sent_is_looked_at_first(node):
    """A drive that was filled again has what S3 has had for long."""
    for stamp, first in ((float(NEW) - 3000.0, 'HEAD'), (node.now, 'PUT')):
        version = node.disks[0].put('o%d' % stamp, b'body', '%.5f' % stamp)
        send(node, version)
        assert asked(node, version)[0] == first


def test_a_server_that_ignores_conditions_is_looked_at_first(node):
    node.s3.has_conditions = False
    version = node.disks[0].put('o', b'body', OLD)
    node.s3.keys[remote_key('p/', version)] = b'body', {}
    send(node, version)
    assert asked(node, version)[0] == 'HEAD'
    assert 'PUT' not in asked(node, version)
    assert node.disks[0].residency(version).remote is not None


def test_a_server_that_refuses_conditions_is_looked_at_first(node):
    """It does not count as one that fails."""
    put, refused = node.s3.put_object, []

    def refuse(**options):
        if 'IfNoneMatch' in options:
            refused.append(options['Key'])
            raise ClientError({
                'Error': {'Code': 'NotImplemented'},
                'ResponseMetadata': {'HTTPStatusCode': 501}}, 'put')
        return put(**options)

    node.s3.put_object = refuse
    for number in range(8):
        version = node.disks[0].put('o%d' % number, b'body', OLD)
        send(node, version)
        assert asked(node, version) == ['HEAD', 'PUT', 'HEAD']
    assert refused == ['p/' + CONDITION_KEY]  # and never again
    assert node.gateways[0].status()['state'] == 'closed'


def test_a_copy_that_a_crash_left_is_proven_and_kept(node):
    version = node.disks[0].put('o', b'body', OLD)
    node.s3.keys[remote_key('p/', version)] = b'body', {'left': 'here'}
    send(node, version)
    assert node.s3.keys[remote_key('p/', version)][1] == {'left': 'here'}
    assert node.disks[0].residency(version).remote is not None


def test_other_bytes_under_the_key_are_replaced(node):
    version = node.disks[0].put('o', b'body', OLD)
    node.s3.keys[remote_key('p/', version)] = b'ydob', {}
    send(node, version)
    assert asked(node, version) == ['PUT', 'HEAD', 'GET', 'PUT', 'HEAD']
    assert node.s3.keys[remote_key('p/', version)][0] == b'body'
    assert node.disks[0].residency(version).remote is not None


def test_a_put_whose_answer_was_lost_is_looked_for(node):
    version = node.disks[0].put('o', b'body', OLD)
    put, lost = node.s3.put_object, []

    def lose(**options):
        answer = put(**options)
        if options['Key'] == remote_key('p/', version) and not lost:
            lost.append(answer)
            raise ReadTimeoutError(endpoint_url='s3')
        return answer

    node.s3.put_object = lose
    send(node, version)
    assert asked(node, version) == ['PUT']
    node.run(100)
    assert asked(node, version)[1] == 'HEAD'
    assert asked(node, version).count('PUT') == 1
    assert node.disks[0].residency(version).remote is not None


def test_a_replica_whose_turn_has_come_looks_before_it_sends(pair):
    version = [disk.put('o', b'body', OLD) for disk in pair.disks][0]
    send(pair, version)
    del pair.s3.asked[:]
    # As after a long stop: its row is old, and was never tried.
    pair.gateways[1].parts.jobs.insist(version, '7', 0)
    pair.run(0)
    assert asked(pair, version) == ['HEAD']
    assert pair.disks[1].residency(version).remote is not None


def test_a_replica_looks_when_the_first_primary_has_had_time(pair):
    version = [disk.put('o', b'body', OLD) for disk in pair.disks][0]
    for number in (1, 0):
        pair.gateways[number].enqueue_uploads([Upload(version, '7')])
    for number in (1, 0):
        pair.gateways[number].look()
    assert asked(pair, version) == ['PUT', 'HEAD']
    pair.run(3)
    assert asked(pair, version) == ['PUT', 'HEAD', 'HEAD']
    assert pair.disks[1].residency(version).remote is not None
