"""Requests for single keys, without boto3's layers.

boto3 takes about 1.3 ms of CPU for each request: it validates parameters,
resolves the endpoint, builds headers and parses answers by rules that fit
every service of AWS. The four requests that an object needs are always the
same, so :class:`Direct` signs them here (AWS Signature Version 4) and sends
them over botocore's own HTTP session, with the same time-outs, certificates,
proxies and errors. Everything else goes to boto3.

boto3 also says where the bucket is: it builds one request that is not sent
(:func:`_asked_of`). If a server sends us elsewhere (a bucket in another
region), boto3 follows, then and ever after.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple
from urllib.parse import quote, urlsplit

from botocore.awsrequest import AWSPreparedRequest
from botocore.exceptions import ClientError, HTTPClientError
from botocore.httpsession import URLLib3Session
from botocore.parsers import create_parser
from botocore.utils import get_environ_proxies

from swift_dss.core.config import GatewayConf
from swift_dss.gateway.link.wan import Sent

_EMPTY_SHA256 = hashlib.sha256(b'').hexdigest()
_UNSIGNED = 'UNSIGNED-PAYLOAD'
_ALGORITHM = 'AWS4-HMAC-SHA256'
_META = 'x-amz-meta-'
_KEY = 'key'
_DEFAULT_PORTS = {'http': 80, 'https': 443}
#: Of an answer: header, boto3's name.
_FIELDS = (('etag', 'ETag'), ('content-range', 'ContentRange'),
           ('x-amz-storage-class', 'StorageClass'),
           ('x-amz-archive-status', 'ArchiveStatus'),
           ('x-amz-restore', 'Restore'))
_HASHED_BYTES = 1 << 20


class _Asked(NamedTuple):
    """How boto3 addresses keys of the bucket.

    :param base: URL of the key ''
    :param region: the one it signs for
    :param agent: its User-Agent
    """

    base: str
    region: str
    agent: str


class Direct:
    """Has boto3's verbs, with a faster way for requests of single keys.
    Thread-safe; calls block on S3.

    :param client: boto3's; for everything else
    :param asked: how it addresses the keys of the one bucket
    """

    def __init__(self, client: Any, asked: _Asked, conf: GatewayConf,
                 access_key: str, secret_key: str,
                 connections: int) -> None:
        self._client = client
        self._base = asked.base
        url = urlsplit(asked.base)
        self._path = url.path
        self._signs_payload = url.scheme != 'https'
        host = url.hostname or ''
        if ':' in host:
            host = '[%s]' % host
        self._host = host if url.port in (
            None, _DEFAULT_PORTS[url.scheme]) else '%s:%d' % (host, url.port)
        self._agent = asked.agent
        self._access_key = access_key
        self._secret_key = secret_key
        self._region = asked.region
        self._signing: Tuple[str, bytes] = ('', b'')
        self._moved = False
        self._parser = create_parser('rest-xml')
        self._session = URLLib3Session(
            verify=conf.ca_bundle or True,
            proxies=get_environ_proxies(asked.base),
            timeout=(conf.connect_timeout_seconds,
                     conf.read_timeout_seconds),
            max_pool_connections=connections)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def head_object(self, **asked: Any) -> Dict[str, Any]:
        """As boto3's."""
        return self._answer('HEAD', 'head_object', asked, {})

    def get_object(self, **asked: Any) -> Dict[str, Any]:
        """As boto3's; ``Body`` is urllib3's answer."""
        return self._answer('GET', 'get_object', asked, {
            'Range': asked['Range']} if 'Range' in asked else {})

    def put_object(self, **asked: Any) -> Dict[str, Any]:
        """As boto3's."""
        headers = {'Content-Length': str(asked['ContentLength']),
                   'Content-MD5': asked['ContentMD5']}
        if 'IfNoneMatch' in asked:
            # Answered with 412 if the key is there.
            headers['If-None-Match'] = asked['IfNoneMatch']
        for name, value in asked.get('Metadata', {}).items():
            headers[_META + name.lower()] = value
        return self._answer('PUT', 'put_object', asked, headers,
                            asked['Body'])

    def delete_object(self, **asked: Any) -> Dict[str, Any]:
        """As boto3's."""
        if 'VersionId' in asked:
            answer: Dict[str, Any] = self._client.delete_object(**asked)
            return answer
        return self._answer('DELETE', 'delete_object', asked, {
            'Content-Length': '0'})

    # -- inside ----------------------------------------------------------

    def _answer(self, method: str, verb: str, asked: Mapping[str, Any],
                headers: Dict[str, str], body: Any = None) -> Dict[str, Any]:
        if not self._moved and all(map(str.isascii, headers.values())):
            answer = self._send(method, asked['Key'], headers, body)
            if answer is not None:
                return answer
            self._moved = True
            if isinstance(body, Sent):
                body.seek(0)
        found: Dict[str, Any] = getattr(self._client, verb)(**asked)
        return found

    def _send(self, method: str, key: str, headers: Dict[str, str],
              body: Any) -> Optional[Dict[str, Any]]:
        """None if the server sends us elsewhere."""
        path = quote(key, safe='/~')
        prepared = AWSPreparedRequest(
            method, self._base + path,
            self._signed(method, self._path + path, headers, body), body,
            stream_output=method == 'GET')
        if isinstance(body, Sent):
            body.sending = True
        said = self._session.send(prepared)
        # Header names of HTTP have no case.
        fields = {name.lower(): value for name, value
                  in said.headers.items()}
        status = int(said.status_code)
        if _is_elsewhere(status, fields, self._region):
            said.raw.close()
            return None
        if status >= 300 or (method == 'PUT' and b'<Error' in said.content):
            raise self._error(method, status, fields, said.content)
        return _fields(method, status, fields, said.raw)

    def _error(self, method: str, status: int, fields: Dict[str, str],
               body: bytes) -> ClientError:
        # S3 may fail after it had begun to answer with 200.
        parsed = self._parser.parse({
            'status_code': status if status >= 300 else 500,
            'headers': fields, 'body': body}, None)
        return ClientError(parsed, method)

    def _signed(self, method: str, path: str, headers: Dict[str, str],
                body: Any) -> Dict[str, str]:
        """The headers of a request, with its signature."""
        stamp = time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())
        digest = self._digest(body)
        lines = dict(headers, Host=self._host)
        lines['X-Amz-Date'] = stamp
        lines['X-Amz-Content-SHA256'] = digest
        values = sorted((name.lower(), ' '.join(value.split()))
                        for name, value in lines.items())
        signed = ';'.join(name for name, _ in values)
        canonical = '\n'.join(
            [method, path, ''] + ['%s:%s' % pair for pair in values]
            + ['', signed, digest])
        scope = '%s/%s/s3/aws4_request' % (stamp[:8], self._region)
        to_sign = '\n'.join((_ALGORITHM, stamp, scope, hashlib.sha256(
            canonical.encode('ascii')).hexdigest()))
        signature = hmac.new(self._signing_key(stamp[:8]), to_sign.encode(
            'ascii'), hashlib.sha256).hexdigest()
        lines['Authorization'] = (
            '%s Credential=%s/%s, SignedHeaders=%s, Signature=%s' % (
                _ALGORITHM, self._access_key, scope, signed, signature))
        lines['User-Agent'] = self._agent
        return lines

    def _digest(self, body: Any) -> str:
        """Of the payload; TLS and Content-MD5 do that work, if they can."""
        if body is None:
            return _EMPTY_SHA256
        if not self._signs_payload:
            return _UNSIGNED
        if isinstance(body, bytes):
            return hashlib.sha256(body).hexdigest()
        whole = hashlib.sha256()
        while True:
            piece = body.read(_HASHED_BYTES)
            if not piece:
                break
            whole.update(piece)
        body.seek(0)
        return whole.hexdigest()

    def _signing_key(self, day: str) -> bytes:
        known = self._signing
        if known[0] != day:
            key = ('AWS4' + self._secret_key).encode('utf-8')
            for part in (day, self._region, 's3', 'aws4_request'):
                key = hmac.new(key, part.encode('utf-8'),
                               hashlib.sha256).digest()
            known = self._signing = (day, key)
        return known[1]


def direct(client: Any, conf: GatewayConf, access_key: str,
           secret_key: str, connections: int) -> Any:
    """The faster way to a bucket, or ``client`` itself where boto3 does more
    to each request than :class:`Direct` knows of: checksums.

    :param client: boto3's
    """
    if conf.checksums != 'when_required' or not conf.bucket:
        return client
    asked = _asked_of(client, conf.bucket)
    return client if asked is None else Direct(
        client, asked, conf, access_key, secret_key, connections)


class _NotSent(Exception):
    """Ends a request of boto3 before it is sent."""


def _asked_of(client: Any, bucket: str) -> Optional[_Asked]:
    """Have boto3 build a request, and look at it. Sends nothing."""
    found: List[Any] = []

    def keep(request: Any, **_: Any) -> None:
        found.append(request)
        raise _NotSent

    events = client.meta.events
    events.register_first('before-send.s3.HeadObject', keep)
    try:
        client.head_object(Bucket=bucket, Key=_KEY)
    except _NotSent:
        pass
    finally:
        events.unregister('before-send.s3.HeadObject', keep)
    text = {name.lower(): value.decode('ascii') if isinstance(value, bytes)
            else str(value) for name, value in found[0].headers.items()}
    scope = text.get('authorization', '').partition('Credential=')[2]
    parts = scope.partition(',')[0].split('/')
    url = str(found[0].url)
    if not url.endswith('/' + _KEY) or len(parts) != 5 or \
            parts[3:] != ['s3', 'aws4_request']:
        return None
    return _Asked(url[:-len(_KEY)], parts[2], text.get('user-agent', ''))


def _is_elsewhere(status: int, fields: Mapping[str, str],
                  region: str) -> bool:
    """True if the bucket is at another address, which boto3 finds."""
    return 300 < status < 400 and status != 304 or status in (400, 403) \
        and fields.get('x-amz-bucket-region', region) != region


def _fields(method: str, status: int, fields: Dict[str, str],
            raw: Any) -> Dict[str, Any]:
    """A good answer in boto3's names."""
    answer: Dict[str, Any] = {'ResponseMetadata': {
        'HTTPStatusCode': status, 'HTTPHeaders': fields}}
    for header, name in _FIELDS:
        if header in fields:
            answer[name] = fields[header]
    if method in ('HEAD', 'GET'):
        length = fields.get('content-length', '')
        if not length.isdigit():
            raise HTTPClientError(error='an answer without its length')
        answer['ContentLength'] = int(length)
        answer['Metadata'] = {
            name[len(_META):]: value for name, value in fields.items()
            if name.startswith(_META)}
    if method == 'GET':
        answer['Body'] = raw
    return answer
