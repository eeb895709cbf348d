"""Requests for single keys, without boto3's layers.

boto3 takes about 1.3 ms of CPU for each request: it validates parameters,
resolves the endpoint, builds headers and parses answers by rules that fit
every service of AWS. The four requests that an object needs are always the
same, so :class:`Direct` has botocore's signer sign them, and sends them over
botocore's HTTP session, with the same time-outs, certificates, proxies and
errors. Everything else goes to boto3.

boto3 also says where the bucket is: it builds one request that is not sent
(:func:`_asked_of`). If a server sends us elsewhere (a bucket in another
region), boto3 follows, then and ever after.
"""

from __future__ import annotations

import socket
from typing import Any, Dict, List, Mapping, NamedTuple, Optional
from urllib.parse import quote

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSPreparedRequest, AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError, HTTPClientError
from botocore.httpsession import URLLib3Session
from botocore.parsers import create_parser
from botocore.utils import get_environ_proxies

from swift_dss.core.config import GatewayConf
from swift_dss.gateway.link.wan import Sent

_META = 'x-amz-meta-'
#: As boto3's. The session's own default would hold back a body until the
#: server acknowledges the head before it: often 40 ms later.
_SOCKET_OPTIONS = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]
_KEY = 'key'
#: Of an answer: header, boto3's name.
_FIELDS = (('etag', 'ETag'), ('content-range', 'ContentRange'),
           ('x-amz-storage-class', 'StorageClass'),
           ('x-amz-archive-status', 'ArchiveStatus'),
           ('x-amz-restore', 'Restore'))


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
        self._agent = asked.agent
        self._region = asked.region
        self._signer = S3SigV4Auth(Credentials(access_key, secret_key),
                                   's3', asked.region)
        self._moved = False
        self._parser = create_parser('rest-xml')
        self._session = URLLib3Session(
            verify=conf.ca_bundle or True,
            proxies=get_environ_proxies(asked.base),
            timeout=(conf.connect_timeout_seconds,
                     conf.read_timeout_seconds),
            max_pool_connections=connections,
            socket_options=_SOCKET_OPTIONS)

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
        parsed: Dict[str, Any] = getattr(self._client, verb)(**asked)
        return parsed

    def _send(self, method: str, key: str, headers: Dict[str, str],
              body: Any) -> Optional[Dict[str, Any]]:
        """None if the server sends us elsewhere."""
        path = quote(key, safe='/~')
        prepared = self._signed(method, self._base + path, headers, body)
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

    def _signed(self, method: str, url: str, headers: Dict[str, str],
                body: Any) -> AWSPreparedRequest:
        """A request with its signature, ready to be sent."""
        request = AWSRequest(
            method, url, dict(headers, **{'User-Agent': self._agent}), body,
            stream_output=method == 'GET')
        # TLS and Content-MD5 prove the payload, where there are both.
        request.context['has_streaming_input'] = True
        self._signer.add_auth(request)
        return request.prepare()


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
    requests: List[Any] = []

    def keep(request: Any, **_: Any) -> None:
        requests.append(request)
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
            else str(value) for name, value in requests[0].headers.items()}
    scope = text.get('authorization', '').partition('Credential=')[2]
    parts = scope.partition(',')[0].split('/')
    url = str(requests[0].url)
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
