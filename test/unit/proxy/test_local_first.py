"""GETs ask for local bytes first, and for any only if nobody has them."""

from __future__ import annotations

from typing import Any, Dict, List

import pytest
from support import kept_memory
from swift.common.swob import Request, Response

from swift_dss.proxy.reads import local_first
from swift_dss.proxy.reads.local_first import _COLD_SECONDS, LocalFirst
from swift_dss.proxy.replicas import Replicas
from swift_dss.wire import names

PATH = '/v1/a/c/o'


class Node:
    """An answer of an object server, as the proxy application sees it."""

    def __init__(self, status: int, headers: Dict[str, str]) -> None:
        self.status = status
        self.headers = headers

    def getheader(self, name: str, default: Any = None) -> Any:
        return self.headers.get(name, default)


class Proxy:
    """A proxy application whose object servers are told what to have.

    :ivar has: ``local``, ``remote`` or ``nothing``
    """

    def __init__(self) -> None:
        self.has = 'local'
        self.asked: List[Any] = []
        self.checked = 0
        self.status = 200

    def check_response(self, node: Any, server_type: str, response: Any,
                       method: str, path: str, body: Any = None) -> bool:
        self.checked += 1
        return True

    def __call__(self, env: Any, start: Any) -> Any:
        request = Request(env)
        condition = request.headers.get(names.BACKEND_IF_LOCAL)
        self.asked.append(condition)
        status = self.status
        if self.has == 'nothing' or self.has == 'remote' and condition:
            status = 404
            self.check_response(
                {}, 'Object', Node(404, {} if self.has == 'nothing' else
                                   {names.BACKEND_ELSEWHERE: '1'}),
                'GET', request.swift_entity_path)
        return Response(status=status, body=b'body', request=request,
                        headers={names.BACKEND_TIER: 'remote' if
                                 self.has == 'remote' else 'ssd'})(env, start)


@pytest.fixture
def proxy() -> Proxy:
    return Proxy()


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def reads(proxy: Proxy, clock: Clock) -> LocalFirst:
    return LocalFirst(proxy, Replicas(proxy), lambda _what: None, clock=clock)


def get(reads: Any, method: str = 'GET', **headers: str) -> Any:
    return Request.blank(PATH, method=method, headers={
        name.replace('_', '-'): value
        for name, value in headers.items()}).get_response(reads)


def test_what_is_local_takes_one_round(
        reads: LocalFirst, proxy: Proxy) -> None:
    assert get(reads).body == b'body'
    assert get(reads, Range='bytes=0-1').status_int == 200
    assert proxy.asked == ['-', 'bytes=0-1']


def test_what_nobody_has_takes_two_rounds_once(
        reads: LocalFirst, proxy: Proxy, clock: Clock) -> None:
    proxy.has = 'remote'
    for _number in range(3):
        assert get(reads).status_int == 200
    assert proxy.asked == ['-', None, None, None]
    clock.now += _COLD_SECONDS
    assert get(reads).status_int == 200
    assert proxy.asked[4:] == ['-', None]


def test_what_is_back_is_preferred_again(
        reads: LocalFirst, proxy: Proxy) -> None:
    proxy.has = 'remote'
    get(reads)
    proxy.has = 'local'
    get(reads)
    get(reads)
    assert proxy.asked == ['-', None, None, '-']


def test_what_is_not_there_takes_one_round(
        reads: LocalFirst, proxy: Proxy) -> None:
    proxy.has = 'nothing'
    assert get(reads).status_int == get(reads).status_int == 404
    assert proxy.asked == ['-', '-']


def test_errors_beside_it_do_not_hide_that_s3_has_the_bytes(
        proxy: Proxy, clock: Clock) -> None:
    proxy.has, proxy.status = 'remote', 200

    def call(env: Any, start: Any) -> Any:
        if env.get('HTTP_X_BACKEND_DSS_IF_LOCAL'):
            list(proxy(env, lambda *_args: None))
            return Response(status=503)(env, start)
        return proxy(env, start)
    assert get(LocalFirst(call, Replicas(proxy), lambda _what: None,
                          clock=clock)).status_int == 200


@pytest.mark.parametrize('method, headers', [
    ('HEAD', {}), ('GET', {'X_Newest': 'true'})])
def test_others_are_left_alone(reads: LocalFirst, proxy: Proxy,
                               method: str, headers: Any) -> None:
    get(reads, method, **headers)
    assert proxy.asked == [None]


def test_the_proxy_still_judges_its_nodes(
        reads: LocalFirst, proxy: Proxy) -> None:
    proxy.has = 'nothing'
    get(reads)
    assert proxy.checked == 1


def test_it_remembers_no_more_than_it_may(
        reads: LocalFirst, proxy: Proxy, monkeypatch: Any) -> None:
    monkeypatch.setattr('swift_dss.proxy.reads.local_first._MAX_REMEMBERED', 3)
    proxy.has = 'remote'

    def rounds(number: int) -> int:
        del proxy.asked[:]
        Request.blank('%s%d' % (PATH, number)).get_response(reads)
        return len(proxy.asked)
    assert [rounds(number) for number in range(9)] == [2] * 9
    assert [rounds(number) for number in reversed(range(9))] == \
        [1] * 3 + [2] * 6


@pytest.mark.parametrize('has', ['local', 'remote', 'nothing'])
def test_a_get_that_has_ended_leaves_nothing(
        reads: LocalFirst, proxy: Proxy, monkeypatch: Any, has: str) -> None:
    monkeypatch.setattr(local_first, '_MAX_REMEMBERED', 3)
    proxy.has = has
    with kept_memory.pieces_of(local_first) as pieces:
        for number in range(300):
            Request.blank('%s%d' % (PATH, number)).get_response(reads)
        assert pieces() < 50


def test_we_hear_what_swifts_getters_tell() -> None:
    """What this leans on: each answer that is none goes through there."""
    import inspect

    from swift.proxy.controllers import base, obj
    from swift.proxy.server import Application
    assert list(inspect.signature(
        Application.check_response).parameters) == [
            'self', 'node', 'server_type', 'response', 'method', 'path',
            'body']
    for getter in (base.GetOrHeadHandler, obj.ECFragGetter):
        assert 'self.app.check_response(' in inspect.getsource(
            getter)


def test_other_cold_objects_never_make_one_seem_absent(
        proxy: Proxy, reads: LocalFirst, clock: Clock,
        monkeypatch: Any) -> None:
    # A worker may hear of more objects while a GET is under way than it
    # remembers.
    monkeypatch.setattr(local_first, '_MAX_REMEMBERED', 2)
    proxy.has = 'remote'
    inner = proxy.check_response

    def busy(node: Any, server_type: str, response: Any, method: str,
             path: str, body: Any = None) -> bool:
        if path == '/a/c/o':
            for number in range(9):
                proxy.check_response(node, server_type, response, method,
                                     '/a/c/%d' % number)
        return inner(node, server_type, response, method, path)

    proxy.check_response = busy  # type: ignore[method-assign]
    for _number in range(5):
        clock.now += _COLD_SECONDS + 1
        assert Request.blank(PATH).get_response(reads).status_int == 200
