"""One version on its way to S3: ``DIRTY → UPLOADING → VERIFIED``.

The order is the safety: local bytes are digested while they are read and
compared with the version's own ETag before S3 makes them an object; S3's
object is proven; only then does the residency record say ``remote``, and
only residency lets the daemon drop local bytes. Every step may run twice:
a version that is already there and proves right is not sent again, which
also settles a time-out whose request S3 had in fact carried out.
"""

from __future__ import annotations

from enum import Enum
from typing import Dict, NamedTuple, Optional

from swift_dss.core.errors import (
    RemoteCorrupt, TierUnavailable, VersionGone)
from swift_dss.core.residency import RemoteCopy
from swift_dss.core.version import VersionId
from swift_dss.gateway.around import Around
from swift_dss.gateway.form import digests, encrypt, metadata, verify
from swift_dss.gateway.form.own_record import OwnRecords
from swift_dss.gateway.link.client import S3Client, S3Exists
from swift_dss.gateway.form.conditions import Conditions
from swift_dss.gateway.ports import LocalReader, LocalVersion, LocalVersions
from swift_dss.gateway.queue import UploadJob
from swift_dss.gateway.up.jobs import Jobs
from swift_dss.gateway.up.multipart import Multipart, Parted
from swift_dss.gateway.up.wanted import StillWanted
from swift_dss.io import steps
from swift_dss.wire.layout import remote_key


class Outcome(Enum):
    """How an upload job ended."""

    UPLOADED = 'uploaded'
    FOUND = 'found'
    WAITING = 'waiting'
    OBSOLETE = 'obsolete'
    GONE = 'gone'
    PARKED = 'parked'


class _Sent(NamedTuple):
    """An object as S3 was given it.

    :param local: as it lies there, sealed or not
    :param sums: of its parts, if it has several
    """

    key: str
    local: LocalVersion
    sums: Optional[digests.Sums]
    seal_text: str


class Uploader:
    """Does upload jobs, one per call, in any thread.

    :param keys: seals uploads, if there are any
    :param conditions: whether S3 refuses to store a key that is there
    :param jobs: is told of each step, and asked between parts if the version
        became obsolete
    """

    def __init__(self, around: Around, client: S3Client,
                 local: LocalVersions, keys: encrypt.KeyFile,
                 conditions: Conditions, jobs: Jobs) -> None:
        self._around = around
        self._conf = around.conf
        self._client = client
        self._local = local
        self._metrics = around.metrics
        self._keys = keys
        self._conditions = conditions
        self._jobs = jobs
        self._clock = around.clock
        self._wanted = StillWanted(around, local, jobs)
        self._records = OwnRecords(client, keys)
        self._verifier = verify.Verifier(
            client, around.conf.verify == 'readback')

    def run(self, job: UploadJob, may_send: bool) -> Outcome:
        """Bring the job one step to its end. Idempotent.

        :param may_send: False only looks whether another replica did it
        :raises RemoteUnavailable, S3Rejected: S3's side; try later
        :raises LocalCorrupt, TierUnavailable, DamagedRecord: our side
        """
        version = job.version
        try:
            local = self._local.describe(version, job.partition)
        except VersionGone:
            return self._left(job)
        if self._wanted.is_obsolete(version, job.partition):
            return self._left(job)
        if local.residency.remote is not None:
            return Outcome.FOUND
        key = remote_key(self._conf.prefix, version)
        try:
            with self._local.open(version, job.partition) as reader:
                outcome = Outcome.UPLOADED
                copy = self._bring_fresh(key, job, local, reader) \
                    if may_send else None
                if copy is None:
                    copy = self._find(key, local, reader)
                    outcome = Outcome.FOUND
                    if copy is not None:
                        self._jobs.verify(version.key)
                if copy is None:
                    if not may_send:
                        return Outcome.WAITING
                    copy = self._bring(key, job, local, reader)
                    outcome = Outcome.UPLOADED
            steps.reached('upload.verified')
            self._record(job, local, copy)
        except VersionGone:
            return self._left(job)
        steps.reached('upload.recorded')
        return outcome

    def resend(self, version: VersionId, partition: str) -> None:
        """Send a version over its key, because a reader found the copy there
        wrong. The caller MUST have claimed it.

        :raises DssError: as :meth:`run`; S3 is unchanged
        """
        local = self._local.describe(version, partition)
        now = self._clock.wall()
        job = UploadJob(version, partition, now, now)
        with self._local.open(version, partition) as reader:
            copy = self._bring(remote_key(self._conf.prefix, version), job,
                               local, reader)
        self._record(job, local, copy)

    def send_apart(self, local: LocalVersion,
                   reader: LocalReader) -> RemoteCopy:
        """Store a version under its own key in S3, also if no device here has
        its file. Writes no record. Idempotent.

        :param reader: all of its bytes
        :raises DssError: as :meth:`run`
        """
        key = remote_key(self._conf.prefix, local.version)
        now = self._clock.wall()
        return self._find(key, local, reader) or self._proven(self._send(
            key, UploadJob(local.version, local.partition, now, now), local,
            reader))

    def _left(self, job: UploadJob) -> Outcome:
        # A handoff that was emptied is not a deletion: the primaries own
        # the key. Only a newer file or tombstone makes it garbage.
        if self._wanted.is_obsolete(job.version, job.partition):
            return Outcome.OBSOLETE
        try:
            self._local.describe(job.version, job.partition)
        except VersionGone:
            return Outcome.GONE
        # It is here and its bytes are not: never forget such a version.
        raise TierUnavailable('%s on %s: local bytes cannot be had' % (
            job.version.key, job.version.device))

    def _find(self, key: str, plain: LocalVersion,
              reader: LocalReader) -> Optional[RemoteCopy]:
        """A copy that is there already and proves right."""
        head = self._client.head(key)
        if head is None:
            return None
        text = head.metadata.get(encrypt.SEAL_META, '')
        seal = self._keys.open(text) if text else None
        local = plain
        if seal is not None:
            local, reader = encrypt.sealed_view(plain, reader, seal)
        if head.size != local.content_length:
            return None
        part_bytes = verify.remote_part_bytes(head)
        sums = None
        if part_bytes is not None:
            sums = verify.sums_of(local, reader, part_bytes)
        if not self._verifier.proves(
                head, key, local, sums.etag if sums else local.etag):
            self._metrics.count('gateway.remote_differs')
            return None
        # A side car may be missing: half of another node's work, which may
        # have known less of POSTs as well.
        if sums is not None:
            path, data = key + metadata.SUMS_SUFFIX, sums.encode()
            if not self._verifier.proves_small(path, data):
                self._client.put(path, data, digests.md5(data).digest())
                self._prove_sums(path, data)
        if not self._records.is_known(head, plain):
            self._records.bring(key, plain, text)
        return RemoteCopy(self._conf.endpoint, key, head.etag,
                          self._clock.wall(), 0, text)

    def _bring_fresh(self, key: str, job: UploadJob, local: LocalVersion,
                     reader: LocalReader) -> Optional[RemoteCopy]:
        """Send a version without a look at S3; no node can have tried it
        before. None if S3 has the key, or might not say so.
        """
        length = local.content_length
        if job.attempts or not self._conditions.honoured or \
                not self._jobs.line.is_alone(job.version) or \
                verify.is_multipart(
                    encrypt.sealed_length(length) if self._keys else length,
                    self._conf.part_bytes):
            return None
        try:
            return self._bring(key, job, local, reader, only_if_missing=True)
        except S3Exists:
            # Sent before a crash, or by another: that is to be proven.
            return None

    def _bring(self, key: str, job: UploadJob, local: LocalVersion,
               reader: LocalReader,
               only_if_missing: bool = False) -> RemoteCopy:
        """Send and prove a version that this thread has claimed."""
        self._jobs.send(job.version.key)
        sent = self._send(key, job, local, reader, only_if_missing)
        self._jobs.verify(job.version.key)
        return self._proven(sent)

    def _send(self, key: str, job: UploadJob, plain: LocalVersion,
              reader: LocalReader, only_if_missing: bool = False) -> _Sent:
        """:raises S3Exists: it was not missing"""
        seal = encrypt.seal_for(self._keys, key, plain) \
            if self._keys else None
        user_metadata = _user_metadata(plain, seal)
        if metadata.has_sidecar(user_metadata):
            self._records.bring(key, plain, seal.text if seal else '')
        steps.reached('upload.begun')
        local = plain
        if seal is not None:
            local, reader = encrypt.sealed_view(plain, reader, seal)
        sums = None
        if verify.is_multipart(local.content_length, self._conf.part_bytes):
            part_bytes = digests.part_size(
                local.content_length, self._conf.part_bytes)
            user_metadata[verify.PART_BYTES_META] = str(part_bytes)
            sums = Multipart(
                self._around, self._client, self._jobs.queue, self._wanted,
                Parted(key, job, local, part_bytes)).send(
                    reader, user_metadata)
        else:
            self._send_whole(key, job, local, reader, user_metadata,
                             only_if_missing)
        steps.reached('upload.completed')
        self._metrics.count('gateway.uploaded_bytes', local.content_length)
        return _Sent(key, local, sums, seal.text if seal else '')

    def _proven(self, sent: _Sent) -> RemoteCopy:
        key, local, sums, seal_text = sent
        head = self._client.head(key)
        if head is None or not self._verifier.proves(
                head, key, local, sums.etag if sums else local.etag):
            self._metrics.count('gateway.verify_failed')
            raise RemoteCorrupt('%s: S3 does not hold the upload' % key)
        if sums is not None:
            self._prove_sums(key + metadata.SUMS_SUFFIX, sums.encode())
        return RemoteCopy(self._conf.endpoint, key, head.etag,
                          self._clock.wall(), 0, seal_text)

    def _prove_sums(self, path: str, data: bytes) -> None:
        if not self._verifier.proves_small(path, data):
            self._metrics.count('gateway.verify_failed')
            raise RemoteCorrupt('%s: S3 does not hold the upload' % path)

    def _send_whole(self, key: str, job: UploadJob, local: LocalVersion,
                    reader: LocalReader, user_metadata: Dict[str, str],
                    only_if_missing: bool) -> None:
        data = b''
        if local.content_length:
            data = reader.read(0, local.content_length)
        digest = digests.md5(data).digest()
        verify.check_local(local, digest)
        self._wanted.check(job)
        self._client.put(key, data, digest, user_metadata, only_if_missing)

    def _record(self, job: UploadJob, local: LocalVersion,
                copy: RemoteCopy) -> None:
        if not local.content_length:
            return  # an empty version has no byte that could be remote
        self._local.record_remote(job.version, job.partition, copy)


def _user_metadata(local: LocalVersion,
                   seal: Optional[encrypt.Seal]) -> Dict[str, str]:
    if seal is None:
        return metadata.encode(local)[0]
    headers = metadata.encode(
        local, lambda packed: _closed_record(seal, packed))[0]
    return dict(headers, **{encrypt.SEAL_META: seal.text})


def _closed_record(seal: encrypt.Seal, packed: bytes) -> bytes:
    return seal.wrap('record', 0, packed)
