"""Keep devices readable that refused a write for lack of room.

After a 507 to a write, Swift's proxy avoids the device for
``error_suppression_interval``, also for reads. If all devices of an object are
full, the object is unreadable for a minute after each refused write. So after
a write, this module clears the error limit of each device that its server
calls full. A device that is not mounted, or whose server does not answer,
stays limited.
"""

from __future__ import annotations

import time
from itertools import islice
from typing import Any, Callable, Dict, List, Optional, Tuple

from swift_dss.core.errors import DssError
from swift_dss.io import waiting
from swift_dss.proxy.admit.heard import Server
from swift_dss.proxy.admit.pressures import ask_rooms
from swift_dss.proxy.replicas import Node, Replicas
from swift_dss.proxy.target import Target
from swift_dss.proxy.wsgi import Env, Start

#: A device counts as full with less than this share of it free beyond the
#: refused write: something may have left since.
_NEARLY = 0.02
#: A device that is not full, or says nothing, is not asked about again for
#: so many seconds.
_AGAIN_SECONDS = 2.0
#: Device name to (bytes that may still be written, all bytes).
Rooms = Dict[str, Tuple[int, int]]


class FullDevices:
    """Watches the answers to the PUTs of one filter."""

    def __init__(self, replicas: Replicas, logger: Any,
                 ask: Callable[[Server], Rooms] = ask_rooms,
                 spawn: Callable[..., Any] = waiting.spawn,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._replicas = replicas
        self._logger = logger
        self._ask = ask
        self._spawn = spawn
        self._clock = clock
        #: When a device may be asked about again, by the limiter's key.
        self._not_before: Dict[str, float] = {}

    def watching(self, env: Env, target: Target, size: Optional[int],
                 start: Start) -> Start:
        """``start`` that looks first at who is avoided now."""

        def show(status: str, headers: Any, exc_info: Any = None) -> Any:
            limiter: Any = getattr(self._replicas.proxy, 'error_limiter',
                                   None)
            # Empty, but where there has been trouble lately.
            if limiter is not None and limiter.stats:
                self._look(limiter, env, target, size or 1,
                           status.startswith('5'))
            return start(status, headers, exc_info)

        return show

    def _look(self, limiter: Any, env: Env, target: Target, size: int,
              failed: bool) -> None:
        placed = self._replicas.of(env, target)
        if placed is None:
            return
        now = self._clock()
        avoided = []
        for node in placed.nodes + list(islice(
                placed.handoffs, len(placed.nodes))):
            key = limiter.node_key(node)
            if limiter.is_limited(node) and \
                    now >= self._not_before.get(key, 0.0):
                self._not_before[key] = now + _AGAIN_SECONDS
                avoided.append(node)
        if not avoided:
            return
        # A refused client may read next; others need not wait for this.
        length = placed.length_of(size)
        if failed:
            self._release(limiter, avoided, length)
        else:
            self._spawn(self._release, limiter, avoided, length)

    def _release(self, limiter: Any, avoided: List[Node],
                 length: int) -> None:
        for node, room in waiting.together(self._room, avoided):
            if room is not None and room[0] <= length + room[1] * _NEARLY:
                key = limiter.node_key(node)
                limiter.stats.pop(key, None)
                self._not_before.pop(key, None)
                self._logger.increment('dss.full_devices_readable')

    def _room(self, node: Node
              ) -> Tuple[Node, Optional[Tuple[int, int]]]:
        try:
            return node, self._ask((node['ip'], node['port'])).get(
                node['device'])
        except (OSError, DssError):
            return node, None
