"""Take a version's key and its side cars out of S3."""

from __future__ import annotations

from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import RemoteUnavailable
from swift_dss.gateway.form.metadata import SUFFIXES
from swift_dss.gateway.link.client import S3Client
from swift_dss.io import steps


class Remover:
    """Removes keys. Thread-safe."""

    def __init__(self, conf: GatewayConf, client: S3Client) -> None:
        self._conf = conf
        self._client = client

    def remove(self, key: str) -> None:
        """Take a version's key and its side cars out of S3. Idempotent.

        :raises RemoteUnavailable, S3Rejected: it may still be there
        """
        self._client.delete(key)
        steps.reached('delete.data')
        for suffix in SUFFIXES:
            self._client.delete(key + suffix)
        steps.reached('delete.sent')
        if self._client.head(key) is not None:
            # Acknowledged and not done, or not done everywhere yet.
            raise RemoteUnavailable(
                '%s is still there' % key, self._conf.retry_after_seconds)
