"""One object server of ours, and a stock one over the same files."""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
from typing import Any, Iterator, List

import pytest
from support import md5, pattern, wait_until
from support.edges.fetch_door import FetchDoor
from support.nodes.object_node import ObjectNode, make_node, running_node

from swift_dss.core.limits import MAX_READER_CHARS
from swift_dss.core.residency import Extent, RemoteCopy, Residency, Tier
from swift_dss.core.spans import ClassMap, Span
from swift_dss.io import residency_store, spool
from swift_dss.wire import classmap, control, names
from swift_dss.wire.records.blocks import BLOCK_BYTES

MIXED = ClassMap.from_spans(
    [Span(0, 1500000, 1), Span(1500000, 1000000, 2),
     Span(2500000, 700000, 3)], 5)
BODY = pattern(4000000)


def tagged(class_map: ClassMap) -> Any:
    headers = classmap.to_headers(names.BACKEND_MAP, class_map)
    headers.update(classmap.to_headers(names.SYSMETA_MAP, class_map))
    return headers


@pytest.fixture(scope='module')
def node() -> Iterator[ObjectNode]:
    root = tempfile.mkdtemp(prefix='dss-', dir='/dev/shm')
    with running_node(root, capacity=os.path.join(root, 'hdd')) as made:
        yield made
    shutil.rmtree(root)


@pytest.fixture
def name(node: ObjectNode, request: Any) -> str:
    """A mixed object of its own for the test."""
    made = str(request.node.name)
    answer = node.request('PUT', made, BODY, tagged(MIXED))
    assert answer.status == 201
    return made


def quarantined(node: ObjectNode) -> List[str]:
    return [item for _folder, _folders, files in os.walk(
        os.path.join(node.devices, 'sda', 'quarantined')) for item in files]


@pytest.fixture(autouse=True)
def _nothing_is_quarantined(node: ObjectNode, request: Any) -> Any:
    before = len(quarantined(node))
    yield
    expected = 1 if request.node.get_closest_marker('damage') else 0
    assert len(quarantined(node)) - before == expected


def test_a_get_says_where_the_bytes_are(node: Any, name: str) -> None:
    for verb in ('GET', 'HEAD'):
        answer = node.request(verb, name)
        assert answer.headers['x-backend-dss-tier'] == 'ssd+hdd'
        assert answer.headers['content-length'] == str(len(BODY))
        assert answer.headers['etag'] == '"%s"' % md5(BODY)
    assert node.request('GET', name).body == BODY


@pytest.mark.parametrize('start,stop', [
    (0, 1), (1499999, 1500001), (1500000, 2500000), (0, 4000000),
    (3999999, 4000000), (2400000, 2600000)])
def test_ranges_cross_tiers(node: Any, name: str, start: int,
                            stop: int) -> None:
    answer = node.request('GET', name, headers={
        'Range': 'bytes=%d-%d' % (start, stop - 1)})
    assert answer.status == 206 and answer.body == BODY[start:stop]


def test_many_ranges_at_once(node: Any, name: str) -> None:
    answer = node.request('GET', name, headers={
        'Range': 'bytes=1499990-1500009,2499990-2500009,0-4'})
    assert answer.status == 206
    for start, stop in ((1499990, 1500010), (2499990, 2500010), (0, 5)):
        assert BODY[start:stop] in answer.body


def test_an_unmounted_hdd_is_507_before_the_first_byte(
        node: Any, name: str) -> None:
    hdd = os.path.join(node.root, 'hdd', 'sda')
    os.rename(hdd, hdd + '.away')
    try:
        assert node.request('GET', name).status == 507
        assert node.request('GET', name, headers={
            'Range': 'bytes=1400000-1600000'}).status == 507
        answer = node.request('GET', name,
                              headers={'Range': 'bytes=0-99'})
        assert answer.status == 206 and answer.body == BODY[:100]
        assert node.request('HEAD', name).status == 200
        assert node.request('GET', name, headers={
            'If-None-Match': md5(BODY)}).status == 304
    finally:
        os.rename(hdd + '.away', hdd)
    assert node.request('GET', name).body == BODY


def make_remote(node: Any, name: str) -> None:
    with open(node.data_file(name), 'rb+') as target:
        residency = residency_store.load(target.fileno())
        assert residency is not None
        residency_store.store(target.fileno(), Residency(
            residency.content_length, tuple(
                Extent(extent.offset, extent.length,
                       extent.tiers if extent.tiers & Tier.SSD
                       else Tier.REMOTE) for extent in residency.extents),
            RemoteCopy('s3', 'key', 'etag', 1.0)))


def test_remote_bytes_without_a_daemon_are_409_with_a_reason(
        node: Any, name: str) -> None:
    make_remote(node, name)
    answer = node.request('GET', name)
    assert answer.status == 409
    assert int(answer.headers[names.BACKEND_UNAVAILABLE.lower()]) > 0
    assert node.request('GET', name, headers={
        'Range': 'bytes=0-99'}).body == BODY[:100]


class Daemon(FetchDoor):
    """The tier daemon's side of ``fetch.sock``."""

    def __init__(self, node: Any, reply: control.FetchReply,
                 short_by: int = 0) -> None:
        self.requests: List[control.FetchRequest] = []
        self._reply, self._short_by = reply, short_by
        super().__init__(node.root)

    def answer(self, line: bytes, asker: socket.socket) -> None:
        request = control.decode_fetch(line)
        self.requests.append(request)
        asker.sendall(control.encode_fetch_reply(self._reply))
        if self._reply.status == 200:
            end = request.offset + request.length - self._short_by
            asker.sendall(BODY[request.offset:end])


def test_remote_bytes_are_streamed_from_the_daemon(
        node: Any, name: str) -> None:
    make_remote(node, name)
    with Daemon(node, control.FetchReply(200)) as daemon:
        assert node.request('GET', name).body == BODY
        answer = node.request('GET', name, headers={
            'Range': 'bytes=1600000-1600009',
            'X-Backend-Replication': 'True'})
        assert answer.body == BODY[1600000:1600010]
    whole, part = daemon.requests
    assert (whole.offset, whole.length) == (1500000, 1000000)
    assert (part.offset, part.length) == (1600000, 10)
    assert whole.keep and not part.keep
    assert whole.class_id == 2 and whole.partition == '7'


def test_who_reads_a_stub_is_told_at_once_and_by_name(
        node: Any, name: str) -> None:
    """Or the daemon would not know a stream from single reads."""
    make_remote(node, name)
    path = os.path.join(node.root, 'run', 'events.sock')
    word = {names.BACKEND_READER: 'r' * (MAX_READER_CHARS + 9)}
    with Daemon(node, control.FetchReply(200)) as daemon, socket.socket(
            socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(path)
        heard.settimeout(10)
        try:
            # The server looks for a lost daemon twice a second.
            wait_until(lambda: node.request('GET', name, headers={
                'Range': 'bytes=0-9'}).status == 206 and _waiting(heard), 10)
            for number in range(4):
                node.request('GET', name, headers=dict(
                    word, Range='bytes=%d-%d' % (number, number + 99)))
            node.request('GET', name, headers=dict(
                word, Range='bytes=1500000-1500009'))
            events: List[control.Event] = []
            while len(events) < 4:
                line, = control.split_events(heard.recv(65536))
                event = control.decode_event(line)
                if event.client:
                    events.append(event)
            assert [(event.offset, event.length, event.client)
                    for event in events] == [
                (number, 100, 'r' * MAX_READER_CHARS)
                for number in range(4)]
        finally:
            os.unlink(path)
    assert [request.client for request in daemon.requests] == [
        'r' * MAX_READER_CHARS]


@pytest.mark.parametrize('status,expected', [
    (503, 409), (507, 507), (500, 409)])
def test_what_the_daemon_refuses_is_refused(
        node: Any, name: str, status: int, expected: int) -> None:
    make_remote(node, name)
    with Daemon(node, control.FetchReply(status, 'no', 42)):
        answer = node.request('GET', name)
    assert answer.status == expected
    if expected == 409:
        assert answer.headers[names.BACKEND_UNAVAILABLE.lower()] == '42'


def test_a_daemon_that_stops_half_way_cuts_the_body_short(
        node: Any, name: str) -> None:
    import http.client
    make_remote(node, name)
    with Daemon(node, control.FetchReply(200), short_by=1000):
        with pytest.raises(http.client.IncompleteRead) as caught:
            node.request('GET', name)
    # What is left of a block that did not come whole cannot be proven.
    assert caught.value.partial == BODY[
        :2499000 // BLOCK_BYTES * BLOCK_BYTES]


@pytest.mark.damage
def test_a_stock_server_refuses_a_stub_and_serves_the_rest(
        node: Any, name: str) -> None:
    assert node.request('PUT', name + 'w', BODY, tagged(
        ClassMap.uniform(3))).status == 201
    root = tempfile.mkdtemp(dir='/dev/shm')
    stock = make_node(root, app='egg:swift#object', devices=node.devices)
    try:
        stock.start()
        assert stock.request('GET', name + 'w').body == BODY
        answer = stock.request('GET', name)
        assert answer.status == 404
        assert BODY[:64] not in answer.body
    finally:
        stock.stop()
        shutil.rmtree(root)


def test_ssync_brings_the_class_in_sysmeta(node: Any) -> None:
    headers = classmap.to_headers(names.SYSMETA_MAP, ClassMap.uniform(2))
    assert node.request('PUT', 'ssync', BODY, headers).status == 201
    assert node.request('HEAD', 'ssync').headers[
        'x-backend-dss-tier'] == 'hdd'


def test_a_damaged_map_is_written_unclassified(node: Any) -> None:
    assert node.request('PUT', 'bad', BODY, {
        names.BACKEND_MAP: 'm1:rubbish'}).status == 201
    assert node.request('GET', 'bad').body == BODY


def test_events_reach_a_daemon_and_are_kept_for_a_dead_one(
        node: Any) -> None:
    device = os.path.join(node.devices, 'sda')
    spool.take(device)
    node.request('PUT', 'ev', BODY, tagged(ClassMap.uniform(1)))
    lines: List[bytes] = []
    # The file is there a moment before its first line is.
    wait_until(lambda: lines.extend(spool.take(device)) or lines, 10)
    kept = [control.decode_event(line) for line in lines]
    assert [event.kind.value for event in kept] == ['put']
    assert kept[0].size == len(BODY) and kept[0].map_text == '1'

    path = os.path.join(node.root, 'run', 'events.sock')
    heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    heard.bind(path)
    heard.settimeout(10)
    try:
        # The server looks for a lost daemon twice a second.
        wait_until(lambda: node.request('GET', 'ev').status == 200
                   and _waiting(heard), 10)
        read = control.decode_event(
            control.split_events(heard.recv(65536))[0])
        assert (read.kind.value, read.offset, read.length) == (
            'read', 0, len(BODY))
        node.request('POST', 'ev', headers={names.TRANSIENT_MAP: '5'})
        node.request('DELETE', 'ev')
        kinds = {}
        while 'delete' not in kinds:
            for line in control.split_events(heard.recv(65536)):
                event = control.decode_event(line)
                kinds[event.kind.value] = event
        assert kinds['class'].map_text == '5'
        assert json.loads(control.encode_event(kinds['delete']))
    finally:
        heard.close()
        os.unlink(path)


def _waiting(heard: Any) -> bool:
    import select
    return bool(select.select([heard], [], [], 0)[0])


def test_fragment_archives_travel_in_two_phases(node: Any) -> None:
    """A fragment with sysmeta, as ssync sends it, on both tiers."""
    archive = _archive(1)
    headers = classmap.to_headers(names.SYSMETA_MAP, MIXED)
    headers.update({'X-Object-Sysmeta-Ec-Frag-Index': '1',
                    'X-Object-Sysmeta-Ec-Etag': md5(BODY),
                    'X-Object-Sysmeta-Ec-Content-Length': str(len(BODY))})
    answer = node.request('PUT', 'frag', archive, dict(
        headers, **{'X-Backend-No-Commit': 'True'}), policy=1)
    assert answer.status == 201
    assert node.data_file('frag', 1).endswith('#1.data')
    assert node.request('GET', 'frag', policy=1).status == 404
    answer = node.request('PUT', 'frag', archive, headers, policy=1)
    assert answer.status == 201
    assert node.data_file('frag', 1).endswith('#1#d.data')
    answer = node.request('GET', 'frag', policy=1)
    assert answer.body == archive
    assert answer.headers['x-backend-dss-tier'] == 'ssd+hdd'
    answer = node.request('GET', 'frag', policy=1, headers={
        'Range': 'bytes=700000-1300000'})
    assert answer.body == archive[700000:1300001]


def test_a_fragment_sent_again_leaves_its_old_capacity_file_alone(
        node: Any) -> None:
    """The same version twice, never committed before: what a record leans
    on is not replaced under it."""
    stamp = node.timestamp()
    headers = classmap.to_headers(names.SYSMETA_MAP, ClassMap.uniform(2))
    headers.update({'X-Object-Sysmeta-Ec-Frag-Index': '0',
                    'X-Object-Sysmeta-Ec-Etag': 'x',
                    'X-Timestamp': stamp})
    body = _archive(0)
    for extra, tier in (({'X-Backend-No-Commit': 'True'}, 'hdd'),
                        ({}, 'ssd')):
        answer = node.request('PUT', 'again', body,
                              dict(headers, **extra), policy=1)
        assert answer.status == 201
        answer = node.request('GET', 'again', policy=1, headers={
            'X-Backend-Fragment-Preferences': '[]'})
        assert answer.body == body
        assert answer.headers['x-backend-dss-tier'] == tier


def _archive(index: int) -> bytes:
    from pyeclib.ec_iface import ECDriver
    driver = ECDriver(k=2, m=1, ec_type='liberasurecode_rs_vand')
    return b''.join(driver.encode(BODY[at:at + 65536])[index]
                    for at in range(0, len(BODY), 65536))
