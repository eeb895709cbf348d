"""The thread that sends bundles and keeps them.

While the breaker is open nothing is sent, and the members wait in the book.
"""

from __future__ import annotations


from swift_dss.core.errors import DssError
from swift_dss.gateway.around import Around
from swift_dss.gateway.bundle.pack import batch_of
from swift_dss.gateway.bundle.troubles import Troubles
from swift_dss.gateway.looper import Looper
from swift_dss.gateway.up.jobs import Jobs
from swift_dss.gateway.up.parking import Parking
from swift_dss.gateway.up.sending import Sending
from swift_dss.gateway.up.upkeep import Upkeep
from swift_dss.strategy import bundling

#: The bundler looks at least this often.
_IDLE_SECONDS = 10.0


class Bundler:
    """Looks for due bundles and due keeping. Any thread may :meth:`hurry` it,
    and read its status.

    :param parking: says what is about to come
    """

    def __init__(self, around: Around, jobs: Jobs, parking: Parking,
                 sending: Sending, upkeep: Upkeep,
                 troubles: Troubles) -> None:
        self._conf = around.conf
        self._clock = around.clock
        self._logger = around.logger
        self._metrics = around.metrics
        self._jobs = jobs
        self._parking = parking
        self._sending = sending
        self._upkeep = upkeep
        self._troubles = troubles
        self._hurry_until = 0.0
        self._was_down = False
        self._looper = Looper('dss-bundler', self.look, around.stopping,
                              jobs.bundling)
        #: Begins; the remains of a crash are settled first, in the background.
        self.start = self._looper.start

    def stop(self) -> None:
        """Let running bundles end. ``stopping`` MUST be set."""
        self._looper.stop()
        self._sending.stop()

    def hurry(self, seconds: float) -> None:
        """For so long nothing waits for its bundle to fill."""
        self._hurry_until = self._clock.wall() + seconds
        self._jobs.bundling.ring()

    def look(self) -> float:
        """Do the due sending and keeping; seconds until there may be more.

        Logs failures, and never raises.
        """
        try:
            self._upkeep.recover()
            return self._look()
        except DssError as err:
            self._troubles.note(err)
            return self._sending.backoff.seconds(2)
        except Exception:
            # It is logged, and looked at again: bundles must go on.
            self._logger.exception('bundler')
            self._metrics.count('gateway.bundle_errors')
            return _IDLE_SECONDS

    def _look(self) -> float:
        """Do the due sending and keeping; seconds until there may be more."""
        if not self._jobs.standing.is_up:
            self._was_down = True
            return 1.0
        if self._was_down:
            self._was_down = False
            self._sending.try_again()
        now = self._clock.wall()
        batch = batch_of(self._conf)
        if now < self._hurry_until:
            batch = bundling.Batch(batch.bundle_bytes, batch.members, 0.0)
        following = [self._sending.send_due(
            now, batch, self._parking.coming)]
        if now >= self._upkeep.due_at:
            following.append(self._upkeep.round(
                now, bool(self._sending.under_way())))
        following.append(self._upkeep.due_at)
        return max(0.05, min([_IDLE_SECONDS] + [
            at - now for at in following if at is not None and at > now]))
