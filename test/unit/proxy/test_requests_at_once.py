"""Pressures and admission, asked by many requests at once, in both forms."""

from __future__ import annotations

import dataclasses
import logging
import types
from typing import Any, List

from support.clocks import StillClock

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.pressure import Backlog, Pressure
from swift_dss.core.rules import Rules
from swift_dss.core.spans import ClassMap
from swift_dss.io import waiting
from swift_dss.proxy.admit import admission
from swift_dss.proxy.admit.pressures import Answer, Pressures
from swift_dss.proxy.settings import State
from swift_dss.proxy.target import Target
from swift_dss.wire.node import pressure as wire

TABLE = ClassTable.of([ClassSpec(0, 'plain', 0), ClassSpec(9, 'gold', 90)])
EMPTY = Backlog(0, 1 << 40, 100, 1 << 41, 100.0, True, 0.0, 0.75, 2.0)
SERVER = ('10.0.0.1', 6200)


class Logger(logging.Logger):

    def __init__(self) -> None:
        super().__init__('at-once')

    def increment(self, name: str) -> None:
        """Count nothing."""


class Slow(int):
    """A number whose sums take so long that other requests come in
    between, if they can."""

    def __radd__(self, other: int) -> int:
        waiting.sleep(0)
        return int(self) + other

    def __rsub__(self, other: int) -> int:
        waiting.sleep(0)
        return other - int(self)

    def __gt__(self, other: int) -> bool:
        waiting.sleep(0.001)
        return int(self) > other


class Servers:
    """Object servers that take a while to answer."""

    def __init__(self, backlog: Backlog = EMPTY) -> None:
        self.asked: List[str] = []
        self.age = 0.0
        self.backlog = backlog
        self.clock = StillClock()
        self.pressures = Pressures(60.0, Logger(), self.ask,
                                   clock=self.clock.monotonic)

    def ask(self, server: Any, tally: str) -> Answer:
        """Answer after a while."""
        self.asked.append(tally)
        waiting.sleep(0.002)
        return Answer({'sda': (self.age, Pressure(
            1, 1, 1, None, True, 5.0, self.backlog))})


def test_many_requests_ask_once(form: Any) -> None:
    servers = Servers()
    requests = [form.begin(servers.pressures.backlog, SERVER, 'sda')
                for _ in range(40)]
    for request in requests:
        request.wait()
    form.until(lambda: servers.pressures.backlog(SERVER, 'sda')[0] == EMPTY)
    assert len(servers.asked) == 1


def test_no_byte_of_many_uploads_is_lost_or_stays(form: Any) -> None:
    servers = Servers()
    pressures = servers.pressures
    length = Slow(1000) if form.name == 'threads' else 1000

    def upload() -> None:
        for _ in range(10):
            pressures.coming([((SERVER, 'sda'), length)]).end()

    requests = [form.begin(upload) for _ in range(20)]
    for request in requests:
        request.wait()
    # The daemon's figures are from before all of them: each counts.
    servers.age = 60.0
    form.until(lambda: pressures.backlog(SERVER, 'sda')[0])
    assert pressures.backlog(SERVER, 'sda')[1] == 200 * 1000
    # Now they are newer, and none counts.
    servers.age = 0.0
    servers.clock.now += 100.0
    form.until(lambda: pressures.backlog(SERVER, 'sda')[0])
    assert pressures.backlog(SERVER, 'sda') == (EMPTY, 0)


class Word(str):
    """A verdict that takes a while to be looked up."""

    def __hash__(self) -> int:
        waiting.sleep(0)
        return hash(str(self))


def test_no_verdict_is_lost(form: Any) -> None:
    servers = Servers()
    answer = Word('accept') if form.name == 'threads' else 'accept'

    def judge() -> None:
        for _ in range(10):
            servers.pressures.count(SERVER, 9, answer)

    requests = [form.begin(judge) for _ in range(20)]
    for request in requests:
        request.wait()
    servers.pressures.backlog(SERVER, 'sda')
    form.until(lambda: servers.asked)
    assert wire.decode_tally(servers.asked[0]) == {9: {'accept': 200}}


def test_not_more_requests_wait_than_may(form: Any, monkeypatch: Any
                                         ) -> None:
    monkeypatch.setattr(admission, 'MAX_THROTTLED', Slow(3)
                        if form.name == 'threads' else 3)
    servers = Servers(dataclasses.replace(
        EMPTY, budget_bytes=1000, pending_bytes=900, drain_rate=1.0))
    sleeping: List[int] = []
    most: List[int] = []

    def sleep(seconds: float) -> None:
        sleeping.append(1)
        most.append(len(sleeping))
        waiting.sleep(0.03)
        sleeping.pop()

    placed = types.SimpleNamespace(
        pieces=1, length_of=lambda size: size, nodes=[
            {'ip': SERVER[0], 'port': SERVER[1], 'device': 'sda'}])
    made = admission.Admission(
        types.SimpleNamespace(of=lambda env, target: placed),  # type: ignore
        Logger(), servers.pressures, sleep)
    form.until(lambda: servers.pressures.backlog(SERVER, 'sda')[0])
    refused: List[Any] = []

    def put() -> None:
        try:
            with made.judged({}, Target('a', 'c', 'o'),
                             State(TABLE, Rules()), ClassMap.uniform(0), 10):
                pass
        except admission.Refused as err:
            refused.append(err.status_int)

    requests = [form.begin(put) for _ in range(12)]
    for request in requests:
        request.wait()
    assert max(most) == 3
    assert refused and set(refused) == {503}
