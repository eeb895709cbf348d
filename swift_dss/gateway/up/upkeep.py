"""The keeping of bundles: works that run one after another, now and then."""

from __future__ import annotations

from typing import Callable, NamedTuple, Optional

from swift_dss.core.errors import DssError
from swift_dss.gateway.around import Around
from swift_dss.gateway.bundle.follow import Follower
from swift_dss.gateway.bundle.keep import Keeper
from swift_dss.gateway.bundle.troubles import Troubles
from swift_dss.gateway.bundle.twins import Twins
from swift_dss.gateway.collect.regain import Regainer
from swift_dss.gateway.link.client import S3Down
from swift_dss.gateway.restore.places import Places
from swift_dss.gateway.restore.renew import Renewer
from swift_dss.gateway.up.rekeying import Rekeying

#: Changes that come by the hundred, as POSTs to the segments of a large
#: object do, are told together if they come within this.
_GATHER_SECONDS = 5.0
#: Interval of following rewritten bundles of other nodes.
_FOLLOW_SECONDS = 600.0


class Works(NamedTuple):
    """The works of one round.

    :param places: None where there are no rings to find servers by
    """

    keeper: Keeper
    renewer: Renewer
    twins: Twins
    places: Optional[Places]
    follower: Follower
    regainer: Regainer


class Upkeep:
    """When each work is done. Called by one thread; any may :meth:`hasten`
    it.
    """

    def __init__(self, around: Around, works: Works, rekeying: Rekeying,
                 troubles: Troubles) -> None:
        self._conf = around.conf
        self._clock = around.clock
        self._logger = around.logger
        self._metrics = around.metrics
        self._works = works
        self._rekeying = rekeying
        self._troubles = troubles
        #: When the next round is due, wall clock.
        self.due_at = 0.0
        self._follow_at = 0.0
        self._recovered = False

    def hasten(self) -> None:
        """There is news: the next round is due soon."""
        self.due_at = min(self.due_at, self._clock.wall() + min(
            _GATHER_SECONDS, self._conf.bundle_age_seconds))

    def recover(self) -> None:
        """After the start: settle the remains of a crash."""
        if not self._recovered:
            self._works.keeper.recover()
            self._recovered = True

    def round(self, now: float, busy: bool) -> Optional[float]:
        """Do the works that are due; when the next key is to go.

        :param busy: bundles are on their way: their records come by
            themselves
        :raises S3Down: the rest another time
        """
        self.due_at = now + min(30.0, max(
            0.2, self._conf.bundle_age_seconds))
        works = self._works
        if not busy:
            self._by_itself(works.keeper.record_rest)
        more = self._by_itself(works.renewer.run)
        for work in (works.twins.look, works.keeper.drop,
                     works.keeper.tell, works.keeper.rewrap):
            self._by_itself(work)
        if works.places is not None:
            self._by_itself(works.places.run)
        if (now >= self._follow_at or self._rekeying.is_wanted) and \
                not self._by_itself(works.follower.keep_up):
            self._follow_at = now + min(
                _FOLLOW_SECONDS, self._conf.delete_delay_seconds / 4)
        more = self._by_itself(works.regainer.look) or more
        rekeyed = self._rekeying.is_wanted and self._by_itself(
            works.keeper.rekey)
        self._rekeying.look()
        if rekeyed or self._by_itself(works.keeper.rewrite) or more:
            self.due_at = now
        return works.keeper.next_drop()

    def _by_itself(self, work: Callable[[], Optional[bool]]) -> bool:
        """One part of the keeping: a failure does not stop the others.

        :raises S3Down: it is no use to try any other
        """
        try:
            return bool(work())
        except S3Down:
            raise
        except DssError as err:
            self._troubles.note(err)
        except Exception:
            self._logger.exception('keeping of bundles')
            self._metrics.count('gateway.bundle_errors')
        return False
