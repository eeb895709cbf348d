"""The bugs that every cloud gateway has had: one test each, named after it.

Each names the products in whose trackers it was found.
"""

from __future__ import annotations

import threading

import pytest
from fault.test_gateway_faults import Rig
from support import pattern, wait_until
from support.nodes.gateway_node import Collector

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.pressure import Backlog
from swift_dss.core.residency import Tier
from swift_dss.core.spans import ClassMap
from swift_dss.strategy import admission
from swift_dss.wire.control import FetchRequest

KIB, MIB = 1024, 1024 * 1024


@pytest.fixture
def rig(faulty, tmp_path):
    made = Rig(faulty, tmp_path, read_timeout_seconds=10.0)
    yield made
    faulty.disarm()
    made.gateway.stop()


def up(rig, name, size=3000, timestamp='1700000000.00000'):
    """A version that is in S3."""
    body = pattern(size, name)
    version = rig.local.put(name, body, timestamp)
    rig.gateway.enqueue_upload(version, '7')
    rig.settle()
    return version, body


def test_the_only_copy_goes_before_the_object_is_remote(rig, faulty, real):
    """SeaweedFS 10411, 11139; JuiceFS 6161; rclone 4293, 2382; Alluxio
    10206, 14807; MinIO 12392, 14278."""
    armed = faulty.arm('swallow', lambda r: r.method == 'PUT')
    body = pattern(3000, 'first')
    lied = rig.local.put('first', body)
    with pytest.raises(ValueError):
        rig.local.drop_local(lied)
    rig.gateway.enqueue_upload(lied, '7')
    wait_until(lambda: armed.fired, 30)
    # A later upload succeeds and finishes nothing but itself.
    later = rig.local.put('later', b'x' * 100, '1700000001.00000')
    rig.gateway.enqueue_upload(later, '7')
    rig.settle()
    for version, data in ((lied, body), (later, b'x' * 100)):
        assert real.body(rig.local.residency(version).remote.key) == data
    rig.local.drop_local(lied)
    assert rig.fetch(lied)[1].data == body


def test_the_cache_outgrows_its_limit_in_a_large_upload():
    """rclone 7128, 4498; JuiceFS 4779: it is refused before its body."""
    table = ClassTable.of([ClassSpec(0, 'low', 0), ClassSpec(9, 'top', 9)])
    backlog = Backlog(90 * MIB, 100 * MIB, 20 * MIB, 200 * MIB, 1e6, True,
                      0.0, 1.0, 0.0)
    for class_id in (0, 9):
        for size in range(0, 400 * MIB, 7 * MIB):
            verdict = admission.decide(backlog, table, [class_id], size)
            taken = verdict.answer in (admission.Answer.ACCEPT,
                                       admission.Answer.THROTTLE)
            assert not taken or backlog.pending_bytes + size <= 120 * MIB
            assert taken or verdict.seconds >= 1 or \
                verdict.answer is admission.Answer.FULL
    assert admission.decide(backlog, table, [0], 500 * MIB).answer is \
        admission.Answer.FULL


def test_a_start_reads_the_whole_cache(faulty, tmp_path, monkeypatch):
    """rclone 5348: more than 20 minutes with 363,000 files."""
    rig = Rig(faulty, tmp_path, remote_after_seconds=1e9)
    versions = [rig.local.put('f%d' % number, b'x', '17000%05d.00000' % number)
                for number in range(200)]
    rig.gateway.enqueue_uploads([])
    for version in versions:
        rig.gateway.enqueue_upload(version, '7')
    rig.gateway.stop()
    looked = []
    for verb in ('describe', 'open', 'newest'):
        monkeypatch.setattr(
            'support.nodes.gateway_node.FolderVersions.' + verb,
            lambda self, version, partition: looked.append(version))
    again = Rig(faulty, tmp_path, remote_after_seconds=1e9)
    try:
        assert again.gateway.status()['uploads'] == 200
        wait_until(lambda: again.gateway.parts.jobs.due.is_awaited(), 30,
                   'it has looked for work')
        assert looked == []
    finally:
        again.gateway.stop()


def test_an_older_version_overwrites_a_newer_one(rig, real):
    """Mountpoint 831, Ceph 69748."""
    newer, body = up(rig, 'o', timestamp='1700000009.00000')
    older = rig.local.put('o', pattern(3000, 'older'), '1700000001.00000')
    rig.gateway.enqueue_upload(older, '7')
    rig.settle()
    rig.local.drop_local(newer)
    assert rig.fetch(newer)[1].data == body
    assert not [key for key in real.list_keys()
                if key.endswith(older.key)], 'it is nobody\'s any more'


def test_what_was_missing_stays_missing(rig, faulty):
    """Negative entries: an error is an answer to one reader only."""
    version, body = up(rig, 'absent')
    rig.local.drop_local(version)
    armed = faulty.arm('gone', lambda r: r.method == 'GET')
    rig.fetch(version, deadline=0.05)
    wait_until(lambda: armed.fired, 10)
    wait_until(lambda: rig.fetch(version)[1].data == body, 30)


def test_the_local_copy_is_lost_and_a_get_fails(rig):
    """SeaweedFS 5747: S3 has it."""
    version, body = up(rig, 'lost')
    rig.local.lose(version)
    whole, sink = rig.fetch(version)
    assert whole and sink.data == body


def test_delete_and_create_are_reordered_at_the_far_end(
        rig, faulty, real):
    """Alluxio 14476: created again while its delete is still tried."""
    old, _ = up(rig, 'again')
    armed = faulty.arm('503', lambda r: r.method == 'DELETE', times=3)
    new = rig.local.put('again', pattern(4000, 'new'), '1700000002.00000')
    rig.local.unlink(old)
    rig.gateway.enqueue_deletes([(old, '7')])
    rig.gateway.enqueue_upload(new, '7')
    wait_until(lambda: armed.fired == 3, 60)
    rig.settle()
    mine = [key for key in real.list_keys() if new.object_hash in key]
    assert len(mine) == 1 and mine[0].endswith(new.timestamp)
    assert real.body(mine[0]) == pattern(4000, 'new')


def test_a_herd_of_readers_asks_as_often_as_there_are_readers(rig, faulty):
    """One asks, a waiter may leave, a failure is not kept."""
    version, body = up(rig, 'herd', 5 * MIB + 100)
    rig.local.drop_local(version)
    rig.local.room = False
    since = len(faulty.requests)
    answers, gate = [], threading.Barrier(13)

    def read(leaves):
        class Reader(Collector):
            def write(self, data):
                if leaves:
                    raise BrokenPipeError('left')
                super().write(data)
        sink = Reader()
        gate.wait(30)
        try:
            rig.gateway.fetch(FetchRequest(
                version, '7', 0, len(body), 0, 10.0, True), sink)
            answers.append(sink.data == body)
        except OSError:
            answers.append(None)

    threads = [threading.Thread(target=read, args=(number == 0,))
               for number in range(12)]
    for thread in threads:
        thread.start()
    gate.wait(30)
    for thread in threads:
        thread.join(60)
    assert answers.count(True) == 11 and answers.count(None) == 1
    ranges = [r.head.split(b'ange: ')[1].split(b'\r\n')[0]
              for r in faulty.requests[since:]
              if r.method == 'GET' and b'ange: bytes' in r.head]
    assert len(ranges) <= 2 * len(set(ranges)), ranges


def test_each_small_object_costs_a_request(faulty, tmp_path):
    """HotCloud 2018: one PUT of 4 KiB costs 57 months of its storage."""
    table = ClassTable.of([ClassSpec(0, 'small', 0, bundle=True)])
    rig = Rig(faulty, tmp_path, table=table, bundle_age_seconds=0.5,
              read_timeout_seconds=10.0)
    try:
        bodies = {number: pattern(4096, str(number)) for number in range(50)}
        versions = {number: rig.local.put(
            's%d' % number, body, class_map=ClassMap.uniform(0))
            for number, body in bodies.items()}
        for version in versions.values():
            rig.gateway.enqueue_upload(version, '7')
        rig.settle()
        puts = sum(r.method == 'PUT' for r in faulty.requests)
        assert puts <= 10, puts
        for number, version in versions.items():
            assert rig.local.residency(version).tiers & Tier.REMOTE
            rig.local.drop_local(version)
            assert rig.fetch(version)[1].data == bodies[number]
        print('figure: 50 small objects, %d PUTs' % puts)
    finally:
        rig.gateway.stop()
