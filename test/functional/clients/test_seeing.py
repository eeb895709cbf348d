"""Listings say classes and tiers to clients that ask, and to no others."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from support import await_listings, pattern, wait_until
from support.edges import raw_http
from support.nodes import stock_proxy
from swiftclient.exceptions import ClientException

pytestmark = pytest.mark.cluster

BODY = pattern(5000, 'seeing')


def seen(swift, container, query='dss=true', field='dss_class'):
    return {row['name']: row.get(field) for row in
            swift.get_container(container, query_string=query)[1]
            if 'name' in row}


def settle(cluster, swift, container, names):
    account = swift.url.rpartition('/')[2]
    await_listings(cluster, account, container, set(names))


@pytest.fixture
def filled(cluster, swift, container):
    """Objects whose class came in every way there is."""
    swift.put_object(container, 'plain', BODY)
    swift.put_object(container, 'header', BODY, headers={
        'X-DSS-Object-Class': 'gold'})
    swift.put_object(container, 'rgw', BODY, headers={
        'X-Object-Storage-Class': 'STANDARD_IA'})
    swift.put_object(container, 'posted', BODY)
    swift.post_object(container, 'posted', {'X-DSS-Object-Class': 'gold'})
    swift.put_object(container, 'back', BODY, headers={
        'X-DSS-Object-Class': 'gold'})
    swift.post_object(container, 'back', {'X-DSS-Object-Class': '0'})
    swift.put_object(container, 'id', BODY, headers={
        'X-DSS-Object-Class': '19'})
    swift.post_container(container, {'X-DSS-Container-Class': 'silver'})
    swift.put_object(container, 'default', BODY)
    swift.post_container(container, {'X-DSS-Container-Class': ''})
    swift.put_object(container, 'segment', BODY)
    swift.put_object(container, 'sub/slo', json.dumps([
        {'path': '/%s/segment' % container}]), headers={
            'X-DSS-Object-Class': 'silver'},
        query_string='multipart-manifest=put')
    swift.put_object(container, 'link', b'', headers={
        'X-Symlink-Target': container + '/header'})
    expected = {'plain': 'unclassified', 'header': 'gold', 'rgw': 'silver',
                'posted': 'gold', 'back': 'unclassified', 'id': '19',
                'default': 'silver', 'segment': 'silver',
                'sub/slo': 'silver', 'link': None}
    settle(cluster, swift, container, expected)
    return container, expected


def test_classes_however_they_came(swift, filled):
    container, expected = filled
    assert seen(swift, container) == expected
    for name, shown in expected.items():
        if name != 'link':
            head = swift.head_object(container, name)
            assert head.get('x-dss-class-name', head.get(
                'x-dss-object-class', 'unclassified')) == shown
    rows = swift.get_container(container)[1]
    assert not [row for row in rows if 'dss' in str(sorted(row))]
    shown = swift.get_container(container, query_string='dss=true')[1]
    for row in shown:
        row.pop('dss_class')
    assert shown == rows


def test_rows_past_the_filters_are_those_that_they_write(
        cluster, swift, container):
    """No object here is a link, or one in segments."""
    classes = {'a "hash": "x': 'gold', 'b;slo_etag=1': '0', 'c\u00e9': '19'}
    for name, class_name in classes.items():
        swift.put_object(container, name, BODY, headers={
            'X-DSS-Object-Class': class_name},
            content_type='text/plain; charset=utf-8')
    settle(cluster, swift, container, classes)
    url, token = swift.get_auth()

    def ask(query):
        answer = raw_http.request(
            cluster.conf.proxy_port, 'GET', '%s/%s?%s' % (
                url[url.index('/v1'):], container, query),
            [('X-Auth-Token', token)])
        assert answer.status == 200
        return answer
    shown = json.loads(ask('format=json&dss=true').body)
    assert [row.pop('dss_class') for row in shown] == [
        'gold', 'unclassified', '19']
    assert json.dumps(shown).encode() == ask('format=json').body
    for form in ('xml', 'plain'):
        asked, plain = (ask('format=%s%s' % (form, query))
                        for query in ('&dss=true', ''))
        assert asked.body == plain.body
        assert asked.headers['content-type'] == plain.headers['content-type']


def test_rows_of_one_class_in_pages(swift, filled):
    container, expected = filled
    wanted = sorted(name for name, shown in expected.items()
                    if shown == 'silver')
    for limit in (1, 2, 100):
        page, marker, joined = True, '', []
        while page:
            page = swift.get_container(
                container, marker=marker, limit=limit,
                query_string='dss-class=silver')[1]
            joined += [row['name'] for row in page]
            marker = joined[-1]
        assert joined == wanted
    page = swift.get_container(container, delimiter='/', prefix='sub/',
                               query_string='dss-class=26')[1]
    assert [row['name'] for row in page] == ['sub/slo']
    with pytest.raises(ClientException) as caught:
        swift.get_container(container, query_string='dss-class=platinum')
    assert caught.value.http_status == 400
    assert b"dss-class: 'platinum' is neither a class id 0..31 nor" in \
        caught.value.http_response_content


def test_tiers_are_those_of_the_object_servers(swift, filled):
    container, expected = filled
    tiers = seen(swift, container, 'dss=tier', 'dss_tier')
    assert tiers.pop('sub/slo') is None and tiers.pop('link') is None
    assert len(tiers) == len(expected) - 2

    def same():
        """As HEAD has it, once nothing moves between the two."""
        heads = {name: swift.head_object(container, name)['x-dss-tier']
                 for name in tiers}
        return heads.items() <= seen(swift, container, 'dss=tier',
                                     'dss_tier').items()
    wait_until(same, 60.0)


def test_plain_text_is_filtered_too(cluster, swift, filled):
    container, _expected = filled
    url, token = swift.url, swift.token
    path = url[url.index('/v1'):] + '/' + container
    answer = raw_http.request(
        cluster.conf.proxy_port, 'GET', path + '?dss-class=gold',
        [('X-Auth-Token', token)])
    assert answer.body == b'header\nposted\n'


@pytest.fixture
def stock_port(cluster):
    """The port of a proxy without our filter, as after an uninstall."""
    yield stock_proxy.start(cluster)
    stock_proxy.end(cluster)


def listings(cluster, *words):
    done = subprocess.run(
        [sys.executable, '-m', 'swift_dss.cli.main', 'listings', *words,
         '--devices', cluster.conf.path('devices'), '--json'],
        capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_stock_swift_shows_no_class_once_rows_are_clean(
        cluster, swift, filled, stock_port):
    container, expected = filled
    path = '%s/%s?format=json' % (swift.url[swift.url.index('/v1'):],
                                  container)

    def classed():
        answer = raw_http.request(stock_port, 'GET', path, [
            ('X-Auth-Token', swift.token)])
        assert answer.status == 200
        return [row['name'] for row in json.loads(answer.body)
                if 'x-dss-class' in row['content_type']]

    before = swift.get_container(container)[1]
    assert sorted(classed()) == sorted(
        name for name, shown in expected.items()
        if shown not in (None, 'unclassified'))
    counted = listings(cluster, 'count')
    assert counted['rows'] >= 6
    assert listings(cluster, 'clean')['rows'] == counted['rows']
    assert classed() == []
    assert listings(cluster, 'count')['rows'] == 0
    # Nothing else of the rows has changed.
    assert swift.get_container(container)[1] == before
