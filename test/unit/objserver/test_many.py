"""Many HEADs and class POSTs in one request."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import sqlite3
from typing import Any, Dict, List, Tuple

import pytest
from support.nodes.three_replicas import Replica
from swift.common.swob import Request, wsgi_quote
from swift.container.server import ContainerController

from swift_dss.io import waiting
from swift_dss.wire import names, registers
from swift_dss.core.errors import DamagedRecord
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
              seconds: float, method: str, body: bytes,
              _connect_seconds: float) -> Any:
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


def test_newer_classes_than_were_looked_at_stay(
        replica: Replica, sent: List[Any], alone: List[str]) -> None:
    looked_at = '1000000050.00000'
    never = {names.SEEN_MAP_AT: registers.NEVER}
    seen = {names.SEEN_MAP_AT: looked_at}
    assert [each.status for each in ask(
        replica, post('a', looked_at, **never), post('a', **never),
        post('a', **seen), post('a', '1000000200.00000', **seen),
        post('a', '1000000200.00000'))] == [202, 409, 202, 409, 202]
    # Metadata is older than its object for nobody.
    assert replica.ask('POST', '/a/c/a', dict(never, **{
        'X-Timestamp': '1000000300.00000', 'X-Object-Meta-Color': 'blue'})
        ).status_int == 202
    assert replica.metadata('/a/c/a')['X-Object-Meta-Color'] == 'blue'


def test_no_request_sets_anything_but_classes(replica: Replica) -> None:
    before = replica.metadata('/a/c/a')
    plain = many.Ask('POST', '/sda/7/a/c/a', {
        'X-Timestamp': NOW, 'X-Object-Meta-Color': 'blue',
        'X-Backend-Storage-Policy-Index': '0'})
    for bad in (plain, *(many.Ask(method, plain.path, plain.headers)
                         for method in ('PUT', 'DELETE'))):
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


def test_rows_for_a_server_that_is_silent_are_saved_without_a_wait(
        replica: Replica, monkeypatch: Any) -> None:
    tried: List[str] = []
    saved: List[Tuple[Any, ...]] = []

    def fetch(host: str, *_args: Any) -> Any:
        tried.append(host)
        raise TimeoutError('silent')

    monkeypatch.setattr(waiting, 'fetch', fetch)
    monkeypatch.setattr(
        replica.opened('/a/c/a').manager, 'pickle_async_update',
        lambda *args: saved.append(args))
    monkeypatch.setattr('swift.obj.server.http_connect', lambda *_args:
                        pytest.fail('waited for once more'))
    others = {'X_Container_Device': 'sdc'}
    said = ask(replica, post('a'), post('b', **others))
    assert [each.status for each in said] == [202, 202]
    # Two databases of one server: it is waited for once.
    assert tried == ['127.0.0.1']
    assert [(args[:4], args[4]['op'], args[4]['db_state'], args[5])
            for args in saved] == [
        (('sda', 'a', 'c', name), 'PUT', 'unsharded',
         args[4]['headers']['x-meta-timestamp'])
        for name, args in zip('ab', saved)]
    assert {args[4]['headers']['x-content-type'] for args in saved} == {
        'a/b%s25' % names.LISTED_CLASS}


class Listing:
    """A container server, and its container, whose name is not ASCII."""

    def __init__(self, root: str) -> None:
        os.makedirs(os.path.join(root, 'sdb'))
        self.root = root
        self.server = ContainerController({
            'devices': root, 'mount_check': 'false', 'log_level': 'ERROR'})
        assert self.ask('PUT', wsgi_quote('/sdb/9/\xc3\xa4/\xc3\xa7'), {
            'X-Timestamp': OLD, 'X-Backend-Storage-Policy-Index': '0'}
            ).status_int == 201

    def ask(self, method: str, path: str, headers: Any,
            body: bytes = b'') -> Any:
        made = Request.blank(path, method=method, headers=headers, body=body)
        return made.get_response(self.server)

    def rows(self) -> List[Any]:
        # A listing has the server write what it has put off.
        assert self.ask('GET', wsgi_quote('/sdb/9/\xc3\xa4/\xc3\xa7'), {
            }).status_int == 200
        path, = glob.glob(self.root + '/sdb/containers/**/*.db',
                          recursive=True)
        with contextlib.closing(sqlite3.connect(path)) as database:
            return database.execute(
                'SELECT name, created_at, size, content_type, etag, deleted, '
                'storage_policy_index FROM object ORDER BY name').fetchall()


#: Kept by the container before the POSTs: timestamp and whether it is there.
BEFORE = {'new': None, 'old': ('0999999999.00000', 'PUT'),
          'same': (OLD, 'PUT'), 'newer': ('1000000200.00000', 'PUT'),
          'gone': ('1000000050.00000', 'DELETE')}


def test_a_container_has_the_rows_of_requests_that_came_alone(
        replica: Replica, scratch_folder: str, monkeypatch: Any) -> None:
    folder = '/\xc3\xa4/\xc3\xa7/'
    listings = [Listing(os.path.join(scratch_folder, name))
                for name in ('together', 'alone')]
    paths = {name: folder + name + '\xc3\xb6' for name in BEFORE}
    for name, row in BEFORE.items():
        replica.put(wsgi_quote(paths[name]), X_Timestamp=OLD)
        for listing in listings if row else ():
            at, method = row or ('', '')
            assert listing.ask(method, wsgi_quote('/sdb/9' + paths[name]), {
                'X-Timestamp': at, 'X-Size': '3', 'X-Etag': 'before',
                'X-Content-Type': 'c/d', 'X-Backend-Storage-Policy-Index': '0'
                }).status_int // 100 == 2
    before = listings[0].rows()
    assert before == listings[1].rows()

    def fetch(_host: str, _port: int, path: str, headers: Any, _most: int,
              _seconds: float, method: str, body: bytes, _at: float) -> Any:
        assert method == 'UPDATE'
        answer = listings[0].ask(method, path, headers, body)
        return answer.status_int, answer.headers, answer.body

    def update(op: str, account: str, container: str, obj: str, _host: Any,
               _partition: Any, _device: Any, headers: Any, *_args: Any,
               **_words: Any) -> None:
        path = '/sdb/9/%s/%s/%s' % (account, container, obj)
        assert listings[1].ask(op, wsgi_quote(path.encode().decode('latin-1')),
                               headers).status_int == 201

    monkeypatch.setattr(waiting, 'fetch', fetch)
    monkeypatch.setattr(replica.server, 'async_update', update)
    asked = [many.Ask('POST', '/sda/7' + path, post('a').headers)
             for path in paths.values()]
    assert {each.status for each in ask(replica, *asked)} == {202}
    together = listings[0].rows()
    assert together != before
    asked_alone = post('a').headers
    fresh = Replica(os.path.join(scratch_folder, 'fresh'))
    monkeypatch.setattr(fresh.server, 'async_update', update)
    for path in paths.values():
        fresh.put(wsgi_quote(path), X_Timestamp=OLD)
        assert fresh.ask('POST', wsgi_quote(path), asked_alone
                         ).status_int == 202
    assert listings[1].rows() == together


@pytest.mark.parametrize('path, headers', [
    ('/sda/7/a/c/ł', {}), ('/sda/7/a/c/a', {'X-Some': 'ł'}),
    ('/sda/7/a/c/a', {'X-ł': '1'})])
def test_text_that_no_request_has_is_refused(
        path: str, headers: Dict[str, str]) -> None:
    with pytest.raises(DamagedRecord):
        many.decode_question(many.encode_question([
            many.Ask('HEAD', path, headers)]))
