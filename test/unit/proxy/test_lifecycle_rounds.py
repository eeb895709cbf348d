"""Lifecycle rounds and restorations, over a fake proxy server."""

from __future__ import annotations

import json
import time
from typing import Any, Callable, Dict, List, Set

import pytest
from support.edges.fake_swift import FakeSwift
from support.waiting_forms import in_green
from swift.common.swob import HTTPForbidden, Request, Response
from swift.common.utils import Timestamp

from swift_dss.cli import main
from swift_dss.core.lifecycle import Lifecycle, Rule, Transition, When
from swift_dss.core.spans import ClassMap
from swift_dss.io import waiting
from swift_dss.proxy.bodies import stored
from swift_dss.proxy.filter import DssMiddleware
from swift_dss.proxy.large.records import Record, Records
from swift_dss.proxy.lifecycle.buckets import ACCOUNT
from swift_dss.proxy.lifecycle.worker import look
from swift_dss.proxy.target import Target
from swift_dss.proxy.work.clock import Clock
from swift_dss.proxy.work.leader import Leader
from swift_dss.proxy.work.rows import Rows, Unreachable, own_env
from swift_dss.wire import names

TABLE = (
    '[class:0]\nname = unclassified\nrank = 0\n'
    '[class:25]\nname = gold\nrank = 9\n'
    '[class:26]\nname = silver\nrank = 8\ns3_storage_class = STANDARD_IA\n'
    '[class:27]\nname = bronze\nrank = 7\ns3_storage_class = GLACIER\n'
    '[class:28]\nname = warm\nrank = 6\npin = true\ns3_restore = true\n')
DAY = 86400
NOW_AND_HERE = When(date=0)


#: Of a cluster without other clocks.
CLOCK = Clock(lambda _env: None, None)


class Crash(BaseException):
    """The proxy dies."""


class Logger:
    """Counts what is counted."""

    def __init__(self) -> None:
        self.counted: List[str] = []

    def increment(self, name: str) -> None:
        self.counted.append(name)

    def warning(self, *_arguments: Any) -> None:
        pass

    def exception(self, text: str, *arguments: Any) -> None:
        raise AssertionError(text % arguments)


class Swift(FakeSwift):
    """With times, listings and rows; whatever is older than the data, or the
    newest POST, is refused."""

    def __init__(self) -> None:
        super().__init__()
        #: Called before each request that fits.
        self.before: Dict[Any, Callable[[], Any]] = {}
        #: Called once such a request has its answer.
        self.after: Dict[Any, Callable[[], Any]] = {}
        self.residency = '1'
        #: Timestamps of deletions by path.
        self.deleted: Dict[str, str] = {}
        #: By path, which GET from now on fails.
        self.unread: Dict[str, int] = {}
        #: Paths that no POST changes.
        self.unposted: Set[str] = set()

    def __call__(self, env: Any, start: Any) -> Any:
        event = self.before.pop(
            (env['REQUEST_METHOD'], env['PATH_INFO']), None)
        if event is not None:
            event()
        if env['REQUEST_METHOD'] == 'GET' and env['PATH_INFO'] in self.unread:
            self.unread[env['PATH_INFO']] -= 1
            if not self.unread[env['PATH_INFO']]:
                return Response(status=503)(env, start)
        if env['REQUEST_METHOD'] == 'POST' and \
                env['PATH_INFO'] in self.unposted:
            return Response(status=503)(env, start)
        answer = super().__call__(env, start)
        event = self.after.pop(
            (env['REQUEST_METHOD'], env['PATH_INFO']), None)
        if event is not None:
            event()
        return answer

    def _simple(self, request: Any, kept: Any) -> Any:
        if request.method == 'GET':
            return self._listing(request)
        return super()._simple(request, kept)

    def _listing(self, request: Any) -> Any:
        top = request.path_info + '/'
        rows = []
        for path in sorted(self.objects):
            name = path[len(top):]
            if path.startswith(top + request.params.get('prefix', '')) \
                    and name > request.params.get('marker', ''):
                body, headers = self.objects[path]
                class_map = stored.effective_map(headers)
                rows.append({
                    'name': name, 'bytes': len(body), 'hash': 'e',
                    'content_type': headers.get('Content-Type', 'a/b') + (
                        ';x-dss-class=%d' % class_map.rest
                        if class_map else ''),
                    'last_modified': Timestamp(headers[
                        'X-Timestamp']).isoformat})
        return Response(body=json.dumps(rows[:2]).encode(), request=request)

    def _put(self, request: Any) -> Any:
        answer = super()._put(request)
        headers = self.objects[request.path_info][1]
        headers['X-Timestamp'] = headers['X-Backend-Data-Timestamp'] = \
            Timestamp.now().internal
        headers['Content-Type'] = request.headers.get('Content-Type', 'a/b')
        headers[names.BACKEND_AT_HAND] = self.residency
        return answer

    def _post(self, request: Any) -> Any:
        known = self.objects.get(request.path_info)
        if known is None:
            return Response(status=404, request=request)
        kept = {name: known[1][name] for name in (
            'X-Timestamp', 'X-Backend-Data-Timestamp', 'Content-Type',
            names.BACKEND_AT_HAND)}
        at = request.headers.get(names.MAP_AT) if request.headers.get(
            names.META_AT) else request.headers.get('X-Timestamp')
        at = at or Timestamp.now().internal
        if at <= kept['X-Backend-Data-Timestamp'] or (
                not request.headers.get(names.META_AT)
                and at <= kept['X-Timestamp']):
            return Response(status=409, request=request,
                            headers={names.MAP_AT: at})
        answer = super()._post(request)
        if answer.status_int == 202:
            headers = self.objects[request.path_info][1]
            headers.update(kept)
            if not request.headers.get(names.META_AT):
                headers['X-Timestamp'] = at
                if names.TRANSIENT_MAP in headers:
                    headers.setdefault(names.MAP_AT, at)
                headers['Content-Type'] = request.headers.get(
                    'Content-Type') or kept['Content-Type']
        return answer

    def _delete(self, request: Any) -> Any:
        known = self.objects.get(request.path_info)
        at = request.headers.get('X-Timestamp')
        if known is not None and at and \
                at <= known[1]['X-Backend-Data-Timestamp']:
            return Response(status=409, request=request)
        self.deleted[request.path_info] = at
        return super()._delete(request)

    def age(self, path: str, days: float) -> None:
        """Its data is so old."""
        headers = self.objects[path][1]
        headers['X-Timestamp'] = headers['X-Backend-Data-Timestamp'] = \
            Timestamp(time.time() - days * DAY).internal


@pytest.fixture
def swift() -> Swift:
    return Swift()


def proxy_of(swift: Swift, tmp_path: Any, **options: str) -> Any:
    (tmp_path / 'classes').write_text(TABLE)
    return DssMiddleware(swift, dict({
        'class_table': str(tmp_path / 'classes'), 'admission': 'false',
        'lifecycle_per_second': '100000'}, **options), Logger())


@pytest.fixture
def dss(swift: Swift, tmp_path: Any) -> Any:
    return proxy_of(swift, tmp_path)


def test_without_an_event_loop_workers_end(
        swift: Swift, dss: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else they hold up whoever turns the loop next."""
    begun: List[Any] = []
    monkeypatch.setattr(waiting, 'spawn', lambda *work: begun.append(work))
    with in_green():
        assert call(dss, 'PUT', '/v1/AUTH_a/c/o').status_int == 201
    assert len(begun) == 3
    for work, *arguments in begun:
        work(*arguments)


def call(app: Any, method: str, path: str, body: bytes = b'x' * 100,
         env: Any = None, **headers: str) -> Any:
    request = Request.blank(path, method=method, headers={
        name.replace('_', '-'): value for name, value in headers.items()},
        body=body if method == 'PUT' else b'')
    request.environ.update(env or {})
    return request.get_response(app)


def set_rules(dss: Any, *rules: Rule) -> None:
    assert call(dss, 'POST', '/v1/a/c', env={
        names.ENV_LIFECYCLE: Lifecycle(rules) if rules else None
        }).status_int == 204


def rule(*transitions: Transition, **fields: Any) -> Rule:
    return Rule('r', True, transitions=transitions, **fields)


def to(storage_class: str, when: When = NOW_AND_HERE) -> Transition:
    return Transition(when, storage_class)


def buckets_of(dss: Any) -> Any:
    return dss.lifecycles.buckets


def restores_of(dss: Any) -> Any:
    return dss.lifecycles.restores


def work(job: Any) -> None:
    job.work(own_env(), lambda: True)


def class_of(swift: Swift, path: str = '/v1/a/c/o') -> Any:
    class_map = stored.effective_map(swift.objects[path][1])
    return class_map and class_map.rest


def rows_of(swift: Swift, kind: str) -> List[str]:
    top = '/v1/%s/%s/' % (ACCOUNT, kind)
    return [path for path in swift.objects if path.startswith(top)]


def make_due(swift: Swift, kind: str) -> None:
    for path in rows_of(swift, kind):
        swift.objects[path][1].update({
            'X-Object-Meta-Until': '0',
            'Content-Type': 'application/json;until=0.000'})


# -- rules -------------------------------------------------------------------

def test_only_what_our_s3api_says_is_a_configuration(
        dss: Any, swift: Swift) -> None:
    call(dss, 'POST', '/v1/a/c', X_Container_Sysmeta_Dss_Lifecycle_0='x')
    assert not swift.containers['/v1/a/c']
    set_rules(dss, rule(to('GLACIER')))
    assert len(rows_of(swift, 'buckets')) == 1
    set_rules(dss)
    assert not swift.containers['/v1/a/c']


def test_rules_that_cannot_be_noted_are_not_set(
        dss: Any, swift: Swift, monkeypatch: Any) -> None:
    def fail(*_arguments: Any) -> None:
        raise Unreachable('no')
    monkeypatch.setattr(Rows, 'put', fail)
    assert call(dss, 'POST', '/v1/a/c', env={names.ENV_LIFECYCLE: Lifecycle(
        (rule(to('GLACIER')),))}).status_int == 503
    assert not swift.containers.get('/v1/a/c')


def test_who_may_not_post_sets_no_rules(dss: Any, swift: Swift) -> None:
    answer = call(dss, 'POST', '/v1/a/c', env={
        names.ENV_LIFECYCLE: Lifecycle((rule(to('GLACIER')),)),
        'swift.authorize': lambda request: HTTPForbidden()})
    assert answer.status_int == 403
    assert not rows_of(swift, 'buckets')


def test_a_round_changes_what_is_due(dss: Any, swift: Swift) -> None:
    for name in ('old', 'new', 'tagged', 'gone', 'other'):
        call(dss, 'PUT', '/v1/a/c/' + name, X_Object_Meta_Color='red')
    swift.objects['/v1/a/c/tagged'][1][names.S3_TAGGING] = 'k=v'
    swift.age('/v1/a/c/old', 31)
    set_rules(dss, rule(to('GLACIER', When(days=30)), prefix='o'),
              rule(to('STANDARD_IA'), tags=(('k', 'v'),)),
              rule(expiration=NOW_AND_HERE, prefix='gone'))
    work(buckets_of(dss))
    assert class_of(swift, '/v1/a/c/old') == 27
    assert class_of(swift, '/v1/a/c/tagged') == 26
    assert class_of(swift, '/v1/a/c/new') is None
    assert class_of(swift, '/v1/a/c/other') is None
    assert '/v1/a/c/gone' not in swift.objects
    for name in ('seen', 'transitions', 'expired', 'rounds'):
        assert 'dss.lifecycle.' + name in dss.logger.counted
    # A round that finds nothing to do changes nothing, and is not due yet.
    swift.requests.clear()
    work(buckets_of(dss))
    assert [method for method, path, _ in swift.requests
            if path.startswith('/v1/a/')] == []
    make_due(swift, 'buckets')
    work(buckets_of(dss))
    assert [method for method, path, _ in swift.requests
            if method in ('POST', 'DELETE') and path.startswith('/v1/a/')
            ] == []


def test_days_count_from_the_upload_whatever_was_done_since(
        dss: Any, swift: Swift) -> None:
    call(dss, 'PUT', '/v1/a/c/o')
    swift.age('/v1/a/c/o', 40)
    set_rules(dss, rule(to('STANDARD_IA', When(days=30)),
                        to('GLACIER', When(days=90))))
    work(buckets_of(dss))
    assert class_of(swift) == 26
    # Its row looks young by now, and its class was given by nobody.
    swift.age('/v1/a/c/o', 91)
    swift.objects['/v1/a/c/o'][1]['X-Timestamp'] = Timestamp.now().internal
    make_due(swift, 'buckets')
    work(buckets_of(dss))
    assert class_of(swift) == 27


def test_a_class_that_its_owner_gave_stays(dss: Any, swift: Swift) -> None:
    call(dss, 'PUT', '/v1/a/c/o')
    swift.age('/v1/a/c/o', 40)
    call(dss, 'POST', '/v1/a/c/o', X_DSS_Object_Class='gold')
    set_rules(dss, rule(to('STANDARD_IA', When(days=30))))
    work(buckets_of(dss))
    assert class_of(swift) == 25


@pytest.mark.parametrize('verb, actions', [
    ('PUT', {'transitions': (to('GLACIER'),)}),
    ('POST', {'transitions': (to('GLACIER'),)}),
    ('PUT', {'expiration': NOW_AND_HERE})])
@pytest.mark.parametrize('when', ['after the look', 'before the change'])
def test_what_is_newer_than_the_look_stays(
        dss: Any, swift: Swift, when: str, verb: str, actions: Any) -> None:
    call(dss, 'PUT', '/v1/a/c/o')
    set_rules(dss, Rule('r', True, **actions))

    def meanwhile() -> None:
        call(dss, verb, '/v1/a/c/o', b'new', X_DSS_Object_Class='gold',
             X_Object_Meta_Color='blue')
    if when == 'after the look':
        swift.after[('HEAD', '/v1/a/c/o')] = meanwhile
    else:
        swift.before['DELETE' if 'expiration' in actions else 'POST',
                     '/v1/a/c/o'] = meanwhile
    work(buckets_of(dss))
    headers = swift.objects['/v1/a/c/o'][1]
    assert class_of(swift) == 25 and 'X-Delete-At' not in headers
    assert headers['X-Object-Meta-Color'] == 'blue'
    assert 'dss.lifecycle.overtaken' in dss.logger.counted


@pytest.mark.parametrize('method, path', [
    ('HEAD', '/v1/a/c'), ('GET', '/v1/a/c'), ('HEAD', '/v1/a/c/o3'),
    ('POST', '/v1/a/c/o3'), ('HEAD', '/v1/a/c/o4')])
def test_a_round_whose_proxy_dies_is_finished_by_another(
        dss: Any, swift: Swift, tmp_path: Any, method: str,
        path: str) -> None:
    for number in range(5):
        call(dss, 'PUT', '/v1/a/c/o%d' % number)
    set_rules(dss, rule(to('GLACIER')))

    def die() -> None:
        raise Crash
    swift.before[(method, path)] = die
    with pytest.raises(Crash):
        work(buckets_of(dss))
    swift.requests.clear()
    work(buckets_of(proxy_of(swift, tmp_path)))
    assert {class_of(swift, '/v1/a/c/o%d' % number)
            for number in range(5)} == {27}
    if path >= '/v1/a/c/o3':
        # The page before was not walked again.
        assert ('HEAD', '/v1/a/c/o0') not in [
            (method, path) for method, path, _ in swift.requests]


def put_upload(dss: Any, swift: Swift) -> List[str]:
    """A large object of S3, and its parts."""
    parts = ['/v1/a/c+segments/o/id/%d' % number for number in (1, 2)]
    for path in [*parts, '/v1/a/c+segments/o/other/1']:
        call(dss, 'PUT', path)
    call(dss, 'PUT', '/v1/a/c/o')
    swift.objects['/v1/a/c/o'][1].update({
        'X-Object-Sysmeta-S3api-Upload-Id': 'id',
        'X-Static-Large-Object': 'True'})
    return parts


def test_parts_go_once_two_looks_find_no_manifest(
        dss: Any, swift: Swift) -> None:
    parts = put_upload(dss, swift)
    set_rules(dss, rule(expiration=NOW_AND_HERE))
    work(buckets_of(dss))
    assert '/v1/a/c/o' not in swift.objects
    make_due(swift, 'parts')
    work(buckets_of(dss))
    assert set(parts) <= set(swift.objects)
    make_due(swift, 'parts')
    work(buckets_of(dss))
    assert not set(parts) & set(swift.objects)
    assert '/v1/a/c+segments/o/other/1' in swift.objects
    make_due(swift, 'parts')
    work(buckets_of(dss))
    assert rows_of(swift, 'parts') == []


def test_parts_of_a_manifest_that_comes_back_stay(
        dss: Any, swift: Swift) -> None:
    parts = put_upload(dss, swift)
    manifest = swift.objects['/v1/a/c/o']
    set_rules(dss, rule(expiration=NOW_AND_HERE))
    work(buckets_of(dss))
    make_due(swift, 'parts')
    work(buckets_of(dss))
    swift.objects['/v1/a/c/o'] = manifest
    make_due(swift, 'parts')
    work(buckets_of(dss))
    assert set(parts) <= set(swift.objects)
    assert rows_of(swift, 'parts') == []


def test_parts_of_a_manifest_that_stays_stay(dss: Any, swift: Swift) -> None:
    parts = put_upload(dss, swift)
    set_rules(dss, rule(expiration=NOW_AND_HERE))
    swift.before[('DELETE', '/v1/a/c/o')] = lambda: call(
        dss, 'PUT', '/v1/a/c/o')
    work(buckets_of(dss))
    assert set(parts) <= set(swift.objects)
    assert rows_of(swift, 'parts') == []


def test_a_copy_of_an_old_version_has_no_parts(
        dss: Any, swift: Swift) -> None:
    """It has the number of an upload whose manifest lives on elsewhere."""
    put_upload(dss, swift)
    del swift.objects['/v1/a/c/o'][1]['X-Static-Large-Object']
    set_rules(dss, rule(expiration=NOW_AND_HERE))
    work(buckets_of(dss))
    assert '/v1/a/c/o' not in swift.objects
    assert rows_of(swift, 'parts') == []


@pytest.mark.parametrize('name', [
    'X-Container-Sysmeta-Versions-Container',
    'X-Container-Sysmeta-Versions-Location'])
def test_containers_with_versions_are_left_alone(
        dss: Any, swift: Swift, name: str) -> None:
    call(dss, 'PUT', '/v1/a/c/o')
    set_rules(dss, rule(expiration=NOW_AND_HERE))
    swift.containers['/v1/a/c'][name] = 'elsewhere'
    work(buckets_of(dss))
    assert '/v1/a/c/o' in swift.objects
    # The rules stand, for the day on which it has none.
    assert rows_of(swift, 'buckets')


@pytest.mark.parametrize('name', [
    'X-Container-Sysmeta-Versions-Container',
    'X-Container-Sysmeta-Versions-Location'])
def test_parts_stay_where_versions_are_kept(
        dss: Any, swift: Swift, name: str) -> None:
    parts = put_upload(dss, swift)
    set_rules(dss, rule(expiration=NOW_AND_HERE))
    work(buckets_of(dss))
    swift.containers['/v1/a/c'][name] = 'elsewhere'
    for _look in range(2):
        make_due(swift, 'parts')
        work(buckets_of(dss))
    assert set(parts) <= set(swift.objects)
    assert rows_of(swift, 'parts') == []


def test_rules_that_are_taken_back_stop_at_the_next_page(
        dss: Any, swift: Swift) -> None:
    for number in range(5):
        call(dss, 'PUT', '/v1/a/c/o%d' % number)
    set_rules(dss, rule(expiration=NOW_AND_HERE))
    swift.after[('DELETE', '/v1/a/c/o1')] = lambda: set_rules(
        dss, rule(expiration=NOW_AND_HERE, prefix='none'))
    work(buckets_of(dss))
    make_due(swift, 'buckets')
    work(buckets_of(dss))
    assert [path for path in swift.objects if path.startswith(
        '/v1/a/c/')] == ['/v1/a/c/o%d' % number for number in (2, 3, 4)]


def test_a_deletion_is_of_the_day_before_the_look(
        dss: Any, swift: Swift) -> None:
    """Uploads of after it win, and the tombstone lasts its time."""
    call(dss, 'PUT', '/v1/a/c/o')
    swift.age('/v1/a/c/o', 40)
    before = time.time()
    set_rules(dss, rule(expiration=When(days=30)))
    work(buckets_of(dss))
    assert 0 <= float(Timestamp(swift.deleted[
        '/v1/a/c/o'])) - (before - DAY) < 60


def test_no_rule_that_asks_for_a_size_fits_a_dlo(
        dss: Any, swift: Swift) -> None:
    call(dss, 'PUT', '/v1/a/c/o', X_Object_Manifest='c_segments/o')
    call(dss, 'PUT', '/v1/a/c/p')
    set_rules(dss, Rule('r', True, size_under=1000, expiration=NOW_AND_HERE))
    work(buckets_of(dss))
    assert '/v1/a/c/o' in swift.objects
    assert '/v1/a/c/p' not in swift.objects


def test_a_long_name_does_not_lose_the_place_of_a_round(
        dss: Any, swift: Swift) -> None:
    for number in range(3):
        call(dss, 'PUT', '/v1/a/c/%s%d' % ('n' * 300, number))
    set_rules(dss, rule(to('GLACIER')))
    swift.before[('HEAD', '/v1/a/c/%s2' % ('n' * 300))] = _die
    with pytest.raises(Crash):
        work(buckets_of(dss))
    row, = rows_of(swift, 'buckets')
    text = swift.objects[row][1]['X-Object-Meta-Beside']
    assert set(json.loads(text)['marker']) == {'n'} and len(text) <= 256


def _die() -> None:
    raise Crash


def test_segments_of_other_containers_are_left_alone(
        dss: Any, swift: Swift) -> None:
    for path in ('/v1/a/x/s1', '/v1/a/c_segments/s1'):
        call(dss, 'PUT', path)
    call(dss, 'PUT', '/v1/a/c/theirs', X_Object_Manifest='x/s')
    call(dss, 'PUT', '/v1/a/c/own', X_Object_Manifest='c_segments/s')
    set_rules(dss, rule(to('GLACIER')))
    work(buckets_of(dss))
    assert class_of(swift, '/v1/a/x/s1') is None
    assert class_of(swift, '/v1/a/c/theirs') is None
    assert class_of(swift, '/v1/a/c_segments/s1') == 27
    assert call(dss, 'POST', '/v1/a/c/theirs', env={
        names.ENV_RESTORE_DAYS: 1}).status_int == 400
    assert class_of(swift, '/v1/a/x/s1') is None


def test_an_account_gives_only_classes_that_it_may_use(
        swift: Swift, tmp_path: Any) -> None:
    dss = proxy_of(swift, tmp_path, account_classes='26')
    call(dss, 'PUT', '/v1/a/c/o')
    for storage_class, status in (('STANDARD_IA', 204), ('GLACIER', 403)):
        assert call(dss, 'POST', '/v1/a/c', env={
            names.ENV_LIFECYCLE: Lifecycle((rule(to(storage_class)),))
            }).status_int == status
    assert restore(dss) == 403
    assert class_of(swift) is None


def test_two_at_once_do_no_harm(dss: Any, swift: Swift,
                                tmp_path: Any) -> None:
    for number in range(5):
        call(dss, 'PUT', '/v1/a/c/o%d' % number)
    set_rules(dss, rule(to('GLACIER')))
    other = buckets_of(proxy_of(swift, tmp_path))
    swift.before[('POST', '/v1/a/c/o1')] = lambda: work(other)
    work(buckets_of(dss))
    assert {class_of(swift, '/v1/a/c/o%d' % number)
            for number in range(5)} == {27}


def test_a_long_bucket_keeps_no_other_waiting(
        dss: Any, swift: Swift) -> None:
    """A page of each in turn; the listings here have two rows a page."""
    for number in range(9):
        call(dss, 'PUT', '/v1/a/c/o%d' % number)
    call(dss, 'PUT', '/v1/a/short/o')
    for container in ('c', 'short'):
        assert call(dss, 'POST', '/v1/a/' + container, env={
            names.ENV_LIFECYCLE: Lifecycle((rule(to('GLACIER')),))
            }).status_int == 204
    swift.requests.clear()
    work(buckets_of(dss))
    posts = [path for method, path, _ in swift.requests
             if method == 'POST' and path.startswith('/v1/a/')]
    assert sorted(posts) == sorted(
        ['/v1/a/c/o%d' % number for number in range(9)] + ['/v1/a/short/o'])
    assert posts.index('/v1/a/short/o') <= 2


def test_a_round_whose_place_cannot_be_kept_ends(
        dss: Any, swift: Swift) -> None:
    """Else it would look at the same page again and again."""
    for number in range(5):
        call(dss, 'PUT', '/v1/a/c/o%d' % number)
    set_rules(dss, rule(to('GLACIER')))
    swift.unposted.update(rows_of(swift, 'buckets'))
    turns = iter(range(100))
    buckets_of(dss).work(own_env(), lambda: next(turns) >= 0)
    assert class_of(swift, '/v1/a/c/o0') == 27
    swift.unposted.clear()
    work(buckets_of(dss))
    assert class_of(swift, '/v1/a/c/o4') == 27


def test_a_container_without_rules_is_forgotten(
        dss: Any, swift: Swift) -> None:
    call(dss, 'PUT', '/v1/a/c/o')
    set_rules(dss, rule(to('GLACIER')))
    set_rules(dss)
    work(buckets_of(dss))
    # The rules of a PUT may be on their way.
    assert len(rows_of(swift, 'buckets')) == 1
    swift.age(rows_of(swift, 'buckets')[0], 1)
    make_due(swift, 'buckets')
    work(buckets_of(dss))
    assert rows_of(swift, 'buckets') == [] and class_of(swift) is None


def test_a_cluster_without_rules_stores_nothing_for_them(
        dss: Any, swift: Swift) -> None:
    """Rows of leaders would go to S3 like any object, at each touch."""
    leader = Leader(Rows(swift, ACCOUNT, 'leaders'), 'work', 60.0, CLOCK)
    jobs = buckets_of(dss), restores_of(dss)
    for job in jobs:
        look(leader, job)
    assert not swift.objects
    call(dss, 'PUT', '/v1/a/c/o')
    set_rules(dss, rule(to('GLACIER')))
    look(leader, jobs[0])
    assert class_of(swift) == 27 and rows_of(swift, 'leaders')
    for row in rows_of(swift, 'buckets'):
        del swift.objects[row]
    look(leader, jobs[0])
    assert not rows_of(swift, 'leaders')


def test_one_leads_until_its_lease_runs_out(swift: Swift) -> None:
    rows = Rows(swift, ACCOUNT, 'leaders')
    first, second = (
        Leader(rows, 'work', 60.0, CLOCK) for _process in range(2))
    assert first.leads(own_env())
    assert first.leads(own_env()) and not second.leads(own_env())
    make_due(swift, 'leaders')
    assert second.leads(own_env()) and not first.leads(own_env())


@pytest.mark.parametrize('fails', [1, 2])
def test_nobody_leads_where_the_row_cannot_be_read(
        swift: Swift, fails: int) -> None:
    """It may be another's: neither at first, nor once it was touched."""
    rows = Rows(swift, ACCOUNT, 'leaders')
    first, second = (
        Leader(rows, 'work', 60.0, CLOCK) for _process in range(2))
    path = '/v1/%s/leaders/work' % ACCOUNT
    assert first.leads(own_env())
    if fails == 2:
        make_due(swift, 'leaders')
    swift.unread[path] = fails
    before = dict(swift.objects[path][1])
    assert not second.leads(own_env())
    if fails == 1:
        assert dict(swift.objects[path][1]) == before
        assert first.leads(own_env())


def test_nobody_leads_whose_lease_cannot_be_kept(swift: Swift) -> None:
    leader = Leader(Rows(swift, ACCOUNT, 'leaders'), 'lifecycle', 60.0, CLOCK)
    assert leader.leads(own_env())
    row, = rows_of(swift, 'leaders')
    swift.unposted.add(row)
    swift.objects[row][1]['X-Object-Meta-Until'] = '0'
    assert not leader.leads(own_env())
    swift.unposted.clear()
    assert leader.leads(own_env())


def test_an_operator_sees_rounds_and_restorations(
        dss: Any, swift: Swift, monkeypatch: Any, capsys: Any) -> None:
    call(dss, 'PUT', '/v1/a/c/o')
    call(dss, 'PUT', '/v1/a/c/p')
    set_rules(dss, rule(to('GLACIER'), prefix='p'))
    monkeypatch.setattr('swift_dss.cli.lifecycle.proxy_of',
                        lambda conf: swift)

    def said(*words: str) -> str:
        assert main.main(['lifecycle', 'status', *words]) == 0
        text: str = capsys.readouterr().out
        return text
    assert 'a/c: no round yet; next round 1970-' in said()
    restore(dss)
    work(buckets_of(dss))
    assert '2 seen, 1 transitions; next round' in said()
    assert '1 buckets with rules, 1 restored objects' in said()
    shown = json.loads(said('--json'))
    assert shown['restored'] == 1
    bucket, = shown['buckets']
    assert bucket['container'] == 'c' and bucket['counts']['seen'] == 2
    assert bucket['due'] > time.time() + 3000
    Records(swift).put(own_env(), Record(
        Target('a', 'c', 'm\xc3\xb6'), ClassMap.uniform(25),
        '1700000000.00000'), 30)
    assert ('a/c/m\xf6: its segments are given classes since 2023-11-14 '
            '22:13:20 UTC\n') in said()
    assert json.loads(said('--json'))['large'] == [
        {'object': 'a/c/m\xf6', 'at': 1.7e9}]


# -- restorations ------------------------------------------------------------

def restore(dss: Any, days: int = 1) -> int:
    status: int = call(dss, 'POST', '/v1/a/c/o', env={
        names.ENV_RESTORE_DAYS: days}).status_int
    return status


def shown(dss: Any) -> str:
    text: str = call(dss, 'HEAD', '/v1/a/c/o').headers.get(
        names.RESTORE, '')
    return text


def expire(swift: Swift) -> None:
    """Its days are over."""
    headers = swift.objects['/v1/a/c/o'][1]
    headers[names.RESTORED] = '1 ' + headers[names.RESTORED].split(' ', 1)[1]
    make_due(swift, 'restores')


def test_a_restoration_may_last_for_ever(dss: Any, swift: Swift) -> None:
    """And its end can be named in a header."""
    call(dss, 'PUT', '/v1/a/c/o')
    assert restore(dss, 2 ** 31 - 1) == 202
    work(restores_of(dss))
    make_due(swift, 'restores')
    work(restores_of(dss))
    assert shown(dss) == ('ongoing-request="false", '
                          'expiry-date="Fri, 31 Dec 9999 00:00:00 GMT"')


def test_an_object_is_restored_for_some_days(dss: Any, swift: Swift) -> None:
    swift.residency = '0'
    call(dss, 'PUT', '/v1/a/c/o', X_DSS_Object_Class='27',
         X_DSS_Range_Class='0-10-26', X_Object_Meta_Color='red')
    before = stored.effective_map(swift.objects['/v1/a/c/o'][1])
    assert restore(dss) == 202
    assert class_of(swift) == 28 and shown(dss) == 'ongoing-request="true"'
    swift.requests.clear()
    work(restores_of(dss))
    assert ('GET', '/v1/a/c/o') in [
        (method, path) for method, path, _ in swift.requests]
    assert shown(dss) == 'ongoing-request="true"'
    swift.objects['/v1/a/c/o'][1][names.BACKEND_AT_HAND] = '1'
    make_due(swift, 'restores')
    work(restores_of(dss))
    assert shown(dss).startswith('ongoing-request="false", expiry-date="')
    # Restored again it is for longer, and what it had before stays known.
    until = shown(dss)
    assert restore(dss, 10000) == 202 and shown(dss) != until
    call(dss, 'POST', '/v1/a/c/o', X_Object_Meta_Color='blue')
    expire(swift)
    work(restores_of(dss))
    assert shown(dss) == ''
    headers = swift.objects['/v1/a/c/o'][1]
    assert stored.effective_map(headers) == before
    assert headers['X-Object-Meta-Color'] == 'blue'
    make_due(swift, 'restores')
    swift.age(rows_of(swift, 'restores')[0], 1)
    work(restores_of(dss))
    assert rows_of(swift, 'restores') == []


def test_bytes_without_room_are_read_again_ever_later(
        dss: Any, swift: Swift) -> None:
    swift.residency = '0'
    call(dss, 'PUT', '/v1/a/c/o')
    assert restore(dss) == 202
    waits: List[float] = []
    for _look in range(14):
        make_due(swift, 'restores')
        work(restores_of(dss))
        row, = rows_of(swift, 'restores')
        waits.append(round(float(swift.objects[row][1][
            'X-Object-Meta-Until']) - time.time()))
    assert waits == [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600,
                     3600, 3600]
    assert shown(dss) == 'ongoing-request="true"'


def test_segments_are_read_several_at_a_time(
        dss: Any, swift: Swift, monkeypatch: Any) -> None:
    swift.residency = '0'
    for number in range(9):
        call(dss, 'PUT', '/v1/a/c/s%d' % number)
    call(dss, 'PUT', '/v1/a/c/o', json.dumps([
        {'name': '/c/s%d' % number, 'bytes': 100, 'hash': 'e'}
        for number in range(9)]).encode())
    swift.objects['/v1/a/c/o'][1]['X-Static-Large-Object'] = 'True'
    assert restore(dss) == 202
    at_once: List[int] = []
    together = waiting.together
    monkeypatch.setattr(waiting, 'together', lambda call, items: (
        at_once.append(len(list(items))), together(call, items))[1])
    swift.requests.clear()
    make_due(swift, 'restores')
    work(restores_of(dss))
    read = [path for method, path, _ in swift.requests if method == 'GET'
            and path.startswith('/v1/a/c/s')]
    assert sorted(read) == ['/v1/a/c/s%d' % number for number in range(9)]
    assert 4 in at_once and max(at_once) <= 4


@pytest.mark.parametrize('verb', ['PUT', 'POST'])
def test_its_owner_ends_a_restoration(dss: Any, swift: Swift,
                                      verb: str) -> None:
    call(dss, 'PUT', '/v1/a/c/o', X_DSS_Object_Class='27')
    restore(dss)
    call(dss, verb, '/v1/a/c/o', X_DSS_Object_Class='25')
    assert shown(dss) == ''
    make_due(swift, 'restores')
    work(restores_of(dss))
    assert class_of(swift) == 25


@pytest.mark.parametrize('verb', ['PUT', 'POST'])
def test_an_end_that_its_owner_overtakes_changes_nothing(
        dss: Any, swift: Swift, verb: str) -> None:
    call(dss, 'PUT', '/v1/a/c/o', X_DSS_Object_Class='27')
    restore(dss)
    expire(swift)
    swift.before[('POST', '/v1/a/c/o')] = lambda: call(
        dss, verb, '/v1/a/c/o', X_DSS_Object_Class='25')
    work(restores_of(dss))
    assert class_of(swift) == 25


def test_a_restoration_whose_proxy_dies_ends_nevertheless(
        dss: Any, swift: Swift, tmp_path: Any) -> None:
    call(dss, 'PUT', '/v1/a/c/o', X_DSS_Object_Class='27')

    def die() -> None:
        raise Crash
    swift.before[('POST', '/v1/a/c/o')] = die
    with pytest.raises(Crash):
        restore(dss)
    assert class_of(swift) == 27 and len(rows_of(swift, 'restores')) == 1
    restore(dss)
    expire(swift)
    swift.before[('POST', '/v1/a/c/o')] = die
    with pytest.raises(Crash):
        work(restores_of(dss))
    assert class_of(swift) == 28
    work(restores_of(proxy_of(swift, tmp_path)))
    assert class_of(swift) == 27


def test_rules_leave_restored_objects_alone(dss: Any, swift: Swift) -> None:
    call(dss, 'PUT', '/v1/a/c/o', X_DSS_Object_Class='27')
    restore(dss)
    set_rules(dss, rule(to('STANDARD_IA')))
    work(buckets_of(dss))
    assert class_of(swift) == 28


def test_an_unclassified_object_is_unclassified_again(
        dss: Any, swift: Swift) -> None:
    call(dss, 'PUT', '/v1/a/c/o')
    restore(dss)
    expire(swift)
    work(restores_of(dss))
    assert stored.effective_map(
        swift.objects['/v1/a/c/o'][1]) == ClassMap.uniform(0)


def test_a_restoration_without_an_object_is_404(dss: Any) -> None:
    assert restore(dss) == 404


def test_a_copy_of_a_restored_object_is_not_restored(
        dss: Any, swift: Swift) -> None:
    call(dss, 'PUT', '/v1/a/c/o', X_DSS_Object_Class='27')
    restore(dss)
    copied = call(dss, 'GET', '/v1/a/c/o', env={'swift.source': 'SSC'})
    sealed = {name: value for name, value in copied.headers.items()
              if name.startswith('X-Object-Sysmeta-')}
    request = Request.blank('/v1/a/c/copy', method='PUT', headers=sealed,
                            body=copied.body)
    request.environ['swift.source'] = 'SSC'
    assert request.get_response(dss).status_int == 201
    assert class_of(swift, '/v1/a/c/copy') == 27
