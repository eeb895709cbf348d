"""S3 as a dictionary, behind the calls that ``S3Client`` makes of boto3."""

from __future__ import annotations

import base64
import hashlib
import io
from typing import Any, Dict, List, Optional, Tuple

from botocore.exceptions import ClientError

#: Keys of one page: small, so that tests turn pages.
PAGE = 7


class MemoryS3:
    """One bucket. Give :meth:`connect` to a gateway.

    ``asked`` has (operation, key) of every call.
    """

    def __init__(self) -> None:
        self.keys: Dict[str, Tuple[bytes, Dict[str, str]]] = {}
        self.asked: List[Tuple[str, str]] = []

    def connect(self, *_: Any) -> MemoryS3:
        """As boto3's client."""
        return self

    def put_object(self, Bucket: str, Key: str, Body: Any,
                   Metadata: Optional[Dict[str, str]] = None,
                   ContentMD5: str = '', **_: Any) -> Dict[str, Any]:
        self.asked.append(('PUT', Key))
        data = Body if isinstance(Body, bytes) else Body.read()
        assert base64.b64decode(ContentMD5) == hashlib.md5(data).digest()
        self.keys[Key] = data, Metadata or {}
        return {'ETag': '"%s"' % _md5(data)}

    def head_object(self, Bucket: str, Key: str) -> Dict[str, Any]:
        self.asked.append(('HEAD', Key))
        data, metadata = self._get(Key)
        return {'ContentLength': len(data), 'ETag': '"%s"' % _md5(data),
                'Metadata': dict(metadata)}

    def get_object(self, Bucket: str, Key: str,
                   Range: str = '') -> Dict[str, Any]:
        self.asked.append(('GET', Key))
        data, _ = self._get(Key)
        first, last = 0, len(data) - 1
        if Range:
            first, last = map(int, Range[len('bytes='):].split('-'))
        piece = data[first:last + 1]
        return {'Body': io.BytesIO(piece), 'ContentLength': len(piece),
                'ContentRange': 'bytes %d-%d/%d' % (
                    first, first + len(piece) - 1, len(data))}

    def delete_object(self, Bucket: str, Key: str) -> Dict[str, Any]:
        self.asked.append(('DELETE', Key))
        self.keys.pop(Key, None)
        return {}

    def list_objects_v2(self, Bucket: str, Prefix: str,
                        StartAfter: str = '') -> Dict[str, Any]:
        self.asked.append(('LIST', Prefix))
        found = sorted(key for key in self.keys
                       if key.startswith(Prefix) and key > StartAfter)
        return {'IsTruncated': len(found) > PAGE, 'Contents': [
            {'Key': key, 'Size': len(self.keys[key][0]),
             'ETag': '"%s"' % _md5(self.keys[key][0])}
            for key in found[:PAGE]]}

    def _get(self, key: str) -> Tuple[bytes, Dict[str, str]]:
        if key not in self.keys:
            raise ClientError({
                'Error': {'Code': 'NoSuchKey'},
                'ResponseMetadata': {'HTTPStatusCode': 404}}, 'head')
        return self.keys[key]


def _md5(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()
