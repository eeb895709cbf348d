"""What S3 has lost or spoilt is put right, and nothing else is touched."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
from fault.test_gateway_faults import Rig
from support import md5, pattern, wait_until
from support.edges.faulty_s3 import FaultyS3
from support.edges.s3_servers import BUCKET

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.errors import RemoteCorrupt, RemoteUnavailable
from swift_dss.core.residency import Tier
from swift_dss.core.spans import ClassMap
from swift_dss.gateway.mend.repair import Repaired
from swift_dss.io import steps
from swift_dss.wire.layout import remote_key

MIB = 1024 * 1024
TABLE = ClassTable.of([ClassSpec(0, 'plain', 0),
                       ClassSpec(1, 'small', 1, bundle=True)])
#: Bytes and class, the second that of bundles: one alone would be none.
KINDS = {'one': (50000, 0), 'parts': (5 * MIB + 999, 0), 'tiny': (2000, 1),
         'mini': (3000, 1)}
MORE = dict(KINDS, two=(60000, 0))
#: A bundle that loses members is not written anew: nothing but a repair
#: sends, whenever a daemon has the time for it.
ONLY_REPAIRS = {'bundle_dead_share': 2.0}
STEPS = ('repair.taken_out', 'repair.forgotten', 'upload.begun',
         'upload.completed', 'repair.sent', 'repair.pointed')


class Edge:
    """A node whose versions are in S3 and here, on two devices."""

    def __init__(self, real, root, kinds=None, **options):
        self.kinds = kinds or KINDS
        self._options = dict({'bundle_age_seconds': 0.2,
                              'read_timeout_seconds': 10.0}, **options)
        self.real = real
        self.faulty = FaultyS3(real)
        self._root = root
        self.begin()
        self.bodies = {name: pattern(size, name)
                       for name, (size, _) in self.kinds.items()}
        self.copies = {}
        for name, body in self.bodies.items():
            mapped = ClassMap.uniform(self.kinds[name][1])
            self.copies[name] = [self.rig.local.put(
                name, body, device=device, class_map=mapped)
                for device in ('sda', 'sdb')]
            for version in self.copies[name]:
                self.rig.gateway.enqueue_upload(version, '7')
        self.rig.settle()
        wait_until(lambda: all(
            self.remote(name, number) for name in self.kinds
            for number in (0, 1)), 30, 'both records name the copy')

    def begin(self):
        """The daemon starts, with what the last one left."""
        self.rig = Rig(self.faulty, self._root, table=TABLE,
                       **self._options)

    def remote(self, name, number=0):
        return self.rig.local.residency(self.copies[name][number]).remote

    def lose(self, name):
        """The key goes, as no rule of ours would have it."""
        self.real.client().delete_object(
            Bucket=BUCKET, Key=self.remote(name).key)

    def rot(self, name):
        """A bit flips in the bucket, where no digest is told of it."""
        remote = self.remote(name)
        path = os.path.join(self.real.root, 'data', BUCKET, remote.key)
        with open(path, 'r+b') as target:
            target.seek(remote.offset + 1000)
            byte = target.read(1)
            target.seek(remote.offset + 1000)
            target.write(bytes((byte[0] ^ 4,)))

    def repair(self, name):
        return self.rig.gateway.repair(
            [(version, '7') for version in self.copies[name]])

    def wrong_in_s3(self, name):
        """What the records of both devices name, by the bucket itself."""
        devices = []
        for number, version in enumerate(self.copies[name]):
            remote = self.remote(name, number)
            body = self.bodies[name]
            try:
                data = self.real.body(remote.key)[
                    remote.offset:remote.offset + len(body)]
            except self.real.client().exceptions.NoSuchKey:
                data = b''
            if data != body:
                devices.append(version.device)
        return devices

    def is_safe(self, name):
        """No device has lost a byte of its own."""
        for version in self.copies[name]:
            residency = self.rig.local.residency(version)
            with self.rig.local.open(version, '7') as reader:
                data = reader.read(0, residency.content_length)
            assert data == self.bodies[name]
        return True

    def delete(self, name):
        for version in self.copies[name]:
            self.rig.local.tombstone(version, '1800000000.00000')
            self.rig.gateway.enqueue_deletes([(version, '7')])
        self.rig.settle()

    def close(self):
        self.rig.gateway.stop()
        self.faulty.stop()


@pytest.fixture
def make_edge(real, tmp_path):
    made = []

    def make(kinds=None, **options):
        made.append(Edge(real, tmp_path, kinds, **options))
        return made[-1]
    yield make
    for edge in made:
        edge.close()


@pytest.fixture
def edge(make_edge):
    return make_edge()


def own_key(edge, name):
    return remote_key(edge.rig.conf.gateway.prefix, edge.copies[name][0])


def test_what_is_here_is_sent_anew(make_edge):
    edge = make_edge(MORE)
    # One of a bundle first: then all of it is lost.
    for name, damage in (('mini', edge.rot), ('two', edge.rot),
                         ('parts', edge.rot), ('one', edge.lose),
                         ('tiny', edge.lose), ('parts', edge.lose)):
        damage(name)
        assert edge.wrong_in_s3(name), 'the judge sees the damage'
        assert edge.repair(name) is Repaired.SENT
        assert not edge.wrong_in_s3(name)
        assert edge.remote(name).key == edge.remote(name, 1).key \
            == own_key(edge, name)
        assert edge.repair(name) is Repaired.RIGHT
    edge.rig.local.room = False
    for name in MORE:
        for version in edge.copies[name]:
            edge.rig.local.drop_local(version)
            assert edge.rig.fetch(version)[1].data == edge.bodies[name]
    # Whatever key it has: a deleted version leaves none behind.
    for name in MORE:
        edge.delete(name)
    wait_until(lambda: not {own_key(edge, name) for name in MORE}
               & set(edge.real.list_keys()), 30)


def test_a_stub_is_healed_by_the_other_device(make_edge):
    edge = make_edge(KINDS, **ONLY_REPAIRS)
    for name in KINDS:
        edge.rig.local.drop_local(edge.copies[name][0])
        edge.lose(name)
        assert edge.repair(name) is Repaired.SENT
        assert not edge.wrong_in_s3(name)
        residency = edge.rig.local.residency(edge.copies[name][0])
        assert residency.tiers == Tier.REMOTE


def test_what_another_node_sent_anew_is_found(edge):
    name = 'tiny'
    assert edge.remote(name).in_bundle
    for version in edge.copies[name]:
        edge.rig.local.drop_local(version)
    edge.lose(name)
    edge.real.client().put_object(Bucket=BUCKET, Key=own_key(edge, name),
                                  Body=b'x' * len(edge.bodies[name]))
    with pytest.raises(RemoteCorrupt):
        edge.repair(name)
    edge.real.client().put_object(Bucket=BUCKET, Key=own_key(edge, name),
                                  Body=edge.bodies[name])
    assert edge.repair(name) is Repaired.FOUND
    assert not edge.wrong_in_s3(name)


def test_readers_of_what_s3_lost_do_not_have_it_repaired_each_time(
        make_edge):
    edge = make_edge(MORE)
    gateway, now, asked = edge.rig.gateway, [1000.0], []
    repairs = gateway.parts.mend.repairs
    inner = repairs.repair

    def repair(copies):
        asked.append(copies[0][0])
        return inner(copies)

    repairs.repair = repair
    repairs.clock = SimpleNamespace(monotonic=lambda: now[0])
    for name in ('one', 'two'):
        for version in edge.copies[name]:
            edge.rig.local.drop_local(version)
        edge.lose(name)
    first, other = edge.copies['one'][0], edge.copies['two'][0]

    def read(version):
        heard = len(asked) + paused()
        whole, sink = edge.rig.fetch(version)
        assert not whole and sink.reply.status == 503
        wait_until(lambda: len(asked) + paused() > heard, 30)

    def paused():
        return edge.rig.metrics.counters.get('gateway.repair_paused', 0)

    for _ in range(5):
        read(first)
    assert (asked, paused()) == ([first], 4)
    read(other)
    assert asked == [first, other], 'each has its own pause'
    now[0] += 29
    read(first)
    now[0] += 1
    for _ in range(2):
        read(first)
    assert (asked, paused()) == ([first, other, first], 6)


def test_what_only_s3_had_is_told_and_left_as_it_is(make_edge):
    edge = make_edge(MORE)
    for name in MORE:
        edge.rot(name)
        for version in edge.copies[name]:
            # Nothing is here, or not the right bytes.
            (edge.rig.local.drop_local if name in ('one', 'tiny')
             else edge.rig.local.corrupt)(version)
    keys = edge.real.list_keys()
    digests = [md5(edge.real.body(key)) for key in keys]
    before = [edge.rig.local.residency(version) for name in MORE
              for version in edge.copies[name]]
    for name in MORE:
        with pytest.raises(RemoteCorrupt, match='no device of this node'):
            edge.repair(name)
    assert edge.real.list_keys() == keys
    assert [md5(edge.real.body(key)) for key in keys] == digests
    assert before == [edge.rig.local.residency(version) for name in MORE
                      for version in edge.copies[name]]


def test_what_s3_does_not_take_now_is_sent_later(make_edge):
    edge = make_edge(**ONLY_REPAIRS)
    for name in KINDS:
        edge.lose(name)
        # Its own key: the keeping writes notes beside bundles whenever it has
        # the time.
        key = own_key(edge, name)
        armed = edge.faulty.arm('503', lambda r, key=key: r.key == key
                                and r.method in ('PUT', 'POST'))
        with pytest.raises(RemoteUnavailable):
            edge.repair(name)
        assert armed.fired
        # Nothing says any more that S3 has it: no byte may leave.
        assert edge.is_safe(name)
        edge.faulty.disarm()
        edge.rig.settle()
        assert not edge.wrong_in_s3(name)


def test_while_s3_is_away_nothing_is_changed(edge):
    edge.lose('one')
    before = edge.rig.local.residency(edge.copies['one'][0])
    edge.faulty.arm('503', lambda r: True, times=1000)
    with pytest.raises(RemoteUnavailable):
        edge.repair('one')
    edge.faulty.disarm()
    assert edge.rig.local.residency(edge.copies['one'][0]) == before


class Died(BaseException):
    """The process is gone."""


def test_a_repair_that_dies_is_done_again(make_edge):
    edge = make_edge({step: (2000 + number, 1)
                      for number, step in enumerate(STEPS)},
                     **ONLY_REPAIRS)
    edge.lose(STEPS[0])
    for step in STEPS:
        died = []

        def die(name, step=step, died=died):
            if name == step and not died:
                died.append(name)
                raise Died

        if not edge.wrong_in_s3(step):
            edge.lose(step)
        assert edge.remote(step).in_bundle and edge.wrong_in_s3(step)
        steps.listen(die)
        try:
            with pytest.raises(Died):
                edge.repair(step)
        finally:
            steps.listen(None)
        assert died == [step], 'the fault fired'
        assert edge.is_safe(step)
        edge.rig.gateway.stop()
        edge.begin()
        # What a start after a crash does: dirty versions are noted.
        for number, version in enumerate(edge.copies[step]):
            if edge.remote(step, number) is None:
                edge.rig.gateway.enqueue_upload(version, '7')
        edge.rig.settle()
        assert edge.repair(step) in (Repaired.SENT, Repaired.FOUND,
                                     Repaired.RIGHT)
        assert not edge.wrong_in_s3(step)


def test_twin_that_takes_the_word_of_s3_is_caught(edge):
    edge.rot('one')
    edge.rig.gateway.parts.supply.prove = lambda local: None
    assert edge.repair('one') is Repaired.RIGHT
    assert edge.wrong_in_s3('one') == ['sda', 'sdb']
