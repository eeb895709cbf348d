"""The one proxy of a cluster that does a kind of work.

A row says who leads and until when. Two may lead for a moment, if they ask at
the same time, or if one was stopped for longer than its lease: all that a
leader does may happen twice, as each change has the time of the version that
was looked at. A proxy whose clock is wrong does not lead.
"""

from __future__ import annotations

import os
import uuid
from typing import Optional

from swift_dss.proxy.work.clock import Clock
from swift_dss.proxy.work.rows import Row, Rows, Unreachable
from swift_dss.proxy.wsgi import Env


class Leader:
    """A worker process that may lead.

    :param name: of the work
    :param lease_seconds: after which another leads in the place of one that
        died
    """

    def __init__(self, rows: Rows, name: str, lease_seconds: float,
                 clock: Clock) -> None:
        self._rows = rows
        self._name = name
        self._lease_seconds = lease_seconds
        self._clock = clock
        #: The number of the process is for operators, and first.
        self._me = '%d.%s' % (os.getpid(), uuid.uuid4().hex)
        self._led = False

    def leads(self, env: Env) -> bool:
        """Whether this process does the work until it is asked again, within
        the lease."""
        if not self._clock.is_right(env):
            return False
        # A row that cannot be read may be another's.
        try:
            return self._leads(env, self._rows.find(env, self._name))
        except Unreachable:
            return False

    def _leads(self, env: Env, row: Optional[Row]) -> bool:
        now = self._clock.now()
        if row is None:
            self._rows.put(env, self._name, b'{}', 0.0)
        elif row.until > now:
            if row.beside != self._me:
                return False
            if row.until > now + self._lease_seconds / 2:
                return True
        if not self._rows.touch(env, self._name, now + self._lease_seconds,
                                self._me):
            return False
        self._led = True
        row = self._rows.find(env, self._name)
        return row is not None and row.beside == self._me

    def resign(self, env: Env) -> None:
        """There is nothing to lead: take the row away, if it is our own."""
        if self._led:
            self._led = False
            row = self._rows.read(env, self._name)
            if row is not None and row.beside == self._me:
                self._rows.delete(env, self._name)
