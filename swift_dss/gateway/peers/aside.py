"""The one way into quarantine that is ours: for versions that lack bytes.

A disk cannot read them or has changed them, or S3 has lost the key of a stub.
The other primaries are asked, ``strategy.agreement.may_be_put_aside`` decides,
and what may not go stays in its place: what can be read of it is read, and who
asked asks again later. (Swift itself puts aside what its own checks refuse:
metadata, and a whole read that has another MD5.)
"""

from __future__ import annotations

from typing import Optional

from swift_dss.core.errors import DssError, VersionGone
from swift_dss.gateway.link.client import S3Client
from swift_dss.gateway.peers.primaries import Primaries, Wanted
from swift_dss.gateway.ports import LocalVersion, LocalVersions, Metrics
from swift_dss.strategy import agreement
from swift_dss.strategy.agreement import Aside


class Asides:
    """Asks, and puts aside. Thread-safe; blocks for as long as the primaries
    take to read the version.

    :param client: None where there is no remote tier
    """

    def __init__(self, local: LocalVersions, primaries: Primaries,
                 metrics: Metrics,
                 client: Optional[S3Client] = None) -> None:
        self._local = local
        self._primaries = primaries
        self._metrics = metrics
        self._client = client

    def put_aside(self, local: LocalVersion) -> Aside:
        """Put a version aside, if it may go. Idempotent.

        :param local: what the caller found wanting; nothing happens if it
            is another one by now
        :raises VersionGone: it is
        :raises DssError: it could not be done now
        """
        verdict = self._verdict(local)
        if verdict is Aside.YES:
            try:
                self._local.put_aside(local.version, local.partition,
                                      local.residency)
            except ValueError as err:
                raise VersionGone(str(err)) from err
        self._metrics.count('gateway.aside.%s' % verdict.value)
        return verdict

    def _verdict(self, local: LocalVersion) -> Aside:
        version, remote = local.version, local.residency.remote
        is_failing = self._local.is_failing(version.device)
        # The answer is known, so no primary needs to read the version.
        answers = [] if is_failing else self._primaries.prove(Wanted(
            version, local.metadata.get('name', '')))
        keys = agreement.keys_besides(
            version.timestamp, remote.key if remote else '', answers)
        return agreement.may_be_put_aside(
            version.timestamp, answers,
            [key for key in keys if self._is_there(key)],
            self._local.copies_needed(version), is_failing)

    def _is_there(self, key: str) -> bool:
        try:
            return self._client is not None and \
                self._client.head(key) is not None
        except DssError:
            return False  # S3 does not say, so nothing leans on it
