"""Listings past Swift's own filters are those that the filters would write."""

from __future__ import annotations

import json
from typing import Any, Callable, List

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.edges.one_container import Container, filter_over
from swift.common.middleware import slo, symlink, versioned_writes
from swift.common.middleware.s3api.s3api import ListingEtagMiddleware
from swift.common.swob import Request

from swift_dss.proxy.admit.retry_after import RetryAfter

QUERY = 'format=json&dss=true'


class Between:
    """A filter of Swift's, as far as we know, that sees listings pass."""

    def __init__(self, app: Any, change: Callable[[bytes], bytes] = bytes,
                 before: Callable[[Any], None] = id) -> None:
        self.app = app
        self.change = change
        self.before = before
        self.seen: List[bytes] = []

    def __call__(self, env: Any, start: Any) -> Any:
        self.before(env)
        answer = Request(env).get_response(self.app)
        self.seen.append(answer.body)
        answer.body = self.change(answer.body)
        return answer(env, start)


Between.__module__ = 'swift.common.middleware.copy'


class Foreign(Between):
    """One that nobody knows."""


Foreign.__module__ = 'house.middleware.rows'


def filters_of_swift(app: Any) -> Any:
    """Those that parse listings, in their order."""
    app = symlink.filter_factory({})(app)
    app = versioned_writes.filter_factory(
        {}, allow_versioned_writes='yes', allow_object_versioning='yes')(app)
    return ListingEtagMiddleware(slo.filter_factory({})(app))


@pytest.fixture
def swift(tmp_path: Any) -> Container:
    made = Container(tmp_path)
    for class_id in (0, 25, 26, 7):
        made.put('of %d' % class_id, class_id)
    return made


@pytest.fixture
def dss(swift: Container, tmp_path: Any) -> Any:
    return filter_over(swift, tmp_path)


def ask(app: Any, query: str = QUERY, **env: Any) -> Any:
    answer = Request.blank('/v1/a/c?' + query, environ=env).get_response(app)
    assert answer.content_length == len(answer.body)
    return answer


def names_in(answer: Any) -> List[str]:
    return [row['name'] for row in json.loads(answer.body)]


def test_filters_in_between_see_no_row(dss: Any) -> None:
    between = Between(filters_of_swift(dss))
    answer = ask(RetryAfter(between))
    assert between.seen == [b'[]']
    assert answer.body == ask(filters_of_swift(dss)).body
    assert len(names_in(answer)) == 4
    assert answer.headers['X-Container-Object-Count'] == '9'
    assert answer.content_type == 'application/json'


@pytest.mark.parametrize('query', [
    'format=json', 'format=json&dss=false', ''])
def test_listings_without_classes_go_their_way(dss: Any, query: str) -> None:
    between = Between(filters_of_swift(dss))
    answer = ask(RetryAfter(between), query)
    assert between.seen == [answer.body]
    assert len(names_in(answer)) == 4


@pytest.mark.parametrize('query', [
    'dss=tier', 'dss-class=gold', 'dss-class=gold&dss=true', 'dss=true&'
    'delimiter=%20', 'dss=true&limit=2'])
def test_other_wishes_go_past_too(dss: Any, query: str) -> None:
    between = Between(filters_of_swift(dss))
    answer = ask(RetryAfter(between), query)
    assert between.seen == [b'[]']
    assert answer.body == ask(filters_of_swift(dss), query).body != b'[]'


ETAGS = st.sampled_from([
    'e' * 32, '0123456789abcdef' * 2, 'short', '', 'e' * 33,
    'e' * 32 + '; slo_etag=' + 'a' * 32, 'e' * 32 + '; s3_etag=abc-2',
    'e' * 32 + '; other=1',
    'e' * 32 + '; symlink_target=c/t; symlink_target_account=b',
    'e' * 32 + '; symlink_target=c/t; symlink_target_etag=e; '
    'symlink_target_bytes=5', 'a;b=' + 'c' * 28])
NAMES = st.one_of(st.text(min_size=1, max_size=12).filter(
    lambda name: name.isprintable()), st.sampled_from([
        '"hash": "x', '", "last_modified": "', 'a; slo_etag=1',
        '"hash": "' + 'e' * 32 + '"', 'o\\', 'x;x-dss-class=25']))


@given(st.lists(st.tuples(NAMES, ETAGS, st.sampled_from([0, 7, 25])),
                max_size=6, unique_by=lambda row: row[0]))
def test_the_bytes_are_those_of_the_filters(
        tmp_path_factory: Any, written: Any) -> None:
    folder = tmp_path_factory.mktemp('rows')
    swift = Container(folder)
    for name, etag, class_id in written:
        swift.put(name, class_id, etag=etag)
    dss = filter_over(swift, folder)
    assert ask(RetryAfter(filters_of_swift(dss))).body == \
        ask(filters_of_swift(dss)).body


def test_what_is_behind_an_etag_is_for_the_filters(
        swift: Container, dss: Any) -> None:
    swift.put('link', 0, etag='e' * 32 + '; symlink_target=c/t')
    between = Between(filters_of_swift(dss))
    answer = ask(RetryAfter(between))
    assert between.seen == [answer.body]
    assert '/v1/a/c/t' in [row.get('symlink_path')
                           for row in json.loads(answer.body)]


def test_a_filter_that_nobody_knows_sees_all_rows(dss: Any) -> None:
    foreign = Foreign(dss, lambda body: body.replace(b'of 25', b'secret'))
    answer = ask(RetryAfter(Between(foreign)))
    assert 'secret' in names_in(answer)
    assert len(foreign.seen) == 1


def test_a_filter_that_knows_more_rows_is_asked_again(dss: Any) -> None:
    more = json.dumps([{'name': 'more'}])[1:-1].encode()

    def add(body: bytes) -> bytes:
        return body[:-1] + (b', ' if len(body) > 2 else b'') + more + b']'
    between = Between(dss, add)
    assert len(names_in(ask(RetryAfter(between)))) == 5
    assert between.seen[0] == b'[]' != between.seen[1]


def test_requests_of_filters_get_their_rows(dss: Any) -> None:
    """Staticweb, say, lists a container to make a page of it."""
    inner: List[bytes] = []

    def look(env: Any) -> None:
        inner.append(Request(dict(
            env, PATH_INFO='/v1/a/another')).get_response(dss).body)
    answer = ask(RetryAfter(Between(dss, before=look)))
    assert len(json.loads(inner[0])) == 4
    assert len(names_in(answer)) == 4


@pytest.mark.parametrize('method', ['HEAD', 'PUT', 'POST', 'DELETE'])
def test_other_methods_are_left_alone(method: str) -> None:
    def app(env: Any, start: Any) -> Any:
        assert 'swift_dss.listing' not in env
        start('204 No Content', [('Content-Length', '0')])
        return [b'']
    answer = ask(RetryAfter(Between(app)), REQUEST_METHOD=method)
    assert answer.status_int == 204


def test_errors_are_told(swift: Container, dss: Any) -> None:
    swift.fails_at = 1
    answer = ask(RetryAfter(filters_of_swift(dss)), 'dss=true&dss-class=gold')
    assert (answer.status_int, answer.body) == (503, b'gone')
    assert ask(RetryAfter(filters_of_swift(dss)),
               'dss=perhaps').status_int == 400


def test_keystones_filter_is_known_by_its_other_name(dss: Any) -> None:
    class Keystone:
        def __init__(self, app: Any) -> None:
            self._app = app

        def __call__(self, env: Any, start: Any) -> Any:
            return self._app(env, start)
    Keystone.__module__ = 'keystonemiddleware.auth_token'
    between = Between(dss)
    ask(RetryAfter(Keystone(between)))
    assert between.seen == [b'[]']
