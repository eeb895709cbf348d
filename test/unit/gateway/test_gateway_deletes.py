"""A shared key goes when all primaries have something newer, not before."""

from __future__ import annotations

import logging
from email.utils import formatdate

import pytest
from botocore.exceptions import ClientError
from support.clocks import WallOf
from support.edges.memory_s3 import MemoryS3

from swift_dss.core.classes import ClassTable
from swift_dss.gateway.link.retry import Backoff
from swift_dss.gateway.ports import Upload
from swift_dss.gateway.parts import Outside
from swift_dss.gateway.service import Gateway
from swift_dss.io.workers import World, inline
from swift_dss.strategy.agreement import Answer

from types import SimpleNamespace

from support.nodes.gateway_node import (
    CountingMetrics, FixedRanks, FolderVersions, OnlyHere, conf_for)

SECRET = SimpleNamespace(url='https://s3', access_key='a', secret_key='s')
OLD, NEW = '1700000000.00000', '1700000100.00000'
DAY = 86400.0


class Silent(OnlyHere):
    """Primaries of which some do not answer."""

    def __init__(self, *local):
        super().__init__(*local)
        self.away = set()
        self.asked = 0

    def ask(self, wanted, records=False):
        self.asked += 1
        return [[None if at in self.away else answer
                 for at, answer in enumerate(answers)]
                for answers in super().ask(wanted, records)]


class Cluster:
    """Nodes with one replica each, a gateway each, and one bucket."""

    def __init__(self, root, nodes=3, **conf):
        self.now = float(NEW) + 10
        self.s3 = MemoryS3()
        self.disks = [FolderVersions(str(root / str(n)))
                      for n in range(nodes)]
        self.primaries = Silent(*self.disks)
        self.conf = dict({'delete_delay_seconds': 100.0,
                          'take_over_seconds': 1000.0}, **conf)
        self.gateways = []
        for number in range(nodes):
            self.gateways.append(self.gateway(root, number))

    def gateway(self, root, number, ranks=None, primaries=None):
        return Gateway(
            conf_for(SECRET, str(root / str(number)), **self.conf),
            ClassTable, self.disks[number], logging.getLogger('deletes'),
            CountingMetrics(),
            outside=Outside(
                ranks=ranks or FixedRanks({'sda': number}),
                primaries=primaries or self.primaries,
                retry=Backoff(10.0, 10.0), connect=self.s3.connect,
                world=World(WallOf(self), inline)))

    def put(self, name, **options):
        """On all nodes, and in S3."""
        version = [disk.put(name, b'body', OLD, **options)
                   for disk in self.disks][0]
        for gateway in self.gateways:
            gateway.enqueue_uploads([Upload(version, '7', True)])
        self.run(0)
        assert any(version.key in key for key in self.s3.keys)
        for disk in self.disks:
            disk.drop_local(version)
        return version

    def delete(self, version, nodes, timestamp=NEW):
        for number in nodes:
            self.disks[number].tombstone(version, timestamp)
            self.gateways[number].enqueue_deletes([(version, '7')])

    def run(self, seconds, step=10.0):
        until = self.now + seconds
        while True:
            for gateway in self.gateways:
                # Parts of a look follow one another.
                gateway.look()
                gateway.look()
            if self.now >= until:
                return
            self.now += step

    def has(self, version):
        return any(version.key in key for key in self.s3.keys)

    def deletes(self):
        return [gateway.status()['deletes'] for gateway in self.gateways]

    def stop(self):
        for gateway in self.gateways:
            gateway.stop()


@pytest.fixture
def trio(tmp_path):
    made = Cluster(tmp_path)
    yield made
    made.stop()


def test_a_delete_that_one_primary_has_keeps_the_key(trio):
    version = trio.put('o')
    trio.delete(version, [0])
    trio.run(5000)
    assert trio.has(version), 'the stubs of two nodes need it'
    assert trio.deletes() == [1, 0, 0]
    assert trio.gateways[0].status()['deletes_held'] == 1
    # Replication brings the tombstone.
    trio.delete(version, [1, 2])
    trio.run(200)
    assert not trio.has(version)


def test_an_overwrite_that_one_primary_missed_keeps_the_key(trio):
    version = trio.put('o')
    for number in (0, 1):
        trio.disks[number].put('o', b'newer', NEW)
        trio.disks[number].unlink(version)
        trio.gateways[number].enqueue_deletes([(version, '7')])
    trio.run(5000)
    assert trio.has(version)
    trio.disks[2].put('o', b'newer', NEW)
    trio.disks[2].unlink(version)
    trio.run(100)
    assert not trio.has(version)


def test_the_first_primary_deletes_and_the_others_find_it_gone(trio):
    version = trio.put('o')
    trio.delete(version, [0, 1, 2])
    del trio.s3.asked[:]
    trio.run(150)
    assert not trio.has(version)
    assert trio.deletes() == [0, 1, 1]
    trio.run(2200)
    assert trio.deletes() == [0, 0, 0]
    assert [request[0] for request in trio.s3.asked].count('DELETE') == 3
    assert [request[0] for request in trio.s3.asked].count('HEAD') == 3


def test_another_primary_takes_over(trio):
    version = trio.put('o')
    trio.delete(version, [1, 2])
    trio.disks[0].tombstone(version, NEW)  # and its daemon is dead
    trio.run(1000)
    assert trio.has(version)
    trio.run(200)
    assert not trio.has(version)


def test_one_that_is_silent_holds_the_key_for_reclaim_age(trio):
    version = trio.put('o')
    trio.delete(version, [0, 1, 2])
    trio.primaries.away = {2}
    trio.run(6 * DAY, 3600.0)
    assert trio.has(version)
    trio.run(2 * DAY, 3600.0)
    assert not trio.has(version)


def test_one_that_says_it_has_the_version_holds_the_key_for_ever(trio):
    version = trio.put('o')
    trio.delete(version, [0, 1])
    trio.run(30 * DAY, 3600.0)
    assert trio.has(version)


def test_a_primary_with_nothing_at_all_agrees_to_nothing(trio):
    version = trio.put('o')
    trio.delete(version, [0, 1])
    trio.disks[2].unlink(version)  # a new drive: replication will come
    trio.run(5000)
    assert trio.has(version)


def test_a_row_outlives_the_tombstones(trio):
    version = trio.put('o')
    trio.delete(version, [0])
    for number in (1, 2):
        trio.disks[number].unlink(version)
    trio.disks[0].reclaim(version, NEW)
    trio.run(6 * DAY, 3600.0)
    assert trio.has(version)
    trio.run(2 * DAY, 3600.0)
    assert not trio.has(version)


def test_rows_survive_a_restart_and_are_asked_about_together(
        trio, tmp_path):
    versions = [trio.put('o%d' % n) for n in range(20)]
    for version in versions:
        trio.delete(version, [0])
    trio.run(200)
    trio.gateways[0].stop()
    trio.gateways[0] = trio.gateway(tmp_path, 0)
    for version in versions:
        for number in (1, 2):
            trio.disks[number].tombstone(version, NEW)
    trio.primaries.asked = 0
    trio.run(100)
    assert not any(map(trio.has, versions))
    assert trio.primaries.asked < 10


def test_a_false_order_is_refused(trio):
    version = trio.put('o')
    trio.gateways[0].enqueue_deletes([(version, '7')])
    trio.run(5000)
    assert trio.has(version)
    assert trio.deletes() == [0, 0, 0]


@pytest.mark.parametrize('says', ['done', 'no'])
def test_a_delete_is_forgotten_when_s3_has_done_it(trio, says):
    """It may acknowledge and do nothing, or refuse."""
    version = trio.put('o')
    remove = trio.s3.delete_object

    def refuse(**_):
        if says == 'no':
            raise ClientError({
                'Error': {'Code': 'AccessDenied'},
                'ResponseMetadata': {'HTTPStatusCode': 403}}, 'delete')
        return {}

    trio.s3.delete_object = refuse
    trio.delete(version, [0, 1, 2])
    trio.run(400)
    assert trio.has(version) and trio.deletes()[0] == 1
    trio.s3.delete_object = remove
    trio.run(3000)
    assert not trio.has(version) and trio.deletes() == [0, 0, 0]


def test_a_queue_of_before_is_read(tmp_path):
    import sqlite3

    from swift_dss.gateway.queue import Queue
    path = str(tmp_path / 'gateway.db')
    db = sqlite3.connect(path)
    db.executescript('''
        CREATE TABLE deletes (
            s3_key TEXT NOT NULL PRIMARY KEY, device TEXT NOT NULL,
            policy INTEGER NOT NULL, hash TEXT NOT NULL,
            timestamp TEXT NOT NULL, frag INTEGER, partition TEXT NOT NULL,
            first_seen REAL NOT NULL, not_before REAL NOT NULL,
            attempts INTEGER NOT NULL, error TEXT NOT NULL) WITHOUT ROWID;
        CREATE INDEX deletes_due ON deletes (not_before, timestamp);
        INSERT INTO deletes VALUES ('p/k', 'sda', 0, 'abc', '1', NULL, '7',
                                    0, 0, 3, 'broken');''')
    db.commit()
    db.close()
    queue = Queue(path)
    assert queue.due_deletes(1.0, 9, agreed=True) == []
    assert [job.s3_key for job in queue.due_deletes(1.0, 9, agreed=False)] \
        == ['p/k']
    queue.close()


def test_what_was_said_decides():
    from swift_dss.strategy.agreement import Verdict, of_key
    newer, same, none = Answer(NEW), Answer(OLD), Answer('')
    older = Answer('1600000000.00000')
    week = 604800.0
    soon, late = float(NEW) + 1, float(NEW) + week + 1
    for answers, at, verdict in (
            ([newer] * 3, soon, Verdict.DEAD),
            ([newer, newer, same], late, Verdict.NEEDED),
            ([newer, newer, None], soon, Verdict.OPEN),
            ([newer, newer, none], soon, Verdict.OPEN),
            ([newer, newer, older], soon, Verdict.OPEN),
            ([newer, None, none], late, Verdict.DEAD),
            ([none] * 3, late, Verdict.OPEN),
            ([None] * 3, late, Verdict.OPEN),
            ([], late, Verdict.OPEN),
            # Swift's internal form with an offset is newer.
            ([Answer(OLD + '_0000000000000001')] * 3, soon, Verdict.DEAD)):
        assert of_key(OLD, answers, at, week) is verdict, (answers, at)
    assert of_key(OLD, [none], late, week, float(NEW)) is Verdict.DEAD
    assert of_key(OLD, [same], late, week, float(NEW)) is Verdict.NEEDED
    assert of_key(OLD, [none], soon, week, float(NEW)) is Verdict.OPEN


class Dated(MemoryS3):
    """S3 whose answers say the time."""

    def __init__(self, now):
        super().__init__()
        self._now = now

    def head_object(self, **arguments):
        return dict(super().head_object(**arguments), ResponseMetadata={
            'HTTPHeaders': {'date': formatdate(self._now(), usegmt=True)}})


@pytest.fixture
def dated(tmp_path):
    """Three nodes, one time, and an S3 that is asked now and then."""
    made = Cluster(tmp_path)
    made.stop()
    made.right = made.now
    made.s3 = Dated(lambda: made.right)
    made.gateways = [made.gateway(tmp_path, number) for number in range(3)]
    yield made
    made.stop()


def test_a_delete_that_was_noted_in_1970_is_not_agreed_to_by_age(trio):
    version = trio.put('o')
    right, trio.now = trio.now, 100.0
    trio.primaries.away = {1, 2}
    trio.disks[0].tombstone(version, NEW)
    trio.gateways[0].enqueue_deletes([(version, '7')])
    trio.now = right
    trio.run(300)
    assert trio.has(version)


@pytest.mark.parametrize('number', (0, 1))
def test_one_look_by_a_clock_that_is_ahead_deletes_nothing(
        dated, tmp_path, number):
    version = dated.put('o')
    dated.primaries.away = {1, 2}
    dated.disks[0].tombstone(version, NEW)
    dated.gateways[0].enqueue_deletes([(version, '7')])
    dated.now += 150
    right, dated.now = dated.now, dated.now + 30 * DAY
    if number:
        # After a boot S3 has not said the time yet.
        dated.gateways[0].stop()
        dated.gateways[0] = dated.gateway(tmp_path, 0)
    dated.gateways[0].parts.uploads.agreement.look()
    dated.now = right
    dated.primaries.away = set()
    dated.run(300)
    assert dated.has(version)


def test_silence_that_s3_has_seen_the_age_of_still_counts(dated):
    version = dated.put('o')
    dated.primaries.away = {1, 2}
    dated.disks[0].tombstone(version, NEW)
    dated.gateways[0].enqueue_deletes([(version, '7')])
    dated.now += 8 * DAY
    dated.gateways[0].parts.uploads.agreement.look()
    assert dated.has(version)
    dated.right = dated.now
    dated.gateways[0].parts.client.head(
        next(key for key in dated.s3.keys if version.key in key))
    dated.run(300)
    assert not dated.has(version)
