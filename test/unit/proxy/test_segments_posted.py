"""A class for one segment of a large object: its manifest has that say."""

from __future__ import annotations

from typing import Any, Dict, Tuple

import pytest
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import HTTPForbidden
from test_lifecycle_proofs import Ring, ask_directly
from test_manifests import FakeLogger, call, map_of, put
from test_manifests import dss as dss
from test_manifests import swift as swift
from test_manifests_meet import A, B, BIG, Met, goes_back

from swift_dss.core.spans import ClassMap
from swift_dss.proxy.bodies import stored
from swift_dss.proxy.filter import DssMiddleware
from swift_dss.proxy.large import alone, batches
from swift_dss.wire import names

__all__ = 'dss', 'swift'

GOLD, SILVER = ClassMap.uniform(25), ClassMap.uniform(26)


@pytest.fixture(autouse=True)
def old(monkeypatch: Any) -> None:
    """No claim is so young that its manifest may be on its way."""
    monkeypatch.setattr(alone, '_YOUNG_SECONDS', 0.0)


def post(dss: Any, path: str = B, **more: Any) -> Any:
    return call(dss, 'POST', path, X_DSS_Object_Class='silver', **more)


def has(dss: Any, swift: Any, path: str = B) -> Tuple[Any, Any]:
    """The class of a segment, and what the manifest shows of it."""
    shown = call(dss, 'HEAD', BIG).headers
    return map_of(swift, path), shown.get('X-DSS-Object-Class')


@pytest.mark.parametrize('more', [{}, {'X_Object_Meta_Color': 'red'}])
@pytest.mark.parametrize('way', ['PUT', 'POST'])
def test_a_segment_has_the_class_that_its_manifest_shows(
        dss: Any, swift: Any, way: str, more: Any) -> None:
    put(dss, **({'X_DSS_Object_Class': 'gold'} if way == 'PUT' else {}))
    call(dss, 'POST', X_DSS_Object_Class='gold')
    answer = post(dss, **more)
    assert answer.status_int == 409 and b' /c/big,' in answer.body
    assert has(dss, swift) == (GOLD, '25')
    assert 'X-Object-Meta-Color' not in swift.objects[B][1]
    assert post(dss, BIG).status_int == 202
    assert has(dss, swift) == (SILVER, '26')


def test_metadata_of_a_segment_is_its_own(dss: Any, swift: Any) -> None:
    put(dss, X_DSS_Object_Class='gold')
    assert call(dss, 'POST', B, X_Object_Meta_Color='red').status_int == 202
    assert swift.objects[B][1]['X-Object-Meta-Color'] == 'red'
    assert post(dss).status_int == 409
    assert has(dss, swift) == (GOLD, '25')


def test_a_manifest_that_is_a_segment_has_the_class_of_the_whole(
        dss: Any, swift: Any) -> None:
    put(dss)
    swift.objects['/v1/a/s/in'] = swift.objects[BIG]
    manifest = b'[{"name": "/s/in", "bytes": 200, "hash": "e", ' \
        b'"sub_slo": true}]'
    call(dss, 'PUT', '/v1/a/c/out', manifest, X_Static_Large_Object='True',
         X_Object_Sysmeta_Slo_Size='200', X_DSS_Object_Class='gold')
    assert map_of(swift, A) == GOLD
    answer = post(dss, '/v1/a/s/in')
    assert answer.status_int == 409 and b'/c/out' in answer.body
    assert map_of(swift, A) == GOLD


def deleted(dss: Any, swift: Any) -> None:
    assert call(dss, 'DELETE').status_int == 204


def other_segments(dss: Any, swift: Any) -> None:
    put(dss, segments='a')


def no_manifest(dss: Any, swift: Any) -> None:
    call(dss, 'PUT', body=b'text')


def damaged(dss: Any, swift: Any) -> None:
    swift.objects[BIG] = (b'no manifest', swift.objects[BIG][1])


@pytest.mark.parametrize('change', [
    deleted, other_segments, no_manifest, damaged])
def test_a_segment_without_its_manifest_has_its_own_class(
        dss: Any, swift: Any, change: Any) -> None:
    put(dss, X_DSS_Object_Class='gold')
    change(dss, swift)
    assert post(dss).status_int == 202
    assert map_of(swift, B) == SILVER
    assert names.CLAIMS not in swift.objects[B][1]


def test_a_manifest_may_be_on_its_way(
        dss: Any, swift: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(alone, '_YOUNG_SECONDS', 60.0)
    swift.__class__ = Met
    swift.where, said = ('PUT', BIG, 0), []
    swift.meets = lambda: said.append(post(dss).status_int)
    put(dss, X_DSS_Object_Class='gold')
    assert said == [409] and has(dss, swift) == (GOLD, '25')


def test_a_segment_under_the_name_of_a_version(dss: Any, swift: Any) -> None:
    hidden = '/v1/a/\x00versions\x00s/\x00b\x007999'
    swift.objects[hidden] = swift.objects[B]
    swift.objects[B] = (b'', HeaderKeyDict({
        stored.SYMLINK_TARGET: hidden[len('/v1/a/'):]}))
    put(dss, X_DSS_Object_Class='gold')
    assert map_of(swift, hidden) == GOLD
    assert post(dss, hidden).status_int == 409
    assert has(dss, swift, hidden) == (GOLD, '25')


def test_a_name_is_not_told_to_those_who_may_not_see_it(
        dss: Any, swift: Any) -> None:
    put(dss, X_DSS_Object_Class='gold')

    def authorize(request: Any) -> Any:
        return HTTPForbidden(request=request) \
            if request.path_info.split('/')[3] == 'c' else None
    answer = post(dss, env={'swift.authorize': authorize})
    assert answer.status_int == 409 and b'big' not in answer.body


def test_a_server_that_was_away_knows_no_manifest(
        dss: Any, swift: Any) -> None:
    put(dss)
    goes_back(swift, B)
    call(dss, 'POST', X_DSS_Object_Class='gold')
    assert post(dss).status_int == 409
    assert has(dss, swift) == (GOLD, '25')


@pytest.mark.parametrize('more', [{}, {'X_Object_Meta_Color': 'red'}])
@pytest.mark.parametrize('where', [
    ('HEAD', B, 0), ('HEAD', B, 1), ('POST', B, 0)])
def test_a_manifest_comes_while_a_segment_is_posted(
        dss: Any, swift: Any, where: Any, more: Any) -> None:
    swift.__class__ = Met
    swift.where = where
    swift.meets = lambda: put(dss, X_DSS_Object_Class='gold')
    assert post(dss, **more).status_int == 409
    assert has(dss, swift) == (GOLD, '25')


@pytest.mark.parametrize('where', [
    ('HEAD', B, 0), ('POST', B, 0), ('POST', BIG, 0)])
def test_a_segment_is_posted_while_its_manifest_comes(
        dss: Any, swift: Any, where: Any) -> None:
    put(dss)
    swift.__class__ = Met
    swift.where, said = where, []
    swift.meets = lambda: said.append(post(dss).status_int)
    assert call(dss, 'POST', X_DSS_Object_Class='gold').status_int == 202
    assert said in ([202], [409])
    assert has(dss, swift) == (GOLD, '25')


def test_two_posts_of_one_object_at_once_are_both_done(
        dss: Any, swift: Any) -> None:
    swift.__class__ = Met
    swift.where, said = ('POST', B, 0), []
    swift.meets = lambda: said.append(call(
        dss, 'POST', B, X_DSS_Object_Class='gold').status_int)
    assert post(dss, X_Object_Meta_Color='red').status_int == 202
    assert said == [202] and map_of(swift, B) == SILVER
    assert swift.objects[B][1]['X-Object-Meta-Color'] == 'red'


class Three(Met):
    """With three servers, of which one may have other headers than the proxy
    shows.

    :ivar said: by the server's number and the end of the path
    """

    conn_timeout = 0.5
    container_ring = Ring()

    def __init__(self) -> None:
        super().__init__()
        self.said: Dict[str, Any] = {}

    def get_object_ring(self, _index: Any) -> Ring:
        return self.container_ring

    def fetch(self, host: str, _port: int, path: str, *_rest: Any) -> Any:
        known = self.objects.get('/v1/' + path.split('/', 3)[3])
        said = self.said.get(host[-1] + path[-2:], known and known[1])
        if isinstance(said, Exception):
            raise said
        return (404, {}, b'') if said is None else (200, dict(said), b'')


@pytest.fixture
def swift_of_three(monkeypatch: Any) -> Three:
    made = Three()
    for path in (A, B):
        made.objects[path] = (b'x' * 100, HeaderKeyDict())
    ask_directly(monkeypatch, made.fetch)
    monkeypatch.setattr(batches, 'get_container_info',
                        lambda *_words, **_more: {'status': 404})
    return made


@pytest.fixture
def three(swift_of_three: Three, dss: Any, tmp_path: Any) -> Any:
    return DssMiddleware(swift_of_three, {
        'class_table': str(tmp_path / 'classes'), 'admission': 'false'},
        FakeLogger())


def test_one_server_that_knows_the_manifest_is_enough(
        three: Any, swift_of_three: Any) -> None:
    put(three, X_DSS_Object_Class='gold')
    swift_of_three.said = {'1/b': dict(swift_of_three.objects[B][1])}
    swift_of_three.objects[B] = (b'x' * 100, HeaderKeyDict())
    assert post(three).status_int == 409
    assert map_of(swift_of_three, B) is None


@pytest.mark.parametrize('silent, status', [('1', 409), ('12', 503)])
def test_servers_that_do_not_answer(
        three: Any, swift_of_three: Any, silent: str, status: int
        ) -> None:
    put(three, X_DSS_Object_Class='gold')
    swift_of_three.said = {number + '/b': OSError('dead') for number in silent}
    assert post(three).status_int == status
    assert map_of(swift_of_three, B) == GOLD


def test_what_one_server_took_before_others_refused_it_is_taken_back(
        three: Any, swift_of_three: Any) -> None:
    swift_of_three.where = ('POST', B, 0)
    later = '9000000000.00000'

    def meets() -> None:
        put(three, X_DSS_Object_Class='gold')
        swift_of_three.said = {'0/b': {names.TRANSIENT_MAP: '26',
                               names.MAP_AT: later}}
    swift_of_three.meets = meets
    assert post(three).status_int == 409
    assert map_of(swift_of_three, B) == GOLD
    assert swift_of_three.objects[B][1][names.MAP_AT] > later
    assert names.CLAIMS in swift_of_three.objects[B][1]
