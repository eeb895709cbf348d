"""An object server without the bytes sends a GET elsewhere at once."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest
from support.nodes.three_replicas import BODY, Replica

from swift_dss.core.errors import RemoteUnavailable
from swift_dss.core.pressure import Backlog, Pressure
from swift_dss.core.residency import (
    STUB_SURPLUS, Extent, RemoteCopy, Residency, Tier)
from swift_dss.io import residency_store
from swift_dss.wire import names
from swift_dss.wire.node import pressure

NAME = '/a/c/o'
AT = '1000000005.00000'


@pytest.fixture
def stub(scratch_folder: str) -> Replica:
    replica = Replica(os.path.join(scratch_folder, 'r'))
    replica.put(NAME, X_Timestamp=AT)
    with open(replica.disk.data_path('o'), 'rb+') as target:
        target.truncate(len(BODY) + STUB_SURPLUS)
        residency_store.store(target.fileno(), Residency(
            len(BODY), (Extent(0, len(BODY), Tier.REMOTE),),
            RemoteCopy('s3', 'key', 'etag', 1.0)))
    return replica


def test_a_stub_is_elsewhere_and_older_versions_do_not_count(
        stub: Replica) -> None:
    answer = stub.ask('GET', NAME, {names.BACKEND_IF_LOCAL: '-'})
    assert answer.status_int == 404
    assert answer.headers[names.BACKEND_ELSEWHERE] == '1'
    # The proxy then takes nothing that is older for the newest.
    assert answer.headers['X-Backend-Timestamp'] == AT


def test_local_bytes_are_given(scratch_folder: str) -> None:
    replica = Replica(os.path.join(scratch_folder, 'w'))
    replica.put(NAME, X_Timestamp=AT)
    answer = replica.ask('GET', NAME, {names.BACKEND_IF_LOCAL: '-'})
    assert answer.status_int == 200 and answer.body == BODY


@pytest.mark.parametrize('headers', [
    {}, {names.BACKEND_IF_LOCAL: '-', 'Range': 'bytes=5-'},
    {names.BACKEND_IF_LOCAL: 'bytes=0-9', 'Range': 'bytes=5-9'}])
def test_the_rest_of_a_body_comes_from_anywhere(
        stub: Replica, headers: Any) -> None:
    """There is no daemon here: it would be asked."""
    answer = stub.ask('GET', NAME, headers)
    assert answer.status_int == 409
    assert names.BACKEND_UNAVAILABLE in answer.headers


def test_who_knows_that_s3_is_silent_does_not_ask(
        stub: Replica, monkeypatch: Any) -> None:
    asked = []
    monkeypatch.setattr('swift_dss.objserver.extents.open_fetch',
                        lambda *args: asked.append(args))
    publish(stub, Backlog(0, 1, 0, 1, 0.0, False, 99.0, 0.5, 1.0))
    answer = stub.ask('GET', NAME, {})
    assert answer.status_int == 409
    assert answer.headers[names.BACKEND_UNAVAILABLE] == '100'
    assert not asked


def test_an_s3_that_refuses_uploads_is_asked_for_bytes(
        stub: Replica, monkeypatch: Any) -> None:
    asked = []

    def ask(*args: Any) -> None:
        asked.append(args)
        raise RemoteUnavailable('no daemon here', 1)
    monkeypatch.setattr('swift_dss.objserver.extents.open_fetch', ask)
    publish(stub, Backlog(0, 1, 0, 1, 0.0, True, 99.0, 0.5, 1.0,
                          remote_refuses=True))
    stub.ask('GET', NAME, {})
    assert asked


def publish(stub: Replica, backlog: Backlog) -> None:
    """What a tier daemon would say of the device."""
    folder = os.path.join(stub.disk.node.conf.run_dir, 'state')
    os.makedirs(folder)
    with open(os.path.join(folder, 'sda.json'), 'wb') as target:
        target.write(pressure.encode(Pressure(
            1, 0, 1, None, True, time.time(), backlog)))
