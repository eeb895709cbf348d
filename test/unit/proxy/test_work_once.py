"""Work that is done once: for a process, and for a request."""

from __future__ import annotations

import os
from typing import Any, Dict, List

import pytest
from support.edges.fake_swift import FakeSwift, Logger
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import Request
from swift.proxy.controllers.base import get_cache_key, get_container_info

from swift_dss.io import waiting
from swift_dss.proxy.filter import DssMiddleware
from swift_dss.proxy.replicas import container_info
from swift_dss.proxy.target import Target

CONTAINER = '/v1/a/c'


def test_each_process_has_its_workers_once(
        monkeypatch: pytest.MonkeyPatch) -> None:
    begun: List[int] = []
    pid, is_green = [4], [False]
    monkeypatch.setattr(os, 'getpid', lambda: pid[0])
    monkeypatch.setattr(waiting, 'is_green', lambda: is_green[0])
    monkeypatch.setattr(waiting, 'spawn',
                        lambda *_call: begun.append(pid[0]))
    dss = DssMiddleware(FakeSwift(), {}, Logger())

    def ask() -> List[int]:
        begun.clear()
        Request.blank('/v1/a/c/o').get_response(dss)
        return begun

    assert ask() == []
    is_green[0] = True
    assert ask() == [4, 4, 4]
    assert ask() == []
    pid[0] = 5
    assert ask() == [5, 5, 5]
    assert ask() == []


class Counting(FakeSwift):
    """Counts the HEADs of containers."""

    heads = 0

    def __call__(self, env: Dict[str, Any], start: Any) -> Any:
        self.heads += env['REQUEST_METHOD'] == 'HEAD'
        return super().__call__(env, start)


def test_a_container_is_known_as_swift_knows_it() -> None:
    swift = Counting()
    swift.containers[CONTAINER] = HeaderKeyDict({
        'X-Container-Sysmeta-Dss-Class': '3',
        'X-Backend-Storage-Policy-Index': '1'})
    env = Request.blank(CONTAINER + '/o').environ
    told = container_info(env, swift, Target('a', 'c', 'o'))
    heads = swift.heads
    assert heads and told['sysmeta'] == {'dss-class': '3'}
    known = container_info(env, swift, Target('a', 'c', 'o'))
    assert known is env['swift.infocache'][get_cache_key('a', 'c')]
    assert swift.heads == heads
    swifts = get_container_info(env, swift)
    assert {name: known[name] for name in ('sysmeta', 'status')} == {
        name: swifts[name] for name in ('sysmeta', 'status')}
    assert int(known['storage_policy'] or 0) == swifts['storage_policy'] == 1
