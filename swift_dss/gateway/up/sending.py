"""Bundles that are due are packed and sent, and their records written.

A few workers build and send, so that the next bundle is read while another is
on the link; one more writes the records of those that are proven.
"""

from __future__ import annotations

import functools
import json
import threading
from typing import Callable, Container, Dict, List, Optional

from swift_dss.core.errors import DssError
from swift_dss.gateway.around import Around
from swift_dss.gateway.bundle.book import Book
from swift_dss.gateway.bundle.pack import Claim, Packer
from swift_dss.gateway.bundle.troubles import Troubles
from swift_dss.gateway.bundle.twins import Twins
from swift_dss.gateway.link import wan
from swift_dss.gateway.link.client import S3Down
from swift_dss.gateway.link.retry import Backoff
from swift_dss.gateway.up.jobs import Jobs
from swift_dss.strategy import bundling

#: Bundles on their way at a time: one is built and one proven while another
#: has the link.
SENDERS = 3
_RETRY_BASE_SECONDS = 1.0
_RETRY_CAP_SECONDS = 120.0


class Sending:
    """The workers, and groups of members whose bundle failed. One thread
    calls :meth:`send_due`.

    :param twins: finds members that others have packed
    """

    def __init__(self, around: Around, jobs: Jobs, book: Book,
                 packer: Packer, twins: Twins, troubles: Troubles) -> None:
        self._jobs = jobs
        self._book = book
        self._packer = packer
        self._twins = twins
        self._troubles = troubles
        self._metrics = around.metrics
        self._logger = around.logger
        self._clock = around.clock
        self._counting = threading.Lock()
        self._sending = 0
        self._recording = 0
        self._failures: Dict[str, int] = {}
        self._not_before: Dict[str, float] = {}
        self.workers = around.pool(SENDERS, 'dss-bundle')
        self._recorder = around.pool(1, 'dss-bundle-records')
        self.backoff = Backoff(_RETRY_BASE_SECONDS, _RETRY_CAP_SECONDS,
                               jobs.backoff.dice)

    def stop(self) -> None:
        """Let running bundles end. Nothing is sent after this."""
        self.workers.shutdown(wait=True)
        self._recorder.shutdown(wait=True)

    def under_way(self) -> int:
        """Bundles that are being sent or recorded."""
        with self._counting:
            return self._sending + self._recording

    def try_again(self) -> None:
        """S3 is back: what failed while it was down is due at once."""
        self._failures.clear()
        self._not_before.clear()

    def send_due(self, now: float, batch: bundling.Batch,
                 coming: Container[int]) -> Optional[float]:
        """Send bundles that are due while a worker is free; when the next one
        may be, or None.

        :param coming: classes that more is to be parked of at once
        """
        waiting = self._waiting(now)
        while self._has_slot():
            size = self._size(batch, coming)
            due = bundling.due(waiting, size, now)
            if not due or not self._submit(due[0], size(due[0])):
                break
            waiting = self._waiting(now)
        return min((at for at in (
            bundling.next_due(waiting, batch),
            min(self._not_before.values(), default=None))
            if at is not None and at > now), default=None)

    # -- inside ----------------------------------------------------------

    def _waiting(self, now: float) -> List[bundling.Waiting]:
        return [waiting for waiting in self._book.waiting()
                if self._not_before.get(waiting.group, 0.0) <= now]

    def _size(self, batch: bundling.Batch, coming: Container[int]
              ) -> Callable[[bundling.Waiting], bundling.Batch]:
        with self._counting:
            under_way = self._sending
        return lambda waiting: bundling.next_size(
            waiting, batch, under_way, _class_of(waiting.group) in coming)

    def _has_slot(self) -> bool:
        with self._counting:
            return self._sending < SENDERS

    def _submit(self, due: bundling.Waiting, batch: bundling.Batch) -> bool:
        if not bundling.saves(due):
            self._jobs.single_out(self._book.send_alone(due.group))
            return True
        claim = self._packer.claim(due, batch)
        if claim is None:
            return False
        with self._counting:
            self._sending += 1
        self.workers.submit(self._flush, claim)
        return True

    def _flush(self, claim: Claim) -> None:
        try:
            try:
                claim, alone = self._twins.settled_first(claim)
                if alone:
                    self._jobs.single_out(alone)
            except BaseException:
                self._book.give_up(claim.bundle_id)
                raise
            with wan.working_for(wan.bundle(_class_of(claim.group))):
                self._packer.flush(claim)
            self._failures.pop(claim.group, None)
            self._not_before.pop(claim.group, None)
            self._troubles.clear()
            with self._counting:
                self._recording += 1
            self._recorder.submit(self._record, claim.bundle_id)
        except DssError as err:
            self._fail(claim.group, err)
        except Exception as err:
            self._logger.exception('bundle of %s', claim.group)
            self._fail(claim.group, DssError(type(err).__name__))
        finally:
            with self._counting:
                self._sending -= 1
            self._jobs.bundling.ring()

    def _record(self, bundle_id: int) -> None:
        try:
            self._packer.record(bundle_id)
            self._twins.recorded(bundle_id)
        except DssError as err:
            # The keeping writes the rest.
            self._metrics.count('gateway.bundle_records_failed')
            self._troubles.note(err)
        except Exception:
            self._metrics.count('gateway.bundle_records_failed')
            self._logger.exception('records of bundle %d', bundle_id)
        finally:
            with self._counting:
                self._recording -= 1

    def _fail(self, group: str, err: DssError) -> None:
        failures = self._failures.get(group, 0) + (
            not isinstance(err, S3Down))
        self._failures[group] = failures
        self._not_before[group] = self._clock.wall() + self.backoff.seconds(
            max(1, failures))
        self._metrics.count('gateway.bundle_failed')
        self._troubles.note(err)


@functools.lru_cache(maxsize=1024)
def _class_of(group: str) -> int:
    """The class that a group's bundles share the link with."""
    class_ids = json.loads(group)[3]
    return int(max(class_ids, default=0))
