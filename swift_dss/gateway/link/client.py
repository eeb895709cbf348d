"""The one place that talks to S3: typed calls over boto3.

Each call is one try, bounded by the connect and read time-outs (boto3's
own retries are off: the caller knows what may be repeated, and for how
long). Every outcome is told to the breaker, and every failure is one of

``RemoteUnavailable``  refused, broken off, timed out, 5xx, throttled, the
                       bucket is gone, or the answer is none of S3's
``S3Missing``          404 for a key or an upload
``S3Rejected``         any other 4xx: our request or rights are wrong;
                       ``S3Archived`` if the key has to be thawed first

No byte's safety depends on listings, conditional writes or checksum
headers, in which S3 servers differ. Plain threads only: boto3 has hung
under eventlet.
"""

# long: every call there is, in the one class that talks to S3.
from __future__ import annotations

import binascii
import threading
import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import (
    Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple)

import botocore.exceptions
import urllib3.exceptions

from swift_dss.core.classes import ClassTable
from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import (
    DamagedRecord, DssError, RemoteUnavailable)
from swift_dss.gateway.link.answers import lacking
from swift_dss.gateway.link.breaker import Breaker
from swift_dss.gateway.link.connect import Connect, connect_to
from swift_dss.gateway.link.credentials import SecretFile
from swift_dss.gateway.link.pulse import (
    ASK_CONNECT_SECONDS, ASK_READ_SECONDS, Pulse)
from swift_dss.gateway.link.throughput import Throughput
from swift_dss.gateway.link.trusted_clock import TrustedClock
from swift_dss.gateway.link.wan import Lane, Sent
from swift_dss.gateway.ports import TableSource

#: 4xx answers that mean "later", by status or by S3's code.
_TRANSIENT_STATUS = frozenset((408, 425, 429))
_TRANSIENT_CODES = frozenset((
    'RequestTimeout', 'SlowDown', 'Throttling', 'ThrottlingException',
    'TooManyRequests', 'RequestLimitExceeded', 'OperationAborted'))
#: The server does not know what a header asks for, and never will.
_UNKNOWN_CODES = frozenset(('NotImplemented',))
#: A condition was not met because of another request at the same time.
_CONFLICT_CODES = frozenset(('ConditionalRequestConflict',))
#: The bucket is missing, so the answer tells nothing about a key.
_GONE_CODES = frozenset(('NoSuchBucket',))
_MISSING_CODES = frozenset((
    'NoSuchKey', 'NoSuchUpload', 'NotFound', '404', 'NoSuchVersion'))
#: Storage classes that a lifecycle rule may move keys to, and that answer a
#: GET with 403.
_ARCHIVES = frozenset(('GLACIER', 'DEEP_ARCHIVE'))
_ARCHIVED_CODES = frozenset(('InvalidObjectState',))
#: Read at a time.
_PIECE_BYTES = 65536
#: A body up to this size is handed over whole.
_SMALL_BYTES = 262144
_BROKEN = (botocore.exceptions.BotoCoreError,
           urllib3.exceptions.HTTPError, OSError)


#: Under the prefix: whose it is. It is no version's key.
OWNER_KEY = '.dss-owner'
#: Under the prefix: a trial; see :mod:`swift_dss.gateway.form.conditions`.
CONDITION_KEY = '.dss-condition'
#: Under the prefix: the trial of rights of ``swift-dss check``.
CHECK_KEY = '.dss-check'
#: Keys under the prefix that belong to no version.
MARKS = (OWNER_KEY, CONDITION_KEY, CHECK_KEY)
#: Calls that change the bucket; the first ones remove from it.
DELETES = frozenset(('delete_object', 'abort_multipart_upload'))
_CHANGES = DELETES | frozenset((
    'put_object', 'create_multipart_upload', 'upload_part',
    'complete_multipart_upload'))


class S3Missing(DssError):
    """S3 has no such key or multipart upload."""

    http_status = 503
    counter = 'remote_missing'


class S3Down(RemoteUnavailable):
    """The breaker is open: nothing was sent, trying again is no use."""


class S3Rejected(DssError):
    """S3 understood and refused: rights, bucket or request are wrong."""

    http_status = 503
    exit_code = 77
    counter = 'remote_rejected'


class S3Exists(S3Rejected):
    """The key is there, or was while another request changed it."""


class S3Archived(S3Rejected):
    """The key is in a storage class that cannot be read at once."""


@dataclass(frozen=True)
class S3Head:
    """S3's answer about a key; metadata keys in lower case.

    :param archived: its storage class, if that cannot be read at once
    """

    size: int
    etag: str
    metadata: Mapping[str, str]
    archived: str = ''


@dataclass(frozen=True)
class S3Listed:
    """One key of a listing."""

    key: str
    size: int
    etag: str


@dataclass(frozen=True)
class S3Version:
    """One version of a key in a versioned bucket, or a delete's marker."""

    key: str
    version: str
    is_latest: bool
    is_marker: bool
    size: int


class S3Body:
    """The bytes of one ranged GET, read in order."""

    def __init__(self, stream: Any, length: int,
                 fail: Callable[[str], RemoteUnavailable],
                 throughput: Throughput, lane: Lane,
                 alive: Callable[[], None] = lambda: None) -> None:
        self._alive = alive
        self._stream = stream
        self._throughput = throughput
        self._lane = lane
        self._flow = lane.begin()
        # read1 returns what one recv gave: a server that drips is noticed.
        raw = getattr(stream, '_raw_stream', stream)
        self._read = getattr(raw, 'read1', None) or stream.read
        self._left = length
        self._fail = fail

    def read(self, length: int,
             deadline: Optional[float] = None) -> bytes:
        """Exactly ``length`` bytes, or the rest if fewer are left.

        :param deadline: ``time.monotonic`` by which they must be there,
            however slowly the server drips
        :raises RemoteUnavailable: the connection broke, or ended early,
            or was too slow
        """
        wanted = min(length, self._left)
        pieces: List[bytes] = []
        missing = wanted
        while missing:
            if deadline is not None and time.monotonic() > deadline:
                raise self._fail('body came too slowly')
            try:
                with self._throughput.down.busy():
                    piece = self._read(min(missing, _PIECE_BYTES))
                    self._throughput.down.moved(len(piece))
                self._alive()
                self._lane.let_through(len(piece))
            except _BROKEN as err:
                raise self._fail('body broke off: %s' % type(
                    err).__name__) from err
            if not piece:
                raise self._fail('body ended %d bytes early' % self._left)
            pieces.append(piece)
            missing -= len(piece)
            self._left -= len(piece)
        return pieces[0] if len(pieces) == 1 else b''.join(pieces)

    def close(self) -> None:
        """Give the connection back. May be called twice."""
        self._lane.end(self._flow)
        self._flow = None
        self._stream.close()


class S3Client:
    """Calls on one bucket of one endpoint. Thread-safe.

    :param connections: most requests that run at once
    :param connect: :func:`connect_to` if None
    :param clock: told the Date header of every answer
    """

    def __init__(self, conf: GatewayConf, breaker: Breaker,
                 connections: int,
                 table: TableSource = ClassTable,
                 connect: Optional[Connect] = None,
                 clock: Optional[TrustedClock] = None) -> None:
        self._conf = conf
        self._clock = clock = clock or TrustedClock()
        #: Told of every sign of life.
        self.pulse = Pulse(clock)
        self._breaker = breaker
        self._connections = connections
        self._secret_file = SecretFile(conf.secret_file)
        self.throughput = Throughput(clock)
        self.up_lane, self.down_lane = Lane(table, clock), Lane(table, clock)
        self._lock = threading.Lock()
        self._connect = connect or connect_to
        #: Called before each request that changes the bucket, with its
        #: name; its exception ends the call.
        self.guard: Callable[[str], None] = lambda operation: None
        self._client: Any = None
        self._prober: Any = None
        self._stamp: Any = None

    def check_secret(self) -> None:
        """Raise :class:`BadConfig` if the secret file cannot be used."""
        self._secret_file.read()

    def head(self, key: str) -> Optional[S3Head]:
        """S3's answer about ``key``; None if it has no such key."""
        try:
            answer = self._call('head_object', Key=key)
        except S3Missing:
            return None
        return S3Head(int(answer['ContentLength']), _etag(answer),
                      {name.lower(): value for name, value
                       in answer.get('Metadata', {}).items()},
                      _archived(answer))

    def probe(self, key: str) -> None:
        """Ask for a key that need not be there, with short time-outs.

        By GET: the answer to a HEAD has no body, and so does not tell a
        missing key from a missing bucket. Without an answer, or a sign of life
        from other requests, the breaker opens.

        :raises RemoteUnavailable, S3Rejected: S3 does not work for us
        """
        try:
            self._call('get_object', True, Key=key,
                       Range='bytes=0-0')['Body'].close()
        except S3Missing:
            return
        except _BROKEN as err:
            raise self._broken('probe: %s' % type(err).__name__) from err

    def down(self) -> S3Down:
        """The error for callers while S3 is known not to answer."""
        return S3Down('S3 is not answering (%s)' % self._breaker.last_error,
                      self._retry_after())

    def put(self, key: str, data: bytes, md5: bytes,
            metadata: Optional[Mapping[str, str]] = None,
            only_if_missing: bool = False) -> str:
        """Store ``data``; the ETag of the answer ('' if there is none).

        :param md5: digest of ``data``; S3 refuses other bytes
        :param only_if_missing: some servers ignore it: see
            :class:`Conditions`
        :raises S3Exists: the key is there; nothing was stored
        """
        return _etag(self._call(
            'put_object', Key=key, Body=self._body(data),
            ContentLength=len(data),
            ContentMD5=_base64(md5), Metadata=dict(metadata or {}),
            **_condition(only_if_missing)))

    def put_mark(self, key: str, data: bytes, md5: bytes,
                 only_if_missing: bool) -> None:
        """Store the owner's mark; the guard is not asked.

        :raises S3Rejected: it is there already, or S3 does not know the
            condition
        """
        self._ask('put_object', False, Key=key, Body=data,
                  ContentLength=len(data), ContentMD5=_base64(md5),
                  **_condition(only_if_missing))

    def versioning(self) -> str:
        """``Enabled``, ``Suspended``, or '' if the bucket never had it.

        :raises S3Rejected: we may not ask, or the server does not know
        """
        return str(self._call('get_bucket_versioning').get('Status', ''))

    def get(self, key: str, offset: int, length: int) -> S3Body:
        """A stream of ``length`` (at least 1) bytes from ``offset``.

        :raises RemoteUnavailable: also for an answer of another range
        """
        last = offset + length - 1
        answer = self._call('get_object', Key=key,
                            Range='bytes=%d-%d' % (offset, last))
        body = S3Body(answer['Body'], length, self._broken,
                      self.throughput, self.down_lane, self.pulse.alive)
        said = str(answer.get('ContentRange', ''))
        if not (said.startswith('bytes %d-%d/' % (offset, last))
                and int(answer['ContentLength']) == length):
            body.close()
            raise self._broken('asked for bytes %d-%d, got %r with %s bytes'
                               % (offset, last, said[:64],
                                  answer['ContentLength']))
        return body

    def get_small(self, key: str, limit: int) -> bytes:
        """All of a small key.

        :raises RemoteUnavailable: cut short
        :raises DamagedRecord: longer than ``limit``
        """
        answer = self._call('get_object', Key=key)
        length = int(answer['ContentLength'])
        body = S3Body(answer['Body'], length, self._broken,
                      self.throughput, self.down_lane, self.pulse.alive)
        try:
            if length > limit:
                raise DamagedRecord('%s has %d bytes, not at most %d'
                                    % (key, length, limit))
            return body.read(length)
        finally:
            body.close()

    def delete(self, key: str) -> None:
        """Remove ``key``; it is no error if there is none."""
        try:
            self._call('delete_object', Key=key)
        except S3Missing:
            return

    def begin_multipart(self, key: str, metadata: Mapping[str, str]) -> str:
        """Begin an upload in parts; its id."""
        answer = self._call('create_multipart_upload', Key=key,
                            Metadata=dict(metadata))
        return str(answer['UploadId'])

    def put_part(self, key: str, upload_id: str, number: int, data: bytes,
                 md5: bytes) -> str:
        """Store part ``number`` (from 1); its ETag."""
        return _etag(self._call(
            'upload_part', Key=key, UploadId=upload_id, PartNumber=number,
            Body=self._body(data), ContentLength=len(data),
            ContentMD5=_base64(md5)))

    def parts(self, key: str, upload_id: str) -> Dict[int, Tuple[str, int]]:
        """Parts that S3 has of an upload: number to (ETag, bytes).

        :raises S3Missing: there is no such upload
        """
        parts: Dict[int, Tuple[str, int]] = {}
        marker = 0
        while True:
            answer = self._call('list_parts', Key=key, UploadId=upload_id,
                                PartNumberMarker=marker)
            for part in answer.get('Parts', ()):
                parts[int(part['PartNumber'])] = (
                    str(part['ETag']).strip('"'), int(part['Size']))
            following = int(answer.get('NextPartNumberMarker') or 0)
            if not answer.get('IsTruncated') or following <= marker:
                return parts
            marker = following

    def complete(self, key: str, upload_id: str, etags: List[str]) -> None:
        """Make the object of its parts, given in order."""
        parts = [{'PartNumber': number, 'ETag': '"%s"' % etag}
                 for number, etag in enumerate(etags, 1)]
        self._call('complete_multipart_upload', Key=key, UploadId=upload_id,
                   MultipartUpload={'Parts': parts})

    def abort(self, key: str, upload_id: str) -> None:
        """Drop an upload and its parts; no error if there is none."""
        try:
            self._call('abort_multipart_upload', Key=key,
                       UploadId=upload_id)
        except S3Missing:
            return

    def uploads_of(self, key: str) -> List[str]:
        """Ids of uploads of ``key`` that were begun and not finished."""
        answer = self._call('list_multipart_uploads', Prefix=key)
        return [str(upload['UploadId']) for upload in answer.get('Uploads', ())
                if upload.get('Key') == key]

    def listing(self, prefix: str, after: str = '') -> Iterator[S3Listed]:
        """Keys that begin with ``prefix``, in order, page by page.

        :param after: begin behind this key: a listing can be resumed
        """
        is_last = False
        while not is_last:
            keys, after, is_last = self.page(prefix, after)
            yield from keys

    def page(self, prefix: str, after: str = ''
             ) -> Tuple[List[S3Listed], str, bool]:
        """(keys, the last one that was looked at, True if none follows) of
        one look for keys that begin with ``prefix``. One request, unless S3
        gives pages without keys, as it may where many were deleted.

        :raises RemoteUnavailable: the keys are not in order behind
            ``after``: some would be left out, or come again and again
        """
        more: Dict[str, Any] = {'StartAfter': after} if after else {}
        answer = self._call('list_objects_v2', Prefix=prefix, **more)
        while answer.get('IsTruncated') and not answer.get('Contents'):
            following = answer.get('NextContinuationToken')
            if not following or following == more.get('ContinuationToken'):
                raise self._unlike_s3('no keys, and no place to go on')
            more = {'ContinuationToken': following}
            answer = self._call('list_objects_v2', Prefix=prefix, **more)
        items = answer.get('Contents', ())
        before = after
        for item in items:
            if item['Key'] <= before:
                raise self._unlike_s3('%s behind %s' % (
                    item['Key'], before))
            before = item['Key']
        ours = {self._conf.prefix + name for name in MARKS}
        return [S3Listed(str(item['Key']), int(item['Size']), _etag(item))
                for item in items if item['Key'] not in ours], str(
                    items[-1]['Key']) if items else after, \
            not items or not answer.get('IsTruncated')

    def versions(self, prefix: str) -> Iterator[S3Version]:
        """All versions and markers of keys that begin with ``prefix``, in
        the order of keys, the newest of each first.

        :raises RemoteUnavailable: S3 does not say where to go on
        """
        more: Dict[str, Any] = {}
        while True:
            answer = self._call('list_object_versions', Prefix=prefix, **more)
            rows = [(item, False) for item in answer.get('Versions', ())]
            rows += [(item, True)
                     for item in answer.get('DeleteMarkers', ())]
            # Two lists of one page, each in order: time decides.
            rows.sort(key=lambda row: row[0]['LastModified'], reverse=True)
            rows.sort(key=lambda row: (
                str(row[0]['Key']), not row[0]['IsLatest']))
            for item, is_marker in rows:
                yield S3Version(
                    str(item['Key']), str(item['VersionId']),
                    bool(item['IsLatest']), is_marker,
                    int(item.get('Size') or 0))
            if not answer.get('IsTruncated'):
                return
            before, more = more, {
                'KeyMarker': answer.get('NextKeyMarker', ''),
                'VersionIdMarker': answer.get('NextVersionIdMarker', '')}
            if more == before or not more['KeyMarker']:
                raise self._unlike_s3('no place to go on')

    def delete_version(self, key: str, version: str) -> None:
        """Remove one version for good; no error if there is none."""
        try:
            self._call('delete_object', Key=key, VersionId=version)
        except S3Missing:
            return

    def _body(self, data: bytes) -> Any:
        # Small ones end before a caller could wait for them.
        return data if len(data) <= _SMALL_BYTES else Sent(
            data, self.up_lane, self.pulse.alive)

    def _call(self, operation: str, is_probe: bool = False,
              **arguments: Any) -> Dict[str, Any]:
        if operation in _CHANGES:
            self.guard(operation)
        return self._ask(operation, is_probe, **arguments)

    def _ask(self, operation: str, is_probe: bool = False,
             **arguments: Any) -> Dict[str, Any]:
        client = self._current(is_probe)
        if not self._breaker.allow():
            raise self.down()
        began = self._clock.monotonic()
        try:
            with self.up_lane.transfer() if 'Body' in arguments \
                    else nullcontext(), self.throughput.calling(
                        operation, int(arguments.get('ContentLength', 0))):
                answer: Dict[str, Any] = getattr(client, operation)(
                    Bucket=self._conf.bucket, **arguments)
        except botocore.exceptions.ClientError as err:
            self.pulse.alive()
            raise self._translated(operation, err) from err
        except botocore.exceptions.ParamValidationError as err:
            # Nothing was sent: an old boto3 that knows no IfNoneMatch.
            self._breaker.unknown()
            raise S3Rejected('%s: boto3 refuses a parameter'
                             % operation) from err
        except _BROKEN as err:
            # Class name only: a message may spell out the whole request.
            raise self._broken(
                '%s: %s' % (operation, type(err).__name__),
                is_probe and self.pulse.is_silent_since(began)) from err
        except BaseException:
            self._breaker.unknown()
            raise
        self.pulse.alive()
        self._clock.hear(str(answer.get('ResponseMetadata', {}).get(
            'HTTPHeaders', {}).get('date', '')))
        lacks = lacking(operation, answer)
        if lacks:
            raise self._broken('%s: no %s in the answer' % (operation, lacks))
        self._breaker.succeeded()
        return answer

    def _translated(self, operation: str,
                    err: botocore.exceptions.ClientError) -> DssError:
        status = int(err.response.get('ResponseMetadata', {}).get(
            'HTTPStatusCode', 0))
        code = str(err.response.get('Error', {}).get('Code', ''))
        text = '%s: %d %s' % (operation, status, code)
        if code in _TRANSIENT_CODES or status in _TRANSIENT_STATUS or \
                status >= 500 and code not in _UNKNOWN_CODES:
            return self._broken(text)
        if code in _GONE_CODES:
            # Requests for keys go on to be answered, with 404.
            return self._broken(text, for_sure=True)
        self._breaker.succeeded()
        if status == 404 and (not code or code in _MISSING_CODES):
            return S3Missing(text)
        if status == 412 or code in _CONFLICT_CODES:
            return S3Exists(text)
        return S3Archived(text) if code in _ARCHIVED_CODES \
            else S3Rejected(text)

    def _broken(self, text: str,
                for_sure: bool = False) -> RemoteUnavailable:
        self._breaker.failed(text, for_sure)
        return RemoteUnavailable(text, self._retry_after())

    def _unlike_s3(self, text: str) -> RemoteUnavailable:
        """A listing that leaves out keys, or never ends."""
        return RemoteUnavailable('this server does not list as S3 does: %s'
                                 % text, self._retry_after())

    def _retry_after(self) -> int:
        wait = int(self._breaker.seconds_until_probe()) + 1
        return max(wait, self._conf.retry_after_seconds)

    def _current(self, is_probe: bool = False) -> Any:
        secret, stamp = self._secret_file.read()
        with self._lock:
            if self._client is None or stamp != self._stamp:
                self._client = self._connect(
                    self._conf, secret.access_key, secret.secret_key,
                    self._connections)
                quick = replace(
                    self._conf, connect_timeout_seconds=min(
                        self._conf.connect_timeout_seconds,
                        ASK_CONNECT_SECONDS),
                    read_timeout_seconds=min(
                        self._conf.read_timeout_seconds, ASK_READ_SECONDS))
                self._prober = self._connect(
                    quick, secret.access_key, secret.secret_key, 1)
                self._stamp = stamp
            return self._prober if is_probe else self._client


def _archived(answer: Mapping[str, Any]) -> str:
    """The storage class of a key that has to be thawed first, or ''."""
    storage = str(answer.get('StorageClass', ''))
    frozen = storage in _ARCHIVES or 'ArchiveStatus' in answer
    # A thawed key can be read for some days.
    thawed = 'expiry-date' in str(answer.get('Restore', ''))
    return storage if frozen and not thawed else ''


def _etag(answer: Mapping[str, Any]) -> str:
    return str(answer.get('ETag', '')).strip('"')


def _condition(only_if_missing: bool) -> Dict[str, Any]:
    return {'IfNoneMatch': '*'} if only_if_missing else {}


def _base64(md5: bytes) -> str:
    return binascii.b2a_base64(md5, newline=False).decode('ascii')
