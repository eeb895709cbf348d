"""Classes by every way in of the Swift API, on a running cluster."""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import subprocess
import sys
import tarfile
import time
import uuid

import pytest
from support import md5, pattern, wait_until
from support.edges import raw_http
from swiftclient.exceptions import ClientException

from swift_dss.core.spans import ClassMap, Span
from swift_dss.wire.dssfile import encode_section

pytestmark = pytest.mark.cluster

BODY = pattern(5000, 'classify')
RANGES = '0-64-25,1024-32-26'
MAP = ClassMap.from_spans([Span(0, 64, 25), Span(1024, 32, 26)], 0)


def classes(swift, container, name, **options):
    headers = swift.head_object(container, name, **options)
    return (headers.get('x-dss-object-class'),
            headers.get('x-dss-range-class'))


def put(swift, container, name, body=BODY, **headers):
    return swift.put_object(container, name, body, headers={
        name.replace('_', '-'): value for name, value in headers.items()})


def refused(status, call, *arguments, **options):
    with pytest.raises(ClientException) as caught:
        call(*arguments, **options)
    assert caught.value.http_status == status, caught.value
    content = caught.value.http_response_content or b''
    return content.decode() if isinstance(content, bytes) else content


def test_object_class_by_id_and_by_name(swift, any_container):
    for asked in ('25', 'gold', 'GOLD'):
        etag = put(swift, any_container, 'o', X_DSS_Object_Class=asked)
        assert etag == md5(BODY)
        headers, body = swift.get_object(any_container, 'o')
        assert body == BODY
        assert headers['x-dss-object-class'] == '25'
        assert headers['x-dss-class-name'] == 'gold'


def test_range_classes_come_back_as_they_were_given(swift, any_container):
    put(swift, any_container, 'o', X_DSS_Range_Class=RANGES,
        X_DSS_Object_Class='3')
    assert classes(swift, any_container, 'o') == ('3', RANGES)
    headers, body = swift.get_object(any_container, 'o',
                                     headers={'Range': 'bytes=60-70'})
    assert body == BODY[60:71]
    assert headers['x-dss-range-class'] == RANGES


def test_unclassified_objects_show_nothing(swift, container):
    put(swift, container, 'o')
    assert classes(swift, container, 'o') == (None, None)


def test_command_line_upload(cluster, swift, container, tmp_path):
    source = tmp_path / 'sunset.jpg'
    source.write_bytes(BODY)
    subprocess.run(
        [sys.executable, '-m', 'swiftclient.shell', '-A',
         cluster.conf.auth_url, '-U', 'test:tester', '-K', 'testing',
         'upload', '-H', 'X-DSS-Object-Class: gold', container,
         str(source), '--object-name', 'sunset.jpg'], check=True,
        stdout=subprocess.DEVNULL, timeout=60)
    assert classes(swift, container, 'sunset.jpg') == ('25', None)


@pytest.mark.parametrize('chunked', [False, True])
@pytest.mark.parametrize('form', ['range', 'block'])
def test_dss_body_is_stored_as_its_data(swift, any_container, chunked,
                                        form):
    class_map = MAP if form == 'range' else ClassMap.from_spans(
        [Span(512, 1024, 26)], 25)
    whole = encode_section(class_map, len(BODY), form) + BODY
    contents = io.BytesIO(whole) if not chunked else iter(
        [whole[:7], whole[7:50], whole[50:]])
    etag = swift.put_object(
        any_container, 'o', contents,
        content_length=None if chunked else len(whole),
        headers={'X-DSS-Object-File': 'True'})
    assert etag == md5(BODY)
    headers, body = swift.get_object(any_container, 'o')
    assert body == BODY
    assert headers['etag'] == md5(BODY)
    listed = swift.get_container(any_container)[1]
    assert [(row['bytes'], row['hash']) for row in listed] == [
        (len(BODY), md5(BODY))]
    back_headers, back = swift.get_object(
        any_container, 'o', headers={'X-DSS-Object-File': 'true'})
    assert back.endswith(BODY)
    assert int(back_headers['content-length']) == len(back)
    assert 'etag' not in back_headers
    assert back_headers['x-dss-data-etag'] == md5(BODY)
    assert int(swift.head_object(any_container, 'o', headers={
        'X-DSS-Object-File': 'true'})['content-length']) == len(back)
    before = classes(swift, any_container, 'o')
    swift.put_object(any_container, 'again', back,
                     headers={'X-DSS-Object-File': 'True'})
    assert classes(swift, any_container, 'again') == before


def test_the_etag_sent_with_a_dss_body_is_that_of_the_data(
        swift, container):
    whole = encode_section(MAP, len(BODY)) + BODY
    swift.put_object(container, 'o', whole, etag=md5(BODY),
                     headers={'X-DSS-Object-File': 'True'})
    refused(422, swift.put_object, container, 'o', whole, etag=md5(whole),
            headers={'X-DSS-Object-File': 'True'})


def test_dss_form_with_conditions_and_ranges(swift, container):
    put(swift, container, 'o', X_DSS_Range_Class=RANGES)
    flag = {'X-DSS-Object-File': 'True'}
    refused(304, swift.get_object, container, 'o',
            headers=dict(flag, **{'If-None-Match': md5(BODY)}))
    refused(412, swift.get_object, container, 'o',
            headers=dict(flag, **{'If-Match': '0' * 32}))
    assert 'Range' in refused(400, swift.get_object, container, 'o',
                              headers=dict(flag, Range='bytes=0-1'))


@pytest.mark.parametrize('header, value, said', [
    ('X-DSS-Object-Class', '32', 'not in 0..31'),
    ('X-DSS-Object-Class', '', 'neither a class id'),
    ('X-DSS-Object-Class', 'platinum', 'nor a class name'),
    ('X-DSS-Object-Class', '25,26', 'neither a class id'),
    ('X-Object-Meta-Dss-Class', 'platinum', 'X-Object-Meta-Dss-Class'),
    ('X-DSS-Range-Class', '0-64', '<offset>-<len>-<class>'),
    ('X-DSS-Range-Class', '0-64-25,32-64-26', 'overlaps'),
    ('X-DSS-Range-Class', '4000-1001-25', 'past the object'),
    ('X-DSS-Object-File', 'perhaps', 'neither True nor False'),
    ('X-DSS-Object-File', 'True', 'MAGIC_SIG'),
])
def test_bad_input_is_400_with_one_sentence(swift, container, header, value,
                                            said):
    text = refused(400, swift.put_object, container, 'bad', BODY,
                   headers={header: value})
    assert said in text and header.split()[0] in text
    assert text.count('\n') == 1
    refused(404, swift.head_object, container, 'bad')


def test_too_many_ranges_are_413(swift, container):
    section = encode_section(ClassMap.from_spans(
        [Span(2 * n, 1, 25) for n in range(1100)]), 5000)
    text = refused(413, swift.put_object, container, 'bad', section + BODY,
                   headers={'X-DSS-Object-File': 'True'})
    assert 'more than 2048' in text


def test_a_range_past_a_chunked_upload_stores_nothing(swift, container):
    text = refused(400, swift.put_object, container, 'bad',
                   iter([BODY[:100], BODY[100:]]),
                   headers={'X-DSS-Range-Class': '0-5001-25'})
    assert 'past the object' in text
    refused(404, swift.head_object, container, 'bad')


def test_a_cut_off_dss_body_stores_nothing(swift, container):
    whole = encode_section(ClassMap.from_spans(
        [Span(512, 1024, 26)], 25), len(BODY), 'block') + BODY
    for body in (whole[:3], whole[:20], whole[:-600], whole + b'x' * 600):
        refused(400, swift.put_object, container, 'bad', iter([body]),
                headers={'X-DSS-Object-File': 'True'})
        refused(404, swift.head_object, container, 'bad')


def test_post_reclassifies_and_keeps_metadata(swift, any_container):
    put(swift, any_container, 'o', X_DSS_Object_Class='gold',
        X_Object_Meta_Color='red')
    swift.post_object(any_container, 'o', {'X-DSS-Object-Class': 'silver'})
    headers = swift.head_object(any_container, 'o')
    assert headers['x-dss-object-class'] == '26'
    assert headers['x-object-meta-color'] == 'red'
    swift.post_object(any_container, 'o', {'X-Object-Meta-Color': 'blue'})
    headers, body = swift.get_object(any_container, 'o')
    assert headers['x-dss-object-class'] == '26'
    assert headers['x-object-meta-color'] == 'blue'
    assert body == BODY
    ranges = '0-64-25,1024-32-3'
    swift.post_object(any_container, 'o', {'X-DSS-Range-Class': ranges})
    assert classes(swift, any_container, 'o') == ('26', ranges)
    refused(400, swift.post_object, any_container, 'o',
            {'X-DSS-Range-Class': '4999-2-25'})
    assert classes(swift, any_container, 'o') == ('26', ranges)


def test_post_with_a_class_section(cluster, swift, container):
    put(swift, container, 'o', X_Object_Meta_Color='red')
    url, token = swift.get_auth()
    path = url[url.index('/v1'):] + '/%s/o?dss-classes' % container

    def post(body):
        return raw_http.request(cluster.conf.proxy_port, 'POST', path,
                                [('X-Auth-Token', token)], body)

    section = encode_section(MAP, len(BODY))
    assert post(section).status == 202
    headers = swift.head_object(container, 'o')
    assert headers['x-dss-range-class'] == RANGES
    assert headers['x-object-meta-color'] == 'red'
    assert post(section + b'x').status == 400
    assert post(section[:-1]).status == 400
    assert post(b'').status == 400
    far = encode_section(ClassMap.from_spans([Span(4999, 2, 25)]), 5001)
    answer = post(far)
    assert answer.status == 400 and b'5001' in answer.body
    assert classes(swift, container, 'o') == ('0', RANGES)


def test_copy_keeps_the_class_unless_given(swift, any_container):
    put(swift, any_container, 'o', X_DSS_Range_Class=RANGES,
        X_DSS_Object_Class='3')
    swift.copy_object(any_container, 'o', '/%s/kept' % any_container)
    assert classes(swift, any_container, 'kept') == ('3', RANGES)
    swift.copy_object(any_container, 'o', '/%s/given' % any_container,
                      headers={'X-DSS-Object-Class': 'gold'})
    assert classes(swift, any_container, 'given') == ('25', None)
    swift.post_object(any_container, 'o', {'X-DSS-Object-Class': 'silver'})
    for fresh in ('false', 'true'):
        swift.copy_object(any_container, 'o', '/%s/post' % any_container,
                          headers={'X-Fresh-Metadata': fresh})
        assert classes(swift, any_container, 'post') == ('26', None)
    swift.put_object(any_container, 'ranged', b'', headers={
        'X-Copy-From': '%s/kept' % any_container, 'Range': 'bytes=60-1030'})
    assert classes(swift, any_container, 'ranged') == ('3',
                                                       '0-4-25,964-7-26')
    assert swift.get_object(any_container, 'ranged')[1] == BODY[60:1031]


def test_a_large_object_that_is_copied_keeps_its_class(swift, any_container):
    for number in range(2):
        put(swift, any_container, 'seg/%d' % number)
    manifest = json.dumps([{'path': '/%s/seg/%d' % (any_container, n)}
                           for n in range(2)])
    swift.put_object(any_container, 'slo', manifest,
                     query_string='multipart-manifest=put',
                     headers={'X-DSS-Object-Class': '3'})
    assert 'manifest' in refused(
        400, swift.put_object, any_container, 'bad', manifest,
        query_string='multipart-manifest=put',
        headers={'X-DSS-Object-File': 'True'})
    swift.copy_object(any_container, 'slo', '/%s/flat' % any_container)
    assert swift.get_object(any_container, 'flat')[1] == BODY * 2
    assert classes(swift, any_container, 'flat') == ('3', None)


@pytest.mark.parametrize('style', ['X-Versions-Enabled',
                                   'X-Versions-Location'])
def test_versions_keep_their_classes(swift, container, style):
    location = container + '-v'
    swift.put_container(location)
    put(swift, container, 'before', X_DSS_Object_Class='silver')
    swift.post_container(container, {
        style: 'true' if style.endswith('Enabled') else location})
    put(swift, container, 'o', b'one', X_DSS_Object_Class='gold')
    put(swift, container, 'o', b'two', X_DSS_Object_Class='3')
    put(swift, container, 'before', b'new')
    assert classes(swift, container, 'o') == ('3', None)
    assert classes(swift, container, 'before') == (None, None)
    if style == 'X-Versions-Enabled':
        rows = swift.get_container(container, query_string='versions')[1]
        heads = {(row['name'], row['bytes']): swift.head_object(
            container, row['name'], query_string='version-id='
            + row['version_id']) for row in rows}
        assert heads['o', 3]['x-dss-object-class'] in ('3', '25')
        assert {heads[key].get('x-dss-object-class') for key in heads
                if key == ('before', len(BODY))} == {'26'}
        swift.post_object(container, 'o', {'X-DSS-Object-Class': '7'})
        assert classes(swift, container, 'o') == ('7', None)
    else:
        names = [row['name'] for row in swift.get_container(location)[1]]
        assert {classes(swift, location, name)[0] for name in names} == {
            '25', '26'}


def test_symlinks_show_their_targets_class(swift, container):
    put(swift, container, 'o', X_DSS_Object_Class='gold')
    put(swift, container, 'link', b'', X_DSS_Object_Class='3',
        X_Symlink_Target='%s/o' % container)
    assert classes(swift, container, 'link') == ('25', None)
    assert classes(swift, container, 'link',
                   query_string='symlink=get') == (None, None)
    assert swift.get_object(container, 'link', headers={
        'X-DSS-Object-File': 'True'})[1].endswith(BODY)


def test_bulk_upload_by_attribute_and_by_header(cluster, swift, container):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode='w',
                      format=tarfile.PAX_FORMAT) as tar:
        for name, attributes in (
                ('a', {'SCHILY.xattr.user.meta.dss-class': 'gold'}),
                ('b', {})):
            member = tarfile.TarInfo(name)
            member.size = len(BODY)
            member.pax_headers = attributes
            tar.addfile(member, io.BytesIO(BODY))
    url, token = swift.get_auth()
    answer = raw_http.request(
        cluster.conf.proxy_port, 'PUT', url[url.index('/v1'):]
        + '/%s?extract-archive=tar' % container, [
            ('X-Auth-Token', token), ('X-Object-Meta-Dss-Class', 'silver'),
            ('Accept', 'application/json')], stream.getvalue())
    assert json.loads(answer.body)['Number Files Created'] == 2, answer
    assert classes(swift, container, 'a')[0] == '25'
    assert classes(swift, container, 'b')[0] == '26'


def _sign(text):
    return hmac.new(b'classify-key', text.encode(),
                    hashlib.sha256).hexdigest()


def test_tempurl_and_formpost(cluster, swift, container):
    swift.post_account({'X-Account-Meta-Temp-URL-Key': 'classify-key'})
    url, _token = swift.get_auth()
    top = '%s/%s' % (url[url.index('/v1'):], container)
    expires = int(time.time()) + 600
    port = cluster.conf.proxy_port
    answer = raw_http.request(
        port, 'PUT', '%s/t?temp_url_sig=%s&temp_url_expires=%d' % (
            top, _sign('PUT\n%d\n%s/t' % (expires, top)), expires),
        [('X-DSS-Object-Class', 'gold')], BODY)
    assert answer.status == 201, answer
    assert classes(swift, container, 't')[0] == '25'
    # Form uploads carry no headers of their own: the container's default
    # counts for them.
    swift.post_container(container, {'X-DSS-Container-Class': 'silver'})
    signature = _sign('%s/f-\n\n9999\n1\n%d' % (top, expires))
    fields = b''.join(
        b'--edge\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
        % (name.encode(), str(value).encode()) for name, value in (
            ('redirect', ''), ('max_file_size', 9999),
            ('max_file_count', 1), ('expires', expires),
            ('signature', signature)))
    answer = raw_http.request(
        port, 'POST', top + '/f-', [
            ('Content-Type', 'multipart/form-data; boundary=edge')],
        fields + b'--edge\r\nContent-Disposition: form-data; name="file"; '
        b'filename="x"\r\n\r\n' + BODY + b'\r\n--edge--\r\n')
    assert answer.status == 201, answer
    assert classes(swift, container, 'f-x')[0] == '26'
    assert swift.get_object(container, 'f-x')[1] == BODY


def test_container_default_is_set_shown_used_and_removed(swift, container):
    swift.post_container(container, {'X-DSS-Container-Class': 'gold'})
    assert swift.head_container(container)[
        'x-dss-container-class'] == 'gold'
    put(swift, container, 'default')
    put(swift, container, 'given', X_DSS_Object_Class='0')
    assert classes(swift, container, 'default')[0] == '25'
    assert classes(swift, container, 'given')[0] is None
    # Not what a tenant says in metadata of his own.
    swift.post_container(container, {'X-Container-Meta-Dss-Class': '26'})
    put(swift, container, 'still')
    assert classes(swift, container, 'still')[0] == '25'
    refused(400, swift.post_container, container,
            {'X-DSS-Container-Class': 'platinum'})
    swift.post_container(container, {'X-DSS-Container-Class': ''})
    assert 'x-dss-container-class' not in swift.head_container(container)
    put(swift, container, 'default')
    assert classes(swift, container, 'default')[0] is None


def test_accounts_may_use_only_their_classes(cluster):
    name = 'limited-%s' % uuid.uuid4().hex[:8]
    swift = cluster.connection('test2', 'tester2', 'testing2')
    url, _token = swift.get_auth()
    admin = cluster.connection('admin', 'admin', 'admin')
    _own, admin_token = admin.get_auth()
    port, path = cluster.conf.proxy_port, url[url.index('/v1'):]

    def allow(value, token):
        return raw_http.request(port, 'POST', path, [
            ('X-Auth-Token', token), ('X-DSS-Account-Classes', value)])

    swift.put_container(name)
    assert allow('gold', _token).status == 403
    assert allow('platinum', admin_token).status == 400
    assert allow('silver', admin_token).status == 204
    try:
        assert swift.head_account()['x-dss-account-classes'] == 'silver'
        # A worker remembers an account's list for up to a minute, but not
        # the worker that changed it.
        put(swift, name, 'o', X_DSS_Object_Class='silver')
        for headers in ({'X-DSS-Object-Class': 'gold'},
                        {'X-DSS-Range-Class': '0-1-25'},
                        {'X-Object-Meta-Dss-Class': 'gold'}):
            text = refused(403, swift.put_object, name, 'bad', BODY,
                           headers=headers)
            assert 'may not use class 25' in text
        refused(403, swift.post_object, name, 'o',
                {'X-DSS-Object-Class': 'gold'})
        refused(403, swift.post_container, name,
                {'X-DSS-Container-Class': 'gold'})
        refused(403, swift.put_object, name, 'bad',
                encode_section(MAP, len(BODY)) + BODY,
                headers={'X-DSS-Object-File': 'True'})
    finally:
        assert allow('', admin_token).status == 204
    put(swift, name, 'o', X_DSS_Object_Class='gold')
    swift.close()
    admin.close()


def test_the_list_of_an_account_is_not_told_to_strangers(cluster, swift,
                                                         container):
    stranger = cluster.connection('test2', 'tester2', 'testing2')
    _url, token = stranger.get_auth()
    url, _token = swift.get_auth()
    answer = raw_http.request(
        cluster.conf.proxy_port, 'PUT', '%s/%s/x' % (
            url[url.index('/v1'):], container),
        [('X-Auth-Token', token), ('X-DSS-Object-File', 'True')], b'junk')
    assert answer.status == 403 and b'MAGIC' not in answer.body


def test_info_publishes_classes_and_limits(swift):
    info = swift.get_capabilities()['dss']
    assert info['classes']['gold'] == 25
    assert info['max_spans'] == 2048
    assert set(info['formats']) == {'object', 'range', 'dss-block',
                                    'dss-range'}
    assert info['not_allowed_status'] == 403


def test_rules_are_reloaded_and_never_half_applied(cluster, swift,
                                                   container):
    path = cluster.conf.path('etc', 'dss-rules.conf')
    try:
        with open(path, encoding='utf-8') as source:
            original = source.read()
    except FileNotFoundError:
        original = ''

    def class_of_new():
        put(swift, container, 'thing.reload')
        return classes(swift, container, 'thing.reload')[0]

    try:
        rule = '[rule:reload]\nclass = %s\nname = *.reload\n'
        _write(path, rule % 'gold')
        wait_until(lambda: class_of_new() == '25', 30, 'the new rule')
        _write(path, rule % 'silver' + '[rule:bad]\nclass = platinum\n')
        log = cluster.conf.path('log', 'proxy-server.log')
        wait_until(lambda: class_of_new() and
                   'kept the classes and rules' in _read(log), 30,
                   'the refusal')
        assert class_of_new() == '25'
    finally:
        _write(path, original)
    wait_until(lambda: class_of_new() is None, 30, 'no rule')


def _write(path, text):
    with open(path, 'w', encoding='utf-8') as out:
        out.write(text)


def _read(path):
    with open(path, encoding='utf-8', errors='replace') as source:
        return source.read()
