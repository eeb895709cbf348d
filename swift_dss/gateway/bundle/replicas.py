"""Replicas that this node has of a bundle's members.

A rewrite takes a member from a replica here if its bytes are here, and from
the old bundle otherwise.
"""

from __future__ import annotations

from typing import Callable, Iterable, Optional, Tuple

from swift_dss.core.errors import (
    DamagedRecord, RemoteCorrupt, TierUnavailable, VersionGone)
from swift_dss.core.version import VersionId
from swift_dss.gateway.bundle.book import Member
from swift_dss.gateway.bundle.read import Source
from swift_dss.gateway.form import metadata
from swift_dss.gateway.ports import LocalVersion, LocalVersions
from swift_dss.wire import bundle

#: Reads a small version and all its local bytes, proven.
Read = Callable[[VersionId, str], Tuple[LocalVersion, bytes]]


class Replicas:
    """Looks at the devices of this node. Thread-safe."""

    def __init__(self, local: LocalVersions, read: Read) -> None:
        self._local = local
        self._read = read

    def are_here(self, holders: Iterable[Tuple[VersionId, str]]) -> bool:
        """True if a device of these has the version, or does not say."""
        for version, partition in holders:
            try:
                if self._local.newest(version, partition) == \
                        version.timestamp:
                    return True
            except TierUnavailable:
                return True
        return False

    def whole(self, source: Source, member: Member
              ) -> Tuple[bundle.Record, bytes]:
        """The newest record of a member, and its proven bytes: a replica here
        may have missed a POST that another node told of. Blocks.

        :param source: the bundle that it is in
        :raises DssError: neither the node nor the bundle gives it
        """
        record, data = self._from_here(member) or source.read(member)
        return source.newest(
            member, self._newest_of(member) or record), data

    def _newest_of(self, member: Member) -> Optional[bundle.Record]:
        """The newest record of a version: a POST may have come since."""
        try:
            return metadata.record_of(self._local.describe(
                member.version, member.partition))
        except (VersionGone, TierUnavailable, DamagedRecord):
            return None

    def _from_here(self, member: Member
                   ) -> Optional[Tuple[bundle.Record, bytes]]:
        """The newest record and the local bytes, if they are here."""
        try:
            local, data = self._read(member.version, member.partition)
        except (VersionGone, TierUnavailable, DamagedRecord,
                RemoteCorrupt):
            return None
        return metadata.record_of(local), data
