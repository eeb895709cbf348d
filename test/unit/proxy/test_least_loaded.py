"""Reads of bytes that no copy has on its SSD go to the least busy HDD."""

from __future__ import annotations

import random
from typing import Any, Dict, List, Optional

import pytest
from swift.common.swob import Request, Response
from test_warm_first import PATH, Bed, by_rank

from swift_dss.proxy.reads import backlogs
from swift_dss.proxy.reads.backlogs import Backlogs, key_of
from swift_dss.proxy.reads.local_first import LocalFirst
from swift_dss.proxy.replicas import Replicas
from swift_dss.strategy.eviction.warmth import DETOUR_MS
from swift_dss.wire import backlog, names

#: Ranks of the object's copies.
FIRST, SECOND, THIRD = range(3)


class Server:
    """An object server.

    :ivar tier: where it has the object; '' if it has it not
    :ivar backlog_ms: for how long its HDD is busy
    :ivar says: what it says instead; None is nothing
    :ivar seconds: that its answer takes
    :ivar is_silent: it gives none
    """

    def __init__(self, tier: str = 'hdd', backlog_ms: int = 0) -> None:
        self.tier = tier
        self.backlog_ms = backlog_ms
        self.says: Optional[str] = ''
        self.is_old = False
        self.seconds = 0.0
        self.is_silent = False

    def answer(self, env: Any) -> Response:
        headers: Dict[str, str] = {}
        if not self.is_old and self.says is not None:
            headers[names.BACKEND_BACKLOG] = self.says or str(
                self.backlog_ms)
        if not self.tier:
            return Response(status=404)
        limit_ms = None if self.is_old else backlog.limit_of(env)
        why = ''
        if self.tier == 's3' and names.BACKEND_IF_LOCAL in \
                Request(env).headers:
            why = names.IN_S3
        elif self.tier == 'hdd' and limit_ms is not None and \
                self.backlog_ms > limit_ms:
            why = names.BUSY
        if why:
            return Response(status=404, headers=dict(
                headers, **{names.BACKEND_ELSEWHERE: why}))
        return Response(status=200, body=b'body', headers=dict(
            headers, **{names.BACKEND_TIER: self.tier}))


class Answer:
    """What Swift's proxy hears of one."""

    def __init__(self, response: Response) -> None:
        self.status = response.status_int
        self._headers = response.headers

    def getheader(self, name: str, default: Any = None) -> Any:
        return self._headers.get(name, default)


class Three:
    """Object servers, and Swift's way from one to the next.

    :ivar nodes: those of the primaries, by rank
    :ivar servers: theirs
    :ivar asked: the ranks that the last read asked, in turn
    """

    def __init__(self, bed: Bed, has_cold: bool = True,
                 least_loaded: bool = True) -> None:
        self.bed = bed
        self.app = bed.app
        self.nodes = by_rank()
        self.servers = [Server() for _ in range(3)]
        self.asked: List[int] = []
        self.counts: List[str] = []
        self.reads = LocalFirst(
            self, Replicas(self), self.counts.append, lambda: has_cold,
            bed.clock, least_loaded)
        self.read()

    def __call__(self, env: Any, start: Any) -> Any:
        for node in self.bed.nodes():
            rank = self.nodes.index(node['id'])
            self.asked.append(rank)
            self.app.set_node_timing(node, 0.001)
            self.bed.clock.now += self.servers[rank].seconds
            if self.servers[rank].is_silent:
                continue
            answer = self.servers[rank].answer(env)
            if answer.status_int == 200:
                break
            self.app.check_response(node, 'Object', Answer(answer),
                                    env['REQUEST_METHOD'], PATH)
        return answer(env, start)

    def read(self, method: str = 'GET') -> List[int]:
        """The ranks that a read asks; the last one gives the bytes."""
        self.asked = []
        answer = Request.blank('/v1' + PATH, method=method).get_response(
            self.reads)
        assert answer.status_int == 200
        return self.asked

    def hear(self) -> None:
        """Have each node heard of: each is asked for another object."""
        warm_first = self.reads.warm_first
        for number, server in zip(self.nodes, self.servers):
            with warm_first.asking(PATH, False) as asking:
                node, = (node for node in self.bed.nodes()
                         if node['id'] == number)
                self.app.set_node_timing(node, 0.001)
                answer = server.answer({})
                warm_first.given(asking, answer.status,
                                 list(answer.headers.items()))


@pytest.fixture
def three(monkeypatch: Any) -> Three:
    return Three(Bed(monkeypatch))


def busy(three: Three, first: int = 0, second: int = 0,
         third: int = 0) -> None:
    for server, backlog_ms in zip(three.servers, (first, second, third)):
        server.backlog_ms = backlog_ms


def test_a_warm_copy_is_read_however_busy_its_hdd_is(
        three: Three) -> None:
    busy(three, 60000)
    three.servers[FIRST].tier = 'ssd,hdd'
    three.hear()
    for _ in range(5):
        assert three.read() == [FIRST]


def test_cold_bytes_come_from_the_least_busy_hdd(three: Three) -> None:
    busy(three, 900, 300, 20)
    three.hear()
    assert three.read() == [FIRST, THIRD]
    busy(three, 900, 20, 300)
    three.hear()
    assert three.read() == [FIRST, SECOND]


def test_where_it_saves_little_the_first_rank_reads(
        three: Three) -> None:
    busy(three, 20 + DETOUR_MS, 20, 30)
    three.hear()
    assert three.read() == [FIRST]
    busy(three, 21 + DETOUR_MS, 20, 30)
    three.hear()
    assert three.read() == [FIRST, SECOND]


def test_a_copy_that_grew_busy_is_passed_over_too(three: Three) -> None:
    busy(three, 900, 20, 300)
    three.hear()
    busy(three, 900, 800, 60)
    assert three.read() == [FIRST, SECOND, THIRD]


def test_where_all_grew_busy_the_least_busy_one_reads(
        three: Three) -> None:
    busy(three, 900, 20, 300)
    three.hear()
    busy(three, 900, 800, 700)
    assert three.read() == [FIRST, SECOND, THIRD, THIRD]
    assert three.counts == ['get.all_are_busy']


def test_a_busy_hdd_is_asked_once_more_before_s3_is(three: Three) -> None:
    busy(three, 900, 20, 300)
    three.hear()
    three.servers[SECOND].tier = three.servers[THIRD].tier = 's3'
    assert three.read() == [FIRST, SECOND, THIRD, SECOND, THIRD, FIRST]
    assert three.counts == ['get.all_are_busy']


def test_a_read_to_the_only_copy_waits_for_its_hdd(
        three: Three) -> None:
    busy(three, 900)
    three.hear()
    three.servers[SECOND].tier = three.servers[THIRD].tier = ''
    assert three.read()[-1] == FIRST


def test_a_head_asks_the_first_rank(three: Three) -> None:
    busy(three, 900)
    three.hear()
    assert three.read('HEAD') == [FIRST]


def test_a_server_that_says_nothing_gets_no_ones_reads(
        three: Three) -> None:
    """An earlier release does not."""
    busy(three, 900, 0, 500)
    three.servers[SECOND].is_old = True
    three.hear()
    assert three.read() == [FIRST, THIRD]
    busy(three, 900, 0, 900)
    three.hear()
    assert three.read() == [FIRST]


def test_a_first_rank_of_an_earlier_release_is_read_as_ever(
        three: Three) -> None:
    busy(three, 900)
    three.servers[FIRST].is_old = True
    three.hear()
    assert three.read() == [FIRST]


def test_a_server_that_stops_to_say_it_is_not_known_any_more(
        three: Three) -> None:
    busy(three, 900)
    three.hear()
    three.servers[SECOND].is_old = True
    three.hear()
    assert three.read() == [FIRST, THIRD]


@pytest.mark.parametrize('text', ['-1', 'soon', '1e3', '', ' 5', '²',
                                  '9' * 4000])
def test_nonsense_counts_as_nothing(three: Three, text: str) -> None:
    busy(three, 900, 0, 500)
    three.hear()
    three.servers[SECOND].says = text or None
    three.hear()
    assert three.read() == [FIRST, THIRD]


def test_a_server_that_is_slow_and_says_it_is_idle_loses_its_readers(
        three: Three) -> None:
    three.servers[SECOND].says = '0'
    three.servers[SECOND].seconds = 9.0
    busy(three, 60000, 0, 40000)
    three.hear()
    assert three.read() == [FIRST, SECOND]
    three.hear()
    assert three.read() == [FIRST, THIRD]


def test_a_server_that_says_it_is_busy_and_is_not_keeps_the_others_readers(
        three: Three) -> None:
    busy(three, 60000, 700, 800)
    three.hear()
    assert three.read() == [FIRST, SECOND]
    busy(three, 60000, 60000, 60000)
    three.hear()
    assert three.read() == [FIRST]


def test_a_backlog_wears_off(three: Three) -> None:
    busy(three, 900)
    three.hear()
    three.bed.clock.now += 0.8
    assert three.read() == [FIRST, SECOND]
    three.hear()
    three.bed.clock.now += 0.9
    assert three.read() == [FIRST]


def test_a_server_that_was_idle_long_ago_is_one_to_go_to(
        three: Three) -> None:
    """All reads may go to one node for a while."""
    three.hear()
    three.bed.clock.now += 86400
    busy(three, 900)
    assert three.read() == [FIRST]
    assert three.read() == [FIRST, SECOND]


def test_readers_of_one_moment_do_not_all_go_to_one_hdd(
        three: Three) -> None:
    """No answer says yet what those before have brought it."""
    busy(three, 900, 10, 50)
    three.hear()
    warm_first = three.reads.warm_first
    taken: List[int] = []
    for _ in range(6):
        with warm_first.asking(PATH) as asking:
            asking.env = {}
            first, second, _ = three.bed.nodes()
            for node in first, second:
                three.app.set_node_timing(node, 0.001)
            taken.append(three.nodes.index(second['id']))
    assert taken == [SECOND] * 3 + [THIRD, SECOND, THIRD]


def test_nearer_nodes_stay_in_front(monkeypatch: Any) -> None:
    three = Three(Bed(monkeypatch, sorting_method='affinity',
                          read_affinity='r2=1, r1=2'))
    # Node 1 alone is in region 2.
    nearest = three.nodes.index(1)
    three.servers[nearest].backlog_ms = 900
    three.hear()
    assert three.read() == [nearest]


def test_a_node_that_does_not_answer_is_not_taken_for_the_next_one(
        three: Three) -> None:
    """Of two that were asked it is not known whose answer that is."""
    busy(three, 0, 900, 0)
    three.servers[FIRST].is_silent = True
    assert three.read() == [FIRST, SECOND]
    three.servers[FIRST].is_silent = False
    busy(three, 900, 0, 0)
    assert three.read() == [FIRST]


def test_the_option_turns_it_off(monkeypatch: Any) -> None:
    three = Three(Bed(monkeypatch), least_loaded=False)
    busy(three, 900)
    three.hear()
    assert three.read() == [FIRST]


def test_where_all_copies_are_warm_swifts_order_stays(
        monkeypatch: Any) -> None:
    three = Three(Bed(monkeypatch), has_cold=False)
    random.seed(7)
    three.hear()
    assert {three.read()[0] for _ in range(60)} == {FIRST, SECOND, THIRD}
    busy(three, 900)
    for _ in range(60):
        three.hear()
        assert three.read()[-1] != FIRST


def test_what_is_known_is_bounded(monkeypatch: Any) -> None:
    monkeypatch.setattr(backlogs, '_MAX_DEVICES', 2)
    known = Backlogs(lambda: 0.0)
    nodes = [{'ip': 'i', 'port': 1, 'device': str(number)}
             for number in range(4)]
    for node in nodes:
        known.heard(key_of(node), '5')
    assert [known.of(key_of(node)) for node in nodes] == [
        None, None, 5.0, 5.0]
