"""The map of a copy of a range, and the size of what was copied."""

from __future__ import annotations

import pytest

from swift_dss.core.spans import ClassMap, Span
from swift_dss.proxy.bodies.outgoing import carried_map, object_size
from swift_dss.wire import classmap, names

#: Bytes 0 to 99 of class 25, 100 to 199 of class 26.
MAP = ClassMap.from_spans([Span(0, 100, 25), Span(100, 100, 26)])


def answer(**headers):
    return {names.SYSMETA_MAP: classmap.encode(MAP), **{
        name.replace('_', '-'): text for name, text in headers.items()}}


def slo():
    return answer(X_Static_Large_Object='True',
                  X_Object_Sysmeta_Slo_Size='200')


@pytest.mark.parametrize('wanted, spans', [
    ('', [(0, 100, 25), (100, 100, 26)]),
    ('bytes=150-159', [(0, 10, 26)]),
    ('bytes=90-109', [(0, 10, 25), (10, 10, 26)]),
    ('bytes=-30', [(0, 30, 26)]),
    ('bytes=190-', [(0, 10, 26)]),
    ('bytes=190-900', [(0, 10, 26)]),
    # Several are a text of their own, of the object's class.
    ('bytes=0-1,150-159', []),
    ('bytes=500-', []),
    # Swift gives all of it.
    ('lines=1-2', [(0, 100, 25), (100, 100, 26)])])
def test_a_range_of_a_large_object_has_its_own_classes(wanted, spans):
    """Swift's SLO asks below for the whole, and cuts above."""
    carried = carried_map(slo(), 200, wanted)
    assert carried == ClassMap.from_spans(
        [Span(*span) for span in spans])


@pytest.mark.parametrize('wanted, spans', [
    ('bytes=150-159', [(0, 10, 26)]),
    ('bytes=150-', [(0, 50, 26)]),
    ('bytes=-30', [])])
def test_so_it_is_of_one_whose_bytes_nobody_has_counted(wanted, spans):
    given = answer(X_Object_Manifest='c/parts')
    assert carried_map(given, 200, wanted) == ClassMap.from_spans(
        [Span(*span) for span in spans])


def test_an_object_that_ignores_a_range_is_copied_whole():
    assert carried_map(answer(Content_Length='200'), 200,
                       'bytes=150-159') == MAP
    assert carried_map(answer(Content_Range='bytes 150-159/200'), 206,
                       'bytes=150-159') == ClassMap.from_spans(
        [Span(0, 10, 26)])


def test_the_copy_of_a_large_object_has_the_size_of_its_own_bytes():
    """Swift's copy takes the SLO's sysmeta along."""
    assert object_size(slo()) == 200
    assert object_size(answer(X_Object_Sysmeta_Slo_Size='200',
                              Content_Length='10')) == 10
