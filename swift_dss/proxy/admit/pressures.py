"""The backlogs of object servers, as a proxy knows them.

While writes go to a node, the proxy asks it in the background; a write never
waits for the answer. It asks every ``interval`` seconds if a device of the
write is near a limit or unknown, and less often far from all limits
(``strategy.admission.rest_seconds``) or if the node says so. One worker of a
machine asks for all workers (``heard.Shared``). If several ports name the same
node, one of them is asked. A node that is unknown or silent is taken to have
room: its own file systems still refuse bytes that do not fit.
"""

from __future__ import annotations

import collections
import time
from typing import (
    Any, Callable, Deque, Dict, Iterable, List, Mapping, NamedTuple,
    Optional, Tuple)

from swift_dss.core.errors import DssError
from swift_dss.core.limits import MAX_PRESSURE_REST_SECONDS
from swift_dss.core.pressure import Backlog
from swift_dss.io import native, waiting
from swift_dss.proxy.admit.heard import (
    MAX_ANSWER_BYTES, NOTHING, Answer, Heard, NodeKey, Server, Shared)
from swift_dss.strategy.admission import rest_seconds, with_uploads
from swift_dss.wire import names
from swift_dss.wire.node import pressure as wire

#: An answer older than this says nothing.
STALE_SECONDS = 30.0
_TIMEOUT_SECONDS = 2.0
#: Delay from the end of a PUT until the daemon counts it. If this value is too
#: small, bytes come in uncounted; if it is too large, bytes count twice and
#: writes are refused.
_SETTLE_SECONDS = 0.25
#: An object server has taken the room of an upload this much after it was
#: admitted.
_TAKEN_SECONDS = 1.0
#: Uploads of at least this size are looked at one by one: bytes of smaller
#: ones count twice while they are under way.
_LARGE_BYTES = 16 * 1024 * 1024
#: A port may come to speak for another node; after so long we ask it.
_NODE_SECONDS = 600.0
#: Verdicts that were not told for so long are told with a question of the
#: worker's own: the worker never had its turn to ask for all.
_TELL_SECONDS = 300.0
#: How often a worker looks whether another one has its answer by now.
_LOOK_SECONDS = 0.05
#: Raises OSError or DssError.
Ask = Callable[[Server, str], Answer]


class Coming:
    """Bytes that were admitted and may not be in the backlogs yet.

    :param lock: of the sums
    :param places: of each device, the sums and this write's part of them
    """

    def __init__(self, clock: Callable[[], float], lock: Any,
                 places: List[Tuple[_Place, int]]) -> None:
        self._clock = clock
        self._lock = lock
        self._places = places
        now = clock()
        with lock:
            for place, length in places:
                place.open_bytes += length
                if length >= _LARGE_BYTES:
                    place.large[self] = (now, length)

    def end(self) -> None:
        """The PUT has its answer."""
        now = self._clock()
        with self._lock:
            for place, length in self._places:
                # In this order a reader without the lock never misses any.
                place.ended_bytes += length
                place.open_bytes -= length
                place.ended.append((now, length, self))
                place.forget(now - STALE_SECONDS)


class _Place:
    """Bytes on their way to one device, as sums for each write to read."""

    def __init__(self) -> None:
        self.open_bytes = 0
        self.ended_bytes = 0
        #: (when the answer was given, bytes, whose), oldest first.
        self.ended: Deque[Tuple[float, int, Coming]] = collections.deque()
        #: When the oldest of them was.
        self.oldest = float('inf')
        #: Large ones of both: when they were admitted, and bytes.
        self.large: Dict[Coming, Tuple[float, int]] = {}

    def forget(self, until: float) -> None:
        """Drop what ended then or before."""
        while self.ended and self.ended[0][0] <= until:
            _, length, coming = self.ended.popleft()
            self.ended_bytes -= length
            self.large.pop(coming, None)
        self.oldest = self.ended[0][0] if self.ended else float('inf')


class _Tally(NamedTuple):
    since: float
    counts: Dict[int, Dict[str, int]]


class Pressures:
    """Backlogs by server and device. For all requests of one process, in
    green threads or in threads of their own.

    :param interval: least seconds between two questions to one server
    :param clock: monotonic seconds
    :param shared: answers of the other workers; None if there are none
    :param pause: sleep for some seconds, letting others run
    """

    def __init__(self, interval: float, logger: Any,
                 ask: Optional[Ask] = None,
                 spawn: Callable[..., Any] = waiting.spawn,
                 clock: Callable[[], float] = time.monotonic,
                 shared: Optional[Shared] = None,
                 pause: Callable[[float], None] = waiting.sleep) -> None:
        self._interval = interval
        self._logger = logger
        self._ask = ask or ask_server
        self._spawn = spawn
        self.clock = clock
        self._shared = shared
        self._pause = pause
        #: Held for a few instructions, never while anything waits.
        self._lock = native.Lock()
        self._known: Dict[NodeKey, Heard] = {}
        self._tally: Dict[NodeKey, _Tally] = {}
        #: Which node a server speaks for, and until when we believe that.
        self._node_of: Dict[Server, Tuple[str, float]] = {}
        self._coming: Dict[Tuple[Server, str], _Place] = {}

    def backlog(self, server: Server, device: str
                ) -> Tuple[Optional[Backlog], int]:
        """(the device's backlog, bytes that come on top of it); None if
        it is not known. Starts another question if one is due.

        Bytes that the device already counts as used and that are still in the
        second figure are added back to its room.
        """
        now = self.clock()
        key = self._key(server, now)
        if self._is_due(key, server, device, now):
            self._learn(server, key)
            key = self._key(server, now)
            with self._lock:
                is_due = self._is_due(key, server, device, now)
                if is_due:
                    self._known[key] = self._known.get(
                        key, NOTHING)._replace(asked_at=now)
            if is_due:
                self._spawn(self._refresh, server, key)
                # Its answer may be here, and name its node.
                key = self._key(server, now)
        known = self._known.get(key, NOTHING)
        try:
            aged = known.answer.devices.get(device)
        except DssError as err:
            self._say_unknown(server, err)
            return None, 0
        if aged is None or now - known.answered_at > STALE_SECONDS:
            return None, 0
        age, pressure = aged
        if pressure.backlog is None:
            return None, 0
        coming, taken = self._uploads((server, device),
                                      known.answered_at - age)
        return with_uploads(pressure.backlog, taken), coming

    def renew(self, servers: Iterable[Server]) -> bool:
        """Ask servers whose answers are older than the interval, and wait:
        an old one is no reason to refuse a write.

        :returns: whether there were any
        """
        now = self.clock()
        old: Dict[NodeKey, Server] = {}
        for server in servers:
            key = self._key(server, now)
            if key in self._known and \
                    now - self._known[key].answered_at > self._interval:
                old[key] = server
        for key, server in old.items():
            self._refresh(server, key)
        return bool(old)

    def coming(self, devices: List[Tuple[Tuple[Server, str], int]]
               ) -> Coming:
        """Note bytes that were admitted; ``end()`` it when the PUT ends."""
        return Coming(self.clock, self._lock, [
            (self._coming.setdefault(where, _Place()), length)
            for where, length in devices])

    def count(self, server: Server, class_id: int, answer: str) -> None:
        """One more verdict, for that server to hear of."""
        now = self.clock()
        with self._lock:
            tally = self._tally.setdefault(
                self._key(server, now), _Tally(now, {}))
            counts = tally.counts.setdefault(class_id, {})
            counts[answer] = counts.get(answer, 0) + 1

    def _is_due(self, key: NodeKey, server: Server, device: str,
                now: float) -> bool:
        known = self._known.get(key)
        if known is None:
            return True
        since = now - known.asked_at
        # Most writes come before anything could be due.
        return since >= max(self._interval, known.answer.ask_after) and \
            since >= self._rest(known, (server, device))

    def _rest(self, known: Heard, where: Tuple[Server, str]) -> float:
        """How long a node may be left alone on behalf of this device."""
        answer = known.answer
        if known.answered_at < known.asked_at:
            return 0.0
        if not answer.node and not answer.devices:
            # Stock Swift, or a version that judges no writes.
            return MAX_PRESSURE_REST_SECONDS
        try:
            aged = answer.devices.get(where[1])
        except DssError:
            return 0.0
        if aged is None:
            return 0.0
        if aged[1].backlog is None:
            return MAX_PRESSURE_REST_SECONDS
        place = self._coming.get(where)
        return rest_seconds(aged[1].backlog, place.open_bytes
                            + place.ended_bytes if place else 0)

    def _uploads(self, where: Tuple[Server, str],
                 seen_at: float) -> Tuple[int, int]:
        """(bytes that come to a device, those of them whose room had been
        taken when it was looked at)."""
        place = self._coming.get(where)
        if place is None:
            return 0, 0
        # Answers only get newer: an upload in one is in all later ones.
        until = seen_at - _SETTLE_SECONDS
        if not place.large and place.oldest > until:
            # As before most writes: nothing to forget or to look at.
            return place.open_bytes + place.ended_bytes, 0
        with self._lock:
            place.forget(until)
            return place.open_bytes + place.ended_bytes, sum(
                length for began, length in place.large.values()
                if began <= seen_at - _TAKEN_SECONDS)

    def _say_unknown(self, server: Server, err: BaseException) -> None:
        self._logger.increment('dss.admission.unknown')
        self._logger.debug('dss: %s:%d does not say how full it is: %s',
                           server[0], server[1], err)

    def _key(self, server: Server, now: float) -> NodeKey:
        node, until = self._node_of.get(server, ('', 0.0))
        return node if node and now < until else server

    def _refresh(self, server: Server, key: NodeKey) -> None:
        """Ask, or wait for the answer that another worker gets."""
        if self._shared is None:
            self._question(server, key)
            return
        began = self.clock()
        while True:
            # A worker that hangs while asking delays the others no longer.
            late = self.clock() - began >= _TIMEOUT_SECONDS
            with self._shared.asking(key) as mine:
                # An answer may have come just before the lock was ours.
                if self._learn(server, key, began - self._interval):
                    return
                if mine or late:
                    self._question(server, key)
                    return
            self._pause(_LOOK_SECONDS)

    def _learn(self, server: Server, key: NodeKey,
               after: float = float('inf')) -> bool:
        """Take an answer that another worker got since.

        :returns: whether a worker has asked since ``after``
        """
        now = self.clock()
        tally = self._tally.get(key)
        if self._shared is None or (
                tally and now - tally.since >= _TELL_SECONDS):
            return False
        heard = self._shared.read(key)
        if heard is not None and key == server and heard.answer.node:
            until = heard.answered_at + _NODE_SECONDS
            if now >= until:
                heard = None
            else:
                self._node_of[server] = (heard.answer.node, until)
                self._known.pop(server, None)
                key = heard.answer.node
                heard = self._shared.read(key)
        if heard is None:
            return False
        self._believe(key, heard)
        return heard.asked_at > after

    def _believe(self, key: NodeKey, heard: Heard) -> None:
        """Keep the newer of two answers, and the later of two questions."""
        with self._lock:
            known = self._known.get(key, NOTHING)
            newer = heard if heard.answered_at >= known.answered_at else known
            self._known[key] = newer._replace(
                asked_at=max(heard.asked_at, known.asked_at))

    def _question(self, server: Server, key: NodeKey) -> None:
        with self._lock:
            tally = self._tally.pop(key, None)
        began = self.clock()
        before = self._known.get(key, NOTHING)
        asked_at = max(before.asked_at, began)
        try:
            answer = self._ask(server, wire.encode_tally(
                tally.counts if tally else {}))
        except (OSError, DssError) as err:
            self._say_unknown(server, err)
            self._tell(key, before._replace(asked_at=asked_at))
            return
        now = self.clock()
        if answer.node:
            self._node_of[server] = (answer.node, now + _NODE_SECONDS)
        else:
            self._node_of.pop(server, None)
        node = self._key(server, now)
        if node != key == server:
            # From now on the answers of its node count.
            self._known.pop(key, None)
        heard = Heard(asked_at, now, answer)
        self._believe(node, heard)
        self._tell(node, heard)
        if node not in (key, server):
            # The others learn whom it speaks for without asking it.
            self._tell(server, heard._replace(
                answer=Answer({}, answer.node)))

    def _tell(self, key: NodeKey, heard: Heard) -> None:
        if self._shared is not None:
            self._shared.write(key, heard)


def ask_server(server: Server, tally: str) -> Answer:
    """Ask an object server over HTTP for the pressure of its node's
    devices.

    :raises OSError: it does not answer
    :raises DamagedRecord: not as one of ours
    """
    raw, headers = _get(server, {names.BACKEND_ADMISSIONS: tally})
    if not raw:
        return Answer({})
    since = _seconds(headers.get(names.BACKEND_AGE))
    return Answer(
        wire.Devices(raw, since), headers.get(names.BACKEND_NODE) or '',
        min(STALE_SECONDS / 2, _seconds(
            headers.get(names.BACKEND_ASK_AFTER))), raw, since)


def ask_rooms(server: Server) -> Dict[str, Tuple[int, int]]:
    """Ask an object server how much room its mounted devices have now, as
    (bytes that may still be written, all bytes).

    :raises OSError: it does not answer
    :raises DamagedRecord: not as one of ours
    """
    raw, _ = _get(server, {'Cache-Control': 'no-cache'})
    return wire.decode_rooms(raw) if raw else {}


def _seconds(text: Optional[str]) -> float:
    try:
        return min(max(0.0, float(text or 0.0)), STALE_SECONDS)
    except ValueError:
        return 0.0


def _get(server: Server, headers: Dict[str, str]
         ) -> Tuple[bytes, Mapping[str, str]]:
    """Body and headers; no body of a server without classes."""
    status, said, raw = waiting.fetch(
        server[0], server[1], names.PRESSURE_PATH, headers, MAX_ANSWER_BYTES,
        _TIMEOUT_SECONDS)
    return raw if status == 200 else b'', said
