"""A prefix has one owner; a second cluster changes nothing in it."""

from __future__ import annotations

import dataclasses
import json
import os
import threading
import uuid

import pytest
from functional.test_gateway_relocate import Node
from support import wait_until
from support.edges.s3_servers import BUCKET, VersityServer

from swift_dss.core.errors import DssError
from swift_dss.gateway.form import cluster, owner
from swift_dss.gateway.form.owner import NotOurs, Owner
from swift_dss.gateway.link.client import OWNER_KEY
from swift_dss.gateway.restore.catalog import open_client
from swift_dss.tier import daemon as tier_daemon


@pytest.fixture(scope='module')
def server():
    made = VersityServer()
    yield made
    made.close()


class Cluster(Node):
    """A cluster of one node, with a hash path of its own."""

    def __init__(self, root, server, prefix, suffix, **gateway):
        really = tier_daemon.Daemon.__init__

        def init(daemon, files, logger):
            path = os.path.join(root, 'swift.conf')
            with open(path) as source:
                text = source.read()
            with open(path, 'w') as target:
                target.write(text.replace(
                    '[swift-hash]\n', '[swift-hash]\n'
                    'swift_hash_path_prefix = %s\n' % suffix))
            cluster.hash_path_ends.cache_clear()
            really(daemon, files, logger)
        tier_daemon.Daemon.__init__ = init
        try:
            super().__init__(root, server, prefix=prefix, **gateway)
        finally:
            tier_daemon.Daemon.__init__ = really
        self.prefix = prefix

    def uploaded(self):
        self.daemon.node.gateway.hurry()
        wait_until(lambda: all(self.daemon.node.local.describe(
            place.version, place.partition).residency.remote
            for place, _ in self.bodies), 60, 'all are in S3')

    def state(self):
        return self.daemon.upkeep.status()['gateway']['owner']['state']

    def mark(self):
        return json.loads(self.server.client().get_object(
            Bucket=BUCKET, Key=self.prefix + OWNER_KEY)['Body'].read())


@pytest.fixture
def make(tmp_path, server):
    made = []
    prefix = 'own-%s/' % uuid.uuid4().hex[:8]

    def begin(name, suffix, **gateway):
        made.append(Cluster(str(tmp_path / name), server, prefix, suffix,
                            **gateway))
        return made[-1]
    yield begin
    for node in made:
        node.daemon.stop()


def keys(node):
    return sorted(key for key in node.server.list_keys()
                  if key.startswith(node.prefix))


def test_a_second_cluster_sends_nothing_and_deletes_nothing(make):
    first = make('one', 'one')
    for number in range(4):
        first.put(number)
    first.uploaded()
    before = keys(first)
    assert len(before) == 4 and first.state() == 'ours'
    second = make('two', 'two', delete_delay_seconds='0')
    for number in range(4):
        second.put(number)
    second.daemon.node.gateway.hurry()
    wait_until(lambda: 'belongs to cluster' in second.state(), 30)
    # All the deletes that its own objects give rise to.
    for place, _ in first.bodies:
        second.daemon.node.gateway.enqueue_deletes([(place.version, '7')])
    for verb in (['relocate', '--device', 'sda', '--seconds', '5'],
                 ['drain', '--to', 'remote', '--seconds', '5'],
                 ['rekey', '--seconds', '5'], ['restore'], ['owner']):
        try:
            code, _ = second.cli(*verb)
        except ValueError:  # an error is no JSON
            code = 1
        assert code, verb
    assert keys(first) == before and first.all_right()
    assert second.local_bytes() >= 4 * 100000, 'its own bytes are here'
    assert second.daemon.upkeep.status()['gateway']['uploads'] >= 4


def test_the_client_itself_refuses(make):
    """No caller can forget to ask."""
    first = make('one', 'one')
    first.put(0)
    first.uploaded()
    second = make('two', 'two')
    client = second.daemon.node.gateway.parts.client
    for call in (lambda: client.put(first.prefix + 'x', b'x', b'0' * 16),
                 lambda: client.delete(keys(first)[0]),
                 lambda: client.begin_multipart(first.prefix + 'x', {})):
        with pytest.raises(NotOurs, match='owner --take'):
            call()
    assert len(keys(first)) == 1


def test_nodes_of_one_cluster_share_it(make):
    first, second = make('one', 'same'), make('two', 'same')
    for node in (first, second):
        node.put(1 if node is first else 2)
        node.uploaded()
    assert first.state() == second.state() == 'ours'
    assert first.mark() == second.mark()


def test_it_is_handed_over(make, monkeypatch):
    monkeypatch.setattr(owner, 'DELETE_SECONDS', 0.0)
    first = make('one', 'one')
    first.put(0)
    first.uploaded()
    second = make('two', 'two')
    second.put(1)
    assert second.cli('owner')[0] == 1
    code, said = second.cli('owner', '--take')
    assert (code, said['state']) == (0, 'ours')
    second.uploaded()
    with pytest.raises(NotOurs):
        first.daemon.node.gateway.parts.client.delete(first.prefix + 'x')
    assert first.cli('owner')[1]['state'] == "another cluster's"


def test_a_foreign_mark_is_not_read_for_each_victim(make):
    first = make('one', 'one')
    first.put(0)
    first.uploaded()
    client = make('two', 'two').daemon.node.gateway.parts.client
    with pytest.raises(NotOurs):
        client.delete(first.prefix + 'x')
    before = client.throughput.operations()['get_object']
    for _ in range(50):
        with pytest.raises(NotOurs):
            client.delete(first.prefix + 'x')
    assert client.throughput.operations()['get_object'] - before < 10


def test_a_mark_of_something_else_stops_it_too(make):
    node = make('one', 'one')
    for body in (b'', b'{}', b'\xff', b'{"v": 1, "cluster": "x"}'):
        node.server.client().put_object(
            Bucket=BUCKET, Key=node.prefix + OWNER_KEY, Body=body)
        with pytest.raises(NotOurs, match='does not name the owner'):
            node.daemon.node.gateway.parts.link.prefix.owner.require(0.0)


def test_of_many_that_come_at_once_one_wins(make):
    node = make('one', 'one')
    for turn in range(5):
        # Where no daemon claims it too.
        conf = dataclasses.replace(node.daemon.node.in_force.conf.gateway,
                                   prefix='%srace%d/' % (node.prefix, turn))
        won, start = [], threading.Barrier(6)

        def claim(number, won=won, start=start, conf=conf):
            made = Owner(conf, open_client(conf), '%032d' % number)
            start.wait()
            try:
                made.require()
                made.require(0.0)
                won.append(number)
            except DssError:
                return
        threads = [threading.Thread(target=claim, args=(number,))
                   for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1, turn


def test_what_leaves_is_not_left_to_another_clusters_prefix(
        make, monkeypatch):
    first = make('one', 'one')
    first.put(0)
    first.uploaded()
    other = dict(first.mark(), cluster='f' * 32)
    first.server.client().put_object(
        Bucket=BUCKET, Key=first.prefix + OWNER_KEY,
        Body=json.dumps(other).encode())
    # The mark was read so long ago that it is read again.
    clock = first.daemon.node.gateway.parts.around.clock
    now = clock.monotonic
    monkeypatch.setattr(clock, 'monotonic',
                        lambda: now() + owner.WRITE_SECONDS)
    place, _ = first.bodies[0]
    with pytest.raises(DssError, match='belongs to cluster'):
        first.daemon.node.local.demote(place.version, place.partition,
                                  to_hdd=False)
    assert first.local_bytes()
