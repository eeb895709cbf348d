"""Taking keys of obsolete versions out of S3.

The tombstone row stays until S3 acknowledged. Uploads of the same version
go first out of the queue and then out of S3 (data, ``.meta``, ``.sums``, a
multipart upload in progress), so the far end sees a key's changes in local
order. The newest version of an object is never deleted, whoever asks.
"""

from __future__ import annotations

from enum import Enum

from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import RemoteUnavailable
from swift_dss.gateway.client import S3Client, S3Rejected
from swift_dss.gateway.metadata import SUFFIXES
from swift_dss.gateway.ports import LocalVersions, Metrics
from swift_dss.gateway.queue import BEGINNING, DeleteJob, Queue
from swift_dss.io import steps


class DeleteOutcome(Enum):
    """How a delete job ended."""

    DELETED = 'deleted'
    REFUSED = 'refused'


class Deleter:
    """Does delete jobs, one per call, in any thread."""

    def __init__(self, conf: GatewayConf, client: S3Client,
                 local: LocalVersions, queue: Queue,
                 metrics: Metrics) -> None:
        self._conf = conf
        self._client = client
        self._local = local
        self._queue = queue
        self._metrics = metrics

    def run(self, job: DeleteJob) -> DeleteOutcome:
        """Delete the key and its side cars. Idempotent; 404 is success.

        The caller MUST have stopped uploads of the same version.

        :raises RemoteUnavailable, S3Rejected: the row stays; try later
        """
        newest = self._local.newest(job.version, job.partition)
        if newest == job.version.timestamp:
            # Timestamps only grow: this can only be a false order.
            self._queue.finish_delete(job.s3_key)
            self._metrics.count('gateway.deletes_refused')
            return DeleteOutcome.REFUSED
        for upload in self._queue.uploads_of(job.version.key):
            if upload.upload_id == BEGINNING:
                self._abort_listed(job.s3_key)
            elif upload.upload_id:
                self._client.abort(job.s3_key, upload.upload_id)
            self._queue.finish_upload(upload.version)
        self._client.delete(job.s3_key)
        steps.reached('delete.data')
        for suffix in SUFFIXES:
            self._client.delete(job.s3_key + suffix)
        steps.reached('delete.sent')
        if self._client.head(job.s3_key) is not None:
            # Acknowledged and not done, or not done everywhere yet.
            raise RemoteUnavailable(
                '%s is still there' % job.s3_key,
                self._conf.retry_after_seconds)
        self._queue.finish_delete(job.s3_key)
        steps.reached('delete.done')
        return DeleteOutcome.DELETED

    def _abort_listed(self, key: str) -> None:
        try:
            for upload_id in self._client.uploads_of(key):
                self._client.abort(key, upload_id)
        except S3Rejected:
            self._metrics.count('gateway.leftovers_unlisted')
