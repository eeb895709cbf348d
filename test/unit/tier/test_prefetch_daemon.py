"""Prefetch on a device: what is fetched, when not, and what became of it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace

import pytest
from support.nodes.tier_node import KIB, Rig
from swift.common import utils as config
from swift.common.ring import RingBuilder
from swift.obj.diskfile import read_metadata, write_metadata

from swift_dss.core.classes import ClassSpec, ClassTable, PrefetchHint
from swift_dss.core.config import GatewayConf, PrefetchConf
from swift_dss.core.errors import (
    DamagedRecord, RemoteUnavailable, TierUnavailable)
from swift_dss.core.residency import RemoteCopy, Tier
from swift_dss.gateway.ports import Sink
from swift_dss.strategy.prefetch import STRATEGIES
from swift_dss.strategy.prefetch.amp import Amp
from swift_dss.tier.hear import intake
from swift_dss.tier.local.listings import Listings
from swift_dss.tier.prefetch.book import Fate
from swift_dss.tier.prefetch import manifests
from swift_dss.tier.prefetch.objects import Objects
from swift_dss.tier.prefetch.service import Prefetcher
from swift_dss.tier.prefetch.spare import LEAST_SHARE, Spare
from swift_dss.wire.control import (
    Event, EventKind, FetchReply, FetchRequest, encode_event)

PART = 64 * KIB
TABLE = ClassTable.of([
    ClassSpec(0, 'plain', 0),
    ClassSpec(5, 'cold', 50, prefetch=PrefetchHint.NEVER),
    ClassSpec(9, 'model', 90, prefetch=PrefetchHint.WHOLE)])
SECONDS = 20.0


class Cloud:
    """S3 behind the gateway's verbs: bytes come when the gate is open, and
    are stored as a fill stores them."""

    class throughput:
        class down:
            @staticmethod
            def rate():
                return 0.0

    def __init__(self, rig):
        self.rig = rig
        self.bodies = {}
        self.gate = threading.Event()
        self.gate.set()
        self.busy = 0
        self.asked = []
        self.down = False
        self.latency = 0.0

    def reading(self):
        return self.busy, 0

    def fetch(self, request, sink):
        if request.ahead:
            self.asked.append(
                (request.version, request.offset, request.length))
        if self.down:
            sink.begin(FetchReply(503, 'down', 1))
            return False
        data = self.bodies[request.version][
            request.offset:request.offset + request.length]
        sink.begin(FetchReply(200))
        assert self.gate.wait(SECONDS)
        for at in range(0, len(data), 16 * KIB):
            if at % PART == 0:
                time.sleep(self.latency)
            sink.write(data[at:at + 16 * KIB])
        fill = self.rig.local.begin_fill(
            request.version, request.partition, request.offset,
            request.length, request.class_id)
        fill.write(request.offset, data)
        fill.commit()
        return True


class Reader(Sink):
    def __init__(self):
        self.data = b''

    def begin(self, reply):
        pass

    def write(self, data):
        self.data += data


class AtOnce:
    """No event is ever on its way."""

    def in_order(self, call):
        call()


class Bed:
    """A device whose objects are in S3 alone, and its prefetcher."""

    def __init__(self, root, strategy='amp', with_hdd=True, ssd=1 << 30,
                 **options):
        self.rig = Rig(root, with_hdd, TABLE, ssd_bytes=ssd,
                       hdd_high_watermark=1.0, high_watermark=1.0)
        self.rig.conf = dataclasses.replace(
            self.rig.conf, swift_dir=str(root),
            gateway=GatewayConf(part_bytes=PART),
            prefetch=PrefetchConf(strategy=strategy, **options))
        self.cloud = Cloud(self.rig)
        self.now = 1000.0
        self.wished = []
        self.made = None

    def start(self, events=None):
        self.made = Prefetcher(
            self.rig.local, self.cloud, self, events or AtOnce(),
            self.rig.metrics, SimpleNamespace(monotonic=lambda: self.now))
        self.rig.local.watcher = self.made
        self.made.start()
        return self.made

    def wish(self, wish):
        self.wished.append(wish)

    def store(self, name, parts=12, class_id=0, remote=True, hdd=False,
              body=b''):
        body = body or os.urandom(parts * PART)
        place = self.rig.put(name, body, class_id)
        self.cloud.bodies[place.version] = body
        if remote:
            self.rig.local.record_remote(
                place.version, place.partition,
                RemoteCopy('s3', name, 'e', 1.0))
            self.rig.local.demote(place.version, place.partition,
                                  to_hdd=hdd)
        elif hdd:
            self.rig.local.demote(place.version, place.partition)
        return place

    def fetch(self, place, part, parts=1, client=''):
        """A reader lacks parts; he gets them through the watcher."""
        self.ask(place, part * PART, parts * PART, client)

    def ask(self, place, offset, length, client=''):
        """The same of any range."""
        request = FetchRequest(place.version, place.partition, offset,
                               length, 0, 5.0, client=client)
        reader = Reader()
        self.now += 0.1
        self.cloud.fetch(request, self.made.on_fetch(request, reader))
        assert reader.data == self.cloud.bodies[place.version][
            offset:offset + length]

    def read(self, place, part, tier=Tier.HDD, client=''):
        """A read that an object server did without us."""
        self.now += 0.1
        self.made.on_reads(place.version, place.partition, [Event(
            EventKind.READ, place.version, place.partition,
            place.content_length, '', part * PART, PART, int(tier),
            client=client)])

    def local_parts(self, place):
        local_version = self.rig.local.describe(place.version, place.partition)
        return {extent.offset // PART + n
                for extent in local_version.residency.extents
                if extent.tiers & (Tier.SSD | Tier.HDD)
                for n in range(extent.length // PART)}

    def count(self, fate):
        return self.made.status()[fate + '_pieces']

    def close(self):
        self.cloud.gate.set()
        if self.made is not None:
            self.made.stop()
        self.rig.close()


def wait(condition):
    """Wait for what threads do."""
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until, 'it did not come about'
        time.sleep(0.005)


@pytest.fixture(autouse=True)
def first_sets_of_four(monkeypatch):
    """So that rule 3 can be seen."""
    monkeypatch.setitem(STRATEGIES, 'amp',
                        lambda settings: Amp(settings, first_degree=4))


@pytest.fixture
def bed(tmp_path):
    beds = []

    def make(**options):
        beds.append(Bed(tmp_path, **options))
        return beds[-1]
    yield make
    for opened in beds:
        opened.close()


def test_a_stream_of_parts_is_fetched_ahead_of_its_reader(bed):
    bed = bed()
    place = bed.store('film')
    bed.start()
    assert bed.local_parts(place) == set()
    bed.fetch(place, 0)
    bed.fetch(place, 1)
    wait(lambda: bed.local_parts(place) == set(range(6)))
    assert sorted(bed.cloud.asked) == [
        (place.version, part * PART, PART) for part in range(2, 6)]
    wait(lambda: bed.made.status()['here'] == 4)
    with bed.rig.local.open(place.version, place.partition) as reader:
        assert reader.read(0, 6 * PART) == \
            bed.cloud.bodies[place.version][:6 * PART]
    for part in range(2, 6):
        bed.read(place, part)
    assert bed.count('useful') == 4 and bed.count('wasted') == 0
    assert bed.made.status()['open_bytes'] == 0


def test_one_long_read_is_a_stream_too(bed):
    bed = bed()
    place = bed.store('film')
    bed.start()
    bed.cloud.latency = 0.02                  # its reader waits
    bed.fetch(place, 0, 3)
    wait(lambda: bed.local_parts(place) >= set(range(6)))


def test_without_a_strategy_nothing_is_fetched(bed):
    bed = bed(strategy='none')
    place = bed.store('film')
    bed.start()
    for part in range(4):
        bed.fetch(place, part)
    assert bed.cloud.asked == [] and len(bed.made.status()) > 10


def test_reads_from_local_disks_go_on_with_the_stream(bed):
    """Rule by rule as in the strategy's own tests; here that the events
    of object servers reach it."""
    bed = bed()
    place = bed.store('film', parts=24)
    bed.start()
    bed.fetch(place, 0)
    bed.fetch(place, 1)
    wait(lambda: bed.local_parts(place) == set(range(6)))
    wait(lambda: bed.made.status()['here'] == 4)
    for part in range(2, 6):
        bed.read(place, part)
    bed.fetch(place, 6)
    wait(lambda: bed.made.status()['here'] == 5)
    bed.read(place, 7)
    bed.read(place, 8)
    bed.read(place, 9)
    wait(lambda: bed.local_parts(place) >= set(range(17)))
    assert bed.made.status()['useful_pieces'] >= 7


def test_reads_that_are_still_on_their_way_belong_to_the_stream(
        bed, tmp_path, monkeypatch):
    """Object servers' events gather, and a fetch overtakes them."""
    monkeypatch.setattr(intake, 'GATHER_SECONDS', 3600.0)
    monkeypatch.setattr(intake, 'MARK_SECONDS', 60.0)
    bed = bed()
    place = bed.store('film')
    path = str(tmp_path / 'events.sock')
    events = intake.Intake(path, bed.rig.local.devices,
                           bed.rig.due, bed.rig.metrics)
    bed.start(events)
    events.start(SimpleNamespace(hear=lambda batch: bed.made.on_reads(
        place.version, place.partition, batch)))
    piece = PART // 8
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            for offset in range(0, PART, piece):
                if offset:
                    sender.sendto(encode_event(Event(
                        EventKind.READ, place.version, place.partition,
                        place.content_length, '', offset, piece,
                        int(Tier.HDD), at=time.time())), path)
                else:
                    bed.ask(place, offset, piece)
            bed.ask(place, PART, piece)
        wait(lambda: bed.local_parts(place) >= set(range(2, 6)))
    finally:
        events.stop()


def test_a_reader_who_comes_too_early_is_late_not_useful(bed):
    bed = bed()
    place = bed.store('film')
    bed.start()
    bed.fetch(place, 0)
    request = FetchRequest(place.version, place.partition, PART, PART, 0,
                           5.0)
    bed.cloud.gate.clear()
    bed.made.on_fetch(request, Reader())
    wait(lambda: len(bed.cloud.asked) == 4)
    request = dataclasses.replace(request, offset=2 * PART)
    bed.made.on_fetch(request, Reader())
    bed.cloud.gate.set()
    wait(lambda: bed.local_parts(place) >= {2, 3, 4, 5})
    wait(lambda: bed.made.status()['coming'] == 0)
    assert bed.count('late') == 1 and bed.count('useful') == 0


def test_what_leaves_unread_is_wasted(bed):
    bed = bed()
    place = bed.store('film')
    bed.start()
    bed.fetch(place, 0)
    bed.fetch(place, 1)
    wait(lambda: bed.made.status()['here'] == 4)
    assert not bed.made.keeps(place.version)
    bed.rig.local.drop_capacity(place.version, place.partition)
    assert bed.count('wasted') == 4
    status = bed.made.status()
    assert status['wasted_bytes'] == 4 * PART
    assert status['wasted_dollars'] == pytest.approx(status['dollars'])
    assert status['dollars'] == pytest.approx(
        4 * 0.0004 / 1000 + 4 * PART * 0.09e-9)


def test_a_keeper_lets_what_a_reader_is_on_its_way_to_stay_once(bed):
    """The hook in the duties: what is spoken for is not a candidate."""
    bed = bed(strategy='graph')
    places = [bed.store('o%d' % number, parts=1) for number in range(3)]
    bed.start()
    for place in places:
        bed.fetch(place, 0)
    for place in places:
        bed.rig.local.drop_capacity(place.version, place.partition)
    bed.fetch(places[0], 0)
    wait(lambda: bed.made.status()['here'] == 2)
    bed.rig.local.drop_capacity(places[0].version, places[0].partition)
    # The HDD is too full from here on.
    bed.rig.conf = dataclasses.replace(bed.rig.conf, tier=dataclasses.replace(
        bed.rig.conf.tier, hdd_high_watermark=1e-9, hdd_low_watermark=0.0))
    bed.rig.keeper.round()
    assert [bed.local_parts(place) for place in places] == [set(), {0}, {0}]
    bed.rig.keeper.round()
    assert not any(bed.local_parts(place) for place in places)


def test_a_deleted_object_takes_its_unread_parts_with_it(bed):
    bed = bed()
    place = bed.store('film')
    bed.start()
    bed.fetch(place, 0)
    bed.fetch(place, 1)
    wait(lambda: bed.made.status()['here'] == 4)
    for name in os.listdir(place.hash_dir):
        os.unlink(os.path.join(place.hash_dir, name))
    bed.rig.local.release(place.version, place.partition)
    assert bed.count('wasted') == 4
    assert bed.made.status()['open_bytes'] == 0


@pytest.mark.parametrize('busy, given_up', [(0, 0), (8, 1)])
def test_a_reader_who_needs_the_link_has_the_least_likely_given_up(
        bed, busy, given_up):
    bed = bed(workers=2)
    place = bed.store('film')
    other = bed.store('urgent')
    bed.start()
    bed.fetch(place, 0)
    bed.cloud.gate.clear()
    request = FetchRequest(place.version, place.partition, PART, PART, 0,
                           5.0)
    bed.made.on_fetch(request, Reader())
    wait(lambda: len(bed.cloud.asked) == 2)
    bed.cloud.busy = busy
    bed.made.on_fetch(dataclasses.replace(
        request, version=other.version), Reader())
    bed.cloud.gate.set()
    wait(lambda: bed.made.status()['here'] == 4 - given_up)
    wait(lambda: bed.count('cancelled') == given_up)
    assert len(bed.local_parts(place)) == 5 - given_up


def test_the_budget_bounds_what_is_not_read_yet(bed):
    bed = bed(budget_bytes=2 * PART)
    place = bed.store('film')
    bed.start()
    bed.fetch(place, 0)
    bed.fetch(place, 1)
    wait(lambda: bed.made.status()['here'] == 2)
    assert bed.made.status()['open_bytes'] == 2 * PART
    bed.fetch(place, 4)
    bed.fetch(place, 5)
    assert bed.made.status()['waiting'] == 0
    assert len(bed.cloud.asked) == 2


def test_who_is_never_read_does_not_end_all_prefetching(bed):
    bed = bed(budget_bytes=2 * PART)
    place = bed.store('film')
    other = bed.store('next')
    bed.start()
    bed.fetch(place, 0)
    bed.fetch(place, 1)
    wait(lambda: bed.made.status()['here'] == 2)
    for _ in range(2):                      # the second time, none is kept
        bed.now += 60.0
        bed.made.on_read(other.version, other.partition, 0, 100, False)
    assert bed.count('wasted') == 1
    bed.fetch(other, 3)
    bed.fetch(other, 4)
    wait(lambda: bed.local_parts(other) == {3, 4, 5})


def test_a_day_has_a_limit_of_dollars_unless_it_is_taken_away():
    assert 0 < PrefetchConf().dollars_per_day < 10


def test_a_days_dollars_are_a_limit(bed, caplog):
    bed = bed(dollars_per_day=1e-6)
    place = bed.store('film')
    bed.start()
    bed.fetch(place, 0)
    bed.fetch(place, 1)
    wait(lambda: bed.made.status()['here'] == 4)
    status = bed.made.status()
    assert status['dollars'] == status['dollars_today'] > 1e-6
    assert [record.getMessage() for record in caplog.records
            if 'dollars_per_day' in record.getMessage()] == [
                'prefetch: no more is fetched ahead for 1440 minutes: the '
                'dollars_per_day of 1e-06 are spent']
    for part in range(2, 6):
        bed.read(place, part)
    bed.fetch(place, 6)
    assert len(bed.cloud.asked) == 4
    bed.now += 90000.0
    bed.fetch(place, 7)
    bed.fetch(place, 8)
    wait(lambda: len(bed.cloud.asked) > 4)
    status = bed.made.status()
    assert 0 < status['dollars_today'] < status['dollars']


def test_nothing_is_pushed_out_for_what_may_never_be_read(bed):
    bed = bed(with_hdd=False, ssd=4 * PART)
    place = bed.store('film')
    bed.start()
    bed.fetch(place, 0)
    bed.fetch(place, 1)
    wait(lambda: bed.made.status()['here'] + bed.count('dropped') == 4)
    # What is being stored may count twice, and never not at all; what its
    # reader had brought himself is not asked.
    assert {0, 1} < bed.local_parts(place)
    assert bed.count('dropped') == 6 - len(bed.local_parts(place)) >= 1


def test_a_cloud_that_is_down_costs_nothing_but_the_prefetch(bed):
    bed = bed()
    place = bed.store('film')
    bed.start()
    bed.fetch(place, 0)
    bed.cloud.down = True
    request = FetchRequest(place.version, place.partition, PART, PART, 0,
                           5.0)
    bed.made.on_fetch(request, Reader())
    wait(lambda: bed.count('dropped') == 4)
    assert bed.made.status()['open_bytes'] == 0


def test_a_class_may_forbid_and_may_want_all(bed):
    bed = bed()
    cold = bed.store('cold', class_id=5)
    model = bed.store('model', class_id=9)
    bed.start()
    request = FetchRequest(cold.version, cold.partition, 0, PART, 5, 5.0)
    for part in range(4):
        bed.made.on_fetch(dataclasses.replace(
            request, offset=part * PART), Reader())
    assert bed.cloud.asked == []
    bed.made.on_fetch(dataclasses.replace(
        request, version=model.version, class_id=9), Reader())
    wait(lambda: bed.local_parts(model) == set(range(1, 12)))


def test_history_brings_objects_that_were_read_together(bed):
    bed = bed(strategy='graph')
    places = [bed.store('o%d' % number, parts=1) for number in range(5)]
    bed.start()
    for place in places:
        bed.fetch(place, 0)
    for place in places:
        bed.rig.local.drop_capacity(place.version, place.partition)
    assert all(bed.local_parts(place) == set() for place in places)
    bed.fetch(places[0], 0)
    wait(lambda: all(bed.local_parts(place) == {0} for place in places))


@pytest.mark.parametrize('reads_local', [False, True])
def test_what_two_clients_of_an_account_read_is_not_mixed_up(
        bed, reads_local):
    bed = bed(strategy='graph')
    mine = [bed.store('a%d' % number, parts=1) for number in range(3)]
    other = [bed.store('b%d' % number, parts=1) for number in range(3)]
    bed.start()
    for pair in zip(mine, other):
        for client, place in zip(('me', 'you'), pair):
            bed.fetch(place, 0, client=client)
            if reads_local:
                bed.read(place, 0, client=client)
    for place in mine + other:
        bed.rig.local.drop_capacity(place.version, place.partition)
    bed.fetch(mine[0], 0, client='me')
    wait(lambda: all(bed.local_parts(place) == {0} for place in mine))
    assert {version for version, _, _ in bed.cloud.asked} == {
        place.version for place in mine[1:]}


def test_history_outlives_a_restart(bed):
    bed = bed(strategy='combined')
    places = [bed.store('o%d' % number, parts=1) for number in range(3)]
    bed.start()
    for place in places:
        bed.fetch(place, 0)
    bed.made.stop()
    for place in places:
        bed.rig.local.drop_capacity(place.version, place.partition)
    bed.start()
    bed.fetch(places[0], 0)
    wait(lambda: all(bed.local_parts(place) == {0} for place in places))


def test_a_damaged_history_is_begun_anew(bed):
    bed = bed(strategy='graph')
    os.makedirs(bed.rig.conf.run_dir, exist_ok=True)
    path = os.path.join(bed.rig.conf.run_dir, 'prefetch.json')
    with open(path, 'w') as out:
        out.write('{"version": 1, "nodes": [[1]]}')
    place = bed.store('film')
    bed.start()
    bed.fetch(place, 0)
    assert bed.made.status()['strategy_nodes'] == 1


def test_what_is_on_the_hdd_is_brought_to_the_ssd(bed):
    bed = bed(strategy='graph')
    places = [bed.store('o%d' % number, parts=1, remote=False, hdd=True)
              for number in range(3)]
    bed.start()
    for place in places:
        bed.read(place, 0)
    # It knows who is read after whom, and not what is here.
    bed.made.stop()
    bed.start()
    bed.made.on_read(places[0].version, places[0].partition, 0, PART, False)
    wait(lambda: len(bed.wished) == 2)
    assert {wish.version for wish in bed.wished} == {
        places[1].version, places[2].version}
    assert bed.cloud.asked == []


def test_the_segments_of_a_large_object_are_a_stream(bed):
    bed = bed()
    segments = [bed.store('seg%d' % number, parts=1) for number in range(8)]
    for number, place in enumerate(segments):
        rename(bed, place, '/a/c/seg%d' % number)
    manifest = json.dumps([{
        'name': '/c/seg%d' % number, 'bytes': PART, 'hash': 'x'}
        for number in range(8)]).encode()
    place = bed.rig.put('whole', manifest)
    mark(place, 'X-Static-Large-Object', 'True')
    made = bed.start()
    made.on_reads(place.version, place.partition, [Event(
        EventKind.READ, place.version, place.partition, len(manifest), '',
        0, len(manifest), int(Tier.SSD), manifest=True)])
    wait(lambda: bed.rig.metrics.snapshot().get('tier.prefetch.manifests'))
    bed.fetch(segments[0], 0)
    wait(lambda: all(bed.local_parts(segment) == {0}
                     for segment in segments[:5]))
    assert bed.local_parts(segments[5]) == set()


def test_a_manifest_that_is_on_its_way_from_s3_is_read_once_it_is_here(
        bed, monkeypatch):
    """The read is told of when it ends; the bytes are kept after that."""
    bed = bed(strategy='seq')
    # No segment need be here.
    manifest = b'[{"name": "/c/seg0", "bytes": 9, "hash": "x"}]'
    place = bed.store('whole', body=manifest)
    mark(place, 'X-Static-Large-Object', 'True')
    made = bed.start()
    opened = []
    real = bed.rig.local.open
    monkeypatch.setattr(bed.rig.local, 'open', lambda *asked: (
        opened.append(asked), real(*asked))[1])
    made.on_reads(place.version, place.partition, [Event(
        EventKind.READ, place.version, place.partition, len(manifest), '',
        0, len(manifest), int(Tier.REMOTE), manifest=True)])
    wait(lambda: opened)
    bed.ask(place, 0, len(manifest))
    wait(lambda: bed.rig.metrics.snapshot().get('tier.prefetch.manifests'))
    assert len(opened) > 1


def test_a_manifest_that_stays_in_s3_is_given_up(bed, monkeypatch):
    monkeypatch.setattr(manifests, '_LATER_SECONDS', (0.01, 0.01))
    bed = bed(strategy='seq')
    place = bed.store('whole', body=b'[]')
    mark(place, 'X-Static-Large-Object', 'True')
    made = bed.start()
    made.on_reads(place.version, place.partition, [Event(
        EventKind.READ, place.version, place.partition, 2, '',
        0, 2, int(Tier.REMOTE), manifest=True)])
    wait(lambda: bed.rig.metrics.snapshot().get(
        'tier.prefetch.manifest_errors') == 1)


class ContainerServer(BaseHTTPRequestHandler):
    """Answers listings as Swift's does."""

    asked = []
    answer = 200, b'[]'

    def do_GET(self):
        self.asked.append(self.path)
        self.send_response(self.answer[0])
        self.end_headers()
        self.wfile.write(self.answer[1])

    def log_message(self, *_):
        pass


@pytest.fixture
def containers(tmp_path, monkeypatch):
    """A container server and the ring that leads to it."""
    for name in ('HASH_PATH_SUFFIX', 'HASH_PATH_PREFIX'):
        monkeypatch.setattr(config, name, getattr(config, name))
    monkeypatch.setattr(config, 'SWIFT_CONF_FILE', config.SWIFT_CONF_FILE)
    (tmp_path / 'swift.conf').write_text(
        '[swift-hash]\nswift_hash_path_suffix = x\n')
    server = HTTPServer(('127.0.0.1', 0), ContainerServer)
    ContainerServer.asked = []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    builder = RingBuilder(2, 1, 0)
    builder.add_dev({'region': 1, 'zone': 1, 'weight': 1, 'device': 'sdc',
                     'ip': '127.0.0.1', 'port': server.server_port})
    builder.rebalance(seed=1)
    builder.get_ring().save(str(tmp_path / 'container.ring.gz'))
    yield ContainerServer
    server.shutdown()
    thread.join()
    server.server_close()


def test_what_a_dynamic_large_object_lists_is_a_stream(bed, containers):
    bed = bed()
    segments = [bed.store('seg%d' % number, parts=1) for number in range(8)]
    for number, place in enumerate(segments):
        rename(bed, place, '/a/s/x/%d' % number)
    containers.answer = 200, json.dumps(
        [{'subdir': 'x/'}] + [{'name': 'x/%d' % number, 'bytes': PART}
                              for number in range(8)]).encode()
    place = bed.rig.put('whole', b'')
    mark(place, 'X-Object-Manifest', 's/x%2F')
    made = bed.start()
    made.on_reads(place.version, place.partition, [Event(
        EventKind.READ, place.version, place.partition, 0, manifest=True)])
    wait(lambda: bed.rig.metrics.snapshot().get('tier.prefetch.manifests'))
    assert len(containers.asked) == 1
    assert re.match(r'/sdc/[0-3]/a/s[?].*prefix=x%2F', containers.asked[0])
    bed.fetch(segments[0], 0)
    wait(lambda: all(bed.local_parts(segment) == {0}
                     for segment in segments[:5]))


def test_without_a_ring_there_is_no_listing(tmp_path):
    with pytest.raises(TierUnavailable):
        Listings(str(tmp_path)).page('a', 's', 'x')


@pytest.mark.parametrize('answer', [
    (503, b''), (200, b'{'), (200, b'[{"name": "o"}]'), (404, b'[]')])
def test_a_listing_that_fails_is_no_listing(tmp_path, containers, answer):
    containers.answer = answer
    with pytest.raises(TierUnavailable) as caught:
        Listings(str(tmp_path)).page('a', 's', 'x')
    assert 'a/s' in str(caught.value) and 'sdc' in str(caught.value)


def rename(bed, place, path):
    """Give an object the hash that its name has in Swift."""
    expected = hashlib.md5((path + 'end').encode()).hexdigest()
    version = dataclasses.replace(place.version, object_hash=expected)
    row = bed.rig.index.get(place.version)
    folder = os.path.join(os.path.dirname(os.path.dirname(place.hash_dir)),
                          expected[-3:])
    os.makedirs(folder, exist_ok=True)
    os.rename(place.hash_dir, os.path.join(folder, expected))
    bed.rig.index.remove(place.version)
    bed.cloud.bodies[version] = bed.cloud.bodies[place.version]
    object.__setattr__(place, 'version', version)
    bed.rig.local.mover.track(version, row.partition)


def mark(place, name, value):
    """Metadata as Swift's SLO middleware leaves it."""
    path = place.data_file()
    metadata = dict(read_metadata(path))
    metadata[name] = value
    with open(path, 'r+b') as target:
        write_metadata(target, metadata)


def test_objects_of_other_accounts_are_not_found(bed):
    bed = bed()
    place = bed.store('mine')
    objects = Objects(bed.rig.index, bed.rig.conf.swift_dir)
    digest = place.version.object_hash
    assert objects.newest('a', digest).version == place.version
    assert objects.newest('b', digest) is None


@pytest.mark.parametrize('raw', [
    b'', b'{', b'{"a": 1}', b'[{"name": "/c/o"}]',
    b'[{"name": "/c/o", "bytes": -1}]', b'[{"name": 5, "bytes": 1}]',
    b'[{"name": "o", "bytes": 1}]', b'\xff'])
def test_a_manifest_that_is_none_is_refused(bed, raw):
    objects = Objects(bed(strategy='none').rig.index, '/')
    with pytest.raises(DamagedRecord):
        objects.members('a', raw)


def test_a_strategy_that_fails_harms_no_reader(bed, monkeypatch):
    bed = bed()
    place = bed.store('film')
    bed.start()

    def fail(*_):
        raise RuntimeError('a bug')
    monkeypatch.setattr(Amp, 'on_request', fail)
    bed.fetch(place, 0)
    assert bed.rig.metrics.snapshot()['tier.prefetch.errors'] == 1


def test_a_gateway_that_fails_ends_no_worker(bed):
    bed = bed(workers=1)
    place = bed.store('film')
    bed.start()
    bed.fetch(place, 0)
    bodies, bed.cloud.bodies = bed.cloud.bodies, None
    request = FetchRequest(place.version, place.partition, PART, PART, 0,
                           5.0)
    bed.made.on_fetch(request, Reader())
    wait(lambda: bed.count('dropped') == 4)
    bed.cloud.bodies = bodies
    bed.fetch(place, 6)
    bed.fetch(place, 7)
    wait(lambda: bed.local_parts(place) >= {8, 9})


# -- what the link has spare --------------------------------------------------


class Clock:
    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


def test_readers_are_taken_off_what_the_link_carries():
    clock = Clock()
    spare = Spare(0.0, SimpleNamespace(rate=lambda: 1000.0), clock)
    assert spare.rate() == 1000.0
    spare.demanded(1200)                      # 600 a second
    assert spare.rate() == pytest.approx(400.0)
    spare.demanded(12000)
    assert spare.rate() == pytest.approx(1000.0 * LEAST_SHARE)
    clock.now += 2.0
    assert spare.rate() == 1000.0


def test_a_limit_is_kept_over_time():
    clock = Clock()
    spare = Spare(1000.0, None, clock)
    began, taken = clock.now, 0
    for _ in range(50):
        clock.now += spare.wait_seconds(500)
        taken += 500
    assert taken <= 1000.0 * (clock.now - began + 1.0) + 500
    assert taken >= 1000.0 * (clock.now - began)


def test_an_unknown_link_is_not_held_back():
    assert Spare(0.0, None, Clock()).wait_seconds(1 << 40) == 0.0


def test_fates_are_all_shown(bed):
    bed = bed()
    bed.start()
    status = bed.made.status()
    assert all('%s_%s' % (fate.value, unit) in status for fate in Fate
               for unit in ('pieces', 'bytes', 'dollars'))


def test_unavailable_is_not_our_callers_trouble(bed, monkeypatch):
    bed = bed()
    place = bed.store('film')
    made = bed.start()

    def away(*_):
        raise RemoteUnavailable('no', 1)
    monkeypatch.setattr(Objects, 'known', away)
    bed.fetch(place, 0)
    made.on_left(place.version, None)
