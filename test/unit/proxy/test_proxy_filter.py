"""The filter over a fake proxy server: what goes down, what comes up."""

from __future__ import annotations

import hashlib
import io

import pytest
from support.edges.fake_swift import FakeSwift
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import Request, Response

from swift_dss.core.errors import BadConfig
from swift_dss.core.spans import ClassMap, Span
from swift_dss.proxy import pipeline
from swift_dss.proxy.filter import DssMiddleware, filter_factory
from swift_dss.proxy.pipeline import WrongPlace
from swift_dss.wire import classmap, names, registers
from swift_dss.wire.dssfile import encode_section

BODY = bytes(range(200)) * 10
TABLE = '[class:0]\nname = unclassified\nrank = 0\n' \
    '[class:25]\nname = gold\nrank = 9\n[class:26]\nname = silver\nrank = 8\n'
OBJECT = '/v1/a/c/o'
MAP = ClassMap.from_spans([Span(0, 64, 25), Span(1024, 32, 26)], 3)


class FakeLogger:
    """Counts what is counted."""

    def __init__(self):
        self.counted = []
        self.errors = []

    def increment(self, name):
        self.counted.append(name)

    def error(self, text, *arguments):
        self.errors.append(text % arguments)

    def info(self, text, *arguments):
        pass


@pytest.fixture
def swift():
    return FakeSwift()


@pytest.fixture
def conf(tmp_path):
    (tmp_path / 'classes').write_text(TABLE)
    (tmp_path / 'rules').write_text(
        '[rule:jpg]\nclass = silver\nname = *.jpg\n'
        '[rule:large]\nclass = gold\nsize = > 1m\n')
    return {'class_table': str(tmp_path / 'classes'),
            'rules_file': str(tmp_path / 'rules'), 'reload_interval': '0'}


@pytest.fixture
def dss(swift, conf):
    return DssMiddleware(swift, conf, FakeLogger())


def call(app, method, path=OBJECT, headers=(), body=b'', source=None,
         chunked=False, **env):
    request = Request.blank(path, method=method, headers=dict(headers),
                            body=body)
    if chunked:
        del request.headers['Content-Length']
        request.headers['Transfer-Encoding'] = 'chunked'
        request.environ['wsgi.input'] = io.BytesIO(body)
    request.environ.update(env)
    if source:
        request.environ['swift.source'] = source
    return request.get_response(app)


def sent_map(swift):
    """The map that the last PUT told the object servers."""
    _method, _path, headers = [
        request for request in swift.requests if request[0] == 'PUT'][-1]
    # Each replica's request has each header.
    assert not [name for name in headers
                if name.startswith(names.BACKEND_MAP)]
    return classmap.from_headers(names.SYSMETA_MAP, headers)


def test_the_map_goes_down_before_the_data(dss, swift):
    answer = call(dss, 'PUT', body=BODY, headers={
        'X-DSS-Object-Class': '3',
        'X-DSS-Range-Class': '0-64-gold,1024-32-26'})
    assert answer.status_int == 201
    assert sent_map(swift) == MAP
    assert swift.objects[OBJECT][0] == BODY
    assert dss.logger.counted == ['dss.put.3', 'dss.put_mixed']


def test_the_access_log_is_marked(dss):
    env = {'swift.log_info': []}
    call(dss, 'PUT', body=BODY, headers={'X-DSS-Object-Class': '3'}, **env)
    assert env['swift.log_info'] == ['dss:3']


def test_unclassified_uploads_carry_nothing(dss, swift):
    call(dss, 'PUT', body=BODY)
    _method, _path, headers = swift.requests[-1]
    assert not [name for name in headers if 'Dss' in name]


def test_precedence(dss, swift):
    swift.containers['/v1/a/c'] = HeaderKeyDict(
        {names.CONTAINER_SYSMETA_CLASS: '7'})
    for path, headers, wanted in (
            ('/v1/a/c/x.jpg', {'X-DSS-Object-Class': 'gold',
                               'X-Object-Meta-Dss-Class': '5'}, 25),
            ('/v1/a/c/x.jpg', {'X-Object-Meta-Dss-Class': '5'}, 5),
            ('/v1/a/c/x.jpg', {}, 26),
            ('/v1/a/c/x.txt', {}, 7)):
        call(dss, 'PUT', path, headers, BODY)
        assert sent_map(swift) == ClassMap.uniform(wanted)
    call(dss, 'PUT', '/v1/a/c/x.jpg', {'X-DSS-Range-Class': '0-1-25'}, BODY)
    assert sent_map(swift) == ClassMap.from_spans([Span(0, 1, 25)], 26)


@pytest.mark.parametrize('way', ['PUT', 'POST', 'GET', 'HEAD', 'DELETE'])
@pytest.mark.parametrize('path', [OBJECT, '/v1/a/c', '/v1/a'])
@pytest.mark.parametrize('name', [
    names.BACKEND_MAP, names.BACKEND_READER, names.SYSMETA_MAP,
    names.SYSMETA_MAP + '-0',
    names.TRANSIENT_MAP, names.CONTAINER_SYSMETA_CLASS,
    names.ACCOUNT_SYSMETA_CLASSES, 'X_Backend-dss_map',
    'X-Object-Sysmeta-Dss-Seal'])
def test_forged_headers_never_go_down(dss, swift, way, path, name):
    call(dss, 'PUT', body=BODY)
    for source in (None, 'SSC', 'S3', 'OV'):
        call(dss, way, path, {name: '25'}, source=source)
        _method, _path, headers = swift.requests[-1]
        assert headers.pop(names.BACKEND_READER, '') != '25'
        assert not [header for header in headers if 'Dss' in header]
    assert dss.logger.counted.count('dss.dropped_headers') == 4


def test_get_and_head_show_the_classes_and_nothing_internal(dss):
    call(dss, 'PUT', body=BODY, headers={
        'X-DSS-Object-Class': '25', 'X-DSS-Range-Class': '0-64-26'})
    for method in ('GET', 'HEAD'):
        answer = call(dss, method)
        assert answer.headers['X-DSS-Object-Class'] == '25'
        assert answer.headers['X-DSS-Class-Name'] == 'gold'
        assert answer.headers['X-DSS-Range-Class'] == '0-64-26'
        assert not [name for name in answer.headers if 'Sysmeta' in name]


def test_the_tier_is_shown(dss, swift):
    swift.answer_get_with = Response(
        body=b'x', headers={names.BACKEND_TIER: 'ssd+hdd'})
    answer = call(dss, 'GET')
    assert answer.headers['X-DSS-Tier'] == 'ssd+hdd'
    assert names.BACKEND_TIER not in answer.headers


def test_object_servers_hear_who_reads_and_neither_name_nor_address(
        dss, swift):
    call(dss, 'PUT', body=BODY)
    words = []
    for environ, headers in (
            ({'REMOTE_ADDR': '10.0.0.1'}, {}),
            ({'REMOTE_ADDR': '10.0.0.1', 'REMOTE_USER': 'bob'}, {}),
            ({'REMOTE_ADDR': '10.0.0.1'}, {'X-Forwarded-For': '9.9.9.9'}),
            ({'REMOTE_ADDR': '10.0.0.1'},
             {names.BACKEND_READER: 'somebody'})):
        request = Request.blank(OBJECT, environ=environ, headers=headers)
        assert request.get_response(dss).status_int == 200
        words.append(swift.requests[-1][-1][names.BACKEND_READER])
    assert len(set(words[:3])) == 3 and words[3] == words[0]
    assert all(len(word) == 12 and int(word, 16) >= 0 for word in words)


@pytest.mark.parametrize('source', [None, 'S3', 'SSC'])
def test_unavailable_bytes_are_503_with_retry_after(dss, swift, source):
    swift.answer_get_with = Response(
        status=409, headers={names.BACKEND_UNAVAILABLE: '17'})
    answer = call(dss, 'GET', source=source)
    assert answer.status_int == 503
    assert answer.headers['Retry-After'] == '17'
    assert b'does not answer' in answer.body
    assert answer.content_length == len(answer.body)
    flag = {'X-DSS-Object-File': 'True'}
    assert call(dss, 'GET', headers=flag).headers['Retry-After'] == '17'
    swift.answer_get_with = Response(status=409)
    assert call(dss, 'GET', source=source).status_int == 409


@pytest.mark.parametrize('chunked', [False, True])
@pytest.mark.parametrize('form', ['range', 'block'])
def test_dss_bodies_lose_their_section(dss, swift, form, chunked):
    class_map = MAP if form == 'range' else ClassMap.from_spans(
        [Span(512, 512, 26)], 25)
    whole = encode_section(class_map, len(BODY), form) + BODY
    answer = call(dss, 'PUT', headers={'X-DSS-Object-File': 'True'},
                  body=whole, chunked=chunked)
    assert answer.status_int == 201
    assert answer.headers['Etag'] == hashlib.md5(BODY).hexdigest()
    assert swift.objects[OBJECT][0] == BODY
    told = sent_map(swift)
    assert list(told.split(0, len(BODY))) == list(
        class_map.split(0, len(BODY)))
    back = call(dss, 'GET', headers={'X-DSS-Object-File': 'True'})
    assert back.body.endswith(BODY)
    assert back.content_length == len(back.body)
    assert 'Etag' not in back.headers
    assert back.headers[names.DATA_ETAG].strip('"') == \
        hashlib.md5(BODY).hexdigest()


def test_every_cut_of_a_dss_body_is_refused(dss, swift):
    section = encode_section(ClassMap.from_spans(
        [Span(512, 512, 26)], 25), len(BODY), 'block')
    whole = section + BODY
    for cut in list(range(len(section) + 1)) + [len(section) + 100]:
        for chunked in (False, True):
            answer = call(dss, 'PUT', body=whole[:cut], chunked=chunked,
                          headers={'X-DSS-Object-File': 'True'})
            assert answer.status_int == 400, (cut, answer.body)
            assert answer.body.startswith(b'X-DSS-Object-File')
    assert OBJECT not in swift.objects


def test_a_range_past_a_chunked_body_is_refused_at_its_end(dss, swift):
    for length, status in ((len(BODY), 201), (len(BODY) + 1, 400)):
        answer = call(dss, 'PUT', body=BODY, chunked=True, headers={
            'X-DSS-Range-Class': '0-%d-25' % length})
        assert answer.status_int == status
        assert (OBJECT in swift.objects) == (status == 201)
        swift.objects.clear()


def test_content_md5_through_s3_is_that_of_the_whole_body(dss):
    whole = encode_section(MAP, len(BODY)) + BODY
    for etag, status in ((hashlib.md5(whole).hexdigest(), 201),
                         (hashlib.md5(BODY).hexdigest(), 422)):
        answer = call(dss, 'PUT', body=whole, source='S3', headers={
            'X-DSS-Object-File': 'True', 'Etag': etag})
        assert answer.status_int == status


def test_dss_form_is_refused_where_there_is_none(dss, swift):
    flag = {'X-DSS-Object-File': 'True'}
    call(dss, 'PUT', body=BODY, headers={'X-Object-Manifest': 'c/seg'})
    assert call(dss, 'GET', headers=flag).status_int == 400
    assert call(dss, 'GET', headers=dict(
        flag, Range='bytes=0-1')).status_int == 400
    assert call(dss, 'GET', '/v1/a/c/none', flag).status_int == 404


def test_symlinks_have_no_class(dss, swift):
    call(dss, 'PUT', headers={
        'X-Object-Sysmeta-Symlink-Target': 'c/o',
        'X-DSS-Object-Class': '25'})
    _method, _path, headers = swift.requests[-1]
    assert names.SYSMETA_MAP not in headers


def copied(dss, source, **given):
    """What copy middleware does: GET, then PUT of what it got."""
    got = call(dss, 'GET', source=source)
    headers = {name: value for name, value in got.headers.items()
               if name.lower() not in ('etag', 'content-length')}
    headers.update(given)
    return call(dss, 'PUT', '/v1/a/c/copy', headers, got.body, source)


@pytest.mark.parametrize('source', ['SSC', 'VW', 'OV'])
def test_copies_keep_the_class_unless_given(dss, swift, source):
    call(dss, 'PUT', body=BODY, headers={
        'X-DSS-Object-Class': '3',
        'X-DSS-Range-Class': '0-64-gold,1024-32-26'})
    copied(dss, source)
    assert sent_map(swift) == MAP
    copied(dss, source, **{'X-DSS-Object-Class': '9'})
    assert sent_map(swift) == ClassMap.uniform(9)
    call(dss, 'POST', headers={'X-DSS-Object-Class': '7'})
    copied(dss, source)
    assert sent_map(swift) == ClassMap.uniform(7)


def test_metadata_that_a_copy_brings_along_asks_for_nothing(dss, swift):
    call(dss, 'PUT', body=BODY, headers={'X-Object-Meta-Dss-Class': 'gold'})
    call(dss, 'POST', headers={'X-DSS-Object-Class': '7'})
    copied(dss, 'SSC')
    assert sent_map(swift) == ClassMap.uniform(7)
    copied(dss, 'SSC', **{'X-Object-Meta-Dss-Class': 'silver'})
    assert sent_map(swift) == ClassMap.uniform(26)


def test_a_map_with_a_broken_seal_is_not_believed(dss, swift):
    call(dss, 'PUT', body=BODY, headers={'X-DSS-Object-Class': '3'})
    copied(dss, 'SSC', **{names.SYSMETA_MAP: '25'})
    _method, _path, headers = swift.requests[-1]
    assert names.SYSMETA_MAP not in headers


@pytest.mark.parametrize('is_stock', [False, True])
def test_reclassification_keeps_metadata_and_outlives_posts(
        dss, swift, is_stock):
    swift.is_stock = is_stock
    call(dss, 'PUT', body=BODY, headers={
        'X-DSS-Object-Class': '25', 'X-Object-Meta-Color': 'red'})
    assert call(dss, 'POST', headers={
        'X-DSS-Object-Class': 'silver'}).status_int == 202
    headers = call(dss, 'HEAD').headers
    assert headers['X-DSS-Object-Class'] == '26'
    assert headers['X-Object-Meta-Color'] == 'red'
    call(dss, 'POST', headers={'X-Object-Meta-Color': 'blue'})
    headers = call(dss, 'HEAD').headers
    assert headers['X-DSS-Object-Class'] == '26'
    assert headers['X-Object-Meta-Color'] == 'blue'
    call(dss, 'PUT', body=BODY)
    assert 'X-DSS-Object-Class' not in call(dss, 'HEAD').headers


def test_a_class_travels_without_metadata(dss, swift):
    call(dss, 'PUT', body=BODY, headers={'X-Object-Meta-Color': 'red'})
    call(dss, 'POST', headers={'X-DSS-Object-Class': 'silver'})
    _method, _path, headers = swift.requests[-1]
    assert 'X-Object-Meta-Color' not in headers
    assert registers.is_timestamp(headers[names.MAP_AT])


def test_a_post_of_metadata_says_when_the_class_was_set(dss, swift):
    call(dss, 'PUT', body=BODY)
    call(dss, 'POST', headers={'X-DSS-Object-Class': 'silver'})
    _method, _path, sent = swift.requests[-1]
    call(dss, 'POST', headers={'X-Object-Meta-Color': 'blue'})
    _method, _path, again = swift.requests[-1]
    assert again[names.MAP_AT] == sent[names.MAP_AT]
    assert again[names.TRANSIENT_MAP] == '26'
    assert names.META_AT not in again


@pytest.mark.parametrize('put, post, shown', [
    ({'X-Object-Meta-Dss-Class': 'Gold'}, None, 'Gold'),
    ({'X-Object-Meta-Dss-Class': '25'}, None, '25'),
    ({'X-Object-Meta-Dss-Class': 'gold'}, '26', 'silver'),
    ({'X-Object-Meta-Dss-Class': 'gold'}, '0', 'unclassified'),
    ({'X-Object-Meta-Dss-Class': 'gold'}, '7', '7'),
    ({'X-Object-Meta-Dss-Class': 'gold', 'X-DSS-Object-Class': 'silver'},
     None, 'silver')])
def test_class_metadata_says_the_class_in_force(dss, put, post, shown):
    call(dss, 'PUT', body=BODY, headers=put)
    if post is not None:
        call(dss, 'POST', headers={'X-DSS-Object-Class': post})
    for method in ('HEAD', 'GET'):
        headers = call(dss, method).headers
        assert headers['X-Object-Meta-Dss-Class'] == shown
        in_force = headers.get('X-DSS-Object-Class')
    # Who writes back what was read changes nothing.
    call(dss, 'POST', headers={'X-Object-Meta-Dss-Class': shown})
    headers = call(dss, 'HEAD').headers
    assert headers.get('X-DSS-Object-Class') == in_force


def test_class_metadata_of_an_unclassified_object_says_so(dss, swift):
    call(dss, 'PUT', body=BODY)
    swift.objects[OBJECT][1]['X-Object-Meta-Dss-Class'] = 'nonsense'
    assert call(dss, 'HEAD').headers[
        'X-Object-Meta-Dss-Class'] == 'unclassified'


def test_reclassification_by_section(dss):
    call(dss, 'PUT', body=BODY)
    section = encode_section(MAP, len(BODY))
    path = OBJECT + '?dss-classes'
    assert call(dss, 'POST', path, body=section).status_int == 202
    headers = call(dss, 'HEAD').headers
    assert headers['X-DSS-Range-Class'] == '0-64-25,1024-32-26'
    for body in (b'', section[:-1], section + b'x', encode_section(
            ClassMap.from_spans([Span(1999, 2, 5)]), 2001)):
        assert call(dss, 'POST', path, body=body).status_int == 400
    assert call(dss, 'POST', path, {'X-DSS-Object-Class': '3'},
                section).status_int == 400
    assert call(dss, 'HEAD').headers['X-DSS-Object-Class'] == '3'


def test_post_of_what_is_not_there_is_swifts_404(dss):
    for headers in ({}, {'X-DSS-Object-Class': '3'}):
        assert call(dss, 'POST', headers=headers).status_int == 404


def test_parts_take_the_class_of_their_upload(dss, swift):
    upload = 'A' * 48
    marker = '/v1/a/b+segments/key/' + upload
    call(dss, 'PUT', marker, {'X-Object-Meta-Dss-Class': 'gold'},
         source='S3')
    call(dss, 'HEAD', marker, source='S3')
    seen = len(swift.requests)
    call(dss, 'PUT', marker + '/1', {}, BODY, 'S3')
    assert sent_map(swift) == ClassMap.uniform(25)
    assert len(swift.requests) == seen + 1, 'no HEAD of our own'
    call(dss, 'PUT', '/v1/a/b/key', {
        'X-Static-Large-Object': 'True',
        'X-Object-Sysmeta-S3api-Upload-Id': upload}, b'[]', 'S3')
    assert sent_map(swift) == ClassMap.uniform(25)
    # Another worker did not see the HEAD.
    other = DssMiddleware(swift, {}, FakeLogger())
    call(other, 'PUT', marker + '/2', {}, BODY, 'S3')
    assert sent_map(swift) == ClassMap.uniform(25)
    # Not for a Swift client who calls his container that.
    call(other, 'PUT', marker + '/3', {}, BODY)
    assert names.SYSMETA_MAP not in swift.requests[-1][2]


def test_account_lists(dss, swift):
    swift.accounts['/v1/a'] = HeaderKeyDict()
    assert call(dss, 'POST', '/v1/a', {
        'X-DSS-Account-Classes': 'silver'}).status_int == 403
    assert call(dss, 'POST', '/v1/a', {'X-DSS-Account-Classes': 'silver'},
                reseller_request=True).status_int == 204
    assert call(dss, 'HEAD', '/v1/a').headers[
        'X-DSS-Account-Classes'] == 'silver'
    assert call(dss, 'PUT', headers={'X-DSS-Object-Class': '26'},
                body=BODY).status_int == 201
    for headers in ({'X-DSS-Object-Class': '25'},
                    {'X-DSS-Range-Class': '0-1-25'},
                    {'X-Object-Meta-Dss-Class': '25'}):
        assert call(dss, 'PUT', headers=headers,
                    body=BODY).status_int == 403
    assert call(dss, 'POST', '/v1/a/c', {
        'X-DSS-Container-Class': 'gold'}).status_int == 403
    # What the operator's rules give is not the tenant's asking.
    assert call(dss, 'PUT', '/v1/a/c/x.jpg', body=BODY).status_int == 201


def test_copies_into_a_limited_account_lose_the_class(dss, swift):
    call(dss, 'PUT', body=BODY, headers={'X-DSS-Object-Class': '25'})
    call(dss, 'POST', '/v1/a', {'X-DSS-Account-Classes': 'silver'},
         reseller_request=True)
    assert copied(dss, 'SSC').status_int == 201
    assert names.SYSMETA_MAP not in swift.requests[-1][2]
    assert 'dss.put.not_carried' in dss.logger.counted


def test_container_default_is_stored_as_an_id(dss, swift):
    call(dss, 'PUT', '/v1/a/c', {'X-DSS-Container-Class': 'gold'})
    assert swift.containers['/v1/a/c'][
        names.CONTAINER_SYSMETA_CLASS] == '25'
    assert call(dss, 'HEAD', '/v1/a/c').headers[
        'X-DSS-Container-Class'] == 'gold'
    call(dss, 'POST', '/v1/a/c', {'X-DSS-Container-Class': ''})
    assert names.CONTAINER_SYSMETA_CLASS not in swift.containers['/v1/a/c']


def test_a_bad_reload_leaves_the_old_in_force(dss, swift, conf):
    with open(conf['class_table'], 'w') as out:
        out.write(TABLE.replace('gold', 'bronze'))
    with open(conf['rules_file'], 'a') as out:
        out.write('[rule:x]\nclass = platinum\n')
    for _ in range(3):
        call(dss, 'PUT', body=BODY, headers={'X-DSS-Object-Class': 'gold'})
        assert sent_map(swift) == ClassMap.uniform(25)
    assert len(dss.logger.errors) == 1
    assert 'kept the classes and rules' in dss.logger.errors[0]
    assert dss.logger.counted.count('dss.reload.failed') == 1
    with open(conf['rules_file'], 'w') as out:
        out.write('')
    call(dss, 'PUT', body=BODY, headers={'X-DSS-Object-Class': 'bronze'})
    assert sent_map(swift) == ClassMap.uniform(25)


@pytest.mark.parametrize('option, value', [
    ('max_spans', '2049'), ('max_spans', 'many'), ('reload_interval', '-1'),
    ('account_classes', 'platinum'), ('class_table', '/nowhere/x')])
def test_bad_options_stop_the_start(swift, conf, option, value):
    with pytest.raises(BadConfig) as caught:
        filter_factory(conf, **{option: value})(swift)
    assert option in str(caught.value) or value in str(caught.value)


RIGHT = ['catch_errors', 'gatekeeper', 'tempauth', 'copy', 'slo', 'dlo',
         'versioned_writes', 'symlink']


def test_the_right_place_is_accepted():
    pipeline.check(RIGHT, ['proxy_logging', 'server'])
    pipeline.check(RIGHT, ['keymaster', 'encryption', 'proxy_logging',
                           'server'])


@pytest.mark.parametrize('moved', RIGHT[1:])
def test_what_belongs_above_is_refused_below(moved):
    above = [name for name in RIGHT if name != moved]
    with pytest.raises(WrongPlace) as caught:
        pipeline.check(above, [moved, 'proxy_logging', 'server'])
    assert 'versioned_writes symlink dss [keymaster' in str(caught.value)


def test_other_wrong_places_are_refused():
    for above, below in (
            (['tempauth'], ['server']),
            (RIGHT + ['keymaster', 'encryption'], ['server']),
            (RIGHT, ['ourownauth', 'server']), (RIGHT, ['dss', 'server'])):
        with pytest.raises(WrongPlace):
            pipeline.check(above, below)


@pytest.mark.parametrize('lazy', [False, True])
def test_an_answer_that_starts_late_is_replaced_too(conf, lazy):
    """proxy-logging starts its answer when its first bytes are read."""
    def app(env, start_response):
        def begin():
            start_response('409 Conflict', [
                ('Content-Length', '8'), (names.BACKEND_UNAVAILABLE, '9')])

        def late():
            begin()
            yield b'conflict'

        if lazy:
            return late()
        begin()
        return [b'conflict']

    started = []
    dss = DssMiddleware(app, conf, FakeLogger())
    body = b''.join(dss(Request.blank(OBJECT).environ,
                        lambda *arguments: started.append(arguments)))
    (status, headers, _exc_info), = started
    assert status == '503 Service Unavailable'
    assert dict(headers)['Retry-After'] == '9'
    assert int(dict(headers)['Content-Length']) == len(body)


# -- a map that is too long for a header -------------------------------------

def mixed(count, *class_ids):
    """So many ranges of 8 bytes, of these classes in turn."""
    return ClassMap.from_spans(
        [Span(8 * at, 8, class_ids[at % len(class_ids)])
         for at in range(count)], 0)


@pytest.mark.parametrize('class_map, size, shown', [
    # The object's own class has no byte.
    (mixed(1000, 25, 26, 25), 8000, ('25', 'gold', '667')),
    (mixed(1000, 25, 26), 8000, ('26', 'silver', '1000')),
    (mixed(1000, 25, 26), 90000, ('0', 'unclassified', '1001')),
    (mixed(1000, 7, 25, 7), 8000, ('7', None, '667'))])
def test_head_of_a_map_too_long_to_show(dss, swift, class_map, size, shown):
    swift.objects[OBJECT] = (b'x' * size, HeaderKeyDict(
        classmap.to_headers(names.SYSMETA_MAP, class_map)))
    for method in ('HEAD', 'GET'):
        headers = call(dss, method).headers
        assert names.RANGE_CLASS not in headers
        assert tuple(headers.get(name) for name in (
            names.OBJECT_CLASS, names.CLASS_NAME, names.RANGE_COUNT)) == shown


def test_a_map_that_fits_says_no_count(dss, swift):
    swift.objects[OBJECT] = (BODY, HeaderKeyDict(
        classmap.to_headers(names.SYSMETA_MAP, MAP)))
    headers = call(dss, 'HEAD').headers
    assert headers[names.RANGE_CLASS] and headers[names.OBJECT_CLASS] == '3'
    assert names.RANGE_COUNT not in headers
    # No byte is beyond the object's end.
    swift.objects[OBJECT] = (b'', swift.objects[OBJECT][1])
    assert call(dss, 'HEAD').headers[names.OBJECT_CLASS] == '3'


@pytest.fixture
def auto(swift, conf):
    """Of jpg files, a node is to find the bytes that open them."""
    with open(conf['rules_file'], 'w') as out:
        out.write('[rule:jpg]\nclass = silver\nname = *.jpg\n'
                  'classify = auto\nhot = gold\n')
    return DssMiddleware(swift, conf, FakeLogger())


def sent_auto(swift):
    return swift.requests[-1][2].get(names.SYSMETA_AUTO)


def test_an_upload_tells_its_node_which_class_the_hot_bytes_get(auto, swift):
    assert call(auto, 'PUT', '/v1/a/c/x.jpg', body=BODY).status_int == 201
    assert sent_auto(swift) == '25'
    assert swift.requests[-1][2][names.SYSMETA_MAP]
    assert call(auto, 'PUT', '/v1/a/c/x.gif', body=BODY).status_int == 201
    assert sent_auto(swift) is None


@pytest.mark.parametrize('headers', [
    {'X-DSS-Object-Class': '25'}, {'X-DSS-Object-Class': '0'},
    {'X-DSS-Range-Class': '0-1-25'}, {'X-Object-Meta-Dss-Class': '26'}])
def test_a_class_that_the_client_gives_wins_over_auto(auto, swift, headers):
    assert call(auto, 'PUT', '/v1/a/c/x.jpg', body=BODY,
                headers=headers).status_int == 201
    assert sent_auto(swift) is None


def test_no_client_asks_a_node_itself(auto, swift):
    call(auto, 'PUT', '/v1/a/c/x.gif', body=BODY,
         headers={names.SYSMETA_AUTO: '25'})
    assert sent_auto(swift) is None


def test_a_manifest_has_no_bytes_that_a_node_could_read(auto, swift):
    call(auto, 'PUT', '/v1/a/c/x.jpg', body=b'',
         headers={'X-Object-Manifest': 'c/segments'})
    assert sent_auto(swift) is None
