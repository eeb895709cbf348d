"""An S3 that hangs is found dead before readers have waited in vain."""

from __future__ import annotations

import threading
import time

import pytest
from fault.test_gateway_faults import Rig
from support import pattern, wait_until

from swift_dss.gateway.link import alarm
from swift_dss.gateway.link.breaker import BreakerState

MIB = 1 << 20
#: Of the object server: what a GET gives one replica.
DEADLINE = 5.0


@pytest.fixture
def cold(faulty, tmp_path):
    """A node whose versions are only in S3, with time-outs as shipped."""
    rig = Rig(faulty, tmp_path, read_timeout_seconds=20.0,
              connect_timeout_seconds=3.0)
    rig.local.room = False
    rig.bodies = {}
    for n, size in enumerate((5000, 6000, 7000, 5 * MIB + 99)):
        body = pattern(size, 'b%d' % n)
        version = rig.local.put('o%d' % n, body)
        rig.gateway.enqueue_upload(version, '7')
        rig.bodies[version] = body
    rig.settle()
    for version in rig.bodies:
        rig.local.drop_local(version)
    rig.faulty = faulty
    yield rig
    faulty.disarm()
    faulty.cut()
    rig.gateway.stop()


def timed(rig, version, deadline=DEADLINE):
    began = time.monotonic()
    _, sink = rig.fetch(version, deadline)
    return sink.reply.status, time.monotonic() - began


def test_a_hanging_s3_costs_the_first_reader_no_deadline_and_others_nothing(
        cold):
    first, second, third, parts = cold.bodies
    cold.faulty.arm('hang', times=0)
    status, seconds = timed(cold, first)
    print('first: %d after %.1f s' % (status, seconds))
    assert status == 503 and seconds < DEADLINE - 0.5
    for version in (first, second, third, parts):
        status, seconds = timed(cold, version)
        print('then: %d after %.2f s' % (status, seconds))
        assert status == 503 and seconds < 1
    assert cold.breaker.state is not BreakerState.CLOSED
    cold.faulty.disarm()
    cold.faulty.cut()


def test_readers_that_come_together_wait_together(cold):
    cold.faulty.arm('hang', times=0)
    answers = []
    readers = [threading.Thread(
        target=lambda own=version: answers.append(timed(cold, own)))
        for version in cold.bodies for _ in range(8)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert {status for status, _ in answers} == {503}
    assert max(seconds for _, seconds in answers) < DEADLINE - 0.5


def test_a_short_deadline_is_kept(cold):
    cold.faulty.arm('hang', times=0)
    status, seconds = timed(cold, next(iter(cold.bodies)), 0.5)
    assert status == 503 and seconds < 1


def test_an_idle_node_finds_out_by_itself(cold, monkeypatch):
    monkeypatch.setattr(alarm, 'IDLE_SECONDS', 0.5)
    cold.faulty.arm('hang', times=0)
    cold.gateway.parts.jobs.due.ring()
    wait_until(lambda: cold.gateway.parts.jobs.due.ring() or cold.breaker.state
               is not BreakerState.CLOSED, 10, 'nobody asked for anything')
    status, seconds = timed(cold, next(iter(cold.bodies)))
    assert status == 503 and seconds < 1


def test_it_is_read_from_again_when_it_lives(cold):
    version, body = next(iter(cold.bodies.items()))
    cold.faulty.arm('hang', times=0)
    assert timed(cold, version)[0] == 503
    cold.faulty.disarm()
    wait_until(lambda: timed(cold, version)[0] == 200, 15, 'S3 is back')
    assert cold.fetch(version)[1].data == body


def test_wrong_twin_a_key_that_hangs_is_no_dead_s3(cold):
    """The others go on being read."""
    slow, other = list(cold.bodies)[:2]
    cold.faulty.arm('hang', lambda request: request.key.endswith(
        slow.timestamp) and slow.object_hash in request.key, times=0)
    status, seconds = timed(cold, slow, 3.0)
    assert (status, cold.breaker.state) == (503, BreakerState.CLOSED)
    assert seconds >= 2.9
    assert timed(cold, other)[0] == 200


def test_without_the_question_the_first_readers_wait_to_the_end(
        cold, monkeypatch):
    """The guard of these tests: it is the question that saves them."""
    monkeypatch.setattr(alarm, 'SUSPECT_SECONDS', 1000.0)
    cold.faulty.arm('hang', times=0)
    status, seconds = timed(cold, next(iter(cold.bodies)), 3.5)
    assert status == 503 and seconds >= 3.4
