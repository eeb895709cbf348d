"""The class of a large object is the class of its data, by real clients."""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
import sys
import threading
import uuid

import pytest
from support import md5, pattern, wait_until
from support.edges import raw_http
from swiftclient.exceptions import ClientException

from swift_dss.aio import processes
from swift_dss.core.spans import ClassMap, Span
from swift_dss.wire.dssfile import Decoder

pytestmark = pytest.mark.cluster

BODY = pattern(5000, 'large')
PART = pattern(5 * 1024 * 1024, 'large part')


def shown(swift, container, name):
    headers = swift.head_object(container, name)
    return (headers.get('x-dss-object-class'),
            headers.get('x-dss-range-class'))


def put_segments(swift, container, count, **headers):
    """``count`` segments; their names."""
    names = ['seg/%03d' % number for number in range(count)]
    for name in names:
        swift.put_object(container, name, BODY, headers={
            key.replace('_', '-'): value for key, value in headers.items()})
    return names


def put_slo(swift, container, name, entries, where=None, **headers):
    """An SLO; entries are names of segments or entries of its manifest."""
    swift.put_object(container, name, json.dumps([
        {'path': '/%s/%s' % (where or container, entry)}
        if isinstance(entry, str) else entry for entry in entries]),
        query_string='multipart-manifest=put', headers={
            key.replace('_', '-'): value for key, value in headers.items()})


def command(cluster, *arguments):
    subprocess.run(
        [sys.executable, '-m', 'swiftclient.shell', '-A',
         cluster.conf.auth_url, '-U', 'test:tester', '-K', 'testing',
         *arguments], check=True, capture_output=True)


def segments_of(swift, container):
    return [row['name'] for row in swift.get_container(
        container, full_listing=True)[1]]


@pytest.mark.parametrize('kind', ['--use-slo', '--use-dlo'])
def test_the_command_line_gives_every_segment_the_class(
        cluster, swift, container, tmp_path, kind):
    (tmp_path / 'big').write_bytes(BODY * 50)
    command(cluster, 'upload', '-H', 'X-DSS-Object-Class: gold', '-S',
            '100000', kind, '--object-name', 'big', container,
            str(tmp_path / 'big'))
    assert shown(swift, container, 'big') == ('25', None)
    assert swift.get_object(container, 'big')[1] == BODY * 50
    segments = container + '_segments'
    names = segments_of(swift, segments)
    assert len(names) == 3
    assert {shown(swift, segments, name) for name in names} == {('25', None)}


def test_the_command_line_gives_ranges_of_the_whole(
        cluster, swift, container, tmp_path):
    (tmp_path / 'big').write_bytes(BODY * 50)
    command(cluster, 'upload', '-H', 'X-DSS-Range-Class: 99990-20-gold',
            '-S', '100000', '--use-slo', '--object-name', 'big', container,
            str(tmp_path / 'big'))
    segments = container + '_segments'
    names = segments_of(swift, segments)
    assert shown(swift, container, 'big') == ('0', '99990-20-25')
    assert [shown(swift, segments, name) for name in names] == [
        ('0', '99990-10-25'), ('0', '0-10-25'), ('0', None)]


def test_a_post_reaches_every_segment(swift, any_container):
    names = put_segments(swift, any_container, 3)
    put_slo(swift, any_container, 'slo', names, X_Object_Meta_Color='red',
            X_DSS_Object_Class='gold')
    assert {shown(swift, any_container, name) for name in names} == {
        ('25', None)}
    swift.post_object(any_container, 'slo', {'X-DSS-Object-Class': 'silver'})
    for name in ['slo', *names]:
        assert shown(swift, any_container, name) == ('26', None)
    assert swift.head_object(any_container, 'slo')[
        'x-object-meta-color'] == 'red'
    swift.post_object(any_container, 'slo', {
        'X-DSS-Range-Class': '4999-2-gold', 'X-Object-Meta-Color': 'blue'})
    assert shown(swift, any_container, 'slo') == ('26', '4999-2-25')
    assert [shown(swift, any_container, name) for name in names] == [
        ('26', '4999-1-25'), ('26', '0-1-25'), ('26', None)]
    headers, body = swift.get_object(any_container, 'slo')
    assert body == BODY * 3 and headers['x-object-meta-color'] == 'blue'
    with pytest.raises(ClientException) as caught:
        swift.post_object(any_container, 'slo', {
            'X-DSS-Range-Class': '14999-2-gold'})
    assert caught.value.http_status == 400


def test_a_class_for_one_segment_is_refused(swift, container):
    names = put_segments(swift, container, 2)
    put_slo(swift, container, 'slo', names, X_DSS_Object_Class='gold')
    for more in ({}, {'X-Object-Meta-Color': 'red'}):
        with pytest.raises(ClientException) as caught:
            swift.post_object(container, names[0], dict(
                more, **{'X-DSS-Object-Class': 'silver'}))
        assert caught.value.http_status == 409
        assert b'/%s/slo,' % container.encode() in \
            caught.value.http_response_content
    assert {shown(swift, container, name) for name in ['slo', *names]} == {
        ('25', None)}
    assert 'x-object-meta-color' not in swift.head_object(
        container, names[0])


def test_parts_of_segments_and_nested_manifests_count(swift, container):
    names = put_segments(swift, container, 3)
    put_slo(swift, container, 'inner', [
        {'path': '/%s/%s' % (container, names[0]), 'range': '1000-1999'},
        names[1]])
    put_slo(swift, container, 'outer', [
        {'path': '/%s/inner' % container, 'range': '500-1499'}, names[2]],
        X_DSS_Object_Class='gold')
    assert swift.get_object(container, 'outer')[1] == \
        BODY[1500:2000] + BODY[:500] + BODY
    assert shown(swift, container, 'outer') == ('25', None)
    assert [shown(swift, container, name) for name in names] == [
        ('0', '1500-500-25'), ('0', '0-500-25'), ('25', None)]
    assert shown(swift, container, 'inner') == ('0', '500-1000-25')


def test_a_containers_default_reaches_the_segments(swift, container):
    where = container + '-s'
    swift.put_container(where)
    names = put_segments(swift, where, 2)
    swift.post_container(container, {'X-DSS-Container-Class': 'gold'})
    put_slo(swift, container, 'slo', names, where)
    assert shown(swift, container, 'slo') == ('25', None)
    assert {shown(swift, where, name) for name in names} == {('25', None)}


def test_an_unclassified_manifest_shows_what_its_segments_have(
        swift, container):
    names = put_segments(swift, container, 1, X_DSS_Object_Class='gold')
    swift.put_object(container, 'more', BODY)
    put_slo(swift, container, 'slo', [*names, 'more'])
    assert shown(swift, container, 'slo') == ('0', '0-5000-25')
    assert shown(swift, container, 'more') == (None, None)


def test_shared_segments_keep_the_highest_rank(swift, container):
    names = put_segments(swift, container, 3)
    put_slo(swift, container, 'gold', names[:2], X_DSS_Object_Class='gold')
    put_slo(swift, container, 'low', names[1:], X_DSS_Object_Class='user1')
    assert [shown(swift, container, name)[0] for name in names] == [
        '25', '25', '11']
    # What it shows is what the bytes have.
    assert shown(swift, container, 'low') == ('11', '0-5000-25')
    swift.post_object(container, 'gold', {'X-DSS-Object-Class': '0'})
    assert [shown(swift, container, name)[0] for name in names] == [
        '0', '11', '11']
    swift.post_object(container, 'low', {'X-DSS-Object-Class': 'gold'})
    assert [shown(swift, container, name)[0] for name in names] == [
        '0', '25', '25']
    assert shown(swift, container, 'low') == ('25', None)


def upload_in_parts(s3, bucket, **words):
    """An object ``k`` of :data:`PART` and :data:`BODY`."""
    upload = s3.create_multipart_upload(
        Bucket=bucket, Key='k', **words)['UploadId']
    parts = [{'PartNumber': number, 'ETag': s3.upload_part(
        Bucket=bucket, Key='k', UploadId=upload, PartNumber=number,
        Body=body)['ETag']} for number, body in ((1, PART), (2, BODY))]
    s3.complete_multipart_upload(
        Bucket=bucket, Key='k', UploadId=upload,
        MultipartUpload={'Parts': parts})


def test_s3_multipart_by_boto3(swift, s3):
    bucket = 'large-%s' % uuid.uuid4().hex[:12]
    s3.create_bucket(Bucket=bucket)
    upload_in_parts(s3, bucket, Metadata={'dss-class': 'gold'})
    segments = bucket + '+segments'
    names = segments_of(swift, segments)
    assert len(names) == 2
    assert shown(swift, bucket, 'k')[0] == '25'
    assert {shown(swift, segments, name)[0] for name in names} == {'25'}
    swift.post_object(bucket, 'k', {
        'X-DSS-Object-Class': 'silver',
        'X-DSS-Range-Class': '%d-2-gold' % (len(PART) - 1)})
    assert [shown(swift, segments, name) for name in names] == [
        ('26', '%d-1-25' % (len(PART) - 1)), ('26', '0-1-25')]
    assert s3.get_object(Bucket=bucket, Key='k')['Body'].read() == \
        PART + BODY


def test_ranges_of_an_s3_multipart_upload(swift, s3):
    bucket = 'large-%s' % uuid.uuid4().hex[:12]
    s3.create_bucket(Bucket=bucket)

    def add(request, **_):
        request.headers['X-DSS-Range-Class'] = '%d-20-gold' % (
            len(PART) - 10)
    s3.meta.events.register('before-sign.s3.CreateMultipartUpload', add)
    upload_in_parts(s3, bucket)
    assert shown(swift, bucket, 'k') == ('0', '%d-20-25' % (len(PART) - 10))
    segments = bucket + '+segments'
    assert [shown(swift, segments, name)[1]
            for name in segments_of(swift, segments)] == [
                '%d-10-25' % (len(PART) - 10), '0-10-25']


def test_only_those_who_may_write_segments_reclassify_them(
        cluster, swift, container):
    other = cluster.connection('test', 'tester3', 'testing3')
    own = container + '-own'
    swift.put_container(own, {'X-Container-Write': 'test:tester3',
                              'X-Container-Read': 'test:tester3'})
    swift.post_container(container, {'X-Container-Read': 'test:tester3'})
    names = put_segments(swift, container, 2)
    with pytest.raises(ClientException) as caught:
        put_slo(other, own, 'slo', names, container,
                X_DSS_Object_Class='gold')
    assert caught.value.http_status == 403
    put_slo(other, own, 'slo', names, container)
    with pytest.raises(ClientException) as caught:
        other.post_object(own, 'slo', {'X-DSS-Object-Class': 'gold'})
    assert caught.value.http_status == 403
    assert shown(swift, container, names[0]) == (None, None)
    assert shown(swift, own, 'slo') == (None, None)
    # A default that may not be applied is not shown either.
    swift.post_container(own, {'X-DSS-Container-Class': 'gold'})
    put_slo(other, own, 'slo', names, container)
    assert shown(swift, container, names[0]) == (None, None)
    assert shown(swift, own, 'slo')[0] in (None, '0')
    other.close()


@pytest.mark.parametrize('kind', ['slo', 'dlo'])
def test_the_dss_form_of_a_large_object(swift, container, kind):
    names = put_segments(swift, container, 4)
    if kind == 'slo':
        put_slo(swift, container, 'big', names)
    else:
        swift.put_object(container, 'big', b'', headers={
            'X-Object-Manifest': container + '/seg/'})
    swift.post_object(container, 'big', {
        'X-DSS-Object-Class': 'silver', 'X-DSS-Range-Class': '4990-20-gold'})
    head = swift.head_object(container, 'big',
                             headers={'X-DSS-Object-File': 'True'})
    headers, body = swift.get_object(container, 'big',
                                     headers={'X-DSS-Object-File': 'True'})
    assert head['content-length'] == headers['content-length'] == \
        str(len(body))
    assert headers['x-dss-object-file'] == 'True' and 'etag' not in headers
    decoder = Decoder(object_bytes=20000)
    decoder.feed(body[:-20000])
    assert decoder.class_map == ClassMap.from_spans(
        [Span(4990, 20, 25)], 26)
    assert body[-20000:] == BODY * 4
    if kind == 'slo':
        assert headers['x-dss-data-etag'] == swift.head_object(
            container, 'big')['etag']


def test_dlo_segments_get_the_class_of_their_manifest(swift, container):
    names = put_segments(swift, container, 2)
    swift.put_object(container, 'dlo', b'', headers={
        'X-Object-Manifest': container + '/seg/',
        'X-DSS-Object-Class': 'gold'})
    for name in ['dlo', *names]:
        assert shown(swift, container, name) == ('25', None)
    assert swift.get_object(container, 'dlo')[1] == BODY * 2
    swift.post_object(container, 'dlo', {
        'X-DSS-Object-Class': 'silver',
        'X-Object-Manifest': container + '/seg/'})
    for name in ['dlo', *names]:
        assert shown(swift, container, name) == ('26', None)


def test_bytes_and_etags_are_the_same_with_classes(swift, container):
    names = put_segments(swift, container, 2)
    answers = []
    for number, headers in enumerate(({}, {'X_DSS_Object_Class': 'gold'})):
        put_slo(swift, container, 'slo%d' % number, names, **headers)
        headers, body = swift.get_object(container, 'slo%d' % number)
        answers.append((headers['etag'], headers['content-length'],
                        headers['content-type'], md5(body)))
    assert answers[0] == answers[1]


@pytest.mark.damage
def test_a_killed_proxy_leaves_work_that_another_does(cluster, swift,
                                                      container):
    # So many that the POST is still at work when the first has its class.
    names = put_segments(swift, container, 400)
    put_slo(swift, container, 'slo', names)
    url, token = swift.get_auth()
    path = '%s/%s/slo' % (url[url.index('/v1'):], container)
    post = threading.Thread(target=post_until_cut, args=(
        cluster.conf.proxy_port, path, token))
    post.start()
    wait_until(lambda: shown(swift, container, names[0])[0] == '25', 60,
               'the first segment')
    assert processes.kill(cluster.conf.root, ['proxy-server'])
    post.join()
    cluster.restart('proxy-server')
    state = swift.head_object(container, 'slo').get('x-dss-class-state')
    had = [shown(swift, container, name)[0] for name in names]
    print('figure: killed with %d of 400 segments done, HEAD says %r' % (
        had.count('25'), state))
    assert state or had.count('25') == 400
    wait_until(lambda: 'x-dss-class-state' not in swift.head_object(
        container, 'slo'), 300, 'another proxy')
    for name in ['slo', *names]:
        assert shown(swift, container, name) == ('25', None)


def post_until_cut(port, path, token):
    with contextlib.suppress(OSError, http.client.HTTPException):
        raw_http.request(port, 'POST', path, [
            ('X-Auth-Token', token), ('X-DSS-Object-Class', 'gold')])
