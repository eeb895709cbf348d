"""Requests: what is tried again, what is not, and who may send them."""

from __future__ import annotations

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytest.importorskip('aiohttp')
pytest.importorskip('tenacity')
pytest.importorskip('keystoneauth1')

from swift_dss.client.fs.errors import is_unsure
from swift_dss.client.fs.login import Login
from swift_dss.client.fs.store import Request, Store

BODY = b'0123456789' * 1000


class Handler(BaseHTTPRequestHandler):
    """Answers what the test has planned, request by request."""

    protocol_version = 'HTTP/1.1'

    def answer(self):
        length = int(self.headers.get('Content-Length') or 0)
        self.server.seen.append((
            self.command, self.path, dict(self.headers),
            self.rfile.read(length)))
        plan = self.server.plan
        step = plan.pop(0) if len(plan) > 1 else plan[0]
        step(self)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer

    def say(self, status, body=b'', **headers):
        self.send_response(status)
        self.send_header('Content-Length', str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace('_', '-'), value)
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    made = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    made.seen, made.plan = [], [lambda handler: handler.say(200, BODY)]
    made.url = 'http://127.0.0.1:%d' % made.server_address[1]
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def with_store(server, action, **words):
    async def run():
        store = Store(Login({'storage_url': server.url + '/v1/AUTH_a',
                             'token': 't'}), **words)
        try:
            return await action(store)
        finally:
            await store.close()
    return asyncio.run(run())


def send(server, *request, **words):
    return with_store(server, lambda store: store.send(Request(*request)),
                      **words)


def later(status, **headers):
    return lambda handler: handler.say(status, b'later', **headers)


def cut(handler):
    handler.send_response(200)
    handler.send_header('Content-Length', str(len(BODY)))
    handler.end_headers()
    start = int(handler.headers.get('Range', 'bytes=0-')[6:-1] or 0)
    handler.wfile.write(BODY[start:start + 4000])
    handler.close_connection = True


def rest(handler):
    start = int(handler.headers['Range'][6:-1])
    handler.say(206, BODY[start:])


def infos(server, count, **words):
    async def ask(store):
        return await asyncio.gather(*(
            store.info() for _ in range(count)), **words)
    return with_store(server, ask)


def test_many_who_want_to_know_the_cluster_ask_once(server):
    server.plan[:] = [lambda handler: handler.say(200, b'{"dss": {}}')]
    assert infos(server, 20) == [{'dss': {}}] * 20
    assert [seen[1] for seen in server.seen] == ['/info']


def test_a_question_about_the_cluster_that_failed_is_asked_again(server):
    async def ask(store):
        with pytest.raises(OSError):
            await store.info()
        first, second = (asyncio.ensure_future(store.info())
                         for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        return await second
    server.plan[:] = [later(400), lambda handler: handler.say(200, b'{}')]
    assert with_store(server, ask) == {}
    assert len(server.seen) == 2


@pytest.mark.parametrize('status', [408, 429, 500, 502, 503, 504])
def test_it_tries_again_where_that_may_help(server, status):
    server.plan[:0] = [later(status)]
    answer = send(server, 'PUT', 'c', 'o', (), {}, (b'ab', b'c'))
    assert answer.body == BODY
    assert [seen[3] for seen in server.seen] == [b'abc', b'abc']


@pytest.mark.parametrize('status, kind', [
    (400, OSError), (403, PermissionError), (404, FileNotFoundError),
    (507, OSError)])
def test_it_does_not_where_that_cannot_help(server, status, kind):
    server.plan[:0] = [later(status)]
    with pytest.raises(kind, match='later'):
        send(server, 'GET', 'c', 'o')
    assert len(server.seen) == 1


def drop(handler):
    handler.close_connection = True


@pytest.mark.parametrize('plan, unsure', [
    ([403], False), ([412], False), ([429, 412], False),
    ([503, 412], True), ([drop, 412], True), ([drop, 403], True),
    ([503], True), ([507], True), ([504, 503, 404], True)])
def test_an_error_says_whether_the_request_may_be_done(
        server, plan, unsure):
    """One server may have taken it, and the answer be of the next try."""
    server.plan[:] = [step if callable(step) else later(step)
                      for step in plan]
    with pytest.raises(OSError) as caught:
        send(server, 'PUT', 'c', 'o', (), {}, (b'ab',), tries=3)
    assert is_unsure(caught.value) == unsure


def test_tries_end(server):
    server.plan[:] = [later(503)]
    with pytest.raises(OSError, match='503'):
        send(server, 'GET', 'c', 'o', tries=3)
    assert len(server.seen) == 3


def test_a_server_that_asks_for_long_patience_gets_none(server):
    server.plan[:] = [later(503, Retry_After='3600')]
    with pytest.raises(OSError, match='503'):
        send(server, 'GET', 'c', 'o')
    assert len(server.seen) == 1


def test_a_body_that_breaks_off_is_asked_for_again(server):
    server.plan[:0] = [cut]
    assert send(server, 'GET', 'c', 'o').body == BODY


def test_a_stream_goes_on_where_it_broke_off(server):
    server.plan[:] = [cut, rest]

    async def read(store):
        return b''.join([chunk async for chunk in store.stream(
            Request('GET', 'c', 'o'), len(BODY), 'abc')])
    assert with_store(server, read) == BODY
    assert [(seen[2].get('Range'), seen[2]['If-Match'])
            for seen in server.seen] == [(None, 'abc'),
                                         ('bytes=4000-', 'abc')]


def test_a_server_that_is_not_there_is_named(server):
    server.shutdown()
    server.server_close()
    with pytest.raises(ConnectionError, match='dss://c/o'):
        send(server, 'GET', 'c', 'o', tries=1)


def test_names_are_quoted_once(server):
    send(server, 'GET', 'c d', 'a%2F/ü?#')
    assert server.seen[0][1] == '/v1/AUTH_a/c%20d/a%252F/%C3%BC%3F%23'


def test_listings_come_page_by_page(server, monkeypatch):
    monkeypatch.setattr('swift_dss.client.fs.store._PAGE_ROWS', 2)
    pages = [[{'name': 'a'}, {'subdir': 'b/'}], [{'name': 'c'}]]
    server.plan[:] = [lambda handler: handler.say(
        200, json.dumps(pages.pop(0)).encode())]
    rows = with_store(server, lambda store: store.rows('c', prefix='p q'))
    assert rows == [{'name': 'a'}, {'subdir': 'b/'}, {'name': 'c'}]
    assert [seen[1] for seen in server.seen] == [
        '/v1/AUTH_a/c?format=json&limit=2&prefix=p%20q',
        '/v1/AUTH_a/c?format=json&limit=2&marker=b%2F&prefix=p%20q']


# -- logging in -----------------------------------------------------------

def log_in(server, options, monkeypatch, env=None, refused=None):
    for name in ('ST_AUTH', 'ST_USER', 'ST_KEY'):
        monkeypatch.delenv(name, raising=False)
    for name, value in (env or {}).items():
        monkeypatch.setenv(name, value)
    login = Login(options)
    first = login.access()
    return first, (login.access(first.token) if refused else None)


def v1(server):
    tokens = iter(('one', 'two', 'three'))

    def answer(handler):
        if handler.headers.get('X-Auth-Key') != 'secret':
            handler.say(401)
            return
        handler.say(200, X_Auth_Token=next(tokens),
                    X_Storage_Url=server.url + '/v1/AUTH_a')
    server.plan[:] = [answer]


def v3(server):
    body = json.dumps({'token': {
        'methods': ['application_credential'], 'user': {
            'domain': {'id': 'd', 'name': 'd'}, 'id': 'u', 'name': 'u'},
        'issued_at': '2024-01-01T00:00:00.000000Z',
        'expires_at': '2099-01-01T00:00:00.000000Z',
        'project': {'id': 'p', 'name': 'p',
                    'domain': {'id': 'd', 'name': 'd'}},
        'catalog': [{'type': 'object-store', 'name': 'swift', 'id': 's',
                     'endpoints': [{
                         'interface': 'public', 'region': 'here',
                         'region_id': 'here', 'id': 'e',
                         'url': server.url + '/v1/AUTH_p'}]}]}}).encode()
    root = json.dumps({'version': {
        'id': 'v3.14', 'status': 'stable', 'links': [
            {'rel': 'self', 'href': server.url + '/v3/'}]}}).encode()
    server.plan[:] = [lambda handler: handler.say(
        201, body, X_Subject_Token='v3-token',
        Content_Type='application/json') if handler.command == 'POST'
        else handler.say(200, root, Content_Type='application/json')]


def test_v1_by_words_and_by_environment(server, monkeypatch):
    v1(server)
    words = {'auth_url': server.url + '/auth/v1.0', 'user': 'a:b',
             'key': 'secret'}
    first, again = log_in(server, words, monkeypatch, refused=True)
    assert (first.storage_url, first.token, again.token) == (
        server.url + '/v1/AUTH_a', 'one', 'two')
    first, _ = log_in(server, {}, monkeypatch, env={
        'ST_AUTH': words['auth_url'], 'ST_USER': 'a:b', 'ST_KEY': 'secret'})
    assert first.token == 'three'


def test_wrong_credentials_are_no_permission(server, monkeypatch):
    v1(server)
    with pytest.raises(PermissionError):
        log_in(server, {'auth_url': server.url + '/auth/v1.0', 'user': 'a:b',
                        'key': 'wrong'}, monkeypatch)
    with pytest.raises(ValueError, match='user and key'):
        log_in(server, {'auth_url': server.url}, monkeypatch)


V3_WORDS = [
    ('v3password', {'username': 'u', 'password': 'p', 'project_name': 'p',
                    'user_domain_name': 'd', 'project_domain_name': 'd'}),
    ('v3applicationcredential', {'application_credential_id': 'i',
                                 'application_credential_secret': 's'})]


@pytest.mark.parametrize('kind, auth', V3_WORDS)
def test_v3_by_words(server, monkeypatch, kind, auth):
    v3(server)
    first, _ = log_in(server, {'auth_type': kind, 'auth': dict(
        auth, auth_url=server.url + '/v3')}, monkeypatch)
    assert (first.storage_url, first.token) == (
        server.url + '/v1/AUTH_p', 'v3-token')
    sent = json.loads(next(seen[3] for seen in server.seen
                           if seen[0] == 'POST'))
    assert sent['auth']['identity']['methods'] == [
        'password' if kind == 'v3password' else 'application_credential']


def test_v3_by_environment_and_clouds_yaml(server, monkeypatch, tmp_path):
    v3(server)
    (tmp_path / 'clouds.yaml').write_text(json.dumps({'clouds': {'mine': {
        'auth_type': 'v3applicationcredential', 'region_name': 'here',
        'auth': {'auth_url': server.url + '/v3',
                 'application_credential_id': 'i',
                 'application_credential_secret': 's'}}}}))
    monkeypatch.setenv('OS_CLIENT_CONFIG_FILE',
                       str(tmp_path / 'clouds.yaml'))
    for options, env in (
            ({'cloud': 'mine'}, {}), ({}, {'OS_CLOUD': 'mine'}),
            ({}, {'OS_AUTH_TYPE': 'v3applicationcredential',
                  'OS_AUTH_URL': server.url + '/v3',
                  'OS_APPLICATION_CREDENTIAL_ID': 'i',
                  'OS_APPLICATION_CREDENTIAL_SECRET': 's'})):
        with monkeypatch.context() as inner:
            first, _ = log_in(server, options, inner, env=env)
        assert first.token == 'v3-token'
    with pytest.raises(PermissionError, match='no usable credentials'):
        log_in(server, {'cloud': 'none'}, monkeypatch)


def test_a_refused_token_is_renewed_once(server, monkeypatch):
    answers = iter([401, 200, 401, 401])

    def answer(handler):
        if handler.path.startswith('/auth'):
            handler.say(200, X_Auth_Token='t%d' % len(server.seen),
                        X_Storage_Url=server.url + '/v1/AUTH_a')
        else:
            handler.say(next(answers))
    server.plan[:] = [answer]

    async def twice():
        store = Store(Login({'auth_url': server.url + '/auth/v1.0',
                             'user': 'a:b', 'key': 'secret'}))
        try:
            first = await store.send(Request('GET', 'c', 'o'))
            with pytest.raises(PermissionError):
                await store.send(Request('GET', 'c', 'o'))
            return first.status
        finally:
            await store.close()
    assert asyncio.run(twice()) == 200
    assert [seen[1].split('/')[1] for seen in server.seen] == [
        'auth', 'v1', 'auth', 'v1', 'v1', 'auth', 'v1']
