"""Faults and requests that meet while segments get their classes.

A server that missed some of it answers first; another POST of the same large
object, or of one of its segments, comes in the middle. In the end each byte
has the class that the manifest shows.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

import pytest
from swift.common.swob import Response
from test_manifests import (
    Mortal, call, die_in_the_middle, map_of, other_worker, put, record_of)
from test_manifests import dss as dss
from test_manifests import swift as swift

from swift_dss.core.spans import ClassMap, Span
from swift_dss.proxy.large import objects

BIG, A, B = '/v1/a/c/big', '/v1/a/s/a', '/v1/a/s/b'


class Behind(Mortal):
    """One server is back with what it had, and answers first."""

    behind: Dict[str, Any] = {}

    def _head(self, request: Any) -> Any:
        headers = self.behind.get(request.path_info)
        if headers is None or 'X-Newest' in request.headers:
            return super()._head(request)
        return Response(headers=dict(headers), request=request,
                        body=self.objects[request.path_info][0])


class Met(Behind):
    """Before one of its requests something else happens."""

    #: Method and path, and how many of these pass before.
    where: Optional[Tuple[str, str, int]] = None
    meets: Callable[[], Any]

    def __call__(self, env: Any, start_response: Any) -> Any:
        if self.where and self.where[:2] == (
                env['REQUEST_METHOD'], env['PATH_INFO']):
            left = self.where[2]
            self.where = (*self.where[:2], left - 1) if left else None
            if not left:
                self.meets()
        return super().__call__(env, start_response)


def goes_back(swift: Any, path: str) -> None:
    """From now on one server has what all have now."""
    if not isinstance(swift, Met):
        swift.__class__ = Met
    swift.behind = dict(swift.behind, **{
        path: dict(swift.objects[path][1])})


def agrees(dss: Any, swift: Any) -> ClassMap:
    """The classes of the large object, which its bytes have."""
    assert 'X-DSS-Class-State' not in call(dss, 'HEAD').headers
    shown = map_of(swift, BIG) or ClassMap.uniform(0)
    for number, path in enumerate((A, B)):
        segment = map_of(swift, path) or ClassMap.uniform(0)
        assert [span.class_id for span in segment.split(0, 100)] == [
            span.class_id for span in shown.split(100 * number, 100)], path
    return shown


def test_late_work_replaces_a_class_that_a_client_gave_a_segment(
        dss: Any, swift: Any) -> None:
    """Its server that answers first missed that class. It may be one that
    others refused, and that is about to be taken back."""
    die_in_the_middle(dss, swift)
    goes_back(swift, B)
    assert call(dss, 'POST', B, X_DSS_Object_Class='silver'
                ).status_int == 202
    assert other_worker(swift, dss).do(record_of(swift))
    assert agrees(dss, swift) == ClassMap.uniform(25)


def test_late_work_merges_with_what_another_manifest_said_since(
        dss: Any, swift: Any) -> None:
    die_in_the_middle(dss, swift)
    put(dss, '/v1/a/c/other', 'b', X_DSS_Object_Class='silver')
    assert other_worker(swift, dss).do(record_of(swift))
    assert agrees(dss, swift) == ClassMap.uniform(25)


@pytest.mark.parametrize('way', ['PUT', 'POST'])
def test_the_claim_of_another_manifest_outlives_a_server_that_missed_it(
        dss: Any, swift: Any, way: str) -> None:
    put(dss)
    goes_back(swift, B)
    put(dss, '/v1/a/c/other', 'b', X_DSS_Object_Class='gold')
    answer = put(dss, X_DSS_Object_Class='silver') if way == 'PUT' else \
        call(dss, 'POST', X_DSS_Object_Class='silver')
    assert answer.status_int // 100 == 2
    assert map_of(swift, B) == ClassMap.uniform(25)
    assert agrees(dss, swift) == ClassMap.from_spans(
        [Span(100, 100, 25)], 26)


@pytest.mark.parametrize('metadata', [{}, {'X_Object_Meta_Color': 'red'}])
@pytest.mark.parametrize('where', [
    ('POST', BIG, 0), ('HEAD', A, 0), ('POST', A, 0), ('HEAD', B, 0),
    ('POST', B, 0), ('POST', BIG, 1)])
def test_of_two_posts_the_newer_one_has_all_segments(
        dss: Any, swift: Any, where: Any, metadata: Any) -> None:
    put(dss)
    swift.__class__ = Met
    swift.where, said = where, []
    swift.meets = lambda: said.append(call(
        dss, 'POST', X_DSS_Object_Class='silver').status_int)
    call(dss, 'POST', X_DSS_Object_Class='gold', **metadata)
    record = record_of(swift)
    if record is not None:
        assert other_worker(swift, dss).do(record)
    assert said == [202] and record_of(swift) is None
    shown = agrees(dss, swift)
    if where != ('POST', BIG, 0):
        assert shown == ClassMap.uniform(26)


def test_a_newer_post_of_one_segment_is_shown(dss: Any, swift: Any) -> None:
    put(dss)
    swift.__class__ = Met
    swift.where = 'POST', B, 0
    swift.meets = lambda: call(dss, 'POST', B, X_DSS_Object_Class='silver')
    call(dss, 'POST', X_DSS_Object_Class='gold')
    record = record_of(swift)
    if record is not None:
        assert other_worker(swift, dss).do(record)
    agrees(dss, swift)


def test_a_post_that_takes_long_keeps_its_record(
        dss: Any, swift: Any, monkeypatch: Any) -> None:
    """Else another proxy takes it once its lease runs out, and the client is
    told of a newer POST."""
    monkeypatch.setattr(objects, '_RENEW_SECONDS', 0.0)
    put(dss)
    swift.__class__ = Met
    swift.where = 'POST', B, 0

    def run_out() -> None:
        row, = [path for path in swift.objects if '/.dss_large/' in path]
        swift.objects[row][1]['X-Object-Meta-Until'] = '0'
        swift.where, swift.meets = ('POST', BIG, 0), taken

    def taken() -> None:
        record = record_of(swift, runs_out=False)
        if record is not None:
            other_worker(swift, dss).do(record)
    swift.meets = run_out
    assert call(dss, 'POST', X_DSS_Object_Class='gold').status_int == 202
    assert swift.where is None
    assert agrees(dss, swift) == ClassMap.uniform(25)
