"""A listing that leaves out keys, or never ends, is an error."""

from __future__ import annotations

import itertools

import pytest

from test_gateway_deletes import Cluster

from swift_dss.core.errors import RemoteUnavailable


@pytest.fixture
def trio(tmp_path):
    made = Cluster(tmp_path)
    for number in range(20):
        made.put('o%d' % number)
    yield made
    made.stop()


def listed(trio):
    keys = [row.key for row in itertools.islice(
        trio.gateways[0].parts.client.listing('p/'), 1000)]
    return keys


def replace_listing(trio, answer):
    """``answer(inner, arguments)`` is what S3 says of a page."""
    inner = trio.s3.list_objects_v2
    trio.s3.list_objects_v2 = lambda **more: answer(inner, more)


def test_an_empty_page_that_says_more_is_no_end(trio):
    pages = []

    def answer(inner, more):
        pages.append(more)
        token = more.pop('ContinuationToken', None)
        if len(pages) in (2, 3, 4):
            return {'IsTruncated': True,
                    'NextContinuationToken': 't%d' % len(pages)}
        if token:
            more['StartAfter'] = pages[1]['StartAfter']
        return inner(**more)
    everything = listed(trio)
    replace_listing(trio, answer)
    assert listed(trio) == everything and len(everything) == 20
    assert len(pages) > 5


@pytest.mark.parametrize('token', (None, 'again'))
def test_an_empty_page_without_a_place_to_go_on_is_an_error(trio, token):
    replace_listing(trio, lambda inner, more: {
        'IsTruncated': True, 'NextContinuationToken': token})
    with pytest.raises(RemoteUnavailable):
        listed(trio)


def test_a_server_that_ignores_where_to_go_on_is_an_error(trio):
    replace_listing(trio, lambda inner, more: inner(
        Bucket=more['Bucket'], Prefix=more['Prefix']))
    with pytest.raises(RemoteUnavailable):
        listed(trio)


def test_keys_out_of_order_are_an_error(trio):
    def answer(inner, more):
        page = inner(**more)
        return dict(page, Contents=page['Contents'][::-1])
    replace_listing(trio, answer)
    with pytest.raises(RemoteUnavailable):
        listed(trio)


@pytest.mark.parametrize('markers', (
    {}, {'NextKeyMarker': 'k', 'NextVersionIdMarker': 'v'}))
def test_versions_that_never_end_are_an_error(trio, markers):
    trio.s3.list_object_versions = lambda **_: dict(
        markers, IsTruncated=True)
    with pytest.raises(RemoteUnavailable):
        list(itertools.islice(
            trio.gateways[0].parts.client.versions('p/'), 1000))
