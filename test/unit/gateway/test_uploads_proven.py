"""What goes up, and what S3 must hold before a record says so."""

from __future__ import annotations


import pytest

from support.nodes.gateway_node import Collector
from test_gateway_deletes import NEW, OLD, Cluster

from swift_dss.core.classes import ClassSpec, ClassTable, RemoteMode
from swift_dss.core.spans import ClassMap, Span
from swift_dss.gateway.ports import Upload
from swift_dss.wire.control import FetchRequest
from swift_dss.wire.layout import remote_key

TABLE = ClassTable.of([ClassSpec(0, 'plain', 0), ClassSpec(
    2, 'home', 2, remote=RemoteMode.NEVER)])


@pytest.fixture
def node(tmp_path):
    made = Cluster(tmp_path, nodes=1)
    yield made
    made.stop()


def send(node, version):
    node.gateways[0].enqueue_uploads([Upload(version, '7', True)])
    node.run(0)
    return node.disks[0].residency(version).remote


def was_sent(node, version):
    return ('PUT', remote_key('p/', version)) in node.s3.asked


def test_what_is_right_is_sent_and_recorded(node):
    version = node.disks[0].put('o', b'body', OLD)
    assert send(node, version).key == remote_key('p/', version)
    assert node.s3.keys[remote_key('p/', version)][0] == b'body'


def test_rotted_bytes_are_not_sent(node):
    version = node.disks[0].put('o', b'body', OLD)
    node.disks[0].corrupt(version)
    assert send(node, version) is None
    assert not was_sent(node, version)


@pytest.mark.parametrize('stored', [None, b'ydob', b'bod'])
def test_what_s3_does_not_hold_is_not_recorded(node, stored):
    """It acknowledges, and stores nothing, or something else."""
    version = node.disks[0].put('o', b'body', OLD)
    put = node.s3.put_object

    def lie(**options):
        said = put(**options)
        if options['Key'] == remote_key('p/', version):
            data, metadata = node.s3.keys.pop(options['Key'])
            if stored is not None:
                node.s3.keys[options['Key']] = stored, metadata
        return said

    node.s3.put_object = lie
    assert send(node, version) is None
    assert was_sent(node, version)
    del node.s3.put_object
    node.run(100)
    assert node.disks[0].residency(version).remote is not None
    assert node.s3.keys[remote_key('p/', version)][0] == b'body'


def test_what_lies_under_the_key_already_is_proven(node):
    version = node.disks[0].put('o', b'body', OLD)
    node.s3.keys[remote_key('p/', version)] = b'ydob', {}
    assert send(node, version) is not None
    assert node.s3.keys[remote_key('p/', version)][0] == b'body'


def test_bytes_that_are_read_back_are_compared(node):
    """A server whose ETags are no MD5s."""
    version = node.disks[0].put('o', b'body', OLD)
    node.s3.keys[remote_key('p/', version)] = b'ydob', {}
    head = node.s3.head_object
    node.s3.head_object = lambda **options: dict(
        head(**options), ETag='"nothing"')
    assert send(node, version) is not None
    assert node.s3.keys[remote_key('p/', version)][0] == b'body'


def test_what_is_obsolete_is_not_sent(node):
    version = node.disks[0].put('o', b'body', OLD)
    node.disks[0].put('o', b'newer', NEW)
    assert send(node, version) is None
    assert not was_sent(node, version)


def test_one_span_that_stays_keeps_the_whole_version_here(node):
    node.gateways[0].parts.uploads.offers.table = lambda: TABLE
    version = node.disks[0].put('o', b'body', OLD, class_map=ClassMap
                                .from_spans([Span(0, 2, 2)], 0))
    assert send(node, version) is None
    assert not was_sent(node, version)


def test_wrong_bytes_of_s3_are_not_let_out(node):
    version = node.put('o')
    key = remote_key('p/', version)
    node.s3.keys[key] = b'ydob', node.s3.keys[key][1]
    sink = Collector()
    assert not node.gateways[0].fetch(FetchRequest(
        version, '7', 0, 4, 0, 5.0, False), sink)
    assert sink.reply.status == 503 and not sink.data
