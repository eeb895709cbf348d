"""An object server says for how long its HDD is busy, and may send a GET
elsewhere then."""

from __future__ import annotations

import os
from typing import Any, Dict, List

import pytest
from support.nodes.three_replicas import BODY, Replica
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import Request
from swift.common.utils import Timestamp
from swift.proxy.controllers.base import GetOrHeadHandler

from swift_dss.core.residency import Tier
from swift_dss.core.spans import ClassMap, Span
from swift_dss.wire import backlog, classmap, names

NAME = '/a/c/o'
AT = '1000000005.00000'


@pytest.fixture
def server(scratch_folder: str) -> Replica:
    """One with an object on its HDD."""
    replica = Replica(os.path.join(scratch_folder, 'r'), hdd=True)
    replica.put(NAME, X_Timestamp=AT, X_Object_Sysmeta_Dss_Map='2')
    return replica


def busy(server: Replica, seconds: float, tier: Tier = Tier.HDD) -> None:
    """The pool says that its jobs take so long."""
    pool: Any = server.disk.node.pool(tier, 'sda')
    pool.outstanding += 1
    pool.backlog_seconds = lambda: seconds


def within(limit_ms: int, **headers: str) -> Dict[str, str]:
    """The headers of a GET on condition."""
    env: Dict[str, Any] = {}
    made = Request.blank('/', environ=env, headers=headers)
    backlog.set_limit(made.environ, limit_ms)
    return headers | {name: value for name, value in made.headers.items()
                      if name.startswith('X-Backend-')}


@pytest.mark.parametrize('method', ['GET', 'HEAD'])
def test_each_answer_says_for_how_long_the_hdd_is_busy(
        server: Replica, method: str) -> None:
    assert server.ask(method, NAME, {}).headers[
        names.BACKEND_BACKLOG] == '0'
    busy(server, 0.25)
    busy(server, 9.0, Tier.SSD)
    assert server.ask(method, NAME, {}).headers[
        names.BACKEND_BACKLOG] == '250'


def test_above_the_kernels_cache_the_ssd_waits_for_the_hdd(
        scratch_folder: str, monkeypatch: Any) -> None:
    server = Replica(os.path.join(scratch_folder, 'b'))
    monkeypatch.setattr(server.disk.node, 'is_block', lambda device: True)
    server.put(NAME)
    busy(server, 9.0, Tier.SSD)
    assert server.ask('HEAD', NAME, {}).headers[
        names.BACKEND_BACKLOG] == '9000'


def test_a_device_without_an_hdd_has_no_queue_of_one(
        scratch_folder: str) -> None:
    fresh = Replica(os.path.join(scratch_folder, 'w'))
    busy(fresh, 9.0, Tier.SSD)
    assert fresh.disk.node.backlog_ms('sda') == 0


def test_bytes_on_a_busy_hdd_are_elsewhere(server: Replica) -> None:
    busy(server, 0.25)
    answer = server.ask('GET', NAME, within(200))
    assert answer.status_int == 404
    assert answer.headers[names.BACKEND_ELSEWHERE] == names.BUSY
    assert answer.headers[names.BACKEND_BACKLOG] == '250'
    # The proxy then takes nothing that is older for the newest.
    assert answer.headers['X-Backend-Timestamp'] == AT


def test_the_hdd_is_not_asked_for_them(server: Replica,
                                       monkeypatch: Any) -> None:
    """To open their file it would take its turn in the queue."""
    asked: List[Any] = []
    monkeypatch.setattr(server.disk.node.capacity('sda'), 'open_read',
                        asked.append)
    busy(server, 0.25)
    assert server.ask('GET', NAME, within(200)).status_int == 404
    assert not asked


@pytest.mark.parametrize('limit_ms', [250, 900])
def test_within_the_limit_they_are_given(server: Replica,
                                         limit_ms: int) -> None:
    busy(server, 0.25)
    answer = server.ask('GET', NAME, within(limit_ms))
    assert answer.status_int == 200 and answer.body == BODY


def test_bytes_on_the_ssd_are_given_however_busy_the_hdd_is(
        server: Replica) -> None:
    server.put('/a/c/warm')
    busy(server, 60.0)
    answer = server.ask('GET', '/a/c/warm', within(0))
    assert answer.status_int == 200 and answer.body == BODY


def test_ranges_on_the_ssd_are_given_where_the_rest_is_on_the_hdd(
        server: Replica) -> None:
    server.put('/a/c/mixed', X_Object_Sysmeta_Dss_Map=classmap.encode(
        ClassMap.from_spans([Span(0, 50, 1)], rest=2)))
    busy(server, 60.0)
    for span, status in (('bytes=0-49', 206), ('bytes=0-50', 404)):
        answer = server.ask('GET', '/a/c/mixed', within(0, Range=span))
        assert answer.status_int == status


@pytest.mark.parametrize('headers', [
    {}, {'X-Backend-Dss-Within': '0'},
    {'X-Backend-Ignore-Range-If-Metadata-Present': 'X-Object-Dss-First-Try'},
    within(0) | {'X-Backend-Dss-Within': 'soon'},
    within(0) | {'X-Backend-Dss-Within': '-5'}])
def test_without_a_condition_they_are_given(server: Replica,
                                            headers: Any) -> None:
    busy(server, 60.0)
    assert server.ask('GET', NAME, headers).status_int == 200


@pytest.mark.parametrize('span', ['', 'bytes=5-9', 'bytes=5-', 'bytes=-5'])
@pytest.mark.parametrize('others', ['', 'X-Static-Large-Object'])
def test_swifts_getter_asks_for_the_rest_of_a_body_without_it(
        server: Replica, span: str, others: str) -> None:
    """Also if no byte came, when the range is that of the first try."""
    busy(server, 60.0)
    headers = {'Range': span} if span else {}
    if others:
        headers['X-Backend-Ignore-Range-If-Metadata-Present'] = others
    getter = object.__new__(GetOrHeadHandler)
    getter.backend_headers = HeaderKeyDict(within(0, **headers))
    assert server.ask('GET', NAME, getter.backend_headers).status_int == 404
    getter.fast_forward(0)
    answer = server.ask('GET', NAME, getter.backend_headers)
    assert answer.status_int == 206


def test_other_headers_of_swifts_mean_what_they_did(
        server: Replica) -> None:
    server.ask('POST', NAME, {'X-Timestamp': Timestamp.now().internal,
                              'X-Object-Meta-Whole': 'yes'})
    asked = {'X-Backend-Ignore-Range-If-Metadata-Present':
             'X-Object-Meta-Whole', 'Range': 'bytes=5-9'}
    answer = server.ask('GET', NAME, within(60000, **asked))
    assert answer.status_int == 200 and answer.body == BODY
