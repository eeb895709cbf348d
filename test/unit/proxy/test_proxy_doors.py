"""What a stranger hears, and how soon a wrong body is refused."""

from __future__ import annotations

from typing import Any, Dict, List

import pytest
from support.edges.fake_swift import FakeSwift, Logger
from swift.common import constraints
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import HTTPUnauthorized, Request

from swift_dss.core.spans import ClassMap, Span
from swift_dss.proxy.filter import DssMiddleware
from swift_dss.wire.dssfile import encode_section

OBJECT, CONTAINER, ACCOUNT = '/v1/a/c/o', '/v1/a/c', '/v1/a'
SECTION = encode_section(ClassMap.from_spans([Span(0, 4, 25)], 3), 8)


@pytest.fixture
def swift() -> FakeSwift:
    fake = FakeSwift()
    fake.containers[CONTAINER] = HeaderKeyDict(
        {'X-Container-Read': 'r', 'X-Container-Write': 'w'})
    return fake


@pytest.fixture
def dss(swift: FakeSwift) -> DssMiddleware:
    return DssMiddleware(swift, {}, Logger())


class Stalled:
    """A client that sends some bytes and then nothing: to read on would be
    to wait for it."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, size: int) -> bytes:
        assert size <= len(self._data), 'waits for the client'
        data, self._data = self._data[:size], self._data[size:]
        return data


def ask(app: Any, method: str, path: str, headers: Dict[str, str],
        **env: Any) -> Any:
    request = Request.blank(path, method=method, headers=headers)
    request.environ.update(env)
    return request.get_response(app)


BAD = [(method, OBJECT, {name: 'zz'})
       for method in ('PUT', 'POST')
       for name in ('X-DSS-Object-Class', 'X-DSS-Range-Class',
                    'X-DSS-Object-File', 'X-Object-Meta-Dss-Class')] + [
    ('GET', OBJECT, {'X-DSS-Object-File': 'zz'}),
    ('HEAD', OBJECT, {'X-DSS-Object-File': 'zz'}),
    ('POST', OBJECT + '?dss-classes', {'X-DSS-Object-Class': '3'}),
    ('PUT', CONTAINER, {'X-DSS-Container-Class': 'zz'}),
    ('POST', CONTAINER, {'X-DSS-Container-Class': 'zz'}),
    ('PUT', ACCOUNT, {'X-DSS-Account-Classes': 'zz'}),
    ('POST', ACCOUNT, {'X-DSS-Account-Classes': 'zz'})]


@pytest.mark.parametrize('method, path, headers', BAD)
def test_a_stranger_hears_from_auth_alone(
        dss: DssMiddleware, method: str, path: str,
        headers: Dict[str, str]) -> None:
    answer = ask(dss, method, path, headers, **{
        'swift.authorize': lambda _request: HTTPUnauthorized()})
    assert answer.status_int == 401
    answer = ask(dss, method, path, headers, reseller_request=True, **{
        'swift.authorize': lambda _request: None})
    assert answer.status_int == 400


@pytest.mark.parametrize('method, path, acl', [
    ('PUT', OBJECT, 'w'), ('POST', OBJECT, 'w'), ('GET', OBJECT, 'r'),
    ('HEAD', OBJECT, 'r'), ('PUT', CONTAINER, None)])
def test_auth_sees_the_list_that_counts(
        dss: DssMiddleware, monkeypatch: Any, method: str, path: str,
        acl: Any) -> None:
    seen: List[Any] = []
    monkeypatch.setattr(
        'swift_dss.proxy.authorize.get_container_info',
        lambda *_args, **_kwargs: {'read_acl': 'r', 'write_acl': 'w'})
    ask(dss, method, path, {
        'X-DSS-Object-File': 'zz', 'X-DSS-Container-Class': 'zz'}, **{
            'swift.authorize': lambda request: seen.append(request.acl)})
    assert seen == [acl]


@pytest.mark.parametrize('sent', [
    b'XX', b'DS\x07' + bytes(13), b'DS\x02\x01' + b'\1' * 12,
    SECTION[:16] + b'\xff\xff\xff\xff\x03', SECTION[:-1] + b'\x63'])
@pytest.mark.parametrize('method, path, headers', [
    ('PUT', OBJECT, {'X-DSS-Object-File': 'True'}),
    ('POST', OBJECT + '?dss-classes', {})])
def test_wrong_bytes_are_refused_when_they_are_here(
        dss: DssMiddleware, method: str, path: str, headers: Dict[str, str],
        sent: bytes) -> None:
    ask(dss, 'PUT', OBJECT, {})
    answer = ask(dss, method, path, headers, **{
        'wsgi.input': Stalled(sent), 'CONTENT_LENGTH': '1000000'})
    assert answer.status_int in (400, 413), answer.body


def test_a_right_section_is_taken_no_further(dss: DssMiddleware,
                                             swift: FakeSwift) -> None:
    from io import BytesIO
    answer = ask(dss, 'PUT', OBJECT, {'X-DSS-Object-File': 'True'}, **{
        'wsgi.input': BytesIO(SECTION + b'12345678'),
        'CONTENT_LENGTH': str(len(SECTION) + 8)})
    assert answer.status_int == 201
    assert swift.objects[OBJECT][0] == b'12345678'


def test_what_is_too_large_is_refused_before_a_byte(
        dss: DssMiddleware) -> None:
    answer = ask(dss, 'PUT', OBJECT, {'X-DSS-Object-File': 'True'}, **{
        'wsgi.input': Stalled(b''),
        'CONTENT_LENGTH': str(constraints.MAX_FILE_SIZE + (1 << 24))})
    assert answer.status_int == 413
