"""What primaries say of an object: ours by the hundred, stock by HEAD."""

from __future__ import annotations

import http.client
import os
import socket
import time

import pytest
from support.clocks import StillClock

from support.nodes.object_node import running_node

from swift_dss.core.residency import RemoteCopy, Residency, Tier
from swift_dss.core.version import VersionId
from swift_dss.gateway.peers.primaries import RingPrimaries, Wanted
from swift_dss.io import residency_store
from swift_dss.strategy.agreement import Answer
from swift_dss.wire import newest as wire

STOCK = 'egg:swift#object'
#: Of today: Swift keeps no tombstone for longer than a week.
T1, T2, T3 = ('%016.5f' % (time.time() - ago) for ago in (300, 200, 100))
NOTHING = Answer('', '')


class Nodes:
    """Primaries at ports of this machine, none of which is this node."""

    def __init__(self, *ports):
        self.ports = ports

    def primaries(self, policy, object_hash):
        return '7', [{'ip': '127.0.0.1', 'port': port, 'device': 'sda'}
                     for port in self.ports]

    def is_here(self, node):
        return False


@pytest.fixture(scope='module')
def ours(tmp_path_factory):
    with running_node(str(tmp_path_factory.mktemp('ours'))) as made:
        yield made


@pytest.fixture(scope='module')
def stock(tmp_path_factory):
    with running_node(str(tmp_path_factory.mktemp('stock')),
                      app=STOCK) as made:
        yield made


def wanted(node, name, policy=0, frag_index=None):
    return Wanted(VersionId('', policy, os.path.basename(node.hash_dir(
        name)), T1, frag_index), '/a/c/' + name)


def put(node, name, timestamp=T1, **headers):
    assert node.request('PUT', name, b'body', dict(
        headers, **{'X-Timestamp': timestamp})).status == 201


def fill(node):
    """One object of each kind there is."""
    put(node, 'here')
    put(node, 'newer')
    put(node, 'newer', T2)
    put(node, 'gone')
    node.request('DELETE', 'gone', headers={'X-Timestamp': T3})
    put(node, 'posted')
    node.request('POST', 'posted', headers={'X-Timestamp': T2})
    # It expires, after a POST: the data file is what counts.
    put(node, 'expired')
    node.request('POST', 'expired', headers={
        'X-Timestamp': T2, 'X-Delete-At': str(int(time.time()) + 2)})
    time.sleep(3)
    return ['here', 'newer', 'gone', 'posted', 'expired', 'never']


@pytest.mark.parametrize('kind', ['ours', 'stock'])
def test_each_kind_of_server_says_the_same(kind, request):
    node = request.getfixturevalue(kind)
    names = fill(node)
    asked = RingPrimaries(Nodes(node.port), None)
    # Stock servers do not know what lies in a quarantine.
    quarantined = '' if kind == 'ours' else None
    assert asked.ask([wanted(node, name) for name in names]) == [
        [Answer(timestamp, '', False, quarantined)]
        for timestamp in (T1, T2, T3, T1, T1, '')]


def test_records_are_told_of_by_ours_alone(ours, stock):
    for node in (ours, stock):
        put(node, 'stub')
    path = ours.data_file('stub')
    fd = os.open(path, os.O_RDWR)
    residency = Residency.whole(4, Tier.REMOTE).with_remote(
        RemoteCopy('cloud', 'p/bundles/abc/1', 'e' * 32, 1.0))
    os.ftruncate(fd, residency.file_size)
    residency_store.store(fd, residency)
    os.close(fd)
    asked = RingPrimaries(Nodes(ours.port, stock.port), None)
    assert asked.ask([wanted(ours, 'stub')], True) == [
        [Answer(T1, 'p/bundles/abc/1'), None]]
    # Another fragment than the one that is here.
    assert asked.ask([wanted(ours, 'stub', 0, 1)], True) == [
        [Answer(T1, ''), None]]


def flip(path, offset=0):
    with open(path, 'r+b') as target:
        target.seek(offset)
        was = target.read(1)[0]
        target.seek(offset)
        target.write(bytes([was ^ 1]))


def prove(node, name, *ports):
    return RingPrimaries(Nodes(*ports or (node.port,)), None).prove(
        wanted(node, name))


def test_ours_read_what_they_are_to_prove(ours, stock):
    for node in (ours, stock):
        put(node, 'proven')
    assert prove(ours, 'proven', ours.port, stock.port) == [
        Answer(T1, '', True, '', True), None]
    assert prove(ours, 'never') == [NOTHING]
    path = ours.data_file('proven')
    flip(path)
    # Whoever only asks what the record says is told what it says.
    assert RingPrimaries(Nodes(ours.port), None).ask(
        [wanted(ours, 'proven')], True) == [[Answer(T1, '', True)]]
    assert prove(ours, 'proven') == [Answer(T1, '', True)]
    # And it is still there.
    flip(path)
    assert prove(ours, 'proven') == [Answer(T1, '', True, '', True)]


def test_a_version_without_checksums_is_proven_by_its_digest(ours):
    put(ours, 'bare')
    os.removexattr(ours.data_file('bare'), 'user.dss.blocks')
    assert prove(ours, 'bare')[0].is_proven
    flip(ours.data_file('bare'))
    assert not prove(ours, 'bare')[0].is_proven


def test_a_stub_proves_nothing_and_reads_nothing(ours):
    put(ours, 'stub2')
    fd = os.open(ours.data_file('stub2'), os.O_RDWR)
    residency = Residency.whole(4, Tier.REMOTE).with_remote(
        RemoteCopy('cloud', 'p/key', 'e' * 32, 1.0))
    os.ftruncate(fd, residency.file_size)
    residency_store.store(fd, residency)
    os.close(fd)
    assert prove(ours, 'stub2') == [Answer(T1, 'p/key')]


def test_who_proves_a_large_version_is_heard_meanwhile(ours):
    body = os.urandom(1 << 20) * 21
    assert ours.request('PUT', 'large', body, {
        'X-Timestamp': T1}).status == 201
    question = wire.encode_question(wire.Question([wire.Asked(
        'sda', 0, '7', os.path.basename(ours.hash_dir('large')))],
        True, True))
    connection = http.client.HTTPConnection('127.0.0.1', ours.port)
    connection.request('POST', '/dss/newest', question)
    raw = connection.getresponse().read()
    connection.close()
    assert raw.startswith(b' ' * 4) and not raw.startswith(b' ' * 9)
    assert wire.decode_answer(raw, 1) == [(T1, '', True, '', True)]
    flip(ours.data_file('large'), 15 << 20)
    assert not prove(ours, 'large')[0].is_proven


def quarantine(node, name, suffix=''):
    """As Swift's ``quarantine_renamer``."""
    source = node.hash_dir(name)
    top = os.path.join(node.devices, 'sda', 'quarantined', 'objects')
    os.makedirs(top, exist_ok=True)
    os.rename(source, os.path.join(top, os.path.basename(source) + suffix))


def test_what_lies_in_quarantine_is_told_of(ours):
    put(ours, 'away')
    quarantine(ours, 'away')
    asked = RingPrimaries(Nodes(ours.port), None)
    for records in (False, True):
        assert asked.ask([wanted(ours, 'away'), wanted(ours, 'never')],
                         records) == [[Answer('', '', False, T1)], [NOTHING]]
    put(ours, 'away', T2)
    assert asked.ask([wanted(ours, 'away')]) == [[Answer(T2, '', False, T1)]]
    quarantine(ours, 'away', '-' + 'f' * 32)
    put(ours, 'away', T3)
    assert asked.ask([wanted(ours, 'away')]) == [[Answer(T3, '', False, T2)]]


def test_a_server_of_the_version_before_says_nothing_of_quarantine():
    assert wire.decode_answer(
        b'{"v":1,"said":[["%s",""],null]}' % T1.encode(), 2) == [
            (T1, '', False, None, False), None]


def test_a_device_that_is_not_there_says_nothing(ours):
    class Elsewhere(Nodes):
        def primaries(self, policy, object_hash):
            return '7', [{'ip': '127.0.0.1', 'port': ours.port,
                          'device': 'sdz'}]
    put(ours, 'there')
    asked = RingPrimaries(Elsewhere(), None)
    assert asked.ask([wanted(ours, 'there')]) == [[None]]


def test_a_server_that_does_not_answer_is_left_alone_for_a_while(ours):
    with socket.socket() as nobody:
        nobody.bind(('127.0.0.1', 0))
        port = nobody.getsockname()[1]
    put(ours, 'o', T2)
    asked = RingPrimaries(Nodes(ours.port, port), None, StillClock())
    assert asked.ask([wanted(ours, 'o')] * 3) == [[Answer(T2), None]] * 3
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', port))
        listener.listen(1)
        assert asked.ask([wanted(ours, 'o')]) == [[Answer(T2), None]]
        listener.settimeout(0.1)
        with pytest.raises(socket.timeout):
            listener.accept()


def test_more_than_one_question_takes(ours, monkeypatch):
    from swift_dss.gateway.peers import primaries
    put(ours, 'many', T2)
    monkeypatch.setattr(primaries, 'MAX_ASKED', 10)
    asked = RingPrimaries(Nodes(ours.port), None)
    assert asked.ask([wanted(ours, 'many')] * 33) == [[Answer(T2)]] * 33


@pytest.mark.parametrize('body', [
    b'', b'{', b'[]', b'{"v":1}', b'{"v":2,"records":false,"ask":[]}',
    b'{"v":1,"records":false,"ask":[["../x",0,"7","%s",null]]}' % (
        b'a' * 32),
    b'{"v":1,"records":false,"ask":[["sda",0,"../7","%s",null]]}' % (
        b'a' * 32),
    b'{"v":1,"records":false,"ask":[["sda",0,"7","%s",null]]}' % (
        b'.' * 32),
    b'{"v":1,"records":false,"ask":[%s]}' % b','.join(
        [b'["sda",0,"7","%s",null]' % (b'a' * 32)] * 1001)])
def test_what_is_no_question_is_refused(ours, body):
    connection = http.client.HTTPConnection('127.0.0.1', ours.port)
    connection.request('POST', '/dss/newest', body)
    assert connection.getresponse().status in (400, 413)
    connection.close()
    connection = http.client.HTTPConnection('127.0.0.1', ours.port)
    connection.request('GET', '/dss/newest')
    assert connection.getresponse().status == 405
    connection.close()


def test_a_damaged_record_is_no_answer(ours):
    put(ours, 'torn')
    os.setxattr(ours.data_file('torn'), 'user.dss.residency', b'junk')
    asked = RingPrimaries(Nodes(ours.port), None)
    assert asked.ask([wanted(ours, 'torn')], True) == [[None]]
    assert asked.ask([wanted(ours, 'torn')]) == [[Answer(T1)]]
