"""Uploads into containers that keep versions, through Swift's own filters.

Object versioning sends a client's upload on as a request of its own, which
says that the body has no bytes.
"""

from __future__ import annotations

import base64
import hashlib
import io
from typing import Any

import pytest
from support.edges.fake_swift import FakeSwift, Logger
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.middleware import copy, symlink, versioned_writes
from swift.common.swob import Request

from swift_dss.core.spans import ClassMap, Span
from swift_dss.proxy.filter import DssMiddleware
from swift_dss.wire import classmap, names
from swift_dss.wire.dssfile import encode_section

TABLE = (
    '[class:25]\nname = gold\nrank = 9\n'
    '[class:26]\nname = silver\nrank = 8\n')
RULES = (
    '[rule:empty]\nclass = 7\nsize = < 1\n'
    '[rule:small]\nclass = silver\nsize = < 1k\n')
BODY = bytes(range(100))
MAP = ClassMap.from_spans([Span(90, 10, 25)], 3)
WHOLE = encode_section(MAP, len(BODY)) + BODY
#: Of a container that keeps versions, and of one that does not.
KEEPS, PLAIN = '/v1/a/v/o', '/v1/a/c/o'
FORM = {names.OBJECT_FILE: 'True'}


@pytest.fixture
def swift() -> FakeSwift:
    made = FakeSwift()
    made.containers['/v1/a/v'] = HeaderKeyDict({
        'X-Container-Sysmeta-Versions-Container': '%00versions%00v',
        'X-Container-Sysmeta-Versions-Enabled': 'True'})
    return made


@pytest.fixture
def filters(swift: FakeSwift, tmp_path: Any) -> Any:
    (tmp_path / 'classes').write_text(TABLE)
    (tmp_path / 'rules').write_text(RULES)
    app: Any = DssMiddleware(swift, {
        'class_table': str(tmp_path / 'classes'),
        'rules_file': str(tmp_path / 'rules'),
        'admission': 'false', 'run_dir': ''}, Logger())
    app = symlink.filter_factory({})(app)
    app = versioned_writes.filter_factory(
        {}, allow_versioned_writes='yes', allow_object_versioning='yes')(app)
    return copy.filter_factory({})(app)


def ask(app: Any, method: str, path: str, headers: Any = None,
        body: bytes = b'', is_chunked: bool = False, **env: Any) -> Any:
    request = Request.blank(path, method=method, body=body, headers=dict(
        headers or {}, **{'Content-Type': 'a/b'}))
    if is_chunked:
        del request.headers['Content-Length']
        request.headers['Transfer-Encoding'] = 'chunked'
        request.environ['wsgi.input'] = io.BytesIO(body)
    request.environ.update(env)
    return request.get_response(app)


def versions(swift: FakeSwift) -> Any:
    """What the hidden container has: bodies and classes."""
    return [(body, classmap.from_headers(names.SYSMETA_MAP, headers))
            for path, (body, headers) in swift.objects.items()
            if '\0versions' in path]


@pytest.mark.parametrize('is_chunked', [False, True])
def test_a_dss_body_loses_its_section(filters: Any, swift: FakeSwift,
                                      is_chunked: bool) -> None:
    answer = ask(filters, 'PUT', KEEPS, FORM, WHOLE, is_chunked)
    assert answer.status_int == 201
    assert versions(swift) == [(BODY, MAP)]
    got = ask(filters, 'GET', KEEPS)
    assert got.body == BODY and got.headers[names.OBJECT_CLASS] == '3'
    # Listings show these.
    _body, link = swift.objects[KEEPS]
    assert link['X-Object-Sysmeta-Symlink-Target-Bytes'] == str(len(BODY))


def test_a_dss_body_that_is_cut_off_is_refused(filters: Any,
                                               swift: FakeSwift) -> None:
    section = encode_section(ClassMap.from_spans(
        [Span(512, 512, 26)], 25), 1000, 'block')
    for body in (WHOLE[:9], section + BODY, b''):
        answer = ask(filters, 'PUT', KEEPS, FORM, body)
        assert answer.status_int == 400
        assert names.OBJECT_FILE.encode() in answer.body
    assert not swift.objects


def test_ranges_count_over_the_body(filters: Any, swift: FakeSwift) -> None:
    answer = ask(filters, 'PUT', KEEPS, {
        names.RANGE_CLASS: '90-10-gold', names.OBJECT_CLASS: '3'}, BODY)
    assert answer.status_int == 201 and versions(swift) == [(BODY, MAP)]
    answer = ask(filters, 'PUT', KEEPS, {names.RANGE_CLASS: '90-11-gold'},
                 BODY)
    assert answer.status_int == 400 and b"object's 100 bytes" in answer.body
    assert versions(swift) == [(BODY, MAP)]


def test_rules_do_not_take_an_unknown_size_for_none(
        filters: Any, swift: FakeSwift) -> None:
    ask(filters, 'PUT', PLAIN, body=BODY)
    assert ask(filters, 'HEAD', PLAIN).headers[names.OBJECT_CLASS] == '26'
    ask(filters, 'PUT', KEEPS, body=BODY)
    assert versions(swift) == [(BODY, None)]


def test_a_delete_marker_has_no_bytes(filters: Any,
                                      swift: FakeSwift) -> None:
    assert ask(filters, 'DELETE', KEEPS).status_int == 404
    assert versions(swift) == [(b'', ClassMap.uniform(7))]


def md5_of(body: bytes) -> Any:
    """The headers that s3api makes of a Content-MD5."""
    digest = hashlib.md5(body).digest()
    return {'Etag': digest.hex(),
            'Content-MD5': base64.b64encode(digest).decode()}


@pytest.mark.parametrize('given, status', [
    # Through s3api, of the body as it was sent.
    (md5_of(WHOLE), 201), (md5_of(WHOLE + b'x'), 422),
    # Of the data, as Swift's clients say it; some send both.
    ({'Etag': hashlib.md5(BODY).hexdigest()}, 201),
    ({'Etag': hashlib.md5(BODY).hexdigest(), 'Content-MD5': 'of it'}, 201),
    ({'Etag': hashlib.md5(WHOLE).hexdigest()}, 422), ({'Etag': 'odd'}, 422)])
def test_a_promised_md5_is_kept(filters: Any, swift: FakeSwift, given: Any,
                                status: int) -> None:
    answer = ask(filters, 'PUT', KEEPS, dict(given, **FORM), WHOLE)
    assert answer.status_int == status
    assert versions(swift) == ([(BODY, MAP)] if status == 201 else [])


def test_copies_bring_their_classes_and_no_section(
        filters: Any, swift: FakeSwift) -> None:
    """Of a source whose bytes look like a section, too."""
    ask(filters, 'PUT', PLAIN, {names.OBJECT_CLASS: 'gold'}, WHOLE)
    answer = ask(filters, 'PUT', KEEPS, dict(FORM, **{
        'X-Copy-From': 'c/o'}))
    assert answer.status_int == 201
    assert versions(swift) == [(WHOLE, ClassMap.uniform(25))]


def test_what_was_there_before_becomes_a_version_as_it_is(
        filters: Any, swift: FakeSwift) -> None:
    swift.objects[KEEPS] = (WHOLE, HeaderKeyDict(
        classmap.to_headers(names.SYSMETA_MAP, ClassMap.uniform(25)),
        **{'X-Timestamp': '1',
           'Last-Modified': 'Thu, 01 Jan 1970 00:00:01 GMT'}))
    answer = ask(filters, 'PUT', KEEPS, FORM, WHOLE)
    assert answer.status_int == 201
    assert versions(swift) == [(WHOLE, ClassMap.uniform(25)), (BODY, MAP)]
