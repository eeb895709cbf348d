"""What the seam in Swift's s3api rests on, of the installed Swift.

Each test says what our code believes of s3api. One that fails with a newer
Swift names the belief to look at.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, Dict, List, Tuple
from xml.etree import ElementTree

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from swift.common.middleware.s3api import s3api
from swift.common.registry import register_swift_info
from swift.common.swob import Request, Response
from swift.common.utils import Timestamp, extract_swift_bytes
from swift.container.backend import update_new_item_from_existing
from swift.container.server import ContainerController

from swift_dss.proxy.listing import FIELD, seen_by_s3
from swift_dss.proxy.s3 import seam
from swift_dss.wire import names

NAMES = {'STANDARD_IA': 26}
TAGGING = b'<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag>' \
    b'</TagSet></Tagging>'


class Below:
    """Auth and Swift below s3api: checks the signature, keeps what came."""

    def __init__(self) -> None:
        self.seen: List[Tuple[str, str, Dict[str, str]]] = []
        self.environs: List[Dict[str, Any]] = []
        self.is_signed: List[bool] = []
        self.listing: List[Dict[str, Any]] = []
        #: Of the object; set in a versioned container.
        self.version = ''
        #: Whether its container keeps versions ('True'), or did ('False').
        self.keeps_versions = ''
        self.post_status = 202

    def __call__(self, env: Any, start: Any) -> Any:
        request = Request(env)
        if 's3api.auth_details' in env:
            self.is_signed.append(
                env['s3api.auth_details']['check_signature']('secret'))
        env['PATH_INFO'] = env['PATH_INFO'].replace('/v1/key', '/v1/AUTH_a')
        self.seen.append((request.method, request.path_info,
                          dict(request.headers)))
        self.environs.append(dict(env))
        answer = Response(status=200, request=request, headers={
            'X-Object-Storage-Class': 'STANDARD_IA', 'Etag': 'a' * 32})
        if self.version:
            answer.headers['X-Object-Version-Id'] = self.version
        if request.method == 'PUT':
            answer = Response(status=201, request=request, headers={
                'Last-Modified': 'Thu, 01 Jan 1970 00:00:00 GMT',
                'Etag': 'a' * 32})
        elif request.method == 'POST':
            answer = Response(
                status=self.post_status if env['PATH_INFO'].count('/') > 3
                else 204, request=request)
        elif request.method == 'HEAD' and env['PATH_INFO'].count('/') == 3:
            answer = Response(status=204, request=request)
            if self.keeps_versions:
                answer.headers['X-Container-Sysmeta-Versions-Enabled'] = \
                    self.keeps_versions
        elif env['PATH_INFO'].count('/') == 3:
            answer = Response(
                body=json.dumps(self.listing).encode(), request=request,
                content_type='application/json')
        return answer(env, start)


@pytest.fixture
def below() -> Below:
    return Below()


@pytest.fixture(autouse=True)
def _classes() -> Any:
    register_swift_info('dss', s3_storage_classes=NAMES)
    yield
    register_swift_info('dss', s3_storage_classes={})


def ask(app: Any, method: str, path: str, body: bytes = b'',
        **headers: str) -> Any:
    """The answer to a request that botocore signed."""
    made = AWSRequest(method, 'http://localhost' + path + (
        '=' if '?' in path else ''), headers=dict(
        {name.replace('_', '-'): value for name, value in headers.items()},
        **{'x-amz-content-sha256': 'UNSIGNED-PAYLOAD'}))
    SigV4Auth(Credentials('key', 'secret'), 's3', 'us-east-1').add_auth(made)
    return Request.blank(path, method=method, body=body, headers=dict(
        made.headers.items(), Host='localhost')).get_response(app)


def ours(below: Below) -> Any:
    return seam.filter_factory({})(below)


def test_stock_refuses_the_header_although_ours_is_loaded(
        below: Below) -> None:
    ours(below)
    stock = s3api.filter_factory({})(below)
    answer = ask(stock, 'PUT', '/bucket/o', x_amz_storage_class='STANDARD_IA')
    assert answer.status_int == 400
    assert b'<Code>InvalidStorageClass</Code>' in answer.body
    assert not below.seen


def test_a_request_of_swifts_api_is_not_noted_as_one_of_s3() -> None:
    """Swift's own requests pass s3api, too: their listings are Swift's."""
    passed: List[Any] = []

    def swift(env: Any, start: Any) -> Any:
        passed.append(seen_by_s3(env))
        return Response(status=200)(env, start)
    Request.blank('/v1/AUTH_a/c').get_response(seam.filter_factory({})(swift))
    assert passed == [None]


def test_the_signature_is_of_the_header_as_it_came(below: Below) -> None:
    answer = ask(ours(below), 'PUT', '/bucket/o',
                 x_amz_storage_class='STANDARD_IA')
    assert answer.status_int == 200
    assert all(below.is_signed)
    method, path, headers = below.seen[-1]
    assert (method, path) == ('PUT', '/v1/AUTH_a/bucket/o')
    assert headers['X-Object-Storage-Class'] == 'STANDARD_IA'


@pytest.mark.parametrize('name', ['PLATINUM', 'standard_ia', ''])
def test_others_are_refused_before_swift_is_asked(
        below: Below, name: str) -> None:
    answer = ask(ours(below), 'PUT', '/bucket/o', x_amz_storage_class=name)
    assert b'<Code>InvalidStorageClass</Code>' in answer.body
    assert not below.seen


def test_answers_keep_swifts_headers_until_they_leave(below: Below) -> None:
    for method in ('GET', 'HEAD'):
        answer = ask(ours(below), method, '/bucket/o')
        assert answer.headers['x-amz-storage-class'] == 'STANDARD_IA'
        assert 'X-Object-Storage-Class' not in answer.headers


def test_rows_of_listings_reach_the_controller_whole(below: Below) -> None:
    row = {'name': 'o', 'bytes': 1, 'hash': 'a' * 32, 'content_type': 'a/b',
           'last_modified': '1970-01-01T00:00:00.000000'}
    below.listing = [dict(row), dict(row, **{FIELD: 'STANDARD_IA'}),
                     {'subdir': 'd/'}]
    answer = ask(ours(below), 'GET', '/bucket')
    classes = [elem.text for elem in ElementTree.fromstring(
        answer.body).iter() if elem.tag.endswith('StorageClass')]
    assert classes == ['STANDARD', 'STANDARD_IA']


def test_tags_pass_the_check_that_refuses_them(below: Below) -> None:
    stock = s3api.filter_factory({})(below)
    answer = ask(stock, 'PUT', '/bucket/o', x_amz_tagging='a=b')
    assert answer.status_int == 501 and not below.seen
    assert ask(ours(below), 'PUT', '/bucket/o',
               x_amz_tagging='a=b%20c').status_int == 200
    assert all(below.is_signed)
    assert below.seen[-1][2][names.S3_TAGGING] == 'a=b+c'


def test_tags_of_an_object_have_a_controller_of_ours(below: Below) -> None:
    answer = ask(ours(below), 'GET', '/bucket/o?tagging')
    assert b'<Tagging' in answer.body and below.seen[-1][0] == 'HEAD'
    assert ask(ours(below), 'DELETE', '/bucket/o?tagging'
               ).status_int == 204
    assert [method for method, _, _ in below.seen[-2:]] == ['HEAD', 'POST']
    # Those of a bucket, and with s3_acl of an object, are Swift's.
    for app, path in ((ours(below), '/bucket?tagging'), (
            seam.filter_factory({'s3_acl': 'true'})(below),
            '/bucket/o?tagging')):
        below.seen.clear()
        assert ask(app, 'DELETE', path).status_int in (403, 501)
        assert not [request for request in below.seen if request[0] == 'POST']


@pytest.mark.parametrize('method', ['PUT', 'DELETE'])
def test_tags_leave_an_object_its_content_type(below: Below,
                                               method: str) -> None:
    """That of the request is the document's; Swift keeps the object's own
    where a POST names none."""
    answer = ask(ours(below), method, '/bucket/o?tagging', TAGGING,
                 content_type='application/xml')
    assert answer.status_int == (200 if method == 'PUT' else 204)
    last, _, sent = below.seen[-1]
    assert last == 'POST' and 'Content-Type' not in sent


@pytest.mark.parametrize('directive', ['COPY', 'REPLACE', None])
def test_a_copy_onto_itself_may_change_the_class(
        below: Below, directive: Any) -> None:
    headers = {'x_amz_copy_source': '/bucket/o'}
    if directive:
        headers['x_amz_metadata_directive'] = directive
    answer = ask(ours(below), 'PUT', '/bucket/o',
                 x_amz_storage_class='STANDARD_IA', **headers)
    assert answer.status_int == 200
    _, _, sent = below.seen[-1]
    assert sent['X-Copy-From'] == '/bucket/o'
    assert ('X-Fresh-Metadata' in sent) == (directive == 'REPLACE')
    answer = ask(ours(below), 'PUT', '/bucket/o', **headers)
    assert answer.status_int == (200 if directive == 'REPLACE' else 400)


# -- rows of containers ------------------------------------------------------

def row(at: int, kind: str, type_at: int = 0) -> Dict[str, Any]:
    return {'created_at': Timestamp(at).internal, 'content_type': kind,
            'ctype_timestamp': Timestamp(type_at).internal if type_at
            else None, 'meta_timestamp': None, 'size': 1, 'etag': 'e',
            'deleted': 0}


def test_the_content_type_of_the_newest_timestamp_stays() -> None:
    old = row(1, 'a/b;x-dss-class=5')
    old.update(data_timestamp=old['created_at'])
    new = row(1, 'a/b;x-dss-class=6', 3)
    update_new_item_from_existing(new, old)
    assert new['content_type'] == 'a/b;x-dss-class=6'
    kept = dict(new)
    late = row(1, 'a/b;x-dss-class=5', 2)
    update_new_item_from_existing(late, kept)
    assert late['content_type'] == 'a/b;x-dss-class=6'


def test_the_size_of_a_large_object_is_taken_off_and_no_more() -> None:
    assert extract_swift_bytes(
        'a/b;c=d;swift_bytes=7;x-dss-class=5') == (
            'a/b;c=d;x-dss-class=5', '7')


def test_behind_the_content_type_of_a_row_is_its_date() -> None:
    """So that a class is taken off a long listing at once."""
    row = ContainerController.update_object_record(
        SimpleNamespace(logger=None),
        ('name', Timestamp(1).internal, 5, 'a/b;x-dss-class=26', 'etag'))
    assert ';x-dss-class=26", "last_modified"' in json.dumps([row])


# -- lifecycle rules, restorations -------------------------------------------

RULES = (b'<LifecycleConfiguration><Rule><ID>i</ID><Status>Enabled</Status>'
         b'<Filter><Prefix/></Filter><Transition><Days>1</Days><StorageClass>'
         b'STANDARD_IA</StorageClass></Transition></Rule>'
         b'</LifecycleConfiguration>')
RESTORE = b'<RestoreRequest><Days>3</Days></RestoreRequest>'


@pytest.fixture
def _lifecycles() -> Any:
    register_swift_info('dss', s3_lifecycle=True, restore_class='warm')
    yield
    register_swift_info('dss', s3_lifecycle=False, restore_class='')


@pytest.mark.usefixtures('_lifecycles')
def test_rules_of_a_bucket_have_a_controller_of_ours(below: Below) -> None:
    answer = ask(ours(below), 'PUT', '/bucket?lifecycle', RULES)
    assert answer.status_int == 200, answer.body
    assert all(below.is_signed)
    assert below.seen[-1][:2] == ('POST', '/v1/AUTH_a/bucket')
    assert [rule.rule_id for rule in
            below.environs[-1][names.ENV_LIFECYCLE].rules] == ['i']
    assert ask(ours(below), 'DELETE', '/bucket?lifecycle').status_int == 204
    assert below.seen[-1][0] == 'POST'
    assert below.environs[-1][names.ENV_LIFECYCLE] is None
    answer = ask(ours(below), 'GET', '/bucket?lifecycle')
    assert b'<Code>NoSuchLifecycleConfiguration</Code>' in answer.body
    assert below.seen[-1][0] == 'HEAD'


@pytest.mark.usefixtures('_lifecycles')
def test_a_restoration_has_a_controller_of_ours(below: Below) -> None:
    answer = ask(ours(below), 'POST', '/bucket/o?restore', RESTORE)
    assert answer.status_int == 202, answer.body
    assert all(below.is_signed)
    assert [method for method, _, _ in below.seen] == ['HEAD', 'POST']
    assert below.environs[-1][names.ENV_RESTORE_DAYS] == 3
    below.seen.clear()
    stock = s3api.filter_factory({})(below)
    assert ask(stock, 'POST', '/bucket/o?restore', RESTORE).status_int == 501
    assert not below.seen


@pytest.mark.usefixtures('_lifecycles')
def test_a_version_is_not_restored_and_the_error_says_so(
        below: Below) -> None:
    below.version = '1700000000.00000'
    answer = ask(ours(below), 'POST', '/bucket/o?restore', RESTORE)
    assert answer.status_int == 501
    assert b'of a versioned bucket' in answer.body
    assert [method for method, _, _ in below.seen] == ['HEAD']
    below.version = 'null'
    answer = ask(ours(below), 'POST', '/bucket/o?restore', RESTORE)
    assert answer.status_int == 202


@pytest.mark.usefixtures('_lifecycles')
@pytest.mark.parametrize('keeps_versions, status', [
    ('True', 501), ('False', 501), ('', 404)])
def test_a_link_to_a_version_is_not_restored_either(
        below: Below, keeps_versions: str, status: int) -> None:
    """One of when versions were suspended says "null" like any object."""
    below.version, below.post_status = 'null', 404
    below.keeps_versions = keeps_versions
    answer = ask(ours(below), 'POST', '/bucket/o?restore', RESTORE)
    assert answer.status_int == status
    assert (b'of a versioned bucket' in answer.body) == (status == 501)


def test_without_rounds_or_a_class_they_are_not_implemented(
        below: Below) -> None:
    for path, method, body in (('/bucket?lifecycle', 'PUT', RULES),
                               ('/bucket/o?restore', 'POST', RESTORE)):
        answer = ask(ours(below), method, path, body)
        assert answer.status_int == 501
        assert b'<Code>NotImplemented</Code>' in answer.body
    assert not below.seen


@pytest.mark.usefixtures('_lifecycles')
@pytest.mark.parametrize('body, code', [
    (b'', b'MalformedXML'), (b'<x', b'MalformedXML'),
    (b'<RestoreRequest/>', b'MalformedXML'),
    (b'<RestoreRequest><Days>0</Days></RestoreRequest>', b'InvalidArgument'),
    (b'<RestoreRequest><Days>-1</Days></RestoreRequest>', b'MalformedXML'),
    (b'<RestoreRequest><Days>' + b'9' * 20 + b'</Days></RestoreRequest>',
     b'InvalidArgument'),
    (b'<RestoreRequest><Days>1</Days><Tier>Fast</Tier></RestoreRequest>',
     b'InvalidArgument'),
    (b'<RestoreRequest><Type>SELECT</Type></RestoreRequest>',
     b'NotImplemented')])
def test_a_bad_restoration_gets_s3s_own_error(
        below: Below, body: bytes, code: bytes) -> None:
    answer = ask(ours(below), 'POST', '/bucket/o?restore', body)
    assert b'<Code>%s</Code>' % code in answer.body
    assert not below.seen
