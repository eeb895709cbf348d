"""Many HEADs and class POSTs in one request."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List

import pytest
from support.nodes.three_replicas import Replica
from swift.common.swob import Request

from swift_dss.io import waiting
from swift_dss.wire import names, registers
from swift_dss.wire.large import many

OLD, NOW = '1000000000.00000', '1000000100.00000'


@pytest.fixture
def replica(scratch_folder: str) -> Replica:
    made = Replica(os.path.join(scratch_folder, 'r'))
    for name in 'ab':
        made.put('/a/c/' + name, X_Timestamp=OLD, X_Object_Meta_Color='red')
    return made


@pytest.fixture
def sent(monkeypatch: Any) -> List[Any]:
    """What goes to container servers at once; they take it."""
    calls: List[Any] = []

    def fetch(host: str, port: int, path: str, headers: Any, most: int,
              seconds: float, method: str, body: bytes) -> Any:
        calls.append((host, port, path, method, json.loads(body)))
        return 202, {}, b''

    monkeypatch.setattr(waiting, 'fetch', fetch)
    return calls


@pytest.fixture
def alone(replica: Replica, monkeypatch: Any) -> List[str]:
    """Objects whose containers were told by requests of their own."""
    calls: List[str] = []

    def update(op: str, account: str, container: str, obj: str,
               *_args: Any, **_words: Any) -> None:
        calls.append(obj)

    monkeypatch.setattr(replica.server, 'async_update', update)
    return calls


def post(name: str, at: str = NOW, **headers: str) -> many.Ask:
    return many.Ask('POST', '/sda/7/a/c/' + name, dict({
        'X-Backend-Storage-Policy-Index': '0', names.TRANSIENT_MAP: '25',
        'X-Container-Host': '127.0.0.1:1', 'X-Container-Device': 'sdb',
        'X-Container-Partition': '9',
        'X-Container-Root-Db-State': 'unsharded'},
        **registers.class_alone(at), **{
            key.replace('_', '-'): value
            for key, value in headers.items()}))


def ask(replica: Replica, *asked: many.Ask) -> List[many.Said]:
    answer = Request.blank(
        names.MANY_PATH, method='POST',
        body=many.encode_question(asked)).get_response(replica.server)
    assert answer.status_int == 200, answer.body
    return many.decode_answer(answer.body, len(asked))


def test_each_is_answered_as_if_it_came_alone(
        replica: Replica, sent: List[Any], alone: List[str]) -> None:
    said = ask(replica, post('a'), post('none'), post('b', OLD),
               many.Ask('HEAD', '/sda/7/a/c/a', {
                   'X-Backend-Storage-Policy-Index': '0'}))
    assert [each.status for each in said] == [202, 404, 409, 200]
    assert said[3].headers[names.TRANSIENT_MAP] == '25'
    assert said[3].headers['X-Object-Meta-Color'] == 'red'
    # As after a POST by itself.
    one = post('b')
    assert replica.ask('POST', '/a/c/b', one.headers).status_int == 202
    found, wanted = (replica.metadata('/a/c/' + name) for name in 'ab')
    assert found.pop('name') == '/a/c/a' and wanted.pop('name')
    assert found == wanted
    assert replica.meta_names('/a/c/a') == replica.meta_names('/a/c/b')


def test_no_request_sets_anything_but_classes(replica: Replica) -> None:
    before = replica.metadata('/a/c/a')
    plain = many.Ask('POST', '/sda/7/a/c/a', {
        'X-Timestamp': NOW, 'X-Object-Meta-Color': 'blue',
        'X-Backend-Storage-Policy-Index': '0'})
    for bad in (plain, plain._replace(method='PUT'),
                plain._replace(method='DELETE')):
        answer = Request.blank(
            names.MANY_PATH, method='POST', body=many.encode_question([
                post('b'), bad])).get_response(replica.server)
        assert answer.status_int == 400
    sneaky = post('a', X_Object_Meta_Color='blue')
    assert [each.status for each in ask(replica, sneaky)] == [202]
    assert replica.metadata('/a/c/a')['X-Object-Meta-Color'] == 'red'
    assert before['X-Object-Meta-Color'] == 'red'
    assert names.TRANSIENT_MAP not in replica.metadata('/a/c/b')


@pytest.mark.parametrize('body', [b'', b'{}', b'[]', b'{"v": 1, "ask": 3}',
                                  b'\xff', b'{"v": 2, "ask": []}'])
def test_other_bodies_are_refused(replica: Replica, body: bytes) -> None:
    answer = Request.blank(names.MANY_PATH, method='POST', body=body
                           ).get_response(replica.server)
    assert answer.status_int in (400, 413)
    assert Request.blank(names.MANY_PATH).get_response(
        replica.server).status_int == 405


def test_a_containers_rows_go_together(
        replica: Replica, sent: List[Any], alone: List[str]) -> None:
    ask(replica, post('a'), post('b'))
    (host, port, path, method, rows), = sent
    assert (host, port, path, method) == (
        '127.0.0.1', 1, '/sdb/9/a/c', 'UPDATE')
    assert not alone
    assert [row['name'] for row in rows] == ['a', 'b']
    assert {(row['created_at'], row['content_type'], row['size'],
             row['deleted'], row['ctype_timestamp']) for row in rows} == {
        (OLD, 'a/b%s%d' % (names.LISTED_CLASS, 25), 100, 0, NOW)}


@pytest.mark.parametrize('headers', [
    {'X_Container_Root_Db_State': 'sharding'},
    {'X_Container_Root_Db_State': ''},
    {'X_Backend_Quoted_Container_Path': '.shards_a/c-1'}])
def test_rows_of_a_sharded_container_go_alone(
        replica: Replica, sent: List[Any], alone: List[str],
        headers: Dict[str, str]) -> None:
    ask(replica, post('a', **headers), post('b'))
    assert [row['name'] for row in sent[0][4]] == ['b']
    assert alone == ['a']


@pytest.mark.parametrize('fails', ['answer', 'connection'])
def test_rows_that_are_not_taken_go_alone(
        replica: Replica, alone: List[str], monkeypatch: Any,
        fails: str) -> None:
    def fetch(*_args: Any) -> Any:
        if fails == 'connection':
            raise OSError('refused')
        return 404, {}, b''

    monkeypatch.setattr(waiting, 'fetch', fetch)
    assert [each.status for each in ask(replica, post('a'), post('b'))] \
        == [202, 202]
    assert sorted(alone) == ['a', 'b']
