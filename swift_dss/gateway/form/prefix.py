"""Whether this cluster may write below its prefix, and how S3 keeps it."""

from __future__ import annotations

from typing import Any, Dict, Optional

from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import DssError, RemoteUnavailable
from swift_dss.gateway.form.owner import WRITE_SECONDS, NotOurs, Owner
from swift_dss.gateway.link.client import S3Client, S3Rejected
from swift_dss.gateway.form.conditions import Conditions
from swift_dss.gateway.ports import Logger, Metrics, NotProven


class Prefix:
    """The prefix in S3, for a daemon. One thread calls :meth:`may_write`, any
    the rest; all may wait for S3.

    :param owner: None where no Swift is configured: no question is sent
    """

    def __init__(self, conf: GatewayConf, client: S3Client,
                 owner: Optional[Owner], metrics: Metrics,
                 logger: Logger) -> None:
        #: Of requests below the prefix.
        self.conditions = Conditions(client, conf.prefix)
        self._conf = conf
        self._client = client
        self.owner = owner
        self._metrics = metrics
        self._logger = logger
        self._versioning = ''
        self._not_ours = ''

    def require_for_proof(self) -> None:
        """Require ownership: a copy that another cluster may delete proves
        nothing.

        :raises NotProven: it is another's
        """
        if self.owner is not None:
            try:
                self.owner.require(WRITE_SECONDS)
            except NotOurs as err:
                raise NotProven(
                    str(err), self._conf.retry_after_seconds) from err

    def require_ours(self) -> None:
        """:raises NotOurs: S3 says that the prefix belongs to another
        cluster"""
        try:
            if self.owner is not None:
                self.owner.require()
        except (RemoteUnavailable, S3Rejected) as err:
            # The client asks again before it changes anything.
            self._logger.warning('gateway: the owner of the prefix: %s', err)

    def may_write(self) -> bool:
        """False if the prefix is not ours, or S3 does not say."""
        if self.owner is not None and not self._is_ours(self.owner):
            return False
        self.conditions.look()
        return True

    def _is_ours(self, owner: Owner) -> bool:
        try:
            owner.require(WRITE_SECONDS)
        except DssError as err:
            self._say_not_ours(err)
            # Uploads that S3 refuses say so of themselves.
            return isinstance(err, S3Rejected)
        if self._not_ours:
            self._logger.info('gateway: the prefix is ours')
            self._not_ours = ''
        if not self._versioning:
            self._look_at_versioning()
        return True

    def status(self) -> Dict[str, Any]:
        """Plain values."""
        return {
            'owner': self.owner.status() if self.owner is not None else None,
            'versioning': self._versioning or 'not asked yet'}

    def _say_not_ours(self, err: DssError) -> None:
        """One line in the log for each reason, not one for each look."""
        text = str(err)
        if text != self._not_ours:
            level = self._logger.error if isinstance(err, NotOurs) \
                else self._logger.warning
            level('gateway: nothing is sent or deleted: %s', text)
            self._metrics.count('gateway.%s' % err.counter)
        self._not_ours = text

    def _look_at_versioning(self) -> None:
        try:
            self._versioning = self._client.versioning() or 'off'
        except DssError as err:
            self._versioning = 'unknown (%s)' % err
        if self._versioning not in ('off', 'unknown'):
            self._logger.warning(
                'gateway: bucket %s has versioning %s', self._conf.bucket,
                self._versioning + (
                    ': a deleted key stays as an old version, and is paid '
                    'for, until swift-dss gateway gc --versions or a '
                    'lifecycle rule removes it' if self._versioning in (
                        'Enabled', 'Suspended') else ''))
