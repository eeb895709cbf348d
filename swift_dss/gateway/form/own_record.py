"""The bucket's record of a version that has a key of its own, brought up to
date.

The record goes up with the key, in user metadata, and is never changed there.
What a POST sets later goes to ``<key>.meta``, which readers of the bucket take
first. Replicas hear of POSTs in any order, and of some of them never. So no
node writes its record over another one's: it joins the two.
"""

from __future__ import annotations

import time
from typing import Any, Dict, Optional

from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import DamagedRecord, RemoteCorrupt
from swift_dss.core.residency import RemoteCopy
from swift_dss.gateway.form import digests, metadata, verify
from swift_dss.gateway.form.encrypt import (
    SEAL_META, KeyFile, close_envelope, open_envelope, sealed_length)
from swift_dss.gateway.link.client import S3Client, S3Head, S3Missing
from swift_dss.gateway.ports import LocalVersion
from swift_dss.io import steps


class OwnRecords:
    """Reads and writes such records, in any thread.

    :param keys: seals records, if there are any
    """

    def __init__(self, client: S3Client, keys: KeyFile) -> None:
        self._client = client
        self._keys = keys

    def is_known(self, head: S3Head, local: LocalVersion) -> bool:
        """True if the user metadata of a key tells of each POST that
        ``local`` knows; sends no request. Where the record did not fit, False.
        """
        seal = head.metadata.get(SEAL_META, '')
        try:
            there = metadata.inline(
                head.metadata, lambda raw: self._keys.open(seal).unwrap(
                    'record', 0, raw) if seal else raw)
        except (DamagedRecord, RemoteCorrupt):
            return False
        return there is not None and _is_of(there, local) and \
            metadata.merged(there, metadata.record_of(local)) == there

    def bring(self, key: str, local: LocalVersion, seal: str) -> bool:
        """Have ``<key>.meta`` tell of each POST that ``local`` knows; False
        if it does so already. Idempotent.

        :param seal: of the key's data; '' is none
        :raises RemoteUnavailable, S3Rejected: another time
        :raises RemoteCorrupt: S3 does not hold the record; what was there is
            put back, or else nothing is there
        """
        path = key + metadata.META_SUFFIX
        record = metadata.record_of(local)
        raw = before = b''
        try:
            raw = self._client.get_small(path, metadata.MAX_RECORD_BYTES)
            packed, closed = open_envelope(self._keys, raw)
            there = metadata.unpack(packed)
            # A gateway that seals data seals every record of it.
            if bool(closed) >= bool(seal) and _is_of(there, local):
                record, before = metadata.merged(there, record), raw
        except (S3Missing, DamagedRecord, RemoteCorrupt):
            pass  # there is none that could be read
        data = self._closed(key, seal, metadata.pack(record))
        if data == raw:
            return False
        if self._is_put(path, data):
            return True
        # An unreadable record would hide the version from a restore, and it
        # may move on before this node tries again.
        if not before or not self._is_put(path, before):
            self._client.delete(path)
        raise RemoteCorrupt('%s: S3 does not hold the upload' % path)

    def _is_put(self, path: str, data: bytes) -> bool:
        self._client.put(path, data, digests.md5(data).digest())
        steps.reached('renew.sent')
        return verify.holds(self._client, path, data)

    def _closed(self, key: str, seal: str, packed: bytes) -> bytes:
        if seal:
            return close_envelope(self._keys.open(seal), packed)
        if not self._keys:
            return packed
        return close_envelope(self._keys.new(
            key.encode('utf-8', 'surrogatepass') + packed), packed)


def _is_of(record: Dict[str, Any], local: LocalVersion) -> bool:
    """False for a record of other bytes than the version's."""
    try:
        other = metadata.of_record(record)
    except DamagedRecord:
        return False
    return metadata.identity(
        other.version, other.content_length, other.etag) == \
        metadata.identity(local.version, local.content_length, local.etag)


def own_copy(conf: GatewayConf, client: S3Client,
             local: LocalVersion) -> Optional[RemoteCopy]:
    """S3's copy under a version's own key, as far as a HEAD can tell; None if
    it has nothing there, or nothing that has the right length.
    """
    key = metadata.own_key(conf.prefix, local.version)
    head = client.head(key)
    if head is None:
        return None
    text = head.metadata.get(SEAL_META, '')
    length = sealed_length(local.content_length) if text \
        else local.content_length
    if head.size != length:
        return None
    return RemoteCopy(conf.endpoint, key, head.etag, time.time(), 0, text)
