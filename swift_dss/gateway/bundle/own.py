"""Members of bundles whose stubs a drive of this node had.

A fragment of an erasure-coded object may be in a bundle and under no key of
its own. If the drive with its stub is lost, the node's book of bundles still
says which bundle that was, and the bundle's index has the record that went up
with the fragment. S3 proves both: nothing is taken from the book alone.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Dict, NamedTuple, Optional

from swift_dss.core.errors import DamagedRecord
from swift_dss.core.version import VersionId
from swift_dss.gateway.bundle.book import Book
from swift_dss.gateway.bundle.proof import BundleProofs
from swift_dss.gateway.bundle.read import read_index
from swift_dss.gateway.form import metadata
from swift_dss.gateway.form.encrypt import KeyFile
from swift_dss.gateway.link.client import S3Client, S3Missing

#: Indexes that are remembered, some megabytes each: members of a lost drive
#: come by partition, from several bundles in turn.
_INDEXES = 4
#: By the key of a version.
_Records = Dict[str, metadata.RemoteRecord]


class Packed(NamedTuple):
    """A member, as its bundle has it."""

    key: str
    offset: int
    seal: str
    record: metadata.RemoteRecord


class OwnMembers:
    """Finds versions by the book of this node. Thread-safe."""

    def __init__(self, book: Book, client: S3Client, keys: KeyFile,
                 proofs: BundleProofs) -> None:
        self._book = book
        self._client = client
        self._keys = keys
        self._proofs = proofs
        self._lock = threading.Lock()
        self._indexes: OrderedDict[str, _Records] = OrderedDict()

    def find(self, version: VersionId) -> Optional[Packed]:
        """A version in its bundle; None if the book names none, or the bundle
        does not have it. At most one HEAD, and three GETs for all members of
        a bundle.

        :raises DssError: it cannot be said now
        """
        key = self._book.place_of(version.key)
        if not key:
            return None
        try:
            head = self._proofs.head(key)
            record = None if head is None else self._records(
                key, head.size).get(version.key)
        except (DamagedRecord, S3Missing):
            return None
        if record is None:
            return None
        place = self._proofs.find(
            version, record.content_length, record.etag, key)
        return None if place is None else Packed(key, *place, record)

    def _records(self, key: str, size: int) -> _Records:
        # Under the lock: one session reads an index for all.
        with self._lock:
            records = self._indexes.pop(key, None)
            if records is None:
                records = {made.version.key: made for made in (
                    metadata.of_record(held.record) for held in read_index(
                        self._client, key, size, self._keys).entries)}
            self._indexes[key] = records
            if len(self._indexes) > _INDEXES:
                self._indexes.popitem(last=False)
        return records
