"""Have seals in S3 be opened by the active key alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from swift_dss.gateway.bundle.follow import Follower
from swift_dss.gateway.bundle.shelves import Shelves
from swift_dss.gateway.ports import LocalVersions
from swift_dss.gateway.restore.renew import Renewer
from swift_dss.gateway.up.jobs import Jobs
from swift_dss.io import steps
from swift_dss.core.residency import RemoteCopy
from swift_dss.core.version import VersionId


class Rekeying:
    """Changes seals of keys of their own, and orders rewrites of bundles.
    Thread-safe.

    :param follower: knows the bundles of other nodes
    """

    def __init__(self, shelves: Shelves, local: LocalVersions, jobs: Jobs,
                 renewer: Renewer, follower: Follower) -> None:
        self._book = shelves.book
        self._keys = shelves.keys
        self._local = local
        self._jobs = jobs
        self._renewer = renewer
        self._follower = follower
        #: Bundles are to be rewritten under the active key.
        self.is_wanted = False

    def is_due(self, version: VersionId, partition: str) -> bool:
        """Is a version's seal under another key than the active one?"""
        return self._lacks_key(self._local.describe(
            version, partition).residency.remote)

    def rekey(self, version: VersionId, partition: str) -> bool:
        """Put a version's seal under the active key; False if it is already,
        or if there is none. For a key of its own only the seal changes; a
        member of a bundle waits for :meth:`order`. Idempotent.

        :raises RemoteUnavailable, S3Rejected, RemoteCorrupt: another time
        """
        local = self._local.describe(version, partition)
        remote = local.residency.remote
        if remote is None or not self._lacks_key(remote):
            return False
        if remote.in_bundle:
            return True
        made = replace(remote, seal=self._keys.rewrap(remote.seal))
        # In the bucket first: a lost edge must find the newer seal there.
        self._renewer.write(remote.key, replace(
            local, residency=replace(local.residency, remote=made)),
            partition)
        steps.reached('rekey.sent')
        self._local.record_remote(local.version, partition, made)
        return True

    def order(self) -> None:
        """Have bundles under another key than the active one be rewritten a
        while later. Idempotent."""
        if self.bundles_left():
            self.is_wanted = True
            self._jobs.bundling.ring()

    def bundles_left(self) -> int:
        """Bundles that another key than the active one must open yet,
        those that leave, and those of other nodes that records here name,
        among them: some, if many."""
        if not self._keys:
            return 0
        return len(self._book.sealed_otherwise(
            self._keys.active_prefix, ('sealed', 'replaced', 'leaving'))
            ) or self._follower.sealed_otherwise(self._keys.active_prefix)

    def look(self) -> None:
        """Note if bundles are left that a rewrite was ordered for."""
        self.is_wanted = self.is_wanted and bool(self.bundles_left())

    def _lacks_key(self, remote: Optional[RemoteCopy]) -> bool:
        return bool(remote and remote.seal and self._keys
                    and not remote.seal.startswith(
                        self._keys.active_prefix))
