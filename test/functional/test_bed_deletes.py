"""What is deleted stays deleted, and what is not is kept, on many nodes."""

from __future__ import annotations

import glob
import os
import time
from typing import Any, Iterator, List

import pytest
from support import md5, pattern, wait_until
from support.nodes.beds import ask, await_tiers, bed, demote, gc

from swift_dss.aio.bed.bed import Bed

pytestmark = [pytest.mark.cluster, pytest.mark.root]

#: From a delete to that in S3, and between the primaries.
DELAY, TAKE_OVER = 2, 3


@pytest.fixture(scope='module')
def made() -> Iterator[Bed]:
    if os.geteuid() != 0:
        pytest.skip('needs root')
    with bed(nodes=3, options={'gateway': {
            'remote_after_seconds': '1', 'delete_delay_seconds': str(DELAY),
            'take_over_seconds': str(TAKE_OVER)}}) as new_bed:
        yield new_bed


def far(made: Bed, name: str, body: bytes) -> str:
    """An object that only S3 has; its path."""
    client = made.client()
    client.container('del', 'dss')
    assert client.put('del/' + name, body).status == 201
    path = '/AUTH_test/del/' + name
    wait_until(lambda: sum(
        file.residency is not None and file.residency.remote is not None
        for file in made.files(path)) == 3, 60, 'three copies of ' + name)
    for node in made.plan.nodes:
        demote(made, node, object=path)
    await_tiers(made, path, 'remote')
    return path


def deleted(made: Bed, path: str) -> List[Any]:
    return list(made.s3.requests('DELETE', made.hash_of(path)))


def test_a_delete_that_one_primary_got_takes_nothing_from_the_others(
        made: Bed) -> None:
    body = pattern(100000, 'one')
    path = far(made, 'one', body)
    first = made.primaries(path)[0]
    assert made.direct(first, 'DELETE', path, headers={
        'X-Timestamp': '%016.5f' % time.time()}).status == 204
    time.sleep(DELAY + 2 * TAKE_OVER + 5)
    assert not deleted(made, path)
    # Its drive dies before it has met the others.
    made.lose_drive(first, 'd1')
    client = made.client()
    for _ in range(6):
        reply = client.get('del/one')
        assert (reply.status, md5(reply.body)) == (200, md5(body))
    made.rebalance()
    assert gc(made, first, everything=True)['removed'] == 0
    assert client.get('del/one').status == 200
    # Now everybody hears of it, and the key goes once.
    assert client.delete('del/one').status == 204
    wait_until(lambda: deleted(made, path), DELAY + TAKE_OVER + 60,
               'the key to go')
    assert not gc(made, first, everything=True, dry_run=True)['dead']


def test_queues_that_are_lost_forget_nothing(made: Bed) -> None:
    before = gc(made, made.plan.nodes[0], everything=True,
                dry_run=True)['live']
    paths = [far(made, 'lost%d' % number, pattern(70000, str(number)))
             for number in range(4)]
    client = made.client()
    made.set_options({'gateway': {'delete_delay_seconds': '3600'}},
                     list(made.plan.nodes))
    for path in paths[:3]:
        assert client.delete(path[len('/AUTH_test/'):]).status == 204
    wait_until(lambda: all(
        [file.kind for file in made.files(path)] == ['ts'] * 3
        for path in paths[:3]), 30, 'tombstones')
    for node in made.plan.nodes:
        member = made.node(node)
        for name in glob.glob(member.conf.path('**', 'gateway.db*'),
                              recursive=True):
            os.unlink(name)
        member.restart('tierd')
    node = made.plan.nodes[0]
    assert ask(made, node, 'status')
    assert not any(deleted(made, path) for path in paths)
    gc(made, node, everything=True)
    again = gc(made, node, everything=True, dry_run=True)
    assert (again['dead'], again['live']) == (0, before + 1), again
    assert all(deleted(made, path) for path in paths[:3])
    assert client.get(paths[3][len('/AUTH_test/'):]).status == 200


def test_a_stub_whose_key_is_lost_gives_way_to_bytes_of_others(
        made: Bed) -> None:
    body = pattern(90000, 'gone')
    path = far(made, 'gone', body)
    keeper, *others = made.primaries(path)
    done = made.tool(keeper, 'tier', 'promote', '--config', '{conf}', path)
    assert not done.returncode, done.stderr
    wait_until(lambda: [file.node for file in made.files(path)
                        if file.residency and file.residency.is_local]
               == [keeper], 60, 'bytes on ' + keeper)
    client = made.client()
    assert client.request('POST', 'del/gone', headers={
        'X-Object-Meta-Color': 'red'}).status == 202
    made.s3.fault('forget', keys='*%s*' % made.hash_of(path))
    try:
        for node in others:
            assert made.direct(node, 'GET', path).status in (404, 409)
        wait_until(lambda: [file.node for file in made.files(path)
                            if file.kind == 'data'] == [keeper], 60,
                   'the stubs to leave')
        made.rebalance()
        for node in made.primaries(path):
            reply = made.direct(node, 'GET', path)
            assert (reply.status, md5(reply.body)) == (200, md5(body))
            assert reply.headers['x-object-meta-color'] == 'red'
    finally:
        made.s3.heal()
    assert len(made.quarantined()) == 2
