"""Reads ask the warm copy first: Swift's own proxy application sorts."""

from __future__ import annotations

import random
from typing import Any, Dict, List

import pytest
from swift.common import utils
from swift.common.storage_policy import (
    ECStoragePolicy, StoragePolicy, StoragePolicyCollection)
from swift.common.swob import Request
from swift.common.utils import hash_path
from swift.proxy import server
from swift.proxy.controllers import base
from swift.proxy.controllers.base import NodeIter

from swift_dss.proxy.reads import warm_first
from swift_dss.proxy.reads.backlogs import key_of
from swift_dss.proxy.reads.local_first import LocalFirst
from swift_dss.proxy.replicas import Replicas
from swift_dss.proxy.reads.warm_first import HOT_READS, HOT_SECONDS, WarmFirst
from swift_dss.strategy.eviction.warmth import rank_of

PATH = '/a/c/o'


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class ThreeNodes:
    """A ring of three primaries and a handoff."""

    replica_count = 3
    nodes = [{'id': number, 'ip': '10.0.0.%d' % number, 'port': 6200,
              'device': 'sda', 'region': 1 + number % 2, 'zone': 1}
             for number in range(4)]

    def get_part_nodes(self, part: int) -> List[Dict[str, Any]]:
        return [dict(node, index=index)
                for index, node in enumerate(self.nodes[:3])]

    def get_more_nodes(self, part: int) -> Any:
        return iter(self.nodes[3:])


class Bed:
    """Swift's proxy application, with us between."""

    def __init__(self, monkeypatch: Any, **conf: str) -> None:
        self.replicated = StoragePolicy(0, 'r', is_default=True)
        self.coded = ECStoragePolicy(
            1, 'ec', ec_type='liberasurecode_rs_vand', ec_ndata=2,
            ec_nparity=1)
        policies = StoragePolicyCollection([self.replicated, self.coded])
        monkeypatch.setattr(server, 'POLICIES', policies)
        monkeypatch.setattr(utils, 'HASH_PATH_SUFFIX', b'end')
        self.ring = ThreeNodes()
        self.replicated.object_ring = self.coded.object_ring = self.ring
        self.app = server.Application(conf, account_ring=self.ring,
                                      container_ring=self.ring)
        self.clock = Clock()
        self.warm_first = WarmFirst(self.clock)
        self.warm_first.listen(self.app)

    def order(self, path: str = PATH, policy: Any = None) -> List[int]:
        """Ids of the primaries in the order of a read of ``path``."""
        with self.warm_first.asking(path):
            return self.plain(policy)

    def plain(self, policy: Any = None) -> List[int]:
        return [node['id'] for node in self.nodes(policy)]

    def nodes(self, policy: Any = None) -> List[Dict[str, Any]]:
        """Nodes as Swift goes through them, with the handoff."""
        nodes = NodeIter('object', self.app, self.ring, 5, self.app.logger,
                         Request.blank('/v1' + PATH),
                         policy=policy or self.replicated)
        return list(nodes)[:3]

    def late(self, path: str, seconds: float, times: int = 1) -> None:
        """The first node of a read takes so long."""
        for _ in range(times):
            with self.warm_first.asking(path) as asking:
                self.app.set_node_timing(self.nodes()[0], 0.001)
                self.clock.now += seconds
                self.warm_first.given(asking, '200 OK', [])


@pytest.fixture
def bed(monkeypatch: Any) -> Bed:
    return Bed(monkeypatch)


def by_rank(path: str = PATH) -> List[int]:
    return sorted(range(3), key=lambda index: rank_of(
        hash_path(*path[1:].split('/')), index, 3))


def test_primaries_are_asked_in_the_order_of_their_rank(bed: Bed) -> None:
    for number in range(20):
        path = '/a/c/%d' % number
        assert bed.order(path) == by_rank(path)


def test_other_requests_keep_swifts_order(bed: Bed) -> None:
    random.seed(5)
    assert len({tuple(bed.plain()) for _ in range(99)}) == 6


def test_a_request_that_has_ended_sorts_nothing(bed: Bed) -> None:
    bed.order()
    assert len({tuple(bed.plain()) for _ in range(99)}) == 6


def test_erasure_coded_objects_keep_swifts_order(bed: Bed) -> None:
    assert len({tuple(bed.order('/a/c/%d' % number, bed.coded))
                for number in range(50)}) == 6
    assert len({tuple(bed.order(PATH, bed.coded)) for _ in range(50)}) == 6


def test_a_node_on_the_error_list_is_skipped_as_ever(bed: Bed) -> None:
    first = by_rank()[0]
    bed.app.error_limit(bed.ring.nodes[first], 'it is broken')
    with bed.warm_first.asking(PATH):
        nodes = NodeIter('object', bed.app, bed.ring, 5, bed.app.logger,
                         Request.blank('/v1' + PATH), policy=bed.replicated)
    assert [node['id'] for node in nodes][:2] == by_rank()[1:]


def test_affinity_goes_before_rank(monkeypatch: Any) -> None:
    bed = Bed(monkeypatch, sorting_method='affinity',
              read_affinity='r2=1, r1=2')
    for number in range(20):
        path = '/a/c/%d' % number
        ranks = by_rank(path)
        assert bed.order(path) == [1] + [rank for rank in ranks if rank != 1]


def test_timing_goes_before_rank_where_a_node_is_far(
        monkeypatch: Any) -> None:
    bed = Bed(monkeypatch, sorting_method='timing')
    first, second, third = by_rank()
    for node, seconds in ((first, 0.2), (second, 0.003), (third, 0.001)):
        bed.app.set_node_timing(bed.ring.nodes[node], seconds)
    assert bed.order() == [second, third, first]
    bed.app.set_node_timing(bed.ring.nodes[first], 0.005)
    assert bed.order() == [first, second, third]


def test_a_slow_device_hands_its_role_on_and_gets_it_back(bed: Bed) -> None:
    first, second, third = by_rank()
    bed.late(PATH, 0.9, 20)
    assert bed.order() == [first, second, third]
    bed.late(PATH, 2.0)
    assert bed.order() == [second, third, first]
    bed.clock.now += warm_first._FORGET_SECONDS
    assert bed.order() == [first, second, third]


def test_where_all_are_slow_none_is(bed: Bed) -> None:
    for number in range(60):
        bed.late('/a/c/%d' % number, 2.0)
        bed.clock.now -= 2.0
    assert bed.order() == by_rank()


def test_a_hot_object_is_read_from_all_and_cools_down(bed: Bed) -> None:
    for _ in range(HOT_READS - 1):
        bed.order()
    assert bed.order('/a/c/other') == by_rank('/a/c/other')
    assert len({tuple(bed.order()) for _ in range(99)}) == 6
    bed.clock.now += HOT_SECONDS
    assert len({tuple(bed.order()) for _ in range(90)}) == 6
    bed.clock.now += HOT_SECONDS
    bed.order()
    bed.clock.now += HOT_SECONDS
    assert {tuple(bed.order()) for _ in range(50)} == {tuple(by_rank())}


def test_what_is_counted_is_bounded(bed: Bed, monkeypatch: Any) -> None:
    monkeypatch.setattr(warm_first, '_MAX_COUNTED', 3)
    monkeypatch.setattr(warm_first, '_MAX_DEVICES', 2)
    heat = warm_first.Heat(bed.clock)
    for _ in range(HOT_READS):
        hot = [path for path in map('/a/c/%d'.__mod__, range(9))
               if heat.read(path)]
    assert hot == ['/a/c/0', '/a/c/1', '/a/c/2']
    speeds = warm_first.Speeds(bed.clock)
    for node in bed.ring.nodes[:3]:
        speeds.note(key_of(node), 9.0)
    # The last of them never answered: who is forgotten is as fast.
    assert speeds.slow(bed.ring.nodes) == [False, True, True, False]


class Getter:
    """What is below the filter: sorts as Swift does, and answers."""

    def __init__(self, bed: Bed) -> None:
        self.app = bed.app
        self._bed = bed
        self.orders: List[List[int]] = []
        self.seconds = 0.0
        #: Of nodes that give nothing.
        self.statuses: List[int] = []

    def __call__(self, env: Any, start: Any) -> Any:
        nodes = self._bed.nodes()
        self.orders.append([node['id'] for node in nodes])
        for number, node in enumerate(nodes):
            self.app.set_node_timing(node, 0.001)
            self._bed.clock.now += self.seconds
            if number == len(self.statuses):
                break
            self.app.check_response(node, 'Object', FakeAnswer(
                self.statuses[number]), env['REQUEST_METHOD'], PATH)
        start('200 OK', [])
        return [b'']


class FakeAnswer:
    def __init__(self, status: int) -> None:
        self.status = status

    def getheader(self, name: str, default: Any = None) -> Any:
        return default


class Wire:
    """A connection to an object server that has the object."""

    status, reason = 200, 'OK'

    def getresponse(self) -> Wire:
        return self

    def getheader(self, name: str, default: Any = None) -> Any:
        return default

    def getheaders(self) -> Any:
        return []


@pytest.mark.parametrize('method', ['GET', 'HEAD'])
@pytest.mark.parametrize('has_cold', [True, False])
def test_reads_are_sorted_where_a_class_has_cold_copies(
        bed: Bed, method: str, has_cold: bool) -> None:
    getter = Getter(bed)
    reads = LocalFirst(getter, Replicas(getter), lambda event: None,
                       lambda: has_cold, bed.clock)
    for _ in range(50):
        Request.blank('/v1' + PATH, method=method).get_response(reads)
    assert (set(map(tuple, getter.orders)) == {tuple(by_rank())}) is has_cold


def test_a_path_that_swift_refuses_is_left_to_it(bed: Bed) -> None:
    reads = LocalFirst(bed.app, Replicas(bed.app), lambda event: None,
                       lambda: True, bed.clock)
    answer = Request.blank('/v1/a/c/%FF').get_response(reads)
    assert answer.status_int == 412


def test_how_long_answers_take_is_heard(bed: Bed) -> None:
    getter = Getter(bed)
    getter.seconds = 3.0
    reads = LocalFirst(getter, Replicas(getter), lambda event: None,
                       lambda: True, bed.clock)
    for _ in range(2):
        Request.blank('/v1' + PATH).get_response(reads)
    assert [order[0] for order in getter.orders] == by_rank()[:2]


@pytest.mark.parametrize('method', ['GET', 'HEAD'])
def test_each_node_that_was_asked_took_the_time_until_its_own_answer(
        bed: Bed, method: str) -> None:
    """The second one is slow, too, if the first one does not have it."""
    getter = Getter(bed)
    getter.seconds, getter.statuses = 3.0, [404]
    reads = LocalFirst(getter, Replicas(getter), lambda event: None,
                       lambda: True, bed.clock)
    for _ in range(2):
        Request.blank('/v1' + PATH, method=method).get_response(reads)
    assert getter.orders[1][0] == by_rank()[2]


def test_swift_itself_tells_of_each_node_that_it_asks(
        bed: Bed, monkeypatch: Any) -> None:
    """Of good answers it shows none to the application."""
    told: List[Any] = []
    monkeypatch.setattr(bed.app, 'set_node_timing',
                        lambda node, seconds: told.append(node['id']))
    monkeypatch.setattr(bed.app, 'check_response',
                        lambda *args: told.append('refused'))
    monkeypatch.setattr(base, 'http_connect', lambda *args, **kwargs: Wire())
    asked = Request.blank('/v1' + PATH, method='HEAD')
    getter = base.GetOrHeadHandler(
        bed.app, asked, 'Object', NodeIter(
            'object', bed.app, bed.ring, 5, bed.app.logger, asked,
            policy=bed.replicated), 5, PATH, {}, policy=bed.replicated,
        logger=bed.app.logger)
    answer = getter.get_working_response()
    assert answer.status_int == 200 and len(told) == 1
