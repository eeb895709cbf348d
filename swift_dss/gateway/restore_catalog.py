"""What the bucket says, by the bucket alone: names, metadata, classes.

Needs neither the queue nor the index nor any local file: only the
configuration of the gateway. ``restore``, ``verify`` and ``ls`` read the
bucket through here.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Deque, Iterator, List, Optional, Tuple

from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import DamagedRecord
from swift_dss.core.residency import RemoteCopy
from swift_dss.gateway import metadata
from swift_dss.gateway.breaker import Breaker
from swift_dss.gateway.client import S3Client, S3Listed, S3Missing
from swift_dss.gateway.metadata import RemoteRecord

#: Requests at a time, and answers that may wait for a slow reader.
LOOKERS = 8
_AHEAD = 64


@dataclass(frozen=True)
class Held:
    """One version that the bucket holds.

    :param remote: where its bytes are, as a residency record has it
    """

    record: RemoteRecord
    remote: RemoteCopy

    @property
    def name(self) -> str:
        """``/account/container/object``."""
        return self.record.metadata.get('name', '')


@dataclass(frozen=True)
class Unreadable:
    """A key that is not what it should be."""

    key: str
    reason: str


def open_client(conf: GatewayConf) -> S3Client:
    """A client for a command; no daemon need run.

    :raises BadConfig: the secret cannot be used
    """
    client = S3Client(conf, Breaker(), LOOKERS + 1)
    client.check_secret()
    return client


class Catalog:
    """Walks the bucket.

    :param client: of the same bucket as ``conf``
    """

    def __init__(self, conf: GatewayConf, client: S3Client) -> None:
        self._conf = conf
        self._client = client
        #: Keys seen, and the last one: where to go on another time.
        self.keys = 0
        self.last_key = ''

    def walk(self, after: str = '') -> Iterator[object]:
        """Everything there is, in the order of keys: :class:`Held` and
        :class:`Unreadable`.

        :param after: go on behind this key
        :raises RemoteUnavailable: S3 does not answer
        """
        pending: Deque[Tuple[str, Future[List[object]]]] = deque()
        with ThreadPoolExecutor(LOOKERS) as pool:
            try:
                for listed in self._client.listing(
                        self._conf.prefix, after):
                    pending.append((listed.key, pool.submit(
                        self._look, listed)))
                    if len(pending) >= _AHEAD:
                        yield from self._landed(*pending.popleft())
                while pending:
                    yield from self._landed(*pending.popleft())
            finally:
                for _, future in pending:
                    future.cancel()

    def _landed(self, key: str,
                future: Future[List[object]]) -> Iterator[object]:
        yield from future.result()
        self.keys += 1
        self.last_key = key

    def _look(self, listed: S3Listed) -> List[object]:
        if listed.key.endswith(metadata.SUFFIXES):
            return []
        try:
            return [self._version(listed)]
        except S3Missing:
            return []  # deleted since it was listed
        except DamagedRecord as err:
            return [Unreadable(listed.key, str(err))]

    def _version(self, listed: S3Listed) -> object:
        head = self._client.head(listed.key)
        if head is None:
            raise S3Missing(listed.key)
        record = metadata.decode(
            head.metadata, self._side_car(listed.key)
            if metadata.has_sidecar(head.metadata) else None)
        if head.size != record.content_length:
            raise DamagedRecord('%d bytes instead of %d' % (
                head.size, record.content_length))
        return Held(record, RemoteCopy(
            self._conf.endpoint, listed.key, head.etag, 0.0))

    def _side_car(self, key: str) -> Optional[bytes]:
        try:
            return self._client.get_small(
                key + metadata.META_SUFFIX, metadata.MAX_RECORD_BYTES)
        except S3Missing as err:
            raise DamagedRecord('its side car is missing') from err

