"""S3 of a simulation: boto3's verbs on a dictionary, and its faults.

A fault is a mood that S3 is in. In each the state of the bucket stays
known, so that a judge knows S3's real contents.
"""

from __future__ import annotations

import hashlib
import io
import random
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Set, Tuple

import botocore.exceptions

from swift_dss.gateway.link.client import OWNER_KEY

#: How S3 may behave.
#:
#: ``away``       every request is refused
#: ``slow``       a request is carried out or not, and the answer is lost
#: ``flaky``      one request in three is answered with 503
#: ``lying``      a PUT is acknowledged; one in three stores nothing
#: ``corrupting`` a PUT is acknowledged; one in three stores other bytes
MOODS = ('well', 'away', 'slow', 'flaky', 'lying', 'corrupting')


@dataclass
class Stored:
    """One key."""

    data: bytes
    metadata: Dict[str, str]

    @property
    def etag(self) -> str:
        """As S3 shows it."""
        return hashlib.md5(self.data).hexdigest()


@dataclass
class Bucket:
    """S3's contents, and its present mood.

    :param counts: (node, verb) to the number of requests
    """

    dice: random.Random
    keys: Dict[str, Stored] = field(default_factory=dict)
    mood: str = 'well'
    cut_off: Dict[str, bool] = field(default_factory=dict)
    counts: Dict[Tuple[str, str], int] = field(default_factory=dict)
    #: (key, first byte, end) of every GET since it was last emptied.
    reads: List[Tuple[str, int, int]] = field(default_factory=list)
    #: Keys that were lost, and not stored again since.
    forgotten: Set[str] = field(default_factory=set)

    def by_verb(self) -> Dict[str, int]:
        """Requests of all nodes together."""
        found: Dict[str, int] = {}
        for (_node, verb), number in self.counts.items():
            found[verb] = found.get(verb, 0) + number
        return found

    def client(self, node: str) -> Client:
        """What ``node`` talks to."""
        return Client(self, node)


class Client:
    """The verbs of boto3's S3 client that the gateway uses."""

    def __init__(self, bucket: Bucket, node: str) -> None:
        self._bucket = bucket
        self._node = node

    def head_object(self, Key: str, **_: Any) -> Dict[str, Any]:
        """HEAD."""
        self._begin('HEAD')
        found = self._bucket.keys.get(Key)
        if found is None:
            # The answer to a HEAD has no body, and so no code.
            raise _error(404, '')
        return {'ContentLength': len(found.data),
                'ETag': '"%s"' % found.etag,
                'Metadata': dict(found.metadata)}

    def get_object(self, Key: str, Range: str = '',
                   **_: Any) -> Dict[str, Any]:
        """GET, whole or of one range."""
        self._begin('GET')
        found = self._bucket.keys.get(Key)
        if found is None:
            raise _error(404, 'NoSuchKey')
        data, said, start = found.data, '', 0
        if Range:
            first, _dash, last = Range[len('bytes='):].partition('-')
            if int(first) >= len(data):
                raise _error(416, 'InvalidRange')
            end = min(int(last) + 1, len(data))
            said = 'bytes %s-%d/%d' % (first, end - 1, len(data))
            start, data = int(first), data[int(first):end]
        self._bucket.reads.append((Key, start, start + len(data)))
        return {'Body': io.BytesIO(data), 'ContentLength': len(data),
                'ContentRange': said, 'ETag': '"%s"' % found.etag,
                'Metadata': dict(found.metadata)}

    def put_object(self, Key: str, Body: Any,
                   Metadata: Mapping[str, str] = {},
                   **_: Any) -> Dict[str, Any]:
        """PUT."""
        self._begin('PUT')
        data = bytes(Body) if isinstance(Body, (bytes, bytearray)) \
            else Body.read()
        stored = Stored(data, {name.lower(): value
                               for name, value in Metadata.items()})
        mood, dice = self._bucket.mood, self._bucket.dice
        if Key.endswith(OWNER_KEY):
            # A damaged owner's mark stops everything until an operator has
            # looked at it: nothing that a run could tell more of.
            mood = 'well'
        etag = stored.etag
        if mood == 'lying' and not dice.randrange(3):
            return {'ETag': '"%s"' % etag}
        if mood == 'corrupting' and data and not dice.randrange(3):
            at = dice.randrange(len(data))
            stored = Stored(data[:at] + bytes((data[at] ^ 1,))
                            + data[at + 1:], stored.metadata)
        self._bucket.keys[Key] = stored
        self._bucket.forgotten.discard(Key)
        self._end()
        return {'ETag': '"%s"' % etag}

    def delete_object(self, Key: str, **_: Any) -> Dict[str, Any]:
        """DELETE."""
        self._begin('DELETE')
        self._bucket.keys.pop(Key, None)
        self._end()
        return {}

    def list_objects_v2(self, Prefix: str, StartAfter: str = '',
                        MaxKeys: int = 1000, **_: Any) -> Dict[str, Any]:
        """One page of keys."""
        self._begin('LIST')
        keys = sorted(key for key in self._bucket.keys
                      if key.startswith(Prefix) and key > StartAfter)
        return {'Contents': [
            {'Key': key, 'Size': len(self._bucket.keys[key].data),
             'ETag': '"%s"' % self._bucket.keys[key].etag}
            for key in keys[:MaxKeys]], 'IsTruncated': len(keys) > MaxKeys}

    def list_multipart_uploads(self, **_: Any) -> Dict[str, Any]:
        """Uploads in progress: every version here fits into one PUT."""
        self._begin('LIST')
        return {'Uploads': []}

    def get_bucket_versioning(self, **_: Any) -> Dict[str, Any]:
        """A bucket without versions."""
        self._begin('LIST')
        return {}

    def _begin(self, verb: str) -> None:
        bucket = self._bucket
        counted = (self._node, verb)
        bucket.counts[counted] = bucket.counts.get(counted, 0) + 1
        if bucket.mood == 'away' or bucket.cut_off.get(self._node):
            raise botocore.exceptions.EndpointConnectionError(
                endpoint_url='s3')
        if bucket.mood == 'slow' and bucket.dice.random() < 0.5:
            raise botocore.exceptions.ReadTimeoutError(endpoint_url='s3')
        if bucket.mood == 'flaky' and not bucket.dice.randrange(3):
            raise _error(503, 'SlowDown')

    def _end(self) -> None:
        """After a request was carried out: its answer may be lost."""
        if self._bucket.mood == 'slow' and self._bucket.dice.random() < 0.5:
            raise botocore.exceptions.ReadTimeoutError(endpoint_url='s3')


def _error(status: int, code: str) -> botocore.exceptions.ClientError:
    return botocore.exceptions.ClientError(
        {'Error': {'Code': code},
         'ResponseMetadata': {'HTTPStatusCode': status}}, 'request')
