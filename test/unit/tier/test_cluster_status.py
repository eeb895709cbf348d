"""All nodes of the rings, asked by real sockets what they do."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
from swift.common.ring import RingBuilder
from swift.common.swob import Response

from swift_dss.cli.tier import cluster as command
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadConfig
from swift_dss.objserver.figures import summaries
from swift_dss.objserver.settings import Node
from swift_dss.tier.doors import cluster
from swift_dss.tier.doors.cluster_html import cluster_page
from swift_dss.wire.node import summary
from swift_dss.wire.node.summary import Class, Device, Summary

def device(**changes):
    return Device(**{
        'troubles': (), 'ssd': 100, 'ssd_used': 120, 'ssd_room': 400,
        'hdd': 50, 'remote': 30, 'dirty': 20, 'oldest_dirty': 5.0,
        'lacking': 0, 'pending': 7, 'budget': 70, **changes})


def gold(**changes):
    return Class(**{
        'name': 'gold', 'rank': 20, 'ssd': 60, 'hdd': 30, 'remote': 10,
        'dirty': 5, 'reads': 4, 'hits': 3, 'read_bytes': 40, 'hit_bytes': 30,
        **changes})


LOW = Class('low', -1, 40, 20, 20, 15, 6, 0, 60, 0)


def said(**changes):
    return Summary(**{
        'at': time.time(), 'host': 'n', 'up': 9.0, 'remote': 'S3 answers',
        'is_remote_well': True, 'uploads': 2, 'events': 0, 'notes': (),
        'devices': {'sda': device()}, 'classes': {9: gold(), 2: LOW},
        **changes})


class Quiet(WSGIRequestHandler):
    def log_message(self, *args):
        pass


class Logger(logging.Logger):
    def increment(self, name):
        pass


@contextlib.contextmanager
def serving(*applications):
    """The ports of servers of these applications."""
    servers = [make_server('127.0.0.1', 0, made, handler_class=Quiet)
               for made in applications]
    threads = [threading.Thread(target=server.serve_forever)
               for server in servers]
    for thread in threads:
        thread.start()
    try:
        yield [server.server_port for server in servers]
    finally:
        for server, thread in zip(servers, threads):
            server.shutdown()
            thread.join()
            server.server_close()


@pytest.fixture
def node(tmp_path, monkeypatch):
    """Makes the application of a node's object servers."""
    nodes = {}
    monkeypatch.setattr(summaries, 'node_for',
                        lambda conf, logger: nodes[conf['name']])

    def make(name, text=None):
        folder = tmp_path / name
        folder.mkdir()
        nodes[name] = Node(NodeConf(run_dir=str(folder),
                                    devices=str(folder)), Logger('test'))
        if text is not None:
            (folder / summary.FILE).write_bytes(text)
        return summaries.Summaries({'name': name}, Logger('test'))
    return make


@pytest.fixture
def swift_dir(tmp_path):
    """Makes a folder with a ring of these (port, device)."""
    def make(*places, module='egg:swift_dss#dss.fs'):
        folder = tmp_path / 'swift'
        folder.mkdir()
        (folder / 'swift.conf').write_text(
            '[swift-hash]\nswift_hash_path_suffix = x\n'
            '[storage-policy:0]\nname = p\ndefault = yes\n'
            'diskfile_module = %s\n' % module)
        builder = RingBuilder(2, 1, 0)
        for number, (port, device) in enumerate(places):
            builder.add_dev({'region': 1, 'zone': number, 'weight': 1,
                             'ip': '127.0.0.1', 'port': port,
                             'device': device})
        builder.rebalance()
        builder.get_ring().save(str(folder / 'object.ring.gz'))
        return str(folder)
    return make


def test_each_node_once_with_its_figures(node, swift_dir):
    first = node('a', summary.encode(said()))
    second = node('b', summary.encode(said(
        is_remote_well=False, remote='S3 does not answer',
        notes=('a note',), devices={'sdx': device(
            troubles=('HDD unmounted',), lacking=3)})))
    with serving(first, first, second) as (one, other, third):
        folder = swift_dir((one, 'sda'), (other, 'sda'), (third, 'sdy'))
        nodes = cluster.nodes(folder)
    by_state = {found.state: found for found in nodes}
    assert len(nodes) == 2 and set(by_state) == {'well', 'trouble'}
    well, trouble = by_state['well'], by_state['trouble']
    assert well.notes == () and well.answers and well.age < 30
    assert well.address in ('127.0.0.1:%d' % one, '127.0.0.1:%d' % other)
    assert trouble.notes == (
        'sdy is in the ring, and its daemon does not see it',
        'sdx: HDD unmounted', 'sdx: 3 versions have bytes nowhere',
        'S3 does not answer', 'a note')
    assert cluster.totals([said(), said()]) == (
        200, 240, 800, 100, 60, 40, 5.0, 14, 140)
    assert cluster.classes([said(), said()])[9] == gold(
        ssd=120, hdd=60, remote=20, dirty=10, reads=8, hits=6,
        read_bytes=80, hit_bytes=60)
    assert list(cluster.classes([said()])) == [9, 2]


def test_those_that_do_not_answer_are_named_with_the_reason(
        node, swift_dir, tmp_path):
    def stock(env, start_response):
        return Response(status=412)(env, start_response)

    old = node('old', summary.encode(said(at=time.time() - 4000)))
    never = node('never')
    torn = node('torn', summary.encode(said())[:100])
    with serving(stock, old, never, torn) as ports:
        with serving(stock) as (gone,):
            pass
        folder = swift_dir(*((port, 'sda') for port in ports + [gone]))
        found = {found.address.rpartition(':')[2]: found
                 for found in cluster.nodes(folder)}
    reasons = [(found[str(port)].state, found[str(port)].why)
               for port in ports + [gone]]
    assert [state for state, _ in reasons] == [
        'no answer', 'silent', 'no answer', 'no answer', 'no answer']
    for (_, why), words in zip(reasons, (
            'stock Swift, or an older swift-dss (status 412)',
            'written nothing for 40', 'No such file', 'summary of a node',
            'Connection refused')):
        assert words in why, why
    assert not any(one.answers for one in found.values())


def test_the_table_says_all_of_it_and_ends_with_1_for_trouble(
        node, swift_dir, capsys):
    well = node('a', summary.encode(said()))
    with serving(well) as (port,):
        folder = swift_dir((port, 'sda'))
        conf = NodeConf(swift_dir=folder)
        assert command.run(conf, False) == 0
        shown = capsys.readouterr().out
        assert command.run(conf, True) == 0
        told = json.loads(capsys.readouterr().out)
        page = cluster_page(folder)
    rows = [line.split() for line in shown.splitlines()]
    assert rows[1][:3] == ['127.0.0.1', 'well', '1']
    assert rows[2][:5] == ['all', '1', 'of', '1', 'answer']
    assert '30.0 %' in shown and 'S3 answers' in shown and 'gold' in shown
    assert told['answering'] == 1 and told['totals']['ssd'] == 100
    assert told['nodes'][0]['summary']['classes']['9']['name'] == 'gold'
    assert '1 of 1 nodes answer' in page and 'badge good' in page
    assert command.run(conf, False) == 1
    shown = capsys.readouterr().out
    assert '0 of 1 answer' in shown and '127.0.0.1: ' in shown
    assert 'badge bad' in cluster_page(folder)


def test_names_from_other_nodes_are_escaped(node, swift_dir):
    evil = '<script>alert(1)</script>'
    made = node('a', summary.encode(said(
        notes=(evil,), classes={9: gold(name=evil)})))
    with serving(made) as (port,):
        assert evil not in cluster_page(swift_dir((port, 'sda')))


def test_a_policy_that_is_not_ours_has_no_nodes_here(swift_dir, tmp_path):
    folder = swift_dir((6200, 'sda'), module='egg:swift#replication.fs')
    assert cluster.nodes(folder) == []


def test_a_ring_that_cannot_be_read_is_named(swift_dir):
    folder = swift_dir((6200, 'sda'))
    with open(os.path.join(folder, 'object.ring.gz'), 'wb') as ring:
        ring.write(b'no ring')
    with pytest.raises(BadConfig, match=r'object\.ring\.gz cannot be read'):
        cluster.nodes(folder)
    assert 'object.ring.gz cannot be read' in cluster_page(folder)
