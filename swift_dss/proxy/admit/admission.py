"""Judge a write by its class before its body is read.

``strategy.admission`` decides. This module collects the object's devices and
their figures, and answers the client.

``503`` with ``Retry-After``: the class has used up its share of bytes waiting
for S3; the time is the predicted drain of the backlog. ``507``: the object can
never fit. S3 clients get ``EntityTooLarge`` instead, and uploads into
containers that keep versions a ``413``, because those turn a 507 into another
error.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, Optional, Set, Tuple

from swift.common import constraints
from swift.common.swob import HTTPException
from swift.common.utils import quorum_size

from swift_dss.core.limits import MAX_THROTTLED
from swift_dss.core.spans import ClassMap
from swift_dss.io import native, waiting
from swift_dss.proxy.admit import retry_after
from swift_dss.proxy.admit.heard import Server
from swift_dss.proxy.admit.pressures import Pressures
from swift_dss.proxy.replicas import Replicas
from swift_dss.proxy.settings import State
from swift_dss.proxy.target import Target
from swift_dss.proxy.wsgi import Env
from swift_dss.strategy.admission import (
    Answer, Verdict, decide, of_quorum)

_STATUS = {Answer.RETRY: 503, Answer.FULL: 507}
#: They make another error of it: s3api a 500, object versioning a 503, after
#: which clients try again.
_HIDE_507 = ('S3', 'OV')


class Refused(HTTPException):
    """The answer to a write that may not come in."""


class Admission:
    """Judges the PUTs of one filter.

    :param pressures: None: everything comes in
    """

    def __init__(self, replicas: Replicas, logger: Any,
                 pressures: Optional[Pressures],
                 sleep: Callable[[float], None] = waiting.sleep) -> None:
        self._replicas = replicas
        self._logger = logger
        self._pressures = pressures
        self._sleep = sleep
        self._lock = native.Lock()
        self._throttled = 0

    @contextmanager
    def judged(self, env: Env, target: Target, state: State,
               class_map: ClassMap, size: Optional[int]) -> Iterator[None]:
        """Let a PUT go on, perhaps a little later.

        :param size: of the body; None (chunked) is judged as one byte
        :raises Refused: it may not
        """
        pressures = self._pressures
        if pressures is None or size == 0 or \
                (size or 0) > constraints.MAX_FILE_SIZE:
            # For an object that is too large Swift's own 413 is clearer than a
            # 507, after which clients would try again.
            yield
            return
        places = self._places(env, target, size or 1)
        if not places:
            yield
            return
        class_ids = class_map.class_ids(size)
        verdict = self._verdict(state, places, class_ids)
        if verdict.answer in _STATUS and pressures.renew(
                server for server, _, _, _ in places):
            verdict = self._verdict(state, places, class_ids)
        if verdict.answer is Answer.THROTTLE:
            verdict = self._wait(verdict)
        top = max(class_ids,
                  key=lambda class_id: state.table.spec(class_id).rank)
        pressures.count(places[0][0], top, verdict.answer.value)
        self._logger.increment('dss.admission.%s.%s' % (
            verdict.answer.value, state.table.name_of(top)))
        if verdict.answer in _STATUS:
            raise self._refusal(env, state.table.name_of(top), verdict)
        coming = pressures.coming(
            [((server, device), length)
             for server, device, length, _ in places])
        try:
            yield
        finally:
            coming.end()

    def _verdict(self, state: State, places: List[Any],
                 class_ids: Set[int]) -> Verdict:
        assert self._pressures is not None
        verdicts = []
        quorum = 1
        for server, device, length, needed in places:
            backlog, coming = self._pressures.backlog(server, device)
            quorum = needed
            verdicts.append(Verdict(Answer.ACCEPT) if backlog is None else
                            decide(backlog, state.table, class_ids, length,
                                   coming))
        return of_quorum(verdicts, quorum)

    def _wait(self, verdict: Verdict) -> Verdict:
        """Hold the request back; beyond a bound, have it come again."""
        with self._lock:
            may_wait = self._throttled < MAX_THROTTLED
            self._throttled += may_wait
        if not may_wait:
            return Verdict(Answer.RETRY, max(1.0, verdict.seconds),
                           'too many writes wait here already')
        try:
            self._sleep(verdict.seconds)
        finally:
            with self._lock:
                self._throttled -= 1
        return verdict

    def _places(self, env: Env, target: Target, size: int
                ) -> List[Tuple[Server, str, int, int]]:
        """(server, device, bytes, quorum) of each replica."""
        placed = self._replicas.of(env, target)
        if placed is None:
            return []
        quorum = int(placed.policy.quorum) if placed.pieces > 1 else \
            quorum_size(len(placed.nodes))
        return [((node['ip'], node['port']), node['device'],
                 placed.length_of(size), quorum) for node in placed.nodes]

    def _refusal(self, env: Env, class_name: str,
                 verdict: Verdict) -> Refused:
        status = _STATUS[verdict.answer]
        if status == 507 and env.get('swift.source') in _HIDE_507:
            status = 413
        headers = {}
        if verdict.answer is Answer.RETRY:
            seconds = str(int(math.ceil(verdict.seconds)))
            headers['Retry-After'] = seconds
            retry_after.tell(env, seconds)
        return Refused(
            status=status, headers=headers, content_type='text/plain',
            body=('Class %s: %s.\n' % (class_name, verdict.reason)).encode())

