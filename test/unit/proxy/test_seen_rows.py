"""Listings that show classes and tiers, and those of one class."""

from __future__ import annotations

import json
import random
from typing import Any, List
from urllib.parse import quote, unquote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.edges.one_container import TABLE, Container, filter_over
from swift.common.swob import Request

from swift_dss.proxy.seeing import pages, rows, tiers
from swift_dss.wire import names
from swift_dss.wire.settings import classtable

CLASSES = [0, 25, 26, 7]
NAMES = {0: 'unclassified', 25: 'gold', 26: 'silver', 7: '7'}


@pytest.fixture
def swift(tmp_path: Any) -> Container:
    return Container(tmp_path)


@pytest.fixture
def dss(swift: Container, tmp_path: Any) -> Any:
    return filter_over(swift, tmp_path)


def ask(app: Any, query: str = '', env: Any = None) -> Any:
    return Request.blank('/v1/a/c?' + query, environ=env or {}
                         ).get_response(app)


def listed(app: Any, query: str = '', env: Any = None) -> Any:
    answer = ask(app, query, env)
    assert answer.status_int == 200, answer.body
    assert answer.content_length == len(answer.body)
    return json.loads(answer.body)


def classes(app: Any, query: str = 'dss=true') -> Any:
    return {row['name']: row[rows.CLASS] for row in listed(app, query)
            if 'name' in row}


def fill(swift: Container) -> None:
    for class_id in CLASSES:
        swift.put('of %d' % class_id, class_id)


# -- classes -----------------------------------------------------------------

def test_rows_have_the_class_that_the_table_names(
        dss: Any, swift: Container) -> None:
    fill(swift)
    assert classes(dss) == {
        'of %d' % class_id: NAMES[class_id] for class_id in CLASSES}


def test_only_on_request(dss: Any, swift: Container) -> None:
    fill(swift)
    plain = ask(dss).body
    for query in ('dss=false', 'dss=FALSE&limit=9', 'prefix=of&marker=dss'):
        assert ask(dss, query).body == plain or 'marker' in query
        assert rows.CLASS.encode() not in ask(dss, query).body
    shown = listed(dss, 'dss=true')
    for row in shown:
        del row[rows.CLASS]
    assert shown == json.loads(plain)
    assert [row['content_type'] for row in shown] == ['a/b'] * len(CLASSES)


def test_requests_of_s3_are_left_alone(dss: Any, swift: Container) -> None:
    fill(swift)
    assert ask(dss, 'dss=tier&dss-class=x', {'swift.source': 'S3'}
               ).body == ask(dss).body


#: Names and content types that look like something else.
ODD = ['"content_type": "a', 'x;x-dss-class=26', '", "last_modified": "',
       'back\\', 'quote"', ';x-dss-class=26", "last_modified": "x', '\u2603']


@pytest.mark.parametrize('text', ODD)
def test_text_that_looks_like_a_field_is_text(
        dss: Any, swift: Container, text: str) -> None:
    fill(swift)
    swift.put(text, 25)
    swift.put('type', 26, 'a/b;c=' + text)
    swift.put('last', 0, text)
    expected = {'of %d' % class_id: NAMES[class_id] for class_id in CLASSES}
    assert classes(dss) == dict(
        expected, **{text: 'gold', 'type': 'silver', 'last': 'unclassified'})
    kinds = {row['name']: row['content_type']
             for row in listed(dss, 'dss=true')}
    assert kinds['type'] == 'a/b;c=' + text and kinds['last'] == text


@given(st.lists(st.tuples(
    st.sampled_from(ODD + ['a', 'b/c']), st.sampled_from(ODD + ['a/b', '']),
    st.sampled_from(CLASSES + [None])), max_size=5), st.booleans())
def test_replacing_bytes_gives_what_parsing_gives(
        written: Any, other_order: bool) -> None:
    table = classtable.parse(TABLE, 'test')
    listed_rows = []
    for name, kind, class_id in written:
        if class_id is None:
            listed_rows.append({'subdir': name})
            continue
        if class_id or names.LISTED_CLASS in kind:
            kind += '%s%d' % (names.LISTED_CLASS, class_id)
        row = {'bytes': 1, 'hash': 'e', 'name': name, 'content_type': kind,
               'last_modified': '1970'}
        listed_rows.append(dict(sorted(row.items())) if other_order else row)
    changed = json.loads(rows.with_classes(
        json.dumps(listed_rows).encode('ascii'), table))
    for row, (_name, kind, class_id) in zip(changed, written):
        if class_id is not None:
            assert row['content_type'] == kind
            assert row[rows.CLASS] == NAMES[class_id]
    assert len(changed) == len(written)


def test_links_have_no_class_and_subdirectories_no_field(
        dss: Any, swift: Container) -> None:
    swift.put('link', 0, etag='e; symlink_target=c/o')
    swift.put('sub/o', 25)
    assert listed(dss, 'dss=true&delimiter=/') == [
        dict(listed(dss)[0], dss_class=None), {'subdir': 'sub/'}]


@pytest.mark.parametrize('query, why', [
    ('dss=1', "dss: '1' is none of true, tier and false"),
    ('dss', "dss: '' is none of true, tier and false"),
    ('dss=%FF', 'dss: '),
    ('dss-class=platinum', "dss-class: 'platinum' is neither a class id 0..31 "
     'nor a class name (gold, silver, unclassified)'),
    ('dss-class=32', "dss-class: class id '32' is not in 0..31"),
    ('dss-class=', 'dss-class: '),
    ('dss=true&versions', 'dss: a listing of versions has no classes'),
    ('versions&dss-class=gold', 'dss-class: a listing of versions')])
def test_wrong_words_are_told(dss: Any, swift: Container, query: str,
                              why: str) -> None:
    answer = ask(dss, query)
    assert answer.status_int == 400
    assert answer.body.decode().startswith(why)
    assert len(answer.body) < 300 and answer.body.count(b'\n') == 1
    assert not swift.listings


@pytest.fixture(scope='module')
def over_nothing(tmp_path_factory: Any) -> Any:
    folder = tmp_path_factory.mktemp('nothing')
    return filter_over(Container(folder), folder)


@given(st.one_of(st.text(max_size=20), st.sampled_from(
    ['true', 'tier', ' False '])), st.one_of(
        st.text(max_size=20), st.sampled_from(['gold', '31', '032'])))
def test_any_words_give_rows_or_a_sentence(
        over_nothing: Any, said: str, wanted: str) -> None:
    dss = over_nothing
    answer = ask(dss, urlencode({'dss': said, 'dss-class': wanted},
                                errors='surrogatepass'))
    assert answer.status_int in (200, 400)
    assert ask(dss, 'dss=%s&dss-class=%%' % quote(
        said, errors='surrogatepass')).status_int == 400


# -- rows of one class -------------------------------------------------------

def test_rows_of_one_class(dss: Any, swift: Container) -> None:
    fill(swift)
    assert [row['name'] for row in listed(dss, 'dss-class=GOLD')] == ['of 25']
    assert [row['name'] for row in listed(dss, 'dss-class=7')] == ['of 7']
    assert [row['name'] for row in listed(dss, 'dss-class=0')] == ['of 0']
    assert listed(dss, 'dss-class=9') == []
    assert listed(dss, 'dss-class=gold') == [
        row for row in listed(dss) if row['name'] == 'of 25']
    assert classes(dss, 'dss=true&dss-class=gold') == {'of 25': 'gold'}


@pytest.fixture(scope='module')
def many(tmp_path_factory: Any) -> Container:
    swift = Container(tmp_path_factory.mktemp('many'))
    generator = random.Random(7)
    for number in range(300):
        swift.put('%s/%03d' % (generator.choice('abc'), number),
                  generator.choice(CLASSES))
    return swift


@pytest.mark.parametrize('query', [
    {}, {'prefix': 'b/'}, {'marker': 'a/150'}, {'end_marker': 'b/200'},
    {'marker': 'a/9', 'end_marker': 'c/1'}, {'delimiter': '/'},
    {'delimiter': '/', 'prefix': 'b/'}, {'path': 'c'}, {'reverse': 'true'},
    {'reverse': 'true', 'marker': 'b/250', 'delimiter': '0'},
    {'delimiter': '1', 'prefix': 'a'}])
@pytest.mark.parametrize('limit', [1, 3, 50, 400])
def test_pages_are_those_of_all_rows(
        many: Container, tmp_path: Any, query: Any, limit: int) -> None:
    """As if all was listed and then picked, whatever the limit is."""
    dss = filter_over(many, tmp_path)
    expected = [row for row in listed(dss, urlencode(dict(query, dss='true')))
                if 'subdir' in row or row[rows.CLASS] == 'silver']
    asked = dict(query, dss='true', limit=str(limit))
    asked['dss-class'] = 'silver'
    joined: List[Any] = []
    while True:
        answer = ask(dss, urlencode(asked))
        page = json.loads(answer.body)
        assert names.NEXT_MARKER not in answer.headers
        assert len(page) <= limit
        joined += page
        if not page:
            break
        asked['marker'] = page[-1].get('name') or page[-1]['subdir']
    assert joined == expected


@pytest.mark.parametrize('limit', ['0', 'x', '-1', ''])
def test_odd_limits_are_as_swift_takes_them(
        dss: Any, swift: Container, limit: str) -> None:
    fill(swift)
    assert len(listed(dss, 'dss-class=gold&limit=' + limit)) == (
        0 if limit == '0' else 1)


def test_a_limit_that_is_too_high_is_swifts_error(
        dss: Any, swift: Container) -> None:
    assert ask(dss, 'dss-class=gold&limit=10001').status_int == 412


def test_one_answer_reads_so_many_rows(
        dss: Any, swift: Container, monkeypatch: Any) -> None:
    monkeypatch.setattr(pages, 'MAX_FILTERED_ROWS', 20)
    for number in range(300):
        swift.put('o %03d\u2603' % number, 25 if number == 299 else 0)
    query, joined, empty = 'dss-class=gold&limit=2', [], 0
    while True:
        before = len(swift.listings)
        answer = ask(dss, query)
        page = json.loads(answer.body)
        assert sum(int(params['limit']) for params
                   in swift.listings[before:]) < 20 + 8 * 18
        joined += page
        marker = answer.headers.get(names.NEXT_MARKER)
        if marker is None:
            break
        empty += not page
        # It is quoted as a query wants it.
        query = 'dss-class=gold&limit=2&marker=' + marker
        assert unquote(marker).startswith('o ')
    assert [row['name'] for row in joined] == ['o 299\u2603']
    assert empty


def test_listings_are_no_more_than_it_takes(
        dss: Any, swift: Container) -> None:
    for number in range(1000):
        swift.put('o%04d' % number, 25)
    assert len(listed(dss, 'dss-class=gold&limit=10')) == 10
    assert [params['limit'] for params in swift.listings] == ['10']
    listed(dss, 'dss-class=silver&limit=10')
    assert [params['limit'] for params in swift.listings[1:]] == [
        '10', '80', '640', '5120']
    assert not any('dss' in key for params in swift.listings
                   for key in params)


def test_an_error_of_a_later_listing_is_the_answer(
        dss: Any, swift: Container) -> None:
    for number in range(50):
        swift.put('o%04d' % number, 0)
    swift.fails_at = 2
    answer = ask(dss, 'dss-class=gold&limit=1')
    assert (answer.status_int, answer.body) == (503, b'gone')


# -- tiers -------------------------------------------------------------------

def test_tiers_are_those_of_heads(dss: Any, swift: Container) -> None:
    fill(swift)
    swift.put('sub/o', 25)
    swift.tiers = {
        '/v1/a/c/of 0': {names.BACKEND_TIER: 'ssd'},
        '/v1/a/c/of 25': 404,
        '/v1/a/c/of 26': {names.BACKEND_TIER: 'ssd',
                          'X-Static-Large-Object': 'True'},
        '/v1/a/c/of 7': {names.BACKEND_TIER: 'ssd+remote'}}
    shown = listed(dss, 'dss=tier&delimiter=/')
    assert {row['name']: (row[rows.CLASS], row[tiers.TIER])
            for row in shown if 'name' in row} == {
        'of 0': ('unclassified', 'ssd'), 'of 25': ('gold', None),
        'of 26': ('silver', None), 'of 7': ('7', 'ssd+remote')}
    assert {'subdir': 'sub/'} in shown
    assert len(swift.heads) == 4
    listed(dss, 'dss=tier&dss-class=gold')
    assert swift.heads[4:] == ['/v1/a/c/of 25', '/v1/a/c/sub/o']


def test_a_page_with_tiers_has_fewer_rows(
        dss: Any, swift: Container, monkeypatch: Any) -> None:
    monkeypatch.setattr(pages, 'MAX_TIER_ROWS', 3)
    for number in range(5):
        swift.put('o %d' % number, 25)
    answer = ask(dss, 'dss=tier')
    assert len(json.loads(answer.body)) == len(swift.heads) == 3
    assert answer.headers[names.NEXT_MARKER] == 'o%202'
    answer = ask(dss, 'dss=tier&marker=o%202')
    assert len(json.loads(answer.body)) == 2
    assert names.NEXT_MARKER not in answer.headers
    # Three were wanted.
    assert names.NEXT_MARKER not in ask(dss, 'dss=tier&limit=3').headers


def test_the_rights_of_the_client_count(dss: Any, swift: Container) -> None:
    fill(swift)

    def authorize(request: Any) -> None:
        pass

    listed(dss, 'dss=tier', {'swift.authorize': authorize})
    assert swift.authorizes == [authorize] * len(CLASSES)
