"""Versions that a disk cannot give are put aside once others have them."""

from __future__ import annotations

import os
from typing import Any, Iterator, List

import pytest
from support import md5, pattern, wait_until
from support.nodes.beds import ask, bed

from swift_dss.aio.bed.bed import Bed
from swift_dss.wire.records.blocks import BLOCK_BYTES

pytestmark = [pytest.mark.cluster, pytest.mark.root]

SIZE = 6 * BLOCK_BYTES + 999


@pytest.fixture(scope='module')
def made() -> Iterator[Bed]:
    if os.geteuid() != 0:
        pytest.skip('needs root')
    # On the SSDs alone: neither the HDDs nor S3 have a copy.
    with bed(nodes=3, options={
            'tier': {'clean_after_seconds': '7200'},
            'gateway': {'remote_after_seconds': '7200'}}) as new_bed:
        yield new_bed


def put(made: Bed, name: str, body: bytes) -> str:
    client = made.client()
    client.container('rot', 'dss')
    assert client.put('rot/' + name, body).status == 201
    path = '/AUTH_test/rot/' + name
    wait_until(lambda: len(files(made, path)) == 3, 30, 'three copies')
    return path


def files(made: Bed, path: str) -> List[Any]:
    return [file for file in made.files(path) if file.kind == 'data']


def flip(made: Bed, path: str, node: str, block: int) -> None:
    """A disk changes a byte, behind everybody's back."""
    replica, = [replica for replica in files(made, path)
                if replica.node == node]
    with open(replica.path, 'r+b') as target:
        target.seek(block * BLOCK_BYTES + 7)
        was = target.read(1)[0]
        target.seek(block * BLOCK_BYTES + 7)
        target.write(bytes([was ^ 1]))


def lacking(made: Bed, node: str) -> int:
    return sum(int(device['lacking'])
               for device in ask(made, node, 'status')['devices'])


def is_right(made: Bed, path: str, body: bytes) -> bool:
    """Of every primary alone."""
    return all((reply.status, md5(reply.body)) == (200, md5(body))
               for reply in (made.direct(node, 'GET', path)
                             for node in made.primaries(path)))


def meet(made: Bed, node: str, path: str, block: int) -> None:
    """A reader meets a bad block: it is not gone, and cannot be had."""
    first = block * BLOCK_BYTES
    reply = made.direct(node, 'GET', path, headers={
        'Range': 'bytes=%d-%d' % (first, first + 99)})
    assert reply.status == 409


def test_one_bad_replica_is_brought_back_by_the_others(made: Bed) -> None:
    body = pattern(SIZE, 'one')
    path = put(made, 'one', body)
    bad, *others = made.primaries(path)
    flip(made, path, bad, 2)
    meet(made, bad, path, 2)
    wait_until(lambda: {file.node for file in files(made, path)}
               == set(others), 60, 'the bad one to go')
    made.rebalance()
    assert is_right(made, path, body)
    assert len(made.quarantined()) == 1
    assert [lacking(made, node) for node in made.plan.nodes] == [0, 0, 0]


def test_three_replicas_with_a_bad_place_each_stay_one_object(
        made: Bed) -> None:
    body = pattern(SIZE, 'three')
    path = put(made, 'three', body)
    before = len(made.quarantined())
    nodes = made.primaries(path)
    for number, node in enumerate(nodes):
        flip(made, path, node, 2 * number)
    for number, node in enumerate(nodes):
        meet(made, node, path, 2 * number)
        # Its other blocks are given.
        first = (2 * number + 1) * BLOCK_BYTES
        reply = made.direct(node, 'GET', path, headers={
            'Range': 'bytes=%d-%d' % (first, first + 99)})
        assert (reply.status, reply.body) == (206, body[first:first + 100])
    wait_until(lambda: [lacking(made, node) for node in nodes] == [1, 1, 1],
               60, 'each to have asked the others')
    assert len(made.quarantined()) == before
    assert len(files(made, path)) == 3
    # Each range is had from those that can read it; the whole, if the proxy
    # does not come to them in the order in which their blocks are bad.
    client = made.client()
    for first in range(0, SIZE, BLOCK_BYTES):
        for _ in range(3):
            reply = client.request('GET', 'rot/three', headers={
                'Range': 'bytes=%d-%d' % (first, first + 1000)})
            assert (reply.status, reply.body) == (
                206, body[first:first + 1001])
    # One of them can be read again: the others get theirs from there.
    flip(made, path, nodes[1], 2)
    wait_until(lambda: {file.node for file in files(made, path)}
               == {nodes[1]}, 200, 'the bad ones to go')
    made.rebalance()
    assert is_right(made, path, body)
    assert len(made.quarantined()) == before + 2
