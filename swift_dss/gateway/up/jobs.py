"""The life of an upload: one owner, one table.

A row of the queue says that S3 may lack a version of a device. It is durable,
and says when to look. A *claim* says that one thread has the version's key: it
is in memory, so after a crash every row is free again. :class:`Jobs` owns
both: no other part makes, defers or ends rows of uploads, or gives keys to
threads. The replicas of this node share a key, and with it the claim.

Steps of the thread that has the claim, and of those that interfere:

===========  =========  =========  ==========  ==========  =========  ========
step         free       claimed    sending     verifying   cancelled  deleting
===========  =========  =========  ==========  ==========  =========  ========
claim        claimed    busy       busy        busy        busy       busy
send         --         sending    sending     --          stop       --
verify       --         verifying  verifying   --          cancelled  --
park         --         free       --          --          free       --
wait         --         free       --          --          free       --
leave_alone  --         free       --          --          free       --
retry        --         free       free        free        free       --
finish       --         free       --          free        free       --
drop         --         free       free        free        free       --
release      free       free       free        free        free       free
cancel       free       cancelled  cancelled   cancelled   cancelled  deleting
delete       deleting   cancelled  cancelled   cancelled   cancelled  deleting
===========  =========  =========  ==========  ==========  =========  ========

``--`` is a defect of the caller: :class:`OutOfTurn`. ``busy`` gives the caller
no claim. ``stop`` raises :class:`Cancelled`; a version that S3 has been given
already is still verified. So nothing counts as done while it is sent, one
thread at a time sends a version, and no thread sends a key while another
deletes it.

Rows: *park*, *wait*, *leave_alone* and *retry* keep them, for another time, in
a bundle, or for an upload of their own; *finish* and *drop* end them; *cancel*
ends those without a multipart upload; the rest leaves them as they are.
:meth:`enqueue` makes them. A bundle ends, puts off or lets go the rows of its
members (:meth:`settle`, :meth:`put_off`, :meth:`single_out`) in any state,
claimed or not: they change rows alone.
"""

from __future__ import annotations

import threading
from enum import Enum
from typing import Dict, Iterable, List, Mapping, Sequence, Tuple, Union

from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import DssError, VersionGone
from swift_dss.core.version import VersionId
from swift_dss.gateway.bundle.shelves import MemberRows
from swift_dss.gateway.link.client import S3Down
from swift_dss.gateway.link.retry import Backoff
from swift_dss.gateway.looper import Bell
from swift_dss.gateway.peers.succession import Succession
from swift_dss.gateway.ports import Upload
from swift_dss.gateway.queue import DeleteJob, Queue, UploadJob
from swift_dss.gateway.up.standing import Standing
from swift_dss.io.workers import Clock
from swift_dss.wire.layout import remote_key

Job = Union[UploadJob, DeleteJob]


class State(Enum):
    """Of a version's key on this node."""

    FREE = 'free'
    CLAIMED = 'claimed'
    SENDING = 'sending'
    VERIFYING = 'verifying'
    CANCELLED = 'cancelled'
    DELETING = 'deleting'


class Step(Enum):
    """See the table."""

    CLAIM = 'claim'
    SEND = 'send'
    VERIFY = 'verify'
    PARK = 'park'
    WAIT = 'wait'
    LEAVE_ALONE = 'leave_alone'
    RETRY = 'retry'
    FINISH = 'finish'
    DROP = 'drop'
    RELEASE = 'release'
    CANCEL = 'cancel'
    DELETE = 'delete'


def _table() -> Mapping[Tuple[State, Step], State]:
    made: Dict[Tuple[State, Step], State] = {
        (State.FREE, Step.CLAIM): State.CLAIMED,
        (State.FREE, Step.DELETE): State.DELETING,
        (State.CLAIMED, Step.SEND): State.SENDING,
        (State.SENDING, Step.SEND): State.SENDING,  # over wrong bytes
        (State.CLAIMED, Step.VERIFY): State.VERIFYING,
        (State.SENDING, Step.VERIFY): State.VERIFYING,
        (State.CANCELLED, Step.VERIFY): State.CANCELLED,
        (State.FREE, Step.CANCEL): State.FREE,
        (State.DELETING, Step.CANCEL): State.DELETING,
        (State.DELETING, Step.DELETE): State.DELETING}
    held = State.CLAIMED, State.SENDING, State.VERIFYING, State.CANCELLED
    for state in held:
        for step in (Step.CANCEL, Step.DELETE):
            made[state, step] = State.CANCELLED
        for step in (Step.RETRY, Step.DROP):
            made[state, step] = State.FREE
    for state in (State.CLAIMED, State.CANCELLED):
        for step in (Step.PARK, Step.WAIT, Step.LEAVE_ALONE):
            made[state, step] = State.FREE
    for state in (State.CLAIMED, State.VERIFYING, State.CANCELLED):
        made[state, Step.FINISH] = State.FREE
    for state in State:
        made[state, Step.RELEASE] = State.FREE
    return made


#: The table of the module's docstring: the state after an allowed step.
TRANSITIONS = _table()


class Cancelled(VersionGone):
    """The version became obsolete while it was sent."""


class OutOfTurn(RuntimeError):
    """A step that the table does not have: a defect of the caller."""


class Jobs(MemberRows):
    """See the module. Thread-safe; steps that change rows block on the queue's
    disk and raise :class:`TierUnavailable` if it fails, with the claim as it
    was.

    :param retry: waits of jobs that failed
    """

    def __init__(self, conf: GatewayConf, queue: Queue, line: Succession,
                 standing: Standing, retry: Backoff, clock: Clock) -> None:
        self._conf = conf
        #: Other parts read its rows, and change those of deletes.
        self.queue = queue
        self.line = line
        self.backoff = retry
        self._clock = clock
        self.standing = standing
        #: Rings when a row may be due for a worker.
        self.due = Bell(clock)
        #: Rings when a row may be due for a bundle.
        self.parkable = Bell(clock)
        #: Rings when a bundle may be due.
        self.bundling = Bell(clock)
        self._lock = threading.Lock()
        #: (job, state) by version key; a key that is not here is free.
        self._claims: Dict[str, Tuple[Job, State]] = {}

    def enqueue(self, wanted: Iterable[Upload]) -> None:
        """Note that S3 may lack these versions, in one transaction.
        Idempotent.
        """
        now = self._clock.wall()
        rows = [(upload.version,
                 self.line.partition(upload.version, upload.partition),
                 self._due(upload, now), upload.class_id) for upload in wanted]
        if rows:
            self.queue.add_uploads(rows, now)
            self.due.ring(min(row[2] for row in rows))
            self.parkable.ring()

    def insist(self, version: VersionId, partition: str,
               class_id: int) -> None:
        """Have a version be uploaded from this node now, whatever its rank:
        others may believe that S3 has it."""
        now = self._clock.wall()
        self.queue.add_uploads([(
            version, self.line.partition(version, partition), now,
            class_id)], self.line.seen_for_turn(version))
        self.due.ring(now)
        self.parkable.ring()

    def cancel(self, obsolete: Sequence[Tuple[VersionId, str, float]]
               ) -> None:
        """These are overwritten or deleted: end their uploads, and note,
        durably, that their keys must go. Idempotent.

        :param obsolete: (version, partition or '', when to delete it)
        """
        self.queue.replace_uploads([
            (remote_key(self._conf.prefix, version), version,
             self.line.partition(version, partition), due)
            for version, partition, due in obsolete], self._clock.wall())
        with self._lock:
            for version, _, _ in obsolete:
                self._step(version.key, Step.CANCEL)

    def hurry(self) -> None:
        """Let no version wait for its age any more."""
        self.queue.hurry(self._clock.wall())
        self.parkable.ring()
        self.due.ring()

    def try_again(self) -> None:
        """S3 is back: failed uploads are due in the order of their age."""
        self.queue.again(self._clock.wall())

    # -- claims -------------------------------------------------------------

    def claim(self, jobs: Sequence[UploadJob]) -> List[UploadJob]:
        """Take the jobs of these that no other thread has."""
        taken: List[UploadJob] = []
        with self._lock:
            for job in jobs:
                if job.version.key not in self._claims:
                    self._claims[job.version.key] = job, State.CLAIMED
                    taken.append(job)
        return taken

    def claim_delete(self, job: DeleteJob) -> bool:
        """Take a key that is to be deleted; False, and an upload of it ends,
        if another thread has it."""
        with self._lock:
            is_free = job.version.key not in self._claims
            if is_free:
                self._claims[job.version.key] = job, State.FREE
            self._step(job.version.key, Step.DELETE)
        return is_free

    def release(self, jobs: Iterable[Job]) -> None:
        """Give back those of these claims that are still held. A delete could
        not run meanwhile."""
        was_cancelled = False
        with self._lock:
            for job in jobs:
                held = self._claims.get(job.version.key)
                if held is not None and held[0] is job:
                    was_cancelled |= self._end(job, Step.RELEASE)
        if was_cancelled:
            self.due.ring()

    def state(self, key: str) -> State:
        """The state of a version's key."""
        held = self._claims.get(key)
        return State.FREE if held is None else held[1]

    def claimed(self) -> int:
        """How many keys threads have."""
        return len(self._claims)

    def is_cancelled(self, key: str) -> bool:
        """True if the version became obsolete since its claim."""
        return self.state(key) is State.CANCELLED

    # -- steps of the thread that has the claim -----------------------------

    def send(self, key: str) -> None:
        """Bytes go to S3 from here on.

        :raises Cancelled: the version is obsolete by now
        """
        with self._lock:
            if self.state(key) is State.CANCELLED:
                raise Cancelled('%s: overwritten or deleted meanwhile' % key)
            self._step(key, Step.SEND)

    def verify(self, key: str) -> None:
        """S3 was given, or has, the version: that is to be proven."""
        with self._lock:
            self._step(key, Step.VERIFY)

    def park(self, jobs: Sequence[UploadJob], again_at: float) -> None:
        """These wait in the book for a bundle. Their rows stay: they say that
        the versions are dirty.

        :param again_at: when to park them again, if the book was lost
        """
        self.queue.wait((job.version, again_at) for job in jobs)
        self._ended(jobs, Step.PARK)

    def wait(self, jobs: Sequence[UploadJob]) -> None:
        """It is another replica's turn: look again later. No failure."""
        if jobs:
            self.queue.wait((job.version, self.line.look_again_at(
                job.attempts)) for job in jobs)
            self._ended(jobs, Step.WAIT)

    def leave_alone(self, jobs: Sequence[UploadJob]) -> None:
        """These share no S3 object with others: a worker sends each."""
        if jobs:
            self.queue.go_alone(job.version for job in jobs)
            self._ended(jobs, Step.LEAVE_ALONE)
            self.due.ring()

    def again_at(self, job: Job, err: DssError) -> float:
        """When to try a job again that failed; wall clock."""
        # A job that was not even sent (breaker open) did not fail.
        tried = not isinstance(err, S3Down)
        failures = job.failures if isinstance(job, UploadJob) \
            else job.attempts
        return self._clock.wall() + self.backoff.seconds(
            failures + 1 if tried else 1)

    def retry(self, job: UploadJob, err: DssError, at: float) -> None:
        """An upload failed: try it again then."""
        self.standing.failed(err)
        self.queue.retry_upload(job.version, at, text_of(err),
                                not isinstance(err, S3Down))
        self._ended([job], Step.RETRY)

    def finish(self, jobs: Sequence[UploadJob]) -> None:
        """S3 has these, and their records say so."""
        self._out(jobs, Step.FINISH)

    def drop(self, jobs: Sequence[UploadJob]) -> None:
        """These are obsolete, gone, or must not leave the cluster."""
        self._out(jobs, Step.DROP)

    # -- rows of a bundle's members -----------------------------------------

    def settle(self, versions: Iterable[VersionId]) -> None:
        """See :meth:`MemberRows.settle`."""
        self.queue.finish_uploads(versions)

    def put_off(self, version: VersionId, seconds: float,
                err: DssError) -> None:
        """See :meth:`MemberRows.put_off`."""
        self.queue.retry_upload(version, self._clock.wall() + seconds,
                                text_of(err))

    def single_out(self, versions: Sequence[VersionId]) -> None:
        """See :meth:`MemberRows.single_out`."""
        self.queue.go_alone(versions)
        now = self._clock.wall()
        self.queue.wait((version, now) for version in versions)
        self.due.ring()

    def follow(self, version: VersionId) -> None:
        """S3 has this one: replicas on other devices here look at once."""
        self.queue.look_now(version, self._clock.wall())

    # -- inside -------------------------------------------------------------

    def _due(self, upload: Upload, now: float) -> float:
        stamp, _, _ = upload.version.timestamp.partition('_')
        return now if upload.urgent else self.line.first_look_after(
            upload.version) + max(
                now, float(stamp) + self._conf.remote_after_seconds)

    def _out(self, jobs: Sequence[UploadJob], step: Step) -> None:
        if jobs:
            self._may(jobs, step)
            self.queue.finish_uploads([job.version for job in jobs])
            self._ended(jobs, step)

    def _may(self, jobs: Sequence[UploadJob], step: Step) -> None:
        """Refuse a step before a row leaves that nothing brings back."""
        with self._lock:
            for job in jobs:
                self._check(job, step)

    def _ended(self, jobs: Iterable[UploadJob], step: Step) -> None:
        """The rows are written: the claims end, all of them."""
        was_cancelled = False
        with self._lock:
            for job in jobs:
                was_cancelled |= self._end(job, step)
        if was_cancelled:
            self.due.ring()

    def _end(self, job: Job, step: Step) -> bool:
        """End a claim; True if it had been cancelled."""
        self._check(job, step)
        return self._claims.pop(job.version.key)[1] is State.CANCELLED

    def _check(self, job: Job, step: Step) -> None:
        held = self._claims.get(job.version.key)
        if held is not None and held[0] is not job:
            raise OutOfTurn('%s: another thread has it' % job.version.key)
        self._after(job.version.key, step)

    def _after(self, key: str, step: Step) -> State:
        state = self.state(key)
        after = TRANSITIONS.get((state, step))
        if after is None:
            raise OutOfTurn('%s: %s of one that is %s' % (
                key, step.value, state.value))
        return after

    def _step(self, key: str, step: Step) -> None:
        held = self._claims.get(key)
        after = self._after(key, step)
        if held is not None:
            self._claims[key] = held[0], after


def text_of(err: DssError) -> str:
    """An error as rows and logs show it."""
    return '%s: %s' % (type(err).__name__, err)
