"""Requests to the S3 by node and kind: counts by node, and the latest
requests.
"""

from __future__ import annotations

import collections
import dataclasses
import threading
from dataclasses import dataclass
from typing import Any, Deque, Dict, List

#: Requests that are remembered one by one: about 40 MB.
MAX_REQUESTS = 100000


@dataclass(frozen=True)
class Asked:
    """One request, as it ended.

    :param node: the node that asked
    :param operation: the method, ``LIST`` for a listing
    :param key: without the bucket
    :param sent: bytes of the request's body
    :param got: bytes of the answer's body
    :param status: that the node saw; 0: none
    :param time: when it came, seconds since the epoch
    :param fault: kind of the fault that it met; '' is none
    """

    node: str
    operation: str
    key: str
    sent: int
    got: int
    status: int
    time: float
    seconds: float
    fault: str = ''


class Tally:
    """Counts since the last reset. Thread-safe.

    :param limit: of the requests that are remembered one by one
    """

    def __init__(self, limit: int = MAX_REQUESTS) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        self._counts: Dict[str, Dict[str, Dict[str, Any]]] = {}
        self._requests: Deque[Asked] = collections.deque(
            maxlen=self._limit)

    def note(self, asked: Asked) -> None:
        """One more."""
        with self._lock:
            self._requests.append(asked)
            count = self._counts.setdefault(asked.node, {}).setdefault(
                asked.operation,
                {'requests': 0, 'sent': 0, 'got': 0, 'status': {}})
            count['requests'] += 1
            count['sent'] += asked.sent
            count['got'] += asked.got
            status = str(asked.status)
            count['status'][status] = count['status'].get(status, 0) + 1

    def counts(self, reset: bool = False) -> Dict[str, Any]:
        """Node to operation to ``requests``, ``sent``, ``got`` (bytes) and
        ``status`` (how many of each)."""
        with self._lock:
            counts = self._counts
            if reset:
                self._reset()
                return counts
            return {node: {operation: dict(count, status=dict(
                count['status'])) for operation, count in by_kind.items()}
                for node, by_kind in counts.items()}

    def requests(self) -> List[Dict[str, Any]]:
        """The latest requests, the oldest first."""
        with self._lock:
            latest = list(self._requests)
        return [dataclasses.asdict(asked) for asked in latest]
