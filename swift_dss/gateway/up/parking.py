"""Small versions wait for a bundle, or are found in one.

A parked version is in the book, and its row of the queue stays: the row says
that the version is dirty.
"""

from __future__ import annotations

import time
from typing import (
    Container, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple)

from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import VersionGone
from swift_dss.core.version import VersionId
from swift_dss.gateway.around import Around
from swift_dss.gateway.bundle.book import Book, Parked
from swift_dss.gateway.bundle.follow import Follower, Place
from swift_dss.gateway.bundle.pack import Packer, batch_of, group_of
from swift_dss.gateway.form import metadata
from swift_dss.gateway.ports import LocalVersion
from swift_dss.gateway.queue import UploadJob
from swift_dss.gateway.restore.places import Places
from swift_dss.gateway.up.jobs import Jobs
from swift_dss.gateway.up.offers import Offer
from swift_dss.gateway.up.upload import Outcome
from swift_dss.wire import bundle

#: Upload rows of parked versions come back after this many ages: if the book
#: was lost, they are parked again.
_AGES = 3
#: Parking lets a late bundle go first for so long, and asks this often.
_LATE_SECONDS, _LATE_STEP_SECONDS = 1.0, 0.005


class Parking:
    """Parks versions, and settles those that are in a bundle already.
    Thread-safe.

    :param packer: has records name bundles of this node
    :param follower: finds versions that other nodes have packed
    :param places: get the containers of versions that go up
    """

    def __init__(self, around: Around, jobs: Jobs, book: Book,
                 packer: Packer, follower: Follower, places: Places) -> None:
        self._conf = around.conf
        self._clock = around.clock
        self._stopping = around.stopping
        self._jobs = jobs
        self._book = book
        self._packer = packer
        self._follower = follower
        self._places = places
        #: Classes that more is to be parked of at once.
        self.coming: FrozenSet[int] = frozenset()
        #: Held while parking; not reentrant.
        self.baton = packer.baton.hold

    def let_late_go_first(self) -> None:
        """Wait while the link has nothing and a bundle is being packed, for
        a second at most."""
        until = time.monotonic() + _LATE_SECONDS
        while self._packer.is_late and time.monotonic() < until and \
                not self._stopping.wait(_LATE_STEP_SECONDS):
            pass

    def takes(self, offer: Offer, table: ClassTable) -> Optional[Outcome]:
        """:meth:`take_all` for one."""
        return self.take_all([offer], table)[0]

    def take_all(self, offers: Sequence[Offer],
                 table: ClassTable) -> List[Optional[Outcome]]:
        """Park versions that go into a bundle, settle those that are in a
        proven one already, here or of another node; None for those that need a
        key of their own, or have left the device."""
        groups = [None if offer.job.alone
                  or offer.local.residency.remote is not None else
                  group_of(offer.local, table, self._conf.bundle_member_bytes)
                  for offer in offers]
        keys = [offer.job.version.key for offer, group in zip(offers, groups)
                if group is not None]
        known = self._book.find_all(keys)
        taken_out = self._book.buried(keys)
        elsewhere = self._elsewhere(offers, groups)
        said: List[Optional[Outcome]] = []
        parked: List[Tuple[Offer, str]] = []
        for offer, group in zip(offers, groups):
            outcome = None if group is None or \
                offer.job.version.key in taken_out \
                else self._judge(offer, known, elsewhere)
            said.append(outcome)
            if group is not None and outcome is Outcome.PARKED:
                parked.append((offer, group))
        if parked:
            self._park(parked)
        return said

    def take_out(self, version: VersionId) -> None:
        """A version is to have a key of its own: its members in bundles are
        dead from now on. Durable, idempotent.
        """
        self._book.bury([version.key])
        self._jobs.bundling.ring()

    def settle(self, version: VersionId, partition: str,
               local: LocalVersion, bundle_key: str) -> bool:
        """Have a record name a bundle of this node that the version is in;
        False if the book has it in another one, or in none."""
        known = self._book.find(version.key)
        return known is not None and known[1].key == bundle_key and \
            self._settled(UploadJob(version, partition, 0.0, 0.0), local)

    def went_up(self, local: LocalVersion) -> None:
        """Something of its account and container is in S3 now."""
        self._places.note(local.metadata.get('name', ''))

    # -- inside ----------------------------------------------------------

    def _elsewhere(self, offers: Sequence[Offer],
                   groups: Sequence[Optional[str]]
                   ) -> Dict[VersionId, Place]:
        """The places of versions that other nodes send first."""
        others = [offer.local for offer, group in zip(offers, groups)
                  if group is not None and not offer.is_first
                  and offer.local.content_length]
        here = self._book.known(local.version.key for local in others)
        wanted = [local for local in others
                  if local.version.key not in here]
        return self._follower.lean(wanted) if wanted else {}

    def _judge(self, offer: Offer, known: Container[str],
               elsewhere: Mapping[VersionId, Place]) -> Optional[Outcome]:
        if offer.job.version.key in known:
            try:
                if self._settled(offer.job, offer.local):
                    return Outcome.FOUND
            except VersionGone:
                return None
        place = elsewhere.get(offer.job.version)
        if place is None:
            return Outcome.PARKED if offer.may_send else Outcome.WAITING
        if place.alone:
            return None
        return Outcome.WAITING if place.remote is None else Outcome.FOUND

    def _park(self, offers: List[Tuple[Offer, str]]) -> None:
        now = self._clock.wall()
        before = {waiting.group for waiting in self._book.waiting()}
        new = self._book.park([Parked(
            offer.job.version, offer.job.partition, group,
            offer.local.content_length, offer.local.etag,
            bundle.pack_record(metadata.record_of(offer.local)))
            for offer, group in offers], now)
        self._jobs.park([offer.job for offer, _ in offers], now + max(
            60.0, _AGES * self._conf.bundle_age_seconds))
        for (offer, _), is_new in zip(offers, new):
            if is_new:
                self.went_up(offer.local)
        part = batch_of(self._conf).part
        if any(waiting.group not in before or part.is_full(waiting)
               for waiting in self._book.waiting()):
            self._jobs.bundling.ring()

    def _settled(self, job: UploadJob, local: LocalVersion) -> bool:
        entry = self._book.find(job.version.key)
        while entry is not None:
            member, where = entry
            if (member.size, member.etag) != (local.content_length,
                                              local.etag):
                return False
            # Before its record names the bundle: a rewrite of the bundle must
            # know this device.
            self._book.hold(job.version, job.partition)
            self._packer.point(where, member, job.version, job.partition)
            entry = self._book.find(job.version.key)
            if entry is not None and entry[1].id == where.id:
                return True
        return False
