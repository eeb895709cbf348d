"""Stubs that come from other nodes are proven before they are believed.

S3 is asked once for a version of its own key and gives no byte of data: its
size, its ETag, and the record that went up with the bytes must be those of
the version. A member of a bundle is compared with the bundle's index
(``gateway.bundle.proof``). A version that is looked for without a record may
also be in a bundle that a record of this node named
(``gateway.bundle.own``). Reads compare digests anyway; this makes sure that
there is something to read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from swift_dss.core.errors import DamagedRecord, DssError, VersionGone
from swift_dss.core.residency import RemoteCopy, Residency, Tier
from swift_dss.core.version import VersionId
from swift_dss.gateway.around import Around
from swift_dss.gateway.bundle import since as bundle_since
from swift_dss.gateway.bundle.own import OwnMembers
from swift_dss.gateway.bundle.proof import BundleProofs
from swift_dss.gateway.bundle.read import is_bundle
from swift_dss.gateway.bundle.shelves import Shelves
from swift_dss.gateway.form import metadata, verify
from swift_dss.gateway.form.encrypt import (
    SEAL_META, open_envelope, opener, sealed_length)
from swift_dss.gateway.form.metadata import RemoteRecord
from swift_dss.gateway.link.client import S3Head
from swift_dss.gateway.ports import LocalVersion
from swift_dss.wire.records.proof import ProofReply, ProofRequest


class NotProven(DssError):
    """S3 does not confirm another node's record."""

    http_status = 503
    counter = 'arrivals_not_proven'


class Arrivals:
    """Proves copies in S3 for versions that arrive. Thread-safe.

    :param shelves: its book is told of a device whose record will name a
        bundle, and of the bundle's key, before it does
    :param bundles: the indexes of bundles
    :param own: members of bundles that records of this node named
    """

    def __init__(self, around: Around, shelves: Shelves,
                 bundles: BundleProofs, own: OwnMembers) -> None:
        self._conf = around.conf
        self._client = shelves.client
        self._keys = shelves.keys
        self._book = shelves.book
        self._metrics = around.metrics
        self._clock = around.clock
        self._bundles = bundles
        self._own = own
        self._bytes = verify.Verifier(shelves.client, False)

    def prove(self, request: ProofRequest) -> ProofReply:
        """Ask S3.

        :raises NotProven: it lacks the requested copy
        :raises VersionGone: this node knows of no bundle that has it, and
            nothing is under the version's own key, if it may have one
        :raises DssError: it cannot be said now
        """
        residency = request.residency
        if residency is None:
            reply = self._packed(request) or self._unpacked(request)
        elif residency.remote is None:
            raise NotProven('the record names no copy in S3')
        else:
            reply = self._known(request, residency, residency.remote)
        self._metrics.count('gateway.arrivals')
        return reply

    def is_doubled(self, version: VersionId, bundle: str) -> bool:
        """True if S3 says now that it has a version under its own key, and the
        same bytes in a bundle whose keeper counts on them. Some HEADs, and a
        GET; seldom more.

        :raises DssError: it cannot be said now
        """
        try:
            own = self._find(version)
        except (NotProven, VersionGone):
            return False
        assert own.residency is not None
        entry = self._bundles.entry(
            version, own.residency.content_length, own.etag, bundle)
        head = None if entry is None else self._bundles.head(bundle)
        if entry is None or head is None:
            return False
        seal = head.metadata.get(SEAL_META, '')
        told = bundle_since.read(
            self._client, bundle_since.path_of(bundle),
            opener(self._keys, seal))
        # The keeper takes the note away after the bundle.
        return entry.number not in told.dead and \
            self._client.head(bundle) is not None

    def _known(self, request: ProofRequest, residency: Residency,
               remote: RemoteCopy) -> ProofReply:
        # Another node may call the same bucket by another name: the contents
        # of the key here decide.
        if not remote.key.startswith(self._conf.prefix):
            raise NotProven('%s is not under the prefix of this node'
                            % remote.key)
        if remote.in_bundle != is_bundle(self._conf.prefix, remote.key):
            raise NotProven('%s cannot begin at %d' % (
                remote.key, remote.offset))
        length = residency.content_length
        if remote.in_bundle:
            reply = self._in_bundle(request, length, remote)
            if reply is None:
                return self._left_bundle(request, length)
            if not reply:
                raise NotProven('%s has another member at %d, or none' % (
                    remote.key, remote.offset))
            # A rewrite of the bundle must know this device before its record
            # names the bundle.
            self._book.hold(request.version, request.partition, remote.key)
        else:
            self._own_key(request, length, remote)
        return self._reply(length, remote, request.etag)

    def _in_bundle(self, request: ProofRequest, length: int,
                   remote: RemoteCopy) -> Optional[bool]:
        try:
            return self._bundles.has(request.version, length, request.etag,
                                     remote)
        except DamagedRecord as err:
            raise NotProven('%s: %s' % (remote.key, err)) from err

    def _left_bundle(self, request: ProofRequest,
                     length: int) -> ProofReply:
        """Find the version's own key: the bundle was rewritten, and members
        that other nodes need have keys of their own by now.
        """
        try:
            reply = self._find(request.version)
        except VersionGone as err:
            raise NotProven('the bundle is gone, and so is %s' % err) \
                from err
        assert reply.residency is not None
        if (reply.residency.content_length, reply.etag) != (
                length, request.etag):
            raise NotProven('another version has the key of %s'
                            % request.version.key)
        # To follow to where the bundle's members are now.
        assert request.residency and request.residency.remote
        self._book.hold(request.version, request.partition,
                        request.residency.remote.key)
        return reply

    def _packed(self, request: ProofRequest) -> Optional[ProofReply]:
        """The version as the bundle that this node knows has it."""
        packed = self._own.find(request.version)
        if packed is None:
            return None
        self._book.hold(request.version, request.partition, packed.key)
        record = packed.record
        return replace(self._reply(record.content_length, RemoteCopy(
            self._conf.endpoint, packed.key, record.etag, 0.0, packed.offset,
            packed.seal), record.etag), metadata=record.metadata)

    def _unpacked(self, request: ProofRequest) -> ProofReply:
        if request.packed:
            raise VersionGone('no bundle that this node knows has %s'
                              % request.version.key)
        return self._find(request.version)

    def _own_key(self, request: ProofRequest, length: int,
                 remote: RemoteCopy) -> None:
        head = self._head(remote.key)
        if (head.size, head.etag) != (
                _stored(length, remote.seal), remote.etag):
            raise NotProven('%s has %d bytes and ETag %s' % (
                remote.key, head.size, head.etag))
        reply = self._record(remote.key, head, remote.seal)
        version = request.version
        if (reply.content_length, reply.etag, reply.version.timestamp,
                reply.version.frag_index) != (
                    length, request.etag, version.timestamp,
                    version.frag_index):
            raise NotProven('%s is another version' % remote.key)

    def _find(self, version: VersionId) -> ProofReply:
        key = metadata.own_key(self._conf.prefix, version)
        head = self._client.head(key)
        if head is None:
            raise VersionGone('%s: S3 has no such key' % key)
        seal = head.metadata.get(SEAL_META, '')
        reply = self._record(key, head, seal)
        if replace(reply.version, device=version.device) != version or \
                head.size != _stored(reply.content_length, seal) or \
                not reply.content_length:
            raise NotProven('%s holds another version than its name' % key)
        if not seal and verify.remote_part_bytes(head) is None and \
                not self._bytes.proves(head, key, LocalVersion(
                    version, '', reply.etag, {},
                    Residency.whole(reply.content_length)), reply.etag):
            # An upload of which S3 has other bytes was never recorded.
            raise NotProven('%s has other bytes than its record says' % key)
        return replace(self._reply(
            reply.content_length, RemoteCopy(
                self._conf.endpoint, key, head.etag, 0.0, 0, seal),
            reply.etag), metadata=reply.metadata)

    def _reply(self, length: int, remote: RemoteCopy,
               etag: str) -> ProofReply:
        return ProofReply(200, '', replace(
            Residency.whole(length, Tier.REMOTE),
            remote=replace(remote, endpoint=self._conf.endpoint,
                           verified_at=self._clock.wall())), etag)

    def _record(self, key: str, head: S3Head, seal: str) -> RemoteRecord:
        if bool(seal) != (SEAL_META in head.metadata):
            raise NotProven('%s: sealed, or not, unlike its record' % key)
        packed: Optional[bytes] = None
        if metadata.has_sidecar(head.metadata):
            packed, _ = open_envelope(self._keys, self._client.get_small(
                key + metadata.META_SUFFIX, metadata.MAX_RECORD_BYTES))
        try:
            return metadata.decode(
                head.metadata, packed, lambda raw: self._keys.open(
                    seal).unwrap('record', 0, raw) if seal else raw)
        except DamagedRecord as err:
            raise NotProven('%s: %s' % (key, err)) from err

    def _head(self, key: str) -> S3Head:
        head = self._client.head(key)
        if head is None:
            raise NotProven('%s: S3 has no such key' % key)
        return head


def _stored(length: int, seal: str) -> int:
    """Bytes that a version of this length takes in S3."""
    return sealed_length(length) if seal else length
