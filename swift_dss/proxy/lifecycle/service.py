"""Lifecycle rules and restorations, as the filter's handlers use them."""

from __future__ import annotations

from typing import List, Optional

from swift_dss.proxy.large.alone import Alone
from swift_dss.proxy.large.objects import LargeObjects
from swift_dss.proxy.lifecycle.buckets import ACCOUNT, Buckets
from swift_dss.proxy.lifecycle.options import Options
from swift_dss.proxy.lifecycle.restores import Restores
from swift_dss.proxy.lifecycle.subjects import Subjects
from swift_dss.proxy.lifecycle.worker import LEADERS, Worker
from swift_dss.proxy.services import Services
from swift_dss.proxy.target import Target
from swift_dss.proxy.work.clock import Clock
from swift_dss.proxy.work.primaries import Primaries
from swift_dss.proxy.wsgi import App, Env


class Lifecycles:
    """Built once a filter.

    :param app: what is below the filter
    :param reads: the way of readers
    """

    def __init__(self, app: App, reads: App, services: Services,
                 large: LargeObjects, alone: Alone,
                 options: Options) -> None:
        primaries = Primaries(app)

        def clocks(env: Env) -> Optional[List[float]]:
            return primaries.clocks(env, Target(ACCOUNT, LEADERS))

        clock = Clock(clocks, services.logger)
        subjects = Subjects(app, services, large, alone, primaries, clock)
        self.buckets = Buckets(app, services, subjects, options)
        self.restores = Restores(app, reads, services, subjects, options)
        self.start = Worker(app, services, options, self.buckets,
                            self.restores, clock).start
