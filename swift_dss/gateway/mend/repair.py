"""Repair a copy in S3 that is missing or wrong.

The right bytes are searched in this order: another place in S3 (in the record
of a replica here, in a later bundle that other primaries name, or under the
version's own key, which another node may have sent), then the local bytes of
any replica on this node. If there are none, but another primary
has the version without that copy, the stub goes into quarantine, and
replication brings the version again: with the stub in place no primary would
send it. Nothing is taken on trust: a copy is read back before a record names
it, and sent bytes have the digest of the version's own ETag. Nothing is ever
deleted, here or there. From the moment that S3 is known not to have a version
until it has been proven to have it again no local byte of it may leave, also
over a power cut.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Dict, List, Optional, Sequence, Tuple

from swift_dss.core.errors import (
    DamagedRecord, DssError, RemoteCorrupt, TierUnavailable, VersionGone)
from swift_dss.core.residency import RemoteCopy
from swift_dss.core.version import VersionId
from swift_dss.gateway.around import Around
from swift_dss.gateway.bundle.follow import Follower
from swift_dss.gateway.down.supply import Supply
from swift_dss.gateway.form import verify
from swift_dss.gateway.form.own_record import own_copy
from swift_dss.gateway.link.client import S3Client, S3Missing
from swift_dss.gateway.peers.aside import Asides
from swift_dss.gateway.ports import LocalVersion, LocalVersions, Upload
from swift_dss.gateway.up.jobs import Jobs
from swift_dss.gateway.up.parking import Parking
from swift_dss.gateway.up.upload import Uploader
from swift_dss.io import steps
from swift_dss.strategy.agreement import Aside

#: A version on a device, and its partition.
Copy = Tuple[VersionId, str]


class Repaired(Enum):
    """How a repair ended."""

    #: Nothing is wrong, or not any more.
    RIGHT = 'right'
    #: S3 has it in another place; the records name that one now.
    FOUND = 'found'
    SENT = 'sent'
    #: Put into quarantine: another primary has it, and sends it.
    ASIDE = 'aside'
    #: Overwritten, deleted or moved away by now.
    OBSOLETE = 'obsolete'


@dataclass(frozen=True)
class Remedies:
    """The parts of the gateway that a repair works with.

    :param supply: reads all of a version from S3, or says that it is wrong
    :param uploader: sends a version to its own key, proves and records it
    :param parking: has a record name the proven bundle that the version is
        in, and marks its members dead
    :param asides: put a version into quarantine that another primary has
    :param follower: knows the places in the primaries' records
    """

    supply: Supply
    uploader: Uploader
    parking: Parking
    jobs: Jobs
    asides: Asides
    follower: Follower


class Repairer:
    """Does repairs, one version per call, in any thread. Idempotent."""

    def __init__(self, around: Around, client: S3Client,
                 local: LocalVersions, remedies: Remedies) -> None:
        self._conf = around.conf
        self._client = client
        self._local = local
        self._remedies = remedies

    def repair(self, copies: Sequence[Copy]) -> Repaired:
        """Repair S3's copy of a version.

        :param copies: of one version, on every device of this node
        :raises RemoteCorrupt: it cannot be put right from this node; S3
            and the records are as they were
        :raises DssError: it cannot be said, or not be done, now
        """
        known = self._described(copies)
        if not known or self._is_obsolete(known[0]):
            return Repaired.OBSOLETE
        wrong, right, why = self._judged(known)
        if not wrong:
            return Repaired.RIGHT
        copy = right or self._elsewhere(known[0], wrong)
        if copy is None:
            return self._send(known, wrong, why)
        for local in wrong:
            self._point(local, copy)
        return Repaired.FOUND

    def follow(self, local: LocalVersion) -> bool:
        """Have the record of a version that S3 lacks in its place name another
        one that proved right; False if there is none. Blocks.

        :raises DssError: it cannot be said, or not be done, now
        """
        copy = self._elsewhere(local, [local])
        if copy is None:
            return False
        self._point(local, copy)
        return True

    # -- inside ----------------------------------------------------------

    def _described(self, copies: Sequence[Copy]) -> List[LocalVersion]:
        locals_here: List[LocalVersion] = []
        for version, partition in copies:
            try:
                locals_here.append(self._local.describe(version, partition))
            except VersionGone:
                continue
        return locals_here

    def _is_obsolete(self, local: LocalVersion) -> bool:
        newest = self._local.newest(local.version, local.partition)
        return newest is not None and newest > local.version.timestamp

    def _judged(self, known: Sequence[LocalVersion]
                ) -> Tuple[List[LocalVersion], Optional[RemoteCopy], str]:
        """(those whose copy is wrong, a place that proved right, why)."""
        wrong: List[LocalVersion] = []
        right: Optional[RemoteCopy] = None
        said: Dict[Tuple[str, int, str], str] = {}
        for local in known:
            remote = local.residency.remote
            if remote is None:
                continue
            if remote.endpoint != self._conf.endpoint:
                raise RemoteCorrupt('its copy is at %r, not at %r' % (
                    remote.endpoint, self._conf.endpoint))
            place = (remote.key, remote.offset, remote.seal)
            if place not in said:
                said[place] = self._wrong(local)
            if said[place]:
                wrong.append(local)
            else:
                right = remote
        return wrong, right, next(filter(None, said.values()), '')

    def _wrong(self, local: LocalVersion) -> str:
        """Why S3's copy is not right; '' if it is."""
        try:
            self._remedies.supply.prove(local)
        except (RemoteCorrupt, S3Missing) as err:
            return str(err)
        return ''

    def _elsewhere(self, local: LocalVersion,
                   wrong: Sequence[LocalVersion]) -> Optional[RemoteCopy]:
        """A later bundle's member or the version's own key, if S3 has it
        there, read back and proven, and no record names that already."""
        named = [(other.residency.remote.key, other.residency.remote.seal)
                 for other in wrong if other.residency.remote is not None]
        for look in (self._remedies.follower.find, partial(
                own_copy, self._conf, self._client)):
            copy = look(local)
            if copy is None or (copy.key, copy.seal) in named:
                continue
            try:
                if not self._wrong(replace(
                        local, residency=local.residency.with_remote(copy))):
                    return copy
            except DamagedRecord:
                continue  # a seal that does not open
        return None

    def _point(self, local: LocalVersion, copy: RemoteCopy) -> None:
        """Have a record name a proven place."""
        version, partition = local.version, local.partition
        if copy.in_bundle:
            # A rewrite of the bundle must know this device first.
            if not self._remedies.parking.settle(
                    version, partition, local, copy.key) and \
                    not self._remedies.follower.take([(local, copy)]):
                raise VersionGone('%s left %s just now' % (
                    version.key, version.device))
            return
        self._local.record_remote(version, partition, copy)
        steps.reached('repair.pointed')

    def _send(self, known: Sequence[LocalVersion],
              wrong: Sequence[LocalVersion], why: str) -> Repaired:
        sound = [local for local in known if verify.is_sound(
            self._local, local.version, local.partition)]
        if not sound:
            if self._put_aside(wrong):
                return Repaired.ASIDE
            raise RemoteCorrupt(
                'S3 has it wrong (%s), and no device of this node has all '
                'of its bytes' % why)
        # Before a record forgets its bundle: the upload of a version that
        # the book has in one would only name it again.
        self._remedies.parking.take_out(known[0].version)
        steps.reached('repair.taken_out')
        sources = [local for local in sound if self._forget(local)]
        if not sources:
            raise TierUnavailable('its bytes were evicted just now')
        source = sources[0]
        try:
            self._remedies.uploader.resend(
                source.version, source.partition)
        except DssError:
            self._remedies.jobs.enqueue([
                Upload(local.version, local.partition) for local in sources])
            raise
        steps.reached('repair.sent')
        sent = self._local.describe(source.version, source.partition)
        if sent.residency.remote is not None:
            for local in wrong:
                if local.version != source.version:
                    self._point_left(local, sent.residency.remote)
        return Repaired.SENT

    def _put_aside(self, wrong: Sequence[LocalVersion]) -> bool:
        """Make room for the version from other primaries; False if they have
        not got it either, or do not say.
        """
        aside = False
        for local in wrong:
            if local.residency.remote is None or local.residency.is_local:
                continue
            try:
                verdict = self._remedies.asides.put_aside(local)
            except VersionGone:
                continue
            aside = aside or verdict is Aside.YES
        return aside

    def _point_left(self, local: LocalVersion, copy: RemoteCopy) -> None:
        try:
            self._point(local, copy)
        except VersionGone:
            pass

    def _forget(self, local: LocalVersion) -> bool:
        """From here on its bytes stay; False if they have just left."""
        try:
            self._local.forget_remote(local.version, local.partition)
        except (ValueError, VersionGone):
            return False
        steps.reached('repair.forgotten')
        return True

