"""Every way in by which a tenant's text reaches the storage servers.

A way sends one request (after whatever set-up it needs) that carries a
forged header: as a header line, or as the field, attribute or parameter
that the way turns into headers.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import tarfile
import time
from typing import Callable, Dict, List, NamedTuple
from urllib.parse import quote

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from support.edges import raw_http

from swift_dss.wire import names, registers
from swift_dss.wire.large import many

ACCOUNT = 'AUTH_test'
TEMPURL_KEY = 'spoof-key'
BODY = b'spoof'


class Forgery(NamedTuple):
    """One forged header.

    :param line: the whole header line or lines, as sent
    :param name: its name in this spelling, for ways that are no headers
    """

    line: bytes
    name: str
    value: str


class Ways:
    """Sends forgeries to one proxy.

    :param port: of the proxy
    :param token: of the account's owner
    """

    def __init__(self, port: int, token: str, tag: str) -> None:
        self.port = port
        self._token = token
        self._tag = tag
        self._count = 0
        self.ways: Dict[str, Callable[[Forgery], raw_http.Answer]] = {
            'PUT': self._put, 'POST': self._post, 'GET': self._get,
            'HEAD': self._head, 'DELETE': self._delete,
            'COPY': self._copy, 'COPY fresh': self._copy_fresh,
            'PUT X-Copy-From': self._copy_from,
            'SLO manifest': self._slo, 'SLO entry': self._slo_entry,
            'DLO manifest': self._dlo, 'symlink': self._symlink,
            'versioned': self._versioned,
            'versioned old style': self._versioned_old,
            'bulk header': self._bulk, 'bulk PAX meta': self._bulk_meta,
            'bulk PAX xattr': self._bulk_xattr,
            'tempurl header': self._tempurl,
            'tempurl parameter': self._tempurl_parameter,
            'formpost header': self._form_header,
            'formpost field': self._form_field,
            'formpost part': self._form_part,
            's3 PUT': self._s3_put, 's3 metadata': self._s3_meta,
            's3 copy': self._s3_copy, 's3 initiate': self._s3_initiate,
            's3 part': self._s3_part, 's3 complete': self._s3_complete,
            's3 lifecycle': self._s3_lifecycle,
            'container PUT': self._container_put,
            'container POST': self._container_post,
            'account POST': self._account_post,
            'object server question': self._question,
            'question by dots': self._question_by_dots}

    def prepare(self) -> None:
        """Make what the ways need."""
        self._send('POST', '/v1/' + ACCOUNT, [
            ('X-Account-Meta-Temp-URL-Key', TEMPURL_KEY)])
        for name, headers in (
                ('plain', []), ('versions', []), ('s3', []),
                ('new', [('X-Versions-Enabled', 'true')]),
                ('old', [('X-Versions-Location', self._name('versions'))])):
            made = self._send('PUT', self._path(name), headers)
            assert made.status in (201, 202), (name, made)
        for name in ('source', 'seg/1', 'posted'):
            assert self._send('PUT', self._path('plain', name),
                              body=BODY).status == 201
        answer = self._s3('POST', self._s3_path('multi') + '?uploads')
        text = answer.body.decode()
        self._upload = text.split('<UploadId>')[1].split('<')[0]

    # -- plumbing --------------------------------------------------------

    def _name(self, container: str) -> str:
        return '%s-%s' % (self._tag, container)

    def _path(self, container: str, obj: str = '') -> str:
        return '/v1/%s/%s%s' % (ACCOUNT, self._name(container),
                                '/' + obj if obj else '')

    def _next(self) -> str:
        self._count += 1
        return 'o%d' % self._count

    def _send(self, method, path, headers=(), body=b'', line=b''):
        return raw_http.request(
            self.port, method, path, [('X-Auth-Token', self._token)]
            + list(headers), body, line)

    def _s3(self, method, path, headers=(), body=b'', line=b''):
        request = AWSRequest(
            method, 'http://127.0.0.1:%d%s' % (self.port, path),
            headers=dict(headers), data=body)
        S3SigV4Auth(Credentials('test:tester', 'testing'), 's3',
                    'us-east-1').add_auth(request)
        return raw_http.request(self.port, method, path,
                                list(request.headers.items()), body, line)

    def _s3_path(self, key: str) -> str:
        return '/%s/%s' % (self._name('s3'), key)

    # -- Swift -----------------------------------------------------------

    def _put(self, forged):
        return self._send('PUT', self._path('plain', self._next()),
                          body=BODY, line=forged.line)

    def _post(self, forged):
        return self._send('POST', self._path('plain', 'posted'),
                          line=forged.line)

    def _get(self, forged):
        return self._send('GET', self._path('plain', 'source'),
                          line=forged.line)

    def _head(self, forged):
        return self._send('HEAD', self._path('plain', 'source'),
                          line=forged.line)

    def _delete(self, forged):
        return self._send('DELETE', self._path('plain', 'gone'),
                          line=forged.line)

    def _copy(self, forged):
        return self._send('COPY', self._path('plain', 'source'), [
            ('Destination', '%s/%s' % (self._name('plain'), self._next()))],
            line=forged.line)

    def _copy_fresh(self, forged):
        return self._send('COPY', self._path('plain', 'source'), [
            ('Destination', '%s/%s' % (self._name('plain'), self._next())),
            ('X-Fresh-Metadata', 'true')], line=forged.line)

    def _copy_from(self, forged):
        return self._send('PUT', self._path('plain', self._next()), [
            ('X-Copy-From', '%s/source' % self._name('plain'))],
            line=forged.line)

    def _slo(self, forged, extra=None):
        entry = {'path': '/%s/seg/1' % self._name('plain')}
        entry.update(extra or {})
        return self._send(
            'PUT', self._path('plain', self._next())
            + '?multipart-manifest=put', body=json.dumps([entry]).encode(),
            line=forged.line)

    def _slo_entry(self, forged):
        return self._slo(forged._replace(line=b''),
                         {forged.name: forged.value})

    def _dlo(self, forged):
        return self._send('PUT', self._path('plain', self._next()), [
            ('X-Object-Manifest', '%s/seg/' % self._name('plain'))],
            line=forged.line)

    def _symlink(self, forged):
        return self._send('PUT', self._path('plain', self._next()), [
            ('X-Symlink-Target', '%s/source' % self._name('plain'))],
            line=forged.line)

    def _versioned(self, forged):
        return self._send('PUT', self._path('new', 'object'), body=BODY,
                          line=forged.line)

    def _versioned_old(self, forged):
        return self._send('PUT', self._path('old', 'object'), body=BODY,
                          line=forged.line)

    def _container_put(self, forged):
        return self._send('PUT', self._path('plain'), line=forged.line)

    def _container_post(self, forged):
        return self._send('POST', self._path('plain'), line=forged.line)

    def _account_post(self, forged):
        return self._send('POST', '/v1/' + ACCOUNT, line=forged.line)

    def _question(self, forged, path=names.MANY_PATH):
        # What proxies ask object servers, whose paths are no client's.
        return self._send('POST', path, body=many.encode_question([
            many.Ask('POST', '/d0/0' + self._path('plain', 'posted')[3:],
                     dict({forged.name: forged.value},
                          **registers.class_alone('9999999999.00000')))]),
            line=forged.line)

    def _question_by_dots(self, forged):
        return self._question(forged, '/v1/..' + names.MANY_PATH)

    # -- archives, forms and signed addresses ----------------------------

    def _archive(self, attributes, line=b''):
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode='w',
                          format=tarfile.PAX_FORMAT) as tar:
            member = tarfile.TarInfo(self._next())
            member.size = len(BODY)
            member.pax_headers = attributes
            tar.addfile(member, io.BytesIO(BODY))
        return self._send('PUT', self._path('plain')
                          + '?extract-archive=tar', [
                              ('Accept', 'application/json')],
                          stream.getvalue(), line)

    def _bulk(self, forged):
        return self._archive({}, forged.line)

    def _bulk_meta(self, forged):
        return self._archive(
            {'SCHILY.xattr.user.meta.' + forged.name: forged.value})

    def _bulk_xattr(self, forged):
        return self._archive(
            {'SCHILY.xattr.user.' + forged.name: forged.value,
             'LIBARCHIVE.xattr.user.' + forged.name: forged.value})

    def _signed(self, path):
        expires = int(time.time()) + 3600
        mac = hmac.new(TEMPURL_KEY.encode(), ('PUT\n%d\n%s' % (
            expires, path)).encode(), hashlib.sha256).hexdigest()
        return '%s?temp_url_sig=%s&temp_url_expires=%d' % (
            path, mac, expires)

    def _tempurl(self, forged):
        return raw_http.request(
            self.port, 'PUT', self._signed(
                self._path('plain', self._next())), (), BODY, forged.line)

    def _tempurl_parameter(self, forged):
        return raw_http.request(
            self.port, 'PUT', '%s&%s=%s' % (
                self._signed(self._path('plain', self._next())),
                quote(forged.name), quote(forged.value)), (), BODY)

    def _form(self, fields: List[bytes], part: bytes = b'',
              line: bytes = b''):
        path = self._path('plain') + '/form-' + self._next()
        expires = str(int(time.time()) + 3600)
        mac = hmac.new(TEMPURL_KEY.encode(), ('%s\n\n1000\n1\n%s' % (
            path, expires)).encode(), hashlib.sha256).hexdigest()
        fields = [_field(name, value) for name, value in (
            ('redirect', ''), ('max_file_size', '1000'),
            ('max_file_count', '1'), ('expires', expires),
            ('signature', mac))] + fields
        fields.append(
            b'Content-Disposition: form-data; name="f"; filename="f"\r\n'
            b'Content-Type: text/plain\r\n' + part + b'\r\n' + BODY)
        body = b''.join(b'--edge\r\n%s\r\n' % field for field in fields)
        return raw_http.request(
            self.port, 'POST', path,
            [('Content-Type', 'multipart/form-data; boundary=edge')],
            body + b'--edge--\r\n', line)

    def _form_header(self, forged):
        return self._form([], line=forged.line)

    def _form_field(self, forged):
        return self._form([_field(forged.name, forged.value)])

    def _form_part(self, forged):
        return self._form([], part=forged.line)

    # -- S3 --------------------------------------------------------------

    def _s3_put(self, forged):
        return self._s3('PUT', self._s3_path(self._next()), body=BODY,
                        line=forged.line)

    def _s3_meta(self, forged):
        # The name as metadata, and a value that tries to end the line.
        name = forged.name.encode('ascii', 'ignore').decode().strip()
        headers = {'x-amz-meta-' + name: forged.value} if name and all(
            c not in name for c in '\r\n\t\0 :') else {}
        return self._s3('PUT', self._s3_path(self._next()), headers, BODY,
                        b'x-amz-meta-a: b%0d%0a' + forged.line)

    def _s3_copy(self, forged):
        return self._s3('PUT', self._s3_path(self._next()), {
            'x-amz-copy-source': '/%s/source' % self._name('plain')},
            line=forged.line)

    def _s3_initiate(self, forged):
        return self._s3('POST', self._s3_path(self._next()) + '?uploads',
                        line=forged.line)

    def _s3_part(self, forged):
        return self._s3('PUT', '%s?partNumber=1&uploadId=%s' % (
            self._s3_path('multi'), self._upload), body=BODY,
            line=forged.line)

    def _s3_complete(self, forged):
        etag = hashlib.md5(BODY).hexdigest()
        return self._s3(
            'POST', '%s?uploadId=%s' % (self._s3_path('multi'),
                                        self._upload),
            body=('<CompleteMultipartUpload><Part><PartNumber>1'
                  '</PartNumber><ETag>%s</ETag></Part>'
                  '</CompleteMultipartUpload>' % etag).encode(),
            line=forged.line)

    def _s3_lifecycle(self, forged):
        # One that sets rules sends headers of ours.
        return self._s3('GET', '/%s?lifecycle=' % self._name('s3'),
                        line=forged.line)


def _field(name: str, value: str) -> bytes:
    return ('Content-Disposition: form-data; name="%s"\r\n\r\n%s'
            % (name, value)).encode('utf-8')
