"""S3 as a dictionary, behind the calls that ``S3Client`` makes of boto3."""

from __future__ import annotations

import base64
import hashlib
import io
from typing import Any, Dict, List, Optional, Tuple

from botocore.exceptions import ClientError, EndpointConnectionError

from swift_dss.gateway.link.client import MARKS

#: Keys of one page: small, so that tests turn pages.
PAGE = 7


class MemoryS3:
    """One bucket. Give :meth:`connect` to a gateway.

    ``asked`` has (operation, key) of every call.
    """

    def __init__(self) -> None:
        self.keys: Dict[str, Tuple[bytes, Dict[str, str]]] = {}
        self.asked: List[Tuple[str, str]] = []
        #: As most servers; False ignores ``If-None-Match``.
        self.has_conditions = True
        #: False where nothing answers.
        self.is_there = True
        #: As of a bucket that was copied: ETags are not MD5s.
        self.was_copied = False

    def listed_keys(self) -> List[str]:
        """All keys but our marks, in order."""
        return sorted(key for key in self.keys if not key.endswith(MARKS))

    def connect(self, *_: Any) -> MemoryS3:
        """As boto3's client."""
        return self

    def put_object(self, Bucket: str, Key: str, Body: Any,
                   Metadata: Optional[Dict[str, str]] = None,
                   ContentMD5: str = '', IfNoneMatch: str = '',
                   **_: Any) -> Dict[str, Any]:
        self._ask('PUT', Key)
        if IfNoneMatch and Key in self.keys and self.has_conditions:
            raise ClientError({
                'Error': {'Code': 'PreconditionFailed'},
                'ResponseMetadata': {'HTTPStatusCode': 412}}, 'put')
        data = Body if isinstance(Body, bytes) else Body.read()
        assert base64.b64decode(ContentMD5) == hashlib.md5(data).digest()
        self.keys[Key] = data, Metadata or {}
        return {'ETag': self._etag(data)}

    def head_object(self, Bucket: str, Key: str) -> Dict[str, Any]:
        self._ask('HEAD', Key)
        data, metadata = self._get(Key)
        return {'ContentLength': len(data), 'ETag': self._etag(data),
                'Metadata': dict(metadata)}

    def get_object(self, Bucket: str, Key: str,
                   Range: str = '') -> Dict[str, Any]:
        self._ask('GET', Key)
        data, _ = self._get(Key)
        first, last = 0, len(data) - 1
        if Range:
            first, last = map(int, Range[len('bytes='):].split('-'))
        piece = data[first:last + 1]
        return {'Body': io.BytesIO(piece), 'ContentLength': len(piece),
                'ContentRange': 'bytes %d-%d/%d' % (
                    first, first + len(piece) - 1, len(data))}

    def delete_object(self, Bucket: str, Key: str) -> Dict[str, Any]:
        self._ask('DELETE', Key)
        self.keys.pop(Key, None)
        return {}

    def list_objects_v2(self, Bucket: str, Prefix: str,
                        StartAfter: str = '') -> Dict[str, Any]:
        self._ask('LIST', Prefix)
        listed = sorted(key for key in self.keys
                        if key.startswith(Prefix) and key > StartAfter)
        return {'IsTruncated': len(listed) > PAGE, 'Contents': [
            {'Key': key, 'Size': len(self.keys[key][0]),
             'ETag': self._etag(self.keys[key][0])}
            for key in listed[:PAGE]]}

    def _ask(self, operation: str, key: str) -> None:
        self.asked.append((operation, key))
        if not self.is_there:
            raise EndpointConnectionError(endpoint_url='https://s3')

    def _etag(self, data: bytes) -> str:
        return '"%s%s"' % (hashlib.md5(data).hexdigest(),
                           '-1' if self.was_copied else '')

    def _get(self, key: str) -> Tuple[bytes, Dict[str, str]]:
        if key not in self.keys:
            raise ClientError({
                'Error': {'Code': 'NoSuchKey'},
                'ResponseMetadata': {'HTTPStatusCode': 404}}, 'head')
        return self.keys[key]
