"""A thread that looks, sleeps and is woken."""

from __future__ import annotations

import threading

import pytest

from swift_dss.gateway.looper import Looper

_LONG = 600.0


class Looks:
    """Counts looks; the caller says when each may end."""

    def __init__(self, wait_seconds=_LONG):
        self.begun = threading.Semaphore(0)
        self.may_end = threading.Semaphore(0)
        self.wait_seconds = wait_seconds

    def __call__(self):
        self.begun.release()
        assert self.may_end.acquire(timeout=60)
        return self.wait_seconds


@pytest.fixture
def rig():
    looks, stopping = Looks(), threading.Event()
    looper = Looper('looks', looks, stopping)
    yield looper, looks
    stopping.set()
    looks.may_end.release()
    looper.stop()


def test_a_kick_ends_a_sleep(rig):
    looper, looks = rig
    looper.start()
    for _ in range(3):
        assert looks.begun.acquire(timeout=60)
        looks.may_end.release()
        looper.kick()
    assert looks.begun.acquire(timeout=60)


def test_a_kick_during_a_look_is_not_forgotten(rig):
    looper, looks = rig
    looper.start()
    assert looks.begun.acquire(timeout=60)
    looper.kick()
    looks.may_end.release()
    assert looks.begun.acquire(timeout=60)


def test_no_wait_is_no_sleep(rig):
    looper, looks = rig
    looks.wait_seconds = 0.0
    looper.start()
    for _ in range(3):
        assert looks.begun.acquire(timeout=60)
        looks.may_end.release()
    assert looks.begun.acquire(timeout=60)


def test_one_that_was_never_begun_can_be_stopped():
    stopping = threading.Event()
    stopping.set()
    Looper('never', lambda: 0.0, stopping).stop()
