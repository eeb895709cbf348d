"""Manifests with classes, over a fake proxy server."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace

import pytest
from support import wait_until
from support.edges.fake_swift import FakeSwift
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import HTTPForbidden, Request

from swift_dss.core.spans import ClassMap, Span
from swift_dss.proxy.bodies import stored
from swift_dss.proxy.filter import DssMiddleware
from swift_dss.proxy.large.reading import Reader
from swift_dss.proxy.large.records import LEASE_SECONDS, Records
from swift_dss.proxy.large.segments import Segments
from swift_dss.proxy.large.spreading import Spreader
from swift_dss.proxy.large.worker import Worker
from swift_dss.proxy.work.primaries import Primaries
from swift_dss.proxy.work.rows import Unreachable, own_env
from swift_dss.wire import names
from swift_dss.wire.large import claims

SIZE = 100
TABLE = '[class:0]\nname = unclassified\nrank = 0\n' \
    '[class:25]\nname = gold\nrank = 9\n[class:26]\nname = silver\nrank = 8\n'


class FakeLogger:
    """Counts what is counted."""

    def __init__(self):
        self.counted = []
        self.warnings = []

    def increment(self, name):
        self.counted.append(name)

    def warning(self, text, *arguments):
        self.warnings.append(text % arguments)

    def exception(self, text, *arguments):
        raise AssertionError(text % arguments)


class Swift(FakeSwift):
    """Whose data is as old as the Unix clock, and that can fail."""

    fails = ()

    def __call__(self, env, start_response):
        if (env['REQUEST_METHOD'], env['PATH_INFO']) in self.fails:
            start_response('503 Service Unavailable', [])
            return [b'']
        return super().__call__(env, start_response)


@pytest.fixture
def swift():
    made = Swift()
    for name in 'ab':
        made.objects['/v1/a/s/' + name] = (b'x' * SIZE, HeaderKeyDict())
    return made


@pytest.fixture
def dss(swift, tmp_path):
    (tmp_path / 'classes').write_text(TABLE)
    (tmp_path / 'rules').write_text(
        '[rule:jpg]\nclass = silver\nname = *.jpg\n')
    return DssMiddleware(swift, {
        'class_table': str(tmp_path / 'classes'),
        'rules_file': str(tmp_path / 'rules'), 'admission': 'false'},
        FakeLogger())


def manifest(*names_of_segments):
    return json.dumps([{'name': '/s/' + name, 'bytes': SIZE, 'hash': 'e'}
                       for name in names_of_segments]).encode()


def call(app, method, path='/v1/a/c/big', body=b'', source=None, env=None,
         **headers):
    request = Request.blank(path, method=method, body=body, headers={
        name.replace('_', '-'): value for name, value in headers.items()})
    request.environ.update(env or {})
    if source:
        request.environ['swift.source'] = source
    return request.get_response(app)


def put(app, path='/v1/a/c/big', segments='ab', **more):
    return call(app, 'PUT', path, manifest(*segments),
                X_Static_Large_Object='True',
                X_Object_Sysmeta_Slo_Size=str(SIZE * len(segments)), **more)


def map_of(swift, path):
    return stored.effective_map(swift.objects[path][1])


def test_the_segments_have_their_classes_before_the_manifest_is_there(
        dss, swift):
    assert put(dss, X_DSS_Range_Class='90-20-gold').status_int == 201
    assert map_of(swift, '/v1/a/s/a') == ClassMap.from_spans(
        [Span(90, 10, 25)])
    assert map_of(swift, '/v1/a/s/b') == ClassMap.from_spans(
        [Span(0, 10, 25)])
    assert map_of(swift, '/v1/a/c/big') == ClassMap.from_spans(
        [Span(90, 20, 25)])
    assert [path for method, path, _ in swift.requests
            if method in ('PUT', 'POST')][-1] == '/v1/a/c/big'
    assert swift.objects['/v1/a/c/big'][0] == manifest('a', 'b')


def test_a_segment_that_cannot_be_changed_keeps_the_manifest_away(
        dss, swift):
    swift.fails = [('POST', '/v1/a/s/b')]
    answer = put(dss, X_DSS_Object_Class='gold')
    assert answer.status_int == 503 and 'Retry-After' in answer.headers
    assert '/v1/a/c/big' not in swift.objects
    swift.fails = ()
    assert put(dss, X_DSS_Object_Class='gold').status_int == 201
    assert map_of(swift, '/v1/a/s/b') == ClassMap.uniform(25)


def test_a_rules_class_gives_way_to_a_segment_that_cannot_be_changed(
        dss, swift):
    swift.fails = [('POST', '/v1/a/s/b')]
    assert put(dss, '/v1/a/c/x.jpg').status_int == 201
    assert map_of(swift, '/v1/a/c/x.jpg') is None
    assert 'dss.large.not_given' in dss.logger.counted


def refuses(*containers):
    def authorize(request):
        if request.path_info.split('/')[3] in containers:
            return HTTPForbidden(request=request)
        return None
    return {'swift.authorize': authorize}


@pytest.mark.parametrize('way', ['PUT', 'POST'])
def test_segments_of_others_are_not_reclassified(dss, swift, way):
    put(dss)
    env = refuses('s')
    answer = put(dss, X_DSS_Object_Class='gold', env=env) \
        if way == 'PUT' else call(
            dss, 'POST', X_DSS_Object_Class='gold', env=env)
    assert answer.status_int == 403
    assert map_of(swift, '/v1/a/s/a') is None
    assert map_of(swift, '/v1/a/c/big') is None


def test_a_put_that_auth_refuses_reaches_no_segment(dss, swift):
    answer = put(dss, X_DSS_Object_Class='gold', env=refuses('c'))
    assert answer.status_int == 403
    assert map_of(swift, '/v1/a/s/a') is None


def test_a_post_reaches_the_segments_and_ranges_fit_the_whole(dss, swift):
    put(dss)
    assert call(dss, 'POST', X_DSS_Object_Class='gold').status_int == 202
    for path in ('/v1/a/s/a', '/v1/a/s/b', '/v1/a/c/big'):
        assert map_of(swift, path) == ClassMap.uniform(25)
    answer = call(dss, 'POST', X_DSS_Range_Class='199-2-silver')
    assert answer.status_int == 400 and b'200' in answer.body
    assert call(dss, 'POST',
                X_DSS_Range_Class='199-1-silver').status_int == 202
    head = call(dss, 'HEAD')
    assert head.headers['X-DSS-Range-Class'] == '199-1-26'
    assert map_of(swift, '/v1/a/s/b') == ClassMap.from_spans(
        [Span(99, 1, 26)], 25)


def test_shared_segments_remember_both_manifests(dss, swift):
    put(dss, X_DSS_Object_Class='gold')
    put(dss, '/v1/a/c/other', 'b', X_DSS_Object_Class='silver')
    assert map_of(swift, '/v1/a/s/b') == ClassMap.uniform(25)
    assert map_of(swift, '/v1/a/c/other') == ClassMap.from_spans(
        [Span(0, 100, 25)], 26)
    assert claims.decode(swift.objects['/v1/a/s/b'][1][names.CLAIMS]) == {
        claims.owner_of('/v1/a/c/big'): claims.everywhere(25),
        claims.owner_of('/v1/a/c/other'): claims.everywhere(26)}
    call(dss, 'POST', X_DSS_Object_Class='0')
    assert map_of(swift, '/v1/a/s/b') == ClassMap.uniform(26)


def test_a_moved_manifest_leaves_its_segments_alone(dss, swift):
    put(dss, X_DSS_Object_Class='gold', source='VW')
    assert map_of(swift, '/v1/a/s/a') is None


def test_what_slo_has_seen_is_not_looked_at_again(dss, swift):
    """Where the manifest gives no class, and shows that of its segments."""
    env = {'swift.trans_id': 'tx1'}
    for name in 'ab':
        call(dss, 'POST', '/v1/a/s/' + name, X_DSS_Object_Class='gold')
        call(dss, 'HEAD', '/v1/a/s/' + name, source='SLO', env=env)
    swift.requests.clear()
    put(dss, env=env)
    assert map_of(swift, '/v1/a/c/big').class_at(0) == 25
    assert not [path for method, path, _ in swift.requests
                if method == 'HEAD' and path.startswith('/v1/a/s/')]


class Crash(Exception):
    """The proxy is killed."""


class Mortal(Swift):
    """Kills the proxy before its next request of this kind."""

    killed_by = None

    def __call__(self, env, start_response):
        if (env['REQUEST_METHOD'], env['PATH_INFO']) == self.killed_by:
            raise Crash
        return super().__call__(env, start_response)


def record_of(swift, runs_out=True):
    """The one record that there is, its lease run out; None without one, or
    if it is another's."""
    paths = [path for path in swift.objects if path.startswith('/v1/.dss')]
    assert len(paths) <= 1
    for path in paths:
        if runs_out:
            swift.objects[path][1]['X-Object-Meta-Until'] = '0'
        return Records(swift).take(own_env(), path.rpartition('/')[2])
    return None


def die_in_the_middle(dss, swift):
    """A proxy gives gold to a large object, and dies at its first segment."""
    put(dss)
    swift.__class__ = Mortal
    swift.killed_by = ('POST', '/v1/a/s/a')
    with pytest.raises(Crash):
        call(dss, 'POST', X_DSS_Object_Class='gold')
    swift.killed_by = None


def other_worker(swift, dss):
    """The worker of another proxy."""
    segments = Segments(swift)
    services = SimpleNamespace(
        count=dss.logger.increment, logger=dss.logger, settings=dss.settings)
    return Worker(swift, services, Records(swift), Reader(swift),
                  Spreader(swift, segments, services.count))


POINTS = [('POST', '/v1/a/s/a'), ('POST', '/v1/a/s/b'), ('HEAD', '/v1/a/s/b'),
          ('DELETE', None)]


@pytest.mark.parametrize('point', POINTS)
def test_a_post_whose_proxy_dies_is_finished_by_another(dss, swift, point):
    put(dss)
    swift.__class__ = Mortal
    swift.killed_by = point
    if point[0] == 'DELETE':
        real, Records.delete = Records.delete, _crash
    try:
        with pytest.raises(Crash):
            call(dss, 'POST', X_DSS_Object_Class='gold')
    finally:
        swift.killed_by = None
        if point[0] == 'DELETE':
            Records.delete = real
    says = call(dss, 'HEAD').headers.get('X-DSS-Class-State')
    assert (says == 'being applied, 0/2 segments') == (point[0] != 'DELETE')
    record = record_of(swift)
    assert other_worker(swift, dss).do(record)
    for path in ('/v1/a/s/a', '/v1/a/s/b', '/v1/a/c/big'):
        assert map_of(swift, path) == ClassMap.uniform(25)
    assert 'X-DSS-Class-State' not in call(dss, 'HEAD').headers
    assert record_of(swift) is None


def test_the_manifest_shows_how_far_the_work_is(dss, swift, monkeypatch):
    die_in_the_middle(dss, swift)
    record = record_of(swift)
    swift.requests.clear()
    monkeypatch.setattr('swift_dss.proxy.large.worker._SIGN_SECONDS', 0)
    assert other_worker(swift, dss).do(record)
    said = [headers.get(names.STATE) for method, path, headers
            in swift.requests if (method, path) == ('POST', '/v1/a/c/big')]
    assert said[-1] is None and said[0].endswith('/2')
    assert 'X-DSS-Class-State' not in call(dss, 'HEAD').headers


def _crash(*_arguments):
    raise Crash


@pytest.mark.parametrize('answers', [True, False])
def test_a_record_stays_while_a_server_may_wait_for_it(
        dss, swift, monkeypatch, answers):
    """Those that answer may have missed the mark of the manifest."""
    die_in_the_middle(dss, swift)
    record = record_of(swift)
    marked = swift.objects.pop('/v1/a/c/big')

    def agree(*_words):
        if not answers:
            raise Unreachable('one does not answer')
        return [marked[1]]
    monkeypatch.setattr(Primaries, 'agree', agree)
    assert not other_worker(swift, dss).do(record)
    assert record_of(swift) is not None
    monkeypatch.undo()
    swift.objects['/v1/a/c/big'] = marked
    assert other_worker(swift, dss).do(record)
    assert map_of(swift, '/v1/a/s/b') == ClassMap.uniform(25)


def test_work_that_a_newer_post_replaced_is_not_done(dss, swift):
    die_in_the_middle(dss, swift)
    record = record_of(swift)
    Records(swift).delete(own_env(), record)
    assert call(dss, 'POST', X_DSS_Object_Class='silver').status_int == 202
    assert record_of(swift) is None
    assert other_worker(swift, dss).do(record)
    for path in ('/v1/a/s/a', '/v1/a/s/b', '/v1/a/c/big'):
        assert map_of(swift, path) == ClassMap.uniform(26)


def test_a_record_belongs_to_one_proxy_at_a_time(dss, swift):
    die_in_the_middle(dss, swift)
    record = record_of(swift)
    assert Records(swift).take(own_env(), record.name) is None


def test_a_post_to_many_segments_is_answered_at_once(swift, tmp_path):
    few = DssMiddleware(swift, {'admission': 'false',
                                'segments_at_once': '1'}, FakeLogger())
    put(few)
    assert call(few, 'POST', X_DSS_Object_Class='9').status_int == 202
    wait_until(lambda: 'X-DSS-Class-State' not in call(
        few, 'HEAD').headers, 30, 'the work')
    assert map_of(swift, '/v1/a/s/b') == ClassMap.uniform(9)


def test_a_segment_that_cannot_be_changed_is_changed_later(dss, swift):
    put(dss)
    swift.fails = [('POST', '/v1/a/s/b')]
    assert call(dss, 'POST', X_DSS_Object_Class='gold').status_int == 202
    assert 'being applied' in call(dss, 'HEAD').headers['X-DSS-Class-State']
    wait_until(lambda: dss.logger.counted.count('dss.large.later') == 2, 30,
               'the second failure')
    # Whoever looks next may try again, without waiting for a lease to end.
    path, = (path for path in swift.objects if path.startswith('/v1/.dss'))
    wait_until(lambda: float(swift.objects[path][1]['X-Object-Meta-Until'])
               < time.time() + LEASE_SECONDS / 2, 8, 'the record is left')
    swift.fails = ()
    assert other_worker(swift, dss).do(record_of(swift))
    assert map_of(swift, '/v1/a/s/b') == ClassMap.uniform(25)
    assert 'X-DSS-Class-State' not in call(dss, 'HEAD').headers


def test_a_link_out_of_the_container_is_not_followed_with_a_class(
        dss, swift):
    swift.objects['/v1/a/s/b'] = (b'', HeaderKeyDict({
        stored.SYMLINK_TARGET: 'others/o'}))
    swift.objects['/v1/a/others/o'] = (b'x' * SIZE, HeaderKeyDict())
    assert put(dss, X_DSS_Object_Class='gold').status_int == 201
    assert map_of(swift, '/v1/a/others/o') is None
    assert map_of(swift, '/v1/a/s/a') == ClassMap.uniform(25)
    assert map_of(swift, '/v1/a/c/big') == ClassMap.from_spans(
        [Span(100, 100, 0)], 25)
