"""Versions leave for S3 because somebody says so: command, room, stop."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import time
import uuid

import pytest
from functional.test_gateway_sealed import write_keys
from support import md5, wait_until
from support.edges.s3_servers import BUCKET, VersityServer
from support.nodes.daemon_node import write_node

from swift_dss.cli.main import main
from swift_dss.core.spans import ClassMap
from swift_dss.tier.daemon import Daemon
from swift_dss.tier.doors.asking import answers
from swift_dss.tier.inforce import Source
from swift_dss.wire.control import Event, EventKind

from support.nodes.gateway_node import FixedRanks
from support.nodes.sample_node import SampleNode, read_version, sample_bytes

LOGGER = logging.getLogger('relocate-test')
SIZE = 100000
CLASSES = '''
[class:0]
name = plain
rank = 0
[class:5]
name = here
rank = 50
remote = never
[class:6]
name = small
rank = 60
bundle = true
'''


@pytest.fixture(scope='module')
def server():
    made = VersityServer()
    yield made
    made.close()


class Node:
    """A real daemon over real files, with a gateway to a real server."""

    def __init__(self, root, server, with_hdd=True, **gateway):
        self.root, self.server = root, server
        os.makedirs(root, exist_ok=True)
        self.prefix = 't-%s/' % uuid.uuid4().hex[:8]
        self.node = SampleNode(root, with_hdd)
        secret = os.path.join(root, 'secret')
        secret_fd = os.open(secret, os.O_WRONLY | os.O_CREAT, 0o600)
        with os.fdopen(secret_fd, 'w') as out:
            out.write('access_key = %s\nsecret_key = %s\n' % (
                server.access_key, server.secret_key))
        self.options = {
            'io': {'carrier': 'null'},
            'tier': {'interval_seconds': '60'},
            'capacity': {'sda': self.node.capacity_path}
            if with_hdd else {},
            'gateway': dict({
                'enabled': 'true', 'url': server.url, 'bucket': BUCKET,
                'prefix': self.prefix, 'secret_file': secret,
                'remote_after_seconds': '3600',
                'connect_timeout_seconds': '1',
                'read_timeout_seconds': '5'}, **gateway)}
        self.conf_path = write_node(root, self.options, CLASSES)
        self.daemon = Daemon(Source(self.conf_path), LOGGER)
        self.daemon.node.gateway.parts.jobs.line.ranks = FixedRanks()
        self.daemon.start()
        self.bodies = []

    def put(self, number, class_id=0):
        body = sample_bytes(SIZE, number)
        # New, so that its age alone does not send it.
        place = self.node.put('o%d' % number, body,
                              '%016.5f' % time.time(),
                              class_map=ClassMap.uniform(class_id))
        self.daemon.node.ledger.hear([Event(
            EventKind.PUT, place.version, place.partition, SIZE,
            str(class_id), at=time.time())])
        self.bodies.append((place, body))
        return place

    def remote(self):
        client = self.server.client()
        return {key: client.get_object(
            Bucket=BUCKET, Key=key)['Body'].read()
            for key in self.server.list_keys()
            if key.startswith(self.prefix)}

    def cli(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), \
                contextlib.redirect_stderr(err):
            code = main(['gateway', arguments[0], '--json', '--config',
                         self.conf_path, *arguments[1:]])
        return code, json.loads(out.getvalue() or 'null')

    def local_bytes(self):
        return sum(counts['ssd'] + counts['hdd'] for counts in
                   self.daemon.node.index.occupancy('sda').values())

    def all_right(self):
        remote = self.remote()
        try:
            return all(md5(read_version(place, remote)) == md5(body)
                       for place, body in self.bodies)
        except KeyError:
            return False  # it came there, and left here, since the look


@pytest.fixture
def node(tmp_path, server):
    made = []

    def make(**gateway):
        made.append(Node(str(tmp_path / 'n'), server, **gateway))
        return made[-1]
    yield make
    for edge in made:
        if answers(os.path.join(edge.node.root, 'run', 'admin.sock')):
            edge.daemon.stop()


def test_a_dry_rekey_says_what_the_next_one_does(node, tmp_path):
    keys = write_keys(str(tmp_path / 'keys'), 'k1', 'k1')
    edge = node(key_file=keys, remote_after_seconds='0',
                bundle_age_seconds='0.1')
    places = [edge.put(number, class_id=number % 2 * 6)
              for number in range(6)] + [edge.put(9, class_id=5)]

    def seals():
        rows = [edge.daemon.node.local.describe(
            place.version, place.partition).residency.remote
            for place in places]
        return [remote and remote.seal.split('.')[1] for remote in rows]
    wait_until(lambda: seals() == ['k1'] * 6 + [None], 60)
    wait_until(lambda: edge.cli('rekey', '--dry-run')[1]['changed'] == 0, 10)
    write_keys(keys, 'k2', 'k1', 'k2')
    before = edge.remote()
    code, planned = edge.cli('rekey', '--dry-run')
    assert (code, planned['changed'], planned['versions']) == (0, 6, 7)
    assert planned.pop('dry_run') is True
    assert edge.remote() == before and seals() == ['k1'] * 6 + [None]
    code, done = edge.cli('rekey', '--seconds', '60')
    assert done.pop('dry_run') is False
    assert (code, done) == (0, planned)
    assert seals() == ['k2'] * 6 + [None] and edge.remote() != before
    assert edge.cli('rekey', '--dry-run')[1]['changed'] == 0


def test_the_command_sends_waits_and_drops(node):
    edge = node()
    for number in range(6):
        edge.put(number)
    edge.put(9, class_id=5)
    assert edge.local_bytes() >= 7 * SIZE
    code, said = edge.cli('relocate', '--device', 'sda', '--seconds', '60')
    assert code == 1, 'one of them has to stay'
    assert said['relocated'] == 6 and said['versions'] == 7
    assert 'stays on this cluster' in said['failed'][0]
    assert edge.local_bytes() == SIZE
    assert edge.all_right()


def test_without_s3_nothing_is_dropped_and_it_is_said(node, server):
    edge = node(url='http://127.0.0.1:9')
    edge.put(1)
    code, said = edge.cli('relocate', '--device', 'sda', '--seconds', '1')
    assert code == 1 and said['relocated'] == 0
    assert edge.local_bytes() >= SIZE


def test_a_stop_sends_what_s3_has_not_got(node):
    edge = node(relocate_stop_seconds='60')
    for number in range(8):
        edge.put(number)
    assert len(edge.remote()) == 0
    edge.daemon.stop()
    assert len(edge.remote()) == 8
    assert edge.all_right()


def test_a_stop_sends_nothing_unless_asked(node):
    edge = node()
    edge.put(1)
    edge.daemon.stop()
    assert edge.remote() == {}


def test_above_the_share_the_least_recently_used_go(node):
    edge = node(spill_at='0.000001')
    for number in range(5):
        edge.put(number)
    device = edge.daemon.node.devices.get('sda')

    def spilled():
        edge.daemon.node.relocator.spill(device)
        return edge.local_bytes() == 0

    wait_until(spilled, 60, 'all of it is in S3 alone')
    assert edge.all_right()
    assert edge.daemon.node.metrics.snapshot()['tier.spilled'] >= 5


def test_advice_comes_from_what_was_measured(node):
    edge = node()
    edge.put(1)
    load, now = edge.daemon.node.ledger.workload, time.time() + 61
    load.look(now, True)
    load.look(now + 10, False)
    load.look(now + 310, False)
    code, said = edge.cli('advise')
    assert code in (0, 1)
    assert said['workload']['outage_seconds'] == 300.0
    assert said['workload']['largest_bytes'] == SIZE
    assert {advice['area'] for advice in said['advice']} == {
        'data', 'metadata', 'log'}


def test_the_policy_is_for_this_bucket_and_prefix(node):
    edge = node()
    code, said = edge.cli('policy')
    assert code == 0
    assert said['Statement'][1]['Resource'] == 'arn:aws:s3:::%s/%s*' % (
        BUCKET, edge.prefix)
