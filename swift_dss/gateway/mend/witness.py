"""Asking S3 again, before the last local bytes of a version go.

A record says that S3 *had* a version when it was uploaded. Since then a
lifecycle rule or an administrator may have removed its key. So the key is
asked for once more (HEAD: size and ETag as the record says), and only that
answer lets the last local bytes go.

An answer serves for ``ANSWER_SECONDS``: all members of a bundle that leave
together cost one request, and what :meth:`Asker.ask_ahead` asked for side by
side is there when the moves come to it. One HEAD a version costs $0.40 a
million, where its upload cost $5; a listing costs as much as 12.5 HEADs and
names 1,000 keys, so it would be cheaper where more than 12 of 1,000
neighbouring keys leave at once. Keys begin with a hash, so those that leave
together are no neighbours: nothing is listed here.

A key that is missing may be that of a bundle that its keeper has rewritten:
the record then names the place that the other primaries name, or the version's
own key. Otherwise, where all bytes are here, the record stops claiming the
key, and the version is sent again, whatever the rank of this node. A key that
is there and differs is read back, and put right by the same means as
``swift-dss gateway verify --repair``.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Dict, Optional, Sequence, Tuple

from swift_dss.core.errors import (
    DssError, RemoteCorrupt, VersionGone)
from swift_dss.core.residency import RemoteCopy
from swift_dss.gateway.around import Around
from swift_dss.gateway.bundle.book import Book
from swift_dss.gateway.form import encrypt
from swift_dss.gateway.form.prefix import Prefix
from swift_dss.gateway.link.client import S3Client, S3Head
from swift_dss.gateway.mend.repair import Repaired, Repairer
from swift_dss.gateway.mend.repairs import Repairs
from swift_dss.gateway.ports import (
    LocalVersion, LocalVersions, NotProven, Witness)
from swift_dss.gateway.up.jobs import Jobs
from swift_dss.gateway.up.parking import Parking
from swift_dss.io import steps

#: So long an answer of S3 about a key is believed.
ANSWER_SECONDS = 10.0
#: Requests at a time: at 30 ms each, 500 versions a second.
ASKERS = 16
#: Answers that are kept: 200 bytes each.
_ANSWERS = 10000


@dataclass(frozen=True)
class Means:
    """The parts of the gateway that help where a copy is missing.

    :param jobs: has a version be uploaded from here, now
    :param parking: marks a version's members in bundles dead
    :param repairs: read a copy back, and repair it
    :param repairer: has a record name another place that proves right
    :param prefix: whose it is: another cluster may delete its keys
    """

    book: Book
    jobs: Jobs
    parking: Parking
    repairs: Repairs
    repairer: Repairer
    prefix: Prefix


class Asker(Witness):
    """The gateway's witness. Thread-safe."""

    def __init__(self, around: Around, client: S3Client,
                 local: LocalVersions, means: Means) -> None:
        self._conf = around.conf
        self._table = around.table
        self._client = client
        self._local = local
        self._means = means
        self._metrics = around.metrics
        self._logger = around.logger
        self._clock = around.clock
        self._lock = threading.Lock()
        self._answers: OrderedDict[str, Tuple[float, S3Head]] = OrderedDict()
        self._asked: Dict[str, Future[Optional[S3Head]]] = {}
        self._askers = around.pool(ASKERS, 'dss-s3-ask')

    def stop(self) -> None:
        """Let the threads end."""
        self._askers.shutdown(wait=True)

    def ask_ahead(self, leaving: Sequence[LocalVersion]) -> None:
        """See :meth:`Witness.ask_ahead`."""
        keys = {local.residency.remote.key for local in leaving
                if local.residency.remote is not None
                and local.residency.remote.endpoint == self._conf.endpoint}
        for _ in self._askers.map(self._ask_quietly, keys):
            pass

    def proven(self, local: LocalVersion) -> RemoteCopy:
        """See :meth:`Witness.proven`."""
        remote = self._named(local)
        self._means.prefix.require_for_proof()
        head = self._answer(remote.key)
        if head is None:
            # Rewrites of bundles and repairs run at the same time.
            local = self._local.describe(local.version, local.partition)
            before, remote = remote, self._named(local)
            if before != remote:
                head = self._answer(remote.key)
        if head is None:
            if self._means.repairer.follow(local):
                self._metrics.count('gateway.proof_followed')
                return self._named(self._local.describe(
                    local.version, local.partition))
            self._send_again(local)
        elif head.archived:
            raise NotProven(
                '%s is in storage class %s, where it cannot be read: local '
                'bytes stay' % (remote.key, head.archived),
                self._conf.retry_after_seconds)
        elif self._is_as_recorded(local, remote, head):
            return remote
        return self._repaired(local, remote, head)

    def kept(self, local: LocalVersion) -> RemoteCopy:
        """As :meth:`proven`, of a version of which others have stubs. If the
        record here names no copy, the version is sent first, which finds a
        copy that is there. One whose class here keeps it on this cluster is
        not sent, but looked for: the others heard of a later class.

        :raises DssError: as :meth:`Witness.proven`
        """
        if local.residency.remote is None:
            if self._table().may_leave(local.class_ids):
                self._insist(local)
            elif self._means.repairer.follow(local):
                local = self._local.describe(local.version, local.partition)
        return self.proven(local)

    def said(self, key: str) -> Optional[S3Head]:
        """S3's answer about a key within the last ``ANSWER_SECONDS``; None if
        S3 would be asked now. Does not block."""
        answer = self._answers.get(key)
        if answer is None or \
                self._clock.monotonic() - answer[0] >= ANSWER_SECONDS:
            return None
        return answer[1]

    # -- inside ----------------------------------------------------------

    def _named(self, local: LocalVersion) -> RemoteCopy:
        remote = local.residency.remote
        after = self._conf.retry_after_seconds
        if remote is None:
            raise NotProven('%s is not in S3 yet'
                            % local.version.key, after)
        if remote.endpoint != self._conf.endpoint:
            raise NotProven('its copy is at %r, and %r is asked' % (
                remote.endpoint, self._conf.endpoint), after)
        return remote

    def _ask_quietly(self, key: str) -> None:
        try:
            self._answer(key)
        except DssError:
            return  # the move asks again, and is told

    def _answer(self, key: str) -> Optional[S3Head]:
        """S3's answer about a key, of now or a moment ago; None if it has
        none. One request serves all callers that ask at once.
        """
        with self._lock:
            said = self.said(key)
            if said is not None:
                return said
            waiting = self._asked.get(key)
            mine: Future[Optional[S3Head]] = Future()
            if waiting is None:
                self._asked[key] = mine
        if waiting is not None:
            return waiting.result()
        began = self._clock.monotonic()
        try:
            head = self._client.head(key)
            self._metrics.count('gateway.proof_requests')
            self._keep(key, began, head)
            mine.set_result(head)
            return head
        except BaseException as err:
            mine.set_exception(err)
            raise
        finally:
            with self._lock:
                del self._asked[key]

    def _keep(self, key: str, at: float, head: Optional[S3Head]) -> None:
        with self._lock:
            self._answers.pop(key, None)
            if head is None:
                return
            self._answers[key] = (at, head)
            while len(self._answers) > _ANSWERS:
                self._answers.popitem(last=False)

    def _is_as_recorded(self, local: LocalVersion, remote: RemoteCopy,
                        head: S3Head) -> bool:
        length = encrypt.sealed_length(local.content_length) \
            if remote.seal else local.content_length
        if not remote.in_bundle:
            return head.size == length and head.etag == remote.etag
        # A bundle's key is never written twice; its records have the
        # digests of their members, not its own.
        known = self._means.book.size_of(remote.key)
        return head.size == known if known is not None else \
            head.size > remote.offset + length

    def _send_again(self, local: LocalVersion) -> None:
        """:raises DssError: always, as :meth:`Witness.proven`"""
        version = local.version
        self._metrics.count('gateway.proof_missing')
        name = local.metadata.get('name', version.key)
        if not local.residency.is_local:
            self._left_to_others(local)
            self._metrics.count('gateway.proof_lost')
            self._logger.error(
                'gateway: %s on %s: S3 has no %s any more, and not all of '
                'its bytes are here: the local bytes stay', name,
                version.device, self._named(local).key)
            raise RemoteCorrupt('%s: S3 has lost it, and not all of its bytes '
                                'are here' % name)
        # Before the record forgets its bundle: the upload of a version that
        # the book has in one would only name it again.
        self._means.parking.take_out(version)
        try:
            self._local.forget_remote(version, local.partition)
        except ValueError as err:
            raise VersionGone('%s was moved just now' % name) from err
        # From here on its bytes stay, also over a power cut.
        steps.reached('proof.forgotten')
        self._insist(local)
        self._metrics.count('gateway.proof_sent_again')
        self._logger.warning(
            'gateway: %s on %s: S3 has no %s any more; it is sent again '
            'from here', name, version.device, self._named(local).key)
        raise NotProven(
            '%s: S3 has lost it; it is sent again from here'
            % name, self._conf.retry_after_seconds)

    def _insist(self, local: LocalVersion) -> None:
        table = self._table()
        self._means.jobs.insist(local.version, local.partition, max(
            local.class_ids, key=lambda class_id: table.spec(class_id).rank))

    def _left_to_others(self, local: LocalVersion) -> None:
        """S3 has lost a stub's key; try the repair.

        :raises DssError: something was done
        """
        try:
            outcome = self._means.repairs.repair(
                [(local.version, local.partition)])
        except RemoteCorrupt:
            return
        if outcome in (Repaired.ASIDE, Repaired.OBSOLETE):
            raise VersionGone('%s is on its way out' % local.version.key)
        raise NotProven('%s: S3 has lost it; the stub was repaired'
                        % local.version.key, self._conf.retry_after_seconds)

    def _repaired(self, local: LocalVersion, asked: RemoteCopy,
                  head: Optional[S3Head]) -> RemoteCopy:
        """After S3 said something else of the key than the record."""
        self._metrics.count('gateway.proof_differs')
        outcome = self._means.repairs.repair(
            [(local.version, local.partition)])
        if outcome in (Repaired.OBSOLETE, Repaired.ASIDE):
            raise VersionGone('%s is on its way out' % local.version.key)
        now = self._local.describe(local.version, local.partition)
        remote = self._named(now)
        if outcome is Repaired.RIGHT and remote != asked:
            raise VersionGone('%s was moved just now' % local.version.key)
        if outcome is Repaired.RIGHT and head is not None:
            remote = self._renamed(now, remote, head)
        return remote

    def _renamed(self, local: LocalVersion, remote: RemoteCopy,
                 head: S3Head) -> RemoteCopy:
        """All bytes proved right, and S3 calls them by another ETag: the
        bucket was copied, or is encrypted in another way. The record says
        so from here on, or each question would read all of them again."""
        renamed = replace(remote, etag=head.etag)
        if renamed == remote or \
                not self._is_as_recorded(local, renamed, head):
            return remote
        self._local.record_remote(local.version, local.partition, renamed)
        steps.reached('proof.renamed')
        self._metrics.count('gateway.proof_renamed')
        return renamed
