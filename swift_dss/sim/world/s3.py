"""S3 of a simulation: boto3's verbs on a dictionary, and its faults.

A fault is a mood that S3 is in. In each the state of the bucket stays
known, so that a judge knows S3's real contents.
"""

from __future__ import annotations

import base64
import hashlib
import io
import random
import uuid
from dataclasses import dataclass, field
from typing import (
    Any, Callable, Dict, List, Mapping, NamedTuple, Set, Tuple)

import botocore.exceptions

from swift_dss.gateway.link.client import OWNER_KEY
from swift_dss.sim.conf import BUCKET

#: Behaviours of S3.
#:
#: ``away``       every request is refused
#: ``slow``       a request is carried out or not, and the answer is lost
#: ``flaky``      one request in three is answered with 503
#: ``lying``      a PUT is acknowledged; one in three stores nothing
#: ``corrupting`` a PUT is acknowledged; one in three stores other bytes
MOODS = ('well', 'away', 'slow', 'flaky', 'lying', 'corrupting')
#: Of each part of an upload but the last one, at least.
_PART_BYTES = 5 * 1024 * 1024


@dataclass
class Stored:
    """One key.

    :param etag: as S3 shows it; '' is the MD5 of ``data``
    """

    data: bytes
    metadata: Dict[str, str]
    etag: str = ''

    def __post_init__(self) -> None:
        self.etag = self.etag or hashlib.md5(self.data).hexdigest()


@dataclass
class _Upload:
    """One in parts, which is not complete."""

    key: str
    metadata: Dict[str, str]
    parts: Dict[int, Stored] = field(default_factory=dict)


class Request(NamedTuple):
    """A request of a node to S3.

    :param key: '' of a listing
    :param first: byte of a GET
    :param end: of those bytes; of another verb no bytes
    """

    node: str
    verb: str
    key: str
    first: int
    end: int


def _nobody_hears(request: Request) -> None:
    """Requests are counted anyway."""


class Keys(Dict[str, Stored]):
    """Names to stored objects; counts its changes."""

    changes = 0

    def __setitem__(self, key: str, value: Stored) -> None:
        self.changes += 1
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        self.changes += 1
        super().__delitem__(key)


@dataclass
class Bucket:
    """S3's contents, and its present mood.

    :param counts: (node, verb) to the number of requests
    """

    dice: random.Random
    name: str = BUCKET
    keys: Keys = field(default_factory=Keys)
    mood: str = 'well'
    cut_off: Dict[str, bool] = field(default_factory=dict)
    counts: Dict[Tuple[str, str], int] = field(default_factory=dict)
    #: (key, first byte, end) of every GET since it was last emptied.
    reads: List[Tuple[str, int, int]] = field(default_factory=list)
    #: Keys that were lost, and not stored again since.
    forgotten: Set[str] = field(default_factory=set)
    uploads: Dict[str, _Upload] = field(default_factory=dict)
    #: Told of each request before it is answered, if it is.
    hear: Callable[[Request], None] = _nobody_hears

    def by_verb(self) -> Dict[str, int]:
        """Requests of all nodes together."""
        calls: Dict[str, int] = {}
        for (_node, verb), number in self.counts.items():
            calls[verb] = calls.get(verb, 0) + number
        return calls

    def client(self, node: str) -> Client:
        """The client that ``node`` talks to."""
        return Client(self, node)


class Client:
    """The verbs of boto3's S3 client that the gateway uses."""

    def __init__(self, bucket: Bucket, node: str) -> None:
        self._bucket = bucket
        self._node = node

    def head_object(self, Bucket: str, Key: str,
                    **_: Any) -> Dict[str, Any]:
        """HEAD."""
        self._begin('HEAD', Bucket, Key)
        return self._shown(Key, '')

    def get_object(self, Bucket: str, Key: str, Range: str = '',
                   **_: Any) -> Dict[str, Any]:
        """GET, whole or of one range."""
        stored = self._bucket.keys.get(Key)
        length = 0 if stored is None else len(stored.data)
        start, end = 0, length
        if Range:
            first, _dash, last = Range[len('bytes='):].partition('-')
            start, end = int(first), min(int(last) + 1, length)
        self._begin('GET', Bucket, Key, start, max(start, end))
        shown = self._shown(Key, 'NoSuchKey')
        assert stored is not None
        if Range and start >= length:
            raise _error(416, 'InvalidRange')
        self._bucket.reads.append((Key, start, end))
        if Range:
            shown['ContentRange'] = 'bytes %d-%d/%d' % (
                start, end - 1, length)
        return dict(shown, Body=io.BytesIO(stored.data[start:end]),
                    ContentLength=end - start)

    def put_object(self, Bucket: str, Key: str, Body: Any,
                   Metadata: Mapping[str, str] = {}, IfNoneMatch: str = '',
                   ContentMD5: str = '', **_: Any) -> Dict[str, Any]:
        """PUT."""
        self._begin('PUT', Bucket, Key)
        if IfNoneMatch and Key in self._bucket.keys:
            raise _error(412, 'PreconditionFailed')
        stored = Stored(_read(Body, ContentMD5), _lower(Metadata))
        self._store(Key, stored)
        self._end()
        return {'ETag': '"%s"' % stored.etag}

    def delete_object(self, Bucket: str, Key: str,
                      **_: Any) -> Dict[str, Any]:
        """DELETE."""
        self._begin('DELETE', Bucket, Key)
        if Key in self._bucket.keys:
            del self._bucket.keys[Key]
        self._end()
        return {}

    def list_objects_v2(self, Bucket: str, Prefix: str,
                        StartAfter: str = '', ContinuationToken: str = '',
                        MaxKeys: int = 1000, **_: Any) -> Dict[str, Any]:
        """One page of keys."""
        self._begin('LIST', Bucket)
        after = max(StartAfter, ContinuationToken)
        keys = sorted(key for key in self._bucket.keys
                      if key.startswith(Prefix) and key > after)
        page = [{'Key': key, 'Size': len(self._bucket.keys[key].data),
                 'ETag': '"%s"' % self._bucket.keys[key].etag}
                for key in keys[:MaxKeys]]
        answer: Dict[str, Any] = {'IsTruncated': len(keys) > MaxKeys,
                                  'KeyCount': len(page)}
        if page:
            answer['Contents'] = page
        if answer['IsTruncated']:
            answer['NextContinuationToken'] = page[-1]['Key']
        return answer

    def create_multipart_upload(self, Bucket: str, Key: str,
                                Metadata: Mapping[str, str] = {},
                                **_: Any) -> Dict[str, Any]:
        """Begin an upload in parts."""
        self._begin('POST', Bucket, Key)
        made = uuid.UUID(int=self._bucket.dice.getrandbits(128)).hex
        self._bucket.uploads[made] = _Upload(Key, _lower(Metadata))
        self._end()
        return {'UploadId': made}

    def upload_part(self, Bucket: str, Key: str, UploadId: str,
                    PartNumber: int, Body: Any, ContentMD5: str = '',
                    **_: Any) -> Dict[str, Any]:
        """PUT of a part."""
        self._begin('PUT', Bucket, Key)
        stored = Stored(_read(Body, ContentMD5), {})
        self._upload(Key, UploadId).parts[PartNumber] = stored
        self._end()
        return {'ETag': '"%s"' % stored.etag}

    def list_parts(self, Bucket: str, Key: str, UploadId: str,
                   PartNumberMarker: int = 0, **_: Any) -> Dict[str, Any]:
        """All parts that follow a number."""
        self._begin('LIST', Bucket)
        parts = self._upload(Key, UploadId).parts
        return {'IsTruncated': False, 'Parts': [
            {'PartNumber': number, 'Size': len(part.data),
             'ETag': '"%s"' % part.etag}
            for number, part in sorted(parts.items())
            if number > PartNumberMarker]}

    def complete_multipart_upload(self, Bucket: str, Key: str, UploadId: str,
                                  MultipartUpload: Mapping[str, Any],
                                  **_: Any) -> Dict[str, Any]:
        """Make a key of parts."""
        self._begin('POST', Bucket, Key)
        upload = self._upload(Key, UploadId)
        parts = []
        for said in MultipartUpload['Parts']:
            part = upload.parts.get(said['PartNumber'])
            if part is None or part.etag != said['ETag'].strip('"'):
                raise _error(400, 'InvalidPart')
            parts.append(part)
        if any(len(part.data) < _PART_BYTES for part in parts[:-1]):
            raise _error(400, 'EntityTooSmall')
        etag = '%s-%d' % (hashlib.md5(b''.join(
            bytes.fromhex(part.etag) for part in parts)).hexdigest(),
            len(parts))
        self._store(Key, Stored(b''.join(part.data for part in parts),
                                upload.metadata, etag))
        del self._bucket.uploads[UploadId]
        self._end()
        return {'ETag': '"%s"' % etag}

    def abort_multipart_upload(self, Bucket: str, Key: str, UploadId: str,
                               **_: Any) -> Dict[str, Any]:
        """Drop an upload."""
        self._begin('DELETE', Bucket, Key)
        self._upload(Key, UploadId)
        del self._bucket.uploads[UploadId]
        self._end()
        return {}

    def list_multipart_uploads(self, Bucket: str, Prefix: str = '',
                               **_: Any) -> Dict[str, Any]:
        """Uploads in progress."""
        self._begin('LIST', Bucket)
        return {'IsTruncated': False, 'Uploads': [
            {'Key': upload.key, 'UploadId': made}
            for made, upload in self._bucket.uploads.items()
            if upload.key.startswith(Prefix)]}

    def get_bucket_versioning(self, Bucket: str, **_: Any) -> Dict[str, Any]:
        """A bucket without versions."""
        self._begin('LIST', Bucket)
        return {}

    def _shown(self, key: str, code: str) -> Dict[str, Any]:
        """The headers of a key.

        :param code: of the answer if there is none: that to a HEAD has no
            body, and so no code
        """
        stored = self._bucket.keys.get(key)
        if stored is None:
            raise _error(404, code)
        return {'ContentLength': len(stored.data),
                'ETag': '"%s"' % stored.etag,
                'Metadata': dict(stored.metadata)}

    def _upload(self, key: str, upload_id: str) -> _Upload:
        upload = self._bucket.uploads.get(upload_id)
        if upload is None or upload.key != key:
            raise _error(404, 'NoSuchUpload')
        return upload

    def _store(self, key: str, stored: Stored) -> None:
        """Store a key as the mood has it: whole, not at all, or spoilt."""
        mood, dice = self._bucket.mood, self._bucket.dice
        if key.endswith(OWNER_KEY):
            # A damaged owner's mark stops everything until an operator has
            # looked at it: nothing that a run could tell more of.
            mood = 'well'
        if mood == 'lying' and not dice.randrange(3):
            return
        data = stored.data
        if mood == 'corrupting' and data and not dice.randrange(3):
            at = dice.randrange(len(data))
            stored = Stored(data[:at] + bytes((data[at] ^ 1,))
                            + data[at + 1:], stored.metadata)
        self._bucket.keys[key] = stored
        self._bucket.forgotten.discard(key)

    def _begin(self, verb: str, of: str, key: str = '', first: int = 0,
               end: int = 0) -> None:
        """:param of: the bucket that is asked"""
        bucket = self._bucket
        bucket.hear(Request(self._node, verb, key, first, end))
        counted = (self._node, verb)
        bucket.counts[counted] = bucket.counts.get(counted, 0) + 1
        if bucket.mood == 'away' or bucket.cut_off.get(self._node):
            raise botocore.exceptions.EndpointConnectionError(
                endpoint_url='s3')
        if bucket.mood == 'slow' and bucket.dice.random() < 0.5:
            raise botocore.exceptions.ReadTimeoutError(endpoint_url='s3')
        if bucket.mood == 'flaky' and not bucket.dice.randrange(3):
            raise _error(503, 'SlowDown')
        if of != bucket.name:
            raise _error(404, '' if verb == 'HEAD' else 'NoSuchBucket')

    def _end(self) -> None:
        """After a request was carried out: its answer may be lost."""
        if self._bucket.mood == 'slow' and self._bucket.dice.random() < 0.5:
            raise botocore.exceptions.ReadTimeoutError(endpoint_url='s3')


def _read(body: Any, content_md5: str) -> bytes:
    """The bytes of a request's body."""
    data = bytes(body) if isinstance(body, (bytes, bytearray)) \
        else bytes(body.read())
    if content_md5 and base64.b64decode(content_md5) != \
            hashlib.md5(data).digest():
        raise _error(400, 'BadDigest')
    return data


def _lower(metadata: Mapping[str, str]) -> Dict[str, str]:
    return {name.lower(): value for name, value in metadata.items()}


def _error(status: int, code: str) -> botocore.exceptions.ClientError:
    return botocore.exceptions.ClientError(
        {'Error': {'Code': code},
         'ResponseMetadata': {'HTTPStatusCode': status}}, 'request')
