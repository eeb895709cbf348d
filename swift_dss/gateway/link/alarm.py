"""Check if S3 still answers, before readers wait for it in vain.

An S3 that refuses connections is known to be dead at once. One that hangs
shows nothing until a request's own time-out, which has to be long for slow
links: longer than a reader waits. So every answer, and every piece of a body
either way, is a *sign of life*; after ``SUSPECT_SECONDS`` without one, a
reader asks S3 for a small key with short time-outs; an idle node asks every
``IDLE_SECONDS``. If that question fails and no other sign of life came, the
breaker opens. From then on readers get an error at once; a reader that comes
when the next question is due waits less than a second for its answer.

On an idle node the questions cost $0.10 a month at list prices.
"""

from __future__ import annotations

import threading
from typing import Callable

from swift_dss.core.errors import DssError
from swift_dss.gateway.link.breaker import Breaker, BreakerState
from swift_dss.gateway.link.client import S3Client
from swift_dss.gateway.ports import Logger
from swift_dss.io.workers import Pool, threads

#: A reader waits so long without a sign of life before S3 is asked.
SUSPECT_SECONDS = 1.0
#: S3 is asked if there was no sign of life for so long.
IDLE_SECONDS = 10.0
#: A reader waits so long for the answer to a question that is under way.
PATIENCE_SECONDS = 0.75


class Alarm:
    """Has S3 be asked when it is silent, and tells readers. Thread-safe.

    :param key: need not exist
    :param changed: called when S3 was found dead (False) or alive again
    """

    def __init__(self, client: S3Client, breaker: Breaker, key: str,
                 changed: Callable[[bool], None], logger: Logger,
                 pool: Pool = threads) -> None:
        self._client = client
        self._breaker = breaker
        self._key = key
        self._changed = changed
        self._logger = logger
        self._answered = threading.Condition()
        self._asking = False
        self._asker = pool(1, 'dss-s3-pulse')

    def stop(self) -> None:
        """Let a question that is under way end."""
        self._asker.shutdown(wait=True)

    def look(self, since: float, may_wait: bool = False) -> None:
        """A reader waits for S3, since then by the pulse's clock.

        :param may_wait: False returns at once
        :raises S3Down: S3 is known not to answer
        """
        if not self._is_up():
            if self._breaker.seconds_until_probe() <= 0:
                self._ask()
            if may_wait:
                with self._answered:
                    self._answered.wait_for(lambda: not self._asking,
                                            PATIENCE_SECONDS)
            if not self._is_up():
                raise self._client.down()
        if self._client.pulse.silent_seconds(since) >= SUSPECT_SECONDS:
            self._ask()

    def beat(self) -> None:
        """Run now and then in any thread that is awake."""
        if self._client.pulse.silent_seconds() >= IDLE_SECONDS:
            self._ask()

    def probe(self) -> float:
        """While S3 is down, one small question when its time has come; seconds
        until the next one, 0 if S3 answers."""
        if self._breaker.seconds_until_probe() <= 0:
            try:
                self._client.probe(self._key)
            except DssError as err:
                self._logger.warning('gateway: probe: %s', err)
            if self._is_up():
                self._changed(True)
                return 0.0
        return max(0.05, self._breaker.seconds_until_probe())

    def _ask(self) -> None:
        with self._answered:
            if self._asking:
                return
            self._asking = True
        self._asker.submit(self._question)

    def _question(self) -> None:
        before = self._is_up()
        try:
            self._client.probe(self._key)
        except DssError as err:
            self._logger.warning('gateway: S3 was silent; asked: %s', err)
        finally:
            with self._answered:
                self._asking = False
                self._answered.notify_all()
        now = self._is_up()
        if before != now:
            self._changed(now)

    def _is_up(self) -> bool:
        return self._breaker.state is BreakerState.CLOSED
