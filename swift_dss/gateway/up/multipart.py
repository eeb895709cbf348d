"""Upload in parts; parts that S3 already has are not sent again.

After a crash the durable row names the upload in progress: its parts are
listed, and those whose ETag and length are the ones of the local bytes are
skipped. If a server cannot list, or the parts were cut otherwise, the upload
is aborted and started over, so nothing is left behind.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Tuple

from swift_dss.core.errors import VersionGone
from swift_dss.gateway.around import Around
from swift_dss.gateway.form import digests, metadata, verify
from swift_dss.gateway.form.encrypt import SEAL_META
from swift_dss.gateway.link.client import S3Client, S3Missing, S3Rejected
from swift_dss.gateway.ports import LocalReader, LocalVersion
from swift_dss.gateway.queue import BEGINNING, Queue, UploadJob
from swift_dss.gateway.up.wanted import StillWanted
from swift_dss.io import steps

_Parts = Dict[int, Tuple[str, int]]


class Parted(NamedTuple):
    """A version that goes up in parts.

    :param local: as it is to lie in S3, sealed or not
    :param part_bytes: length of all parts but the last
    """

    key: str
    job: UploadJob
    local: LocalVersion
    part_bytes: int


class Multipart:
    """Sends one version. One part is in memory at a time.

    :param wanted: asked before each part
    """

    def __init__(self, around: Around, client: S3Client, queue: Queue,
                 wanted: StillWanted, parted: Parted) -> None:
        self._metrics = around.metrics
        self._client = client
        self._queue = queue
        self._wanted = wanted
        self._key, self._job, self._local, self._part_bytes = parted

    def send(self, reader: LocalReader,
             user_metadata: Mapping[str, str]) -> digests.Sums:
        """Send all parts and make them an object; its digests.

        :raises LocalCorrupt: the local bytes are not the version's; the
            upload was aborted before S3 made it an object
        :raises VersionGone: no longer wanted; the upload was aborted
        """
        upload_id, there = self._begin(user_metadata)
        try:
            sums, etags = self._send_parts(reader, upload_id, there)
            self._wanted.check(self._job)
        except (verify.LocalCorrupt, VersionGone):
            self._client.abort(self._key, upload_id)
            self._queue.note_upload_id(self._job.version, '')
            raise
        # The sums come before the object: readers of the object may rely on
        # them.
        raw = sums.encode()
        self._client.put(self._key + metadata.SUMS_SUFFIX, raw,
                         digests.md5(raw).digest())
        steps.reached('upload.sums')
        self._client.complete(self._key, upload_id, etags)
        return sums

    def _send_parts(self, reader: LocalReader, upload_id: str,
                    there: _Parts) -> Tuple[digests.Sums, List[str]]:
        length = self._local.content_length
        builder = digests.SumsBuilder(length, self._part_bytes)
        etags: List[str] = []
        for offset in range(0, length, self._part_bytes):
            self._wanted.check(self._job)
            data = reader.read(
                offset, min(self._part_bytes, length - offset))
            etags.append(self._send_part(
                upload_id, len(etags) + 1, data, builder.add_part(data),
                there))
            steps.reached('upload.part')
        sums = builder.finish()
        verify.check_local(self._local, sums.md5)
        return sums, etags

    def _send_part(self, upload_id: str, number: int, data: bytes,
                   digest: bytes, there: _Parts) -> str:
        if there.get(number) == (digest.hex(), len(data)):
            self._metrics.count('gateway.parts_resumed')
            return digest.hex()
        etag = self._client.put_part(
            self._key, upload_id, number, data, digest)
        return etag or digest.hex()

    def _begin(self, user_metadata: Mapping[str,
                                            str]) -> Tuple[str, _Parts]:
        begun = self._job.upload_id
        if begun == BEGINNING:
            self._abort_unrecorded()
        elif begun and SEAL_META in user_metadata:
            # The seal in its metadata may be another one than ours now.
            self._client.abort(self._key, begun)
        elif begun:
            there = self._there(begun)
            # Another cut would leave the wrong part length in S3's
            # metadata, which is fixed when the upload begins.
            if there.get(1, ('', 0))[1] == self._part_bytes:
                return begun, there
            self._client.abort(self._key, begun)
        # Durable in this order: whatever moment we die at, the next run
        # knows that there may be an upload to list, or which one it is.
        self._queue.note_upload_id(self._job.version, BEGINNING)
        upload_id = self._client.begin_multipart(self._key, user_metadata)
        steps.reached('upload.multipart_begun')
        self._queue.note_upload_id(self._job.version, upload_id)
        return upload_id, {}

    def _there(self, upload_id: str) -> _Parts:
        try:
            return self._client.parts(self._key, upload_id)
        except (S3Missing, S3Rejected):
            return {}  # let go, completed, or a server that cannot list

    def _abort_unrecorded(self) -> None:
        try:
            for upload_id in self._client.uploads_of(self._key):
                self._client.abort(self._key, upload_id)
        except (S3Missing, S3Rejected):
            # A server that cannot list: the bucket's lifecycle rule for
            # incomplete uploads takes it.
            self._metrics.count('gateway.leftovers_unlisted')
