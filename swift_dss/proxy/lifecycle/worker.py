"""Does lifecycle rounds and restorations, in one proxy of the cluster."""

from __future__ import annotations

import random
from typing import Any, List, Tuple

from swift_dss.io import waiting
from swift_dss.proxy.lifecycle.buckets import ACCOUNT, Buckets
from swift_dss.proxy.lifecycle.options import Options
from swift_dss.proxy.lifecycle.restores import Restores
from swift_dss.proxy.services import Services
from swift_dss.proxy.work.clock import Clock
from swift_dss.proxy.work.leader import Leader
from swift_dss.proxy.work.rows import Rows, own_env
from swift_dss.proxy.wsgi import App

#: Container of the rows that say who leads.
LEADERS = 'leaders'


class Worker:
    """One process's; it works where it leads.

    :param app: what is below the filter
    """

    def __init__(self, app: App, services: Services, options: Options,
                 buckets: Buckets, restores: Restores, clock: Clock) -> None:
        self._rows = Rows(app, ACCOUNT, LEADERS, clock.now)
        self._clock = clock
        self._services = services
        self._options = options
        self._buckets = buckets
        self._restores = restores

    def start(self) -> None:
        """Look for work from now on."""
        jobs: List[Tuple[str, Any]] = [('restores', self._restores)]
        if self._options.interval:
            jobs.append(('lifecycle', self._buckets))
        for name, job in jobs:
            waiting.spawn(self._for_ever, Leader(
                self._rows, name, self._options.lease_seconds,
                self._clock), job)

    def _for_ever(self, leader: Leader, job: Any) -> None:
        # Without an event loop it would hold up its process.
        while waiting.is_green():
            waiting.sleep(self._options.look_seconds * random.uniform(
                0.5, 1.5))
            try:
                look(leader, job)
            except Exception:
                self._services.logger.exception('dss: lifecycle')


def look(leader: Leader, job: Any) -> None:
    """Do what is due, if this process leads. Where no row is, nobody leads: a
    cluster that uses neither rules nor restorations stores nothing for them.
    """
    env = own_env()
    if not job.has_rows(env):
        leader.resign(env)
    elif leader.leads(env):
        job.work(env, lambda: leader.leads(own_env()))
