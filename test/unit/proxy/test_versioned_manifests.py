"""Large objects in containers that keep versions, through Swift's own
filters: object versioning sends a manifest on without its client's rights."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from support.edges.fake_swift import FakeSwift
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.middleware import slo
from swift.common.swob import HTTPForbidden, Response
from test_manifests import map_of
from test_versioned_uploads import KEEPS, PLAIN, ask, versions
from test_versioned_uploads import filters as filters
from test_versioned_uploads import swift as swift

from swift_dss.core.spans import UNCLASSIFIED_MAP, ClassMap, Span
from swift_dss.wire import names

A, B = '/v1/a/s/a', '/v1/a/s/b'
DATA = b'x' * 2000
GOLD = {names.OBJECT_CLASS: 'gold'}
#: That of one upload of S3, as s3api hands it on.
UPLOAD = {'X-Object-Sysmeta-S3api-Upload-Id': 'u' * 48}


@pytest.fixture
def large(filters: Any, swift: FakeSwift) -> Any:
    for path in (A, B):
        segment(swift, path)
    return slo.filter_factory({})(filters)


def segment(swift: FakeSwift, path: str) -> None:
    swift.objects[path] = (DATA, HeaderKeyDict({
        'Last-Modified': 'Thu, 01 Jan 1970 00:00:01 GMT'}))


def put(app: Any, path: str, headers: Any, *segments: str,
        **more: Any) -> Any:
    etag = hashlib.md5(DATA).hexdigest()
    return ask(app, 'PUT', path + '?multipart-manifest=put', headers,
               json.dumps([{'path': segment[5:], 'etag': etag}
                           for segment in segments or (A, B)]).encode(),
               **more)


def refuses(container: str, **user: str) -> Any:
    """Auth that lets a client write everywhere else."""
    def authorize(request: Any) -> Any:
        assert request.remote_user == user.get('REMOTE_USER')
        assert 'swift.authorize_override' not in request.environ
        is_read = request.method in ('GET', 'HEAD')
        return HTTPForbidden(request=request) if not is_read and \
            request.path_info.split('/')[3] == container else None
    return dict({'swift.authorize': authorize, 'swift.infocache': {}},
                **user)


def test_the_segments_get_the_classes(large: Any, swift: FakeSwift) -> None:
    answer = put(large, KEEPS, {names.RANGE_CLASS: '1900-200-gold'},
                 **refuses('other'))
    assert answer.status_int == 201, answer.body
    assert map_of(swift, A) == ClassMap.from_spans([Span(1900, 100, 25)])
    assert map_of(swift, B) == ClassMap.from_spans([Span(0, 100, 25)])
    (_, shown), = versions(swift)
    assert shown == ClassMap.from_spans([Span(1900, 200, 25)])


@pytest.mark.parametrize('path', [KEEPS, PLAIN])
@pytest.mark.parametrize('user', [{}, {'REMOTE_USER': 'a,a:alice'}])
def test_segments_of_others_are_not_reclassified(
        large: Any, swift: FakeSwift, path: str, user: Any) -> None:
    answer = put(large, path, GOLD, **refuses('s', **user))
    assert answer.status_int == 403
    assert map_of(swift, A) is None and not versions(swift)


def test_without_known_rights_no_segment_is_touched(
        large: Any, swift: FakeSwift) -> None:
    unshared = refuses('s')
    del unshared['swift.infocache']
    put(large, KEEPS, GOLD, **unshared)
    ask(large, 'PUT', KEEPS, dict(GOLD, **{'X-Object-Manifest': 's/'}),
        **refuses('s'))
    assert map_of(swift, A) is None and map_of(swift, B) is None


def test_a_manifest_without_a_class_shows_what_its_segments_have(
        large: Any, swift: FakeSwift) -> None:
    for path in (A, B):
        ask(large, 'POST', path, GOLD)
    put(large, KEEPS, {}, **dict(refuses('s'), **{'swift.trans_id': 't'}))
    assert versions(swift)[0][1].class_ids(2 * len(DATA)) == {25}


def test_an_upload_of_s3_gives_its_class_to_its_parts(
        large: Any, swift: FakeSwift) -> None:
    """Also for a client that may write the bucket alone."""
    upload = '/v1/a/v+segments/o/' + 'u' * 48
    ask(large, 'PUT', upload, GOLD, **{'swift.source': 'S3'})
    segment(swift, upload + '/1')
    answer = put(large, KEEPS, UPLOAD, upload + '/1', **dict(
        refuses('v+segments'), **{'swift.source': 'S3'}))
    assert answer.status_int == 201, answer.body
    assert map_of(swift, upload + '/1') == ClassMap.uniform(25)
    assert versions(swift)[0][1] == ClassMap.uniform(25)


def test_a_version_that_moves_leaves_its_segments_alone(
        large: Any, swift: FakeSwift) -> None:
    put(large, PLAIN, GOLD)
    swift.objects[KEEPS] = swift.objects.pop(PLAIN)
    swift.objects[KEEPS][1].update({
        'X-Timestamp': '1', 'Last-Modified': 'Thu, 01 Jan 1970 00:00:01 GMT',
        'Content-Type': 'a/b'})
    swift.requests.clear()
    assert ask(large, 'PUT', KEEPS, {}, b'').status_int == 201
    assert not [path for method, path, _ in swift.requests
                if method == 'POST' or path in (A, B)]
    assert [shown or UNCLASSIFIED_MAP for _, shown in versions(swift)] == [
        ClassMap.uniform(25), UNCLASSIFIED_MAP]


class Linking(FakeSwift):
    """Which answers a POST to a link as Swift does."""

    def _post(self, request: Any) -> Any:
        link = self.objects[request.path_info][1].get(
            'X-Object-Sysmeta-Symlink-Target')
        if link is None:
            return super()._post(request)
        request.environ['swift.leave_relative_location'] = True
        return Response(status=307, request=request, headers=dict(
            self.objects[request.path_info][1],
            Location='/v1/a/' + link))


@pytest.mark.parametrize('source', [None, 'S3'])
@pytest.mark.parametrize('forbidden, status', [
    ('s', 403), ('other', 202), ('v', 403)])
def test_a_post_has_its_clients_rights(
        large: Any, swift: FakeSwift, source: Any, forbidden: str,
        status: int) -> None:
    swift.__class__ = Linking
    put(large, KEEPS, {}, A)
    env = dict(refuses(forbidden), **(
        {'swift.source': source} if source else {}))
    assert ask(large, 'POST', KEEPS, GOLD, **env).status_int == status
    given = ClassMap.uniform(25) if status == 202 else None
    assert map_of(swift, A) == given
    assert (versions(swift)[0][1], map_of(swift, A)) == (None, given)


def test_a_post_through_s3_may_reach_the_parts(large: Any,
                                               swift: FakeSwift) -> None:
    """Which s3api wrote for whoever may write the bucket."""
    swift.__class__ = Linking
    part = '/v1/a/v+segments/o/' + 'u' * 48 + '/1'
    segment(swift, part)
    put(large, KEEPS, {}, part)
    for source, status in (('S3', 202), ('other', 403)):
        assert ask(large, 'POST', KEEPS, GOLD, **dict(
            refuses('v+segments'), **{'swift.source': source}
            )).status_int == status
        assert (map_of(swift, part) is not None) == (status == 202)
        del swift.objects[part]
        segment(swift, part)


def test_a_post_of_nobody_known_is_refused(large: Any,
                                           swift: FakeSwift) -> None:
    put(large, PLAIN, {})
    answer = ask(large, 'POST', PLAIN, GOLD, **{'swift.source': 'OV'})
    assert answer.status_int == 403 and map_of(swift, A) is None
