"""Storage classes of S3, by the names of the class table."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.edges.fake_swift import FakeSwift, Logger
from swift.common.registry import get_swift_info
from swift.common.swob import Request, Response

from swift_dss.proxy import listing
from swift_dss.proxy.filter import DssMiddleware
from swift_dss.proxy.reclassify import SAME_METADATA
from swift_dss.wire import names

TABLE = (
    '[class:25]\nname = gold\nrank = 9\n'
    '[class:26]\nname = silver\nrank = 8\n'
    's3_storage_class = STANDARD_IA, ONEZONE_IA\n')
OBJECT = '/v1/a/c/o'


@pytest.fixture
def swift() -> FakeSwift:
    return FakeSwift()


@pytest.fixture
def dss(swift: FakeSwift, tmp_path: Any) -> DssMiddleware:
    (tmp_path / 'classes').write_text(TABLE)
    (tmp_path / 'rules').write_text(
        '[rule:jpg]\nclass = gold\nname = *.jpg\n')
    return DssMiddleware(swift, {
        'class_table': str(tmp_path / 'classes'),
        'rules_file': str(tmp_path / 'rules')}, Logger())


def ask(app: Any, method: str, path: str = OBJECT, body: bytes = b'x',
        env: Any = None, **headers: str) -> Any:
    return Request.blank(path, method=method, environ=env or {}, headers={
        name.replace('_', '-'): value for name, value in headers.items()},
        body=body if method == 'PUT' else b'').get_response(app)


def class_of(dss: Any, path: str = OBJECT) -> Any:
    return ask(dss, 'HEAD', path).headers.get(names.OBJECT_CLASS)


def test_info_says_the_names(dss: DssMiddleware) -> None:
    assert get_swift_info()['dss']['s3_storage_classes'] == {
        'STANDARD_IA': 26, 'ONEZONE_IA': 26}


@pytest.mark.parametrize('path, headers, wanted', [
    (OBJECT, {'X_Object_Storage_Class': 'STANDARD_IA'}, '26'),
    (OBJECT, {'X_Object_Storage_Class': ' ONEZONE_IA '}, '26'),
    # A header of ours wins, and metadata does not.
    (OBJECT, {'X_Object_Storage_Class': 'STANDARD_IA',
              'X_DSS_Object_Class': '3'}, '3'),
    (OBJECT, {'X_Object_Storage_Class': 'STANDARD_IA',
              'X_Object_Meta_Dss_Class': '3'}, '26'),
    # S3's own STANDARD is no wish: some clients always send it.
    (OBJECT, {'X_Object_Storage_Class': 'STANDARD'}, None),
    (OBJECT, {'X_Object_Storage_Class': 'STANDARD',
              'X_Object_Meta_Dss_Class': '3'}, '3'),
    ('/v1/a/c/o.jpg', {'X_Object_Storage_Class': 'STANDARD'}, '25'),
    ('/v1/a/c/o.jpg', {'X_Object_Storage_Class': 'ONEZONE_IA'}, '26')])
def test_which_class_counts(dss: Any, path: str, headers: Any,
                            wanted: Any) -> None:
    assert ask(dss, 'PUT', path, **headers).status_int == 201
    assert class_of(dss, path) == wanted
    shown = ask(dss, 'GET', path).headers.get(names.STORAGE_CLASS)
    assert shown == ('STANDARD_IA' if wanted == '26' else None)


@pytest.mark.parametrize('name', ['GOLD', 'gold', '', 'standard', 'x' * 999])
def test_an_unknown_name_is_refused(dss: Any, swift: Any, name: str) -> None:
    for method in ('PUT', 'POST'):
        answer = ask(dss, method, X_Object_Storage_Class=name)
        assert answer.status_int == 400
        assert answer.body.startswith(names.STORAGE_CLASS.encode())
        assert b'ONEZONE_IA, STANDARD_IA' in answer.body
        assert len(answer.body) < 300
    assert not swift.objects


def test_the_header_goes_no_further(dss: Any, swift: Any) -> None:
    ask(dss, 'PUT', X_Object_Storage_Class='STANDARD_IA')
    _method, _path, headers = swift.requests[-1]
    assert names.STORAGE_CLASS not in headers


# -- listings ----------------------------------------------------------------

ROWS = [
    {'name': 'plain', 'content_type': 'a/b'},
    {'name': 'silver', 'content_type': 'a/b;x-dss-class=26'},
    {'name': 'gold', 'content_type': 'a/b; c="d\\"e";x-dss-class=25'},
    {'name': '"content_type": "a;x-dss-class=26"', 'content_type': 'a/b'},
    {'name': 'x;x-dss-class=26', 'content_type': 'a/b;x-dss-class=0'},
    {'name': 'back\\', 'content_type': 'a;x-dss-class=26;x-dss-class=0'},
    {'name': 'inside', 'content_type': 'a;x-dss-class=26;b'}]
CLEAN = ['a/b', 'a/b', 'a/b; c="d\\"e"', 'a/b', 'a/b',
         'a;x-dss-class=26', 'a;x-dss-class=26;b']


#: As container servers order the fields, and otherwise.
ORDERS = [ROWS, [dict(row, last_modified='1970') for row in ROWS],
          [dict(row, last_modified='1970') for row in ROWS[:3]]]


@pytest.fixture(params=ORDERS, ids=['other order', 'odd rows', 'rows'])
def rows(request: Any) -> Any:
    return request.param


def listed(tmp_path: Any, rows: Any, env: Any = None, status: int = 200,
           kind: str = 'application/json') -> Any:
    (tmp_path / 'classes').write_text(TABLE)
    answer = Response(status=status, body=json.dumps(rows).encode(),
                      content_type=kind)
    response = ask(DssMiddleware(answer, {
        'class_table': str(tmp_path / 'classes')}, Logger()),
        'GET', '/v1/a/c', env=env)
    assert response.content_length == len(response.body)
    return response.body


def test_listings_have_the_content_types_of_clients(
        tmp_path: Any, rows: Any) -> None:
    shown = json.loads(listed(tmp_path, rows))
    assert [row['content_type'] for row in shown] == CLEAN[:len(rows)]
    assert [row['name'] for row in shown] == [row['name'] for row in rows]
    assert not [row for row in shown if listing.FIELD in row]


def test_our_s3api_gets_a_field(tmp_path: Any, rows: Any) -> None:
    env: Any = {}
    listing.note_s3(env)
    shown = json.loads(listed(tmp_path, rows, env))
    assert [row['content_type'] for row in shown] == CLEAN[:len(rows)]
    assert [row.get(listing.FIELD) for row in shown] == [
        None, 'STANDARD_IA', None, None, None, None, None][:len(rows)]


@pytest.mark.parametrize('status, kind', [
    (200, 'text/plain'), (404, 'application/json')])
def test_other_answers_are_left_alone(tmp_path: Any, status: int,
                                      kind: str) -> None:
    assert listed(tmp_path, ROWS, None, status, kind) == json.dumps(
        ROWS).encode()


# -- tags, which s3api hands down --------------------------------------------

TAGS = {'X_Object_Transient_Sysmeta_S3_Tagging': 'a=b'}


def stored(swift: Any) -> Any:
    return swift.objects[OBJECT][1].get(names.S3_TAGGING)


@pytest.mark.parametrize('is_stock', [False, True])
def test_a_post_without_tags_keeps_them(dss: Any, swift: Any,
                                        is_stock: bool) -> None:
    swift.is_stock = is_stock
    ask(dss, 'PUT', **TAGS)
    for headers in ({'X_Object_Meta_A': 'b'}, {}, {
            'X_DSS_Object_Class': '3'}, {'X_DSS_Object_Class': '4',
                                         'X_Object_Meta_A': 'c'}):
        ask(dss, 'POST', **headers)
        assert stored(swift) == 'a=b', headers
    assert class_of(dss) == '4'


def test_a_post_of_tags_and_a_class_sets_both(dss: Any, swift: Any) -> None:
    ask(dss, 'PUT')
    ask(dss, 'POST', X_DSS_Object_Class='3', **TAGS)
    assert stored(swift) == 'a=b' and class_of(dss) == '3'
    ask(dss, 'POST', X_Object_Transient_Sysmeta_S3_Tagging='')
    assert not stored(swift) and class_of(dss) == '3'


def test_metadata_that_is_repeated_is_no_wish(dss: Any, swift: Any) -> None:
    ask(dss, 'PUT', body=b'x' * 100, X_DSS_Range_Class='0-64-26',
        X_Object_Meta_Dss_Class='gold')
    before = ask(dss, 'HEAD').headers
    ask(dss, 'POST', env={SAME_METADATA: True}, X_Object_Meta_Dss_Class='gold',
        **TAGS)
    after = ask(dss, 'HEAD').headers
    for name in (names.OBJECT_CLASS, names.RANGE_CLASS, names.S3_CLASS_META):
        assert after[name] == before[name]
    assert after[names.RANGE_CLASS] == '0-64-26'
