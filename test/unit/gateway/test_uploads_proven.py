"""What goes up, and what S3 must hold before a record says so."""

from __future__ import annotations

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), os.pardir,
                                os.pardir, 'fault'))

from gateway_node import Collector
from test_gateway_deletes import NEW, OLD, Cluster

from swift_dss.core.classes import ClassSpec, ClassTable, RemoteMode
from swift_dss.core.spans import ClassMap, Span
from swift_dss.gateway.ports import Upload
from swift_dss.wire.control import FetchRequest
from swift_dss.wire.layout import remote_key

TABLE = ClassTable.of([ClassSpec(0, 'plain', 0), ClassSpec(
    2, 'home', 2, remote=RemoteMode.NEVER)])


@pytest.fixture
def one(tmp_path):
    made = Cluster(tmp_path, nodes=1)
    yield made
    made.stop()


def send(one, version):
    one.gateways[0].enqueue_uploads([Upload(version, '7', True)])
    one.run(0)
    return one.disks[0].residency(version).remote


def was_sent(one, version):
    return ('PUT', remote_key('p/', version)) in one.s3.asked


def test_what_is_right_is_sent_and_recorded(one):
    version = one.disks[0].put('o', b'body', OLD)
    assert send(one, version).key == remote_key('p/', version)
    assert one.s3.keys[remote_key('p/', version)][0] == b'body'


def test_rotted_bytes_are_not_sent(one):
    version = one.disks[0].put('o', b'body', OLD)
    one.disks[0].corrupt(version)
    assert send(one, version) is None
    assert not was_sent(one, version)


@pytest.mark.parametrize('stored', [None, b'ydob', b'bod'])
def test_what_s3_does_not_hold_is_not_recorded(one, stored):
    """It acknowledges, and stores nothing, or something else."""
    version = one.disks[0].put('o', b'body', OLD)
    put = one.s3.put_object

    def lie(**options):
        said = put(**options)
        if options['Key'] == remote_key('p/', version):
            data, metadata = one.s3.keys.pop(options['Key'])
            if stored is not None:
                one.s3.keys[options['Key']] = stored, metadata
        return said

    one.s3.put_object = lie
    assert send(one, version) is None
    assert was_sent(one, version)
    del one.s3.put_object
    one.run(100)
    assert one.disks[0].residency(version).remote is not None
    assert one.s3.keys[remote_key('p/', version)][0] == b'body'


def test_what_lies_under_the_key_already_is_proven(one):
    version = one.disks[0].put('o', b'body', OLD)
    one.s3.keys[remote_key('p/', version)] = b'ydob', {}
    assert send(one, version) is not None
    assert one.s3.keys[remote_key('p/', version)][0] == b'body'


def test_bytes_that_are_read_back_are_compared(one):
    """A server whose ETags are no MD5s."""
    version = one.disks[0].put('o', b'body', OLD)
    one.s3.keys[remote_key('p/', version)] = b'ydob', {}
    head = one.s3.head_object
    one.s3.head_object = lambda **options: dict(
        head(**options), ETag='"nothing"')
    assert send(one, version) is not None
    assert one.s3.keys[remote_key('p/', version)][0] == b'body'


def test_what_is_obsolete_is_not_sent(one):
    version = one.disks[0].put('o', b'body', OLD)
    one.disks[0].put('o', b'newer', NEW)
    assert send(one, version) is None
    assert not was_sent(one, version)


def test_one_span_that_stays_keeps_the_whole_version_here(one):
    one.gateways[0].offers.table = lambda: TABLE
    version = one.disks[0].put('o', b'body', OLD, class_map=ClassMap
                               .from_spans([Span(0, 2, 2)], 0))
    assert send(one, version) is None
    assert not was_sent(one, version)


def test_wrong_bytes_of_s3_are_not_let_out(one):
    version = one.put('o')
    key = remote_key('p/', version)
    one.s3.keys[key] = b'ydob', one.s3.keys[key][1]
    sink = Collector()
    assert not one.gateways[0].fetch(FetchRequest(
        version, '7', 0, 4, 0, 5.0, False), sink)
    assert sink.reply.status == 503 and not sink.data
