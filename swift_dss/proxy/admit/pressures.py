"""What proxies know of the object servers' backlogs.

Each node is asked about once ``interval`` seconds while writes go to it, or
as seldom as it asks for, beside the requests and never in their way: a
write is judged by what is known. Where several ports speak for one node,
and say so, one of them is asked. Who is not known, or did not answer for a
while, is taken to have room: its own file systems still refuse what does
not fit.
"""

from __future__ import annotations

import collections
import time
from typing import (
    Any, Callable, Deque, Dict, Iterable, List, Mapping, NamedTuple, Optional,
    Tuple, Union)

import eventlet
from swift.common.bufferedhttp import http_connect_raw
from swift.common.header_key_dict import HeaderKeyDict

from swift_dss.core.errors import DssError
from swift_dss.core.pressure import Backlog
from swift_dss.strategy.admission import with_uploads
from swift_dss.wire import names
from swift_dss.wire import pressure as wire

#: An answer older than this says nothing.
STALE_SECONDS = 30.0
_TIMEOUT_SECONDS = 2.0
#: The daemon hears of a PUT this much after its end: less, and bytes that
#: nobody counts come in; more, and bytes that count twice are refused.
_SETTLE_SECONDS = 0.25
#: An object server has taken the room of an upload this much after it was
#: admitted.
_TAKEN_SECONDS = 1.0
#: Uploads of at least this size are looked at one by one: what smaller ones
#: have taken is counted twice, for the time that they take.
_LARGE_BYTES = 16 * 1024 * 1024
#: Largest answer that is read: 1,000 devices have less.
_MAX_BYTES = 1 << 20
#: A port may come to speak for another node; after so long we ask it.
_NODE_SECONDS = 600.0
Server = Tuple[str, int]
#: A node by its own name; a server that says none is a node.
NodeKey = Union[Server, str]


class Answer(NamedTuple):
    """What an object server says.

    :param devices: name to (age, pressure)
    :param node: what all servers of its node call it; '' if it says none
    :param ask_after: seconds
    """

    devices: Mapping[str, Tuple[float, wire.Pressure]]
    node: str = ''
    ask_after: float = 0.0


#: Raises OSError or DssError.
Ask = Callable[[Server, str], Answer]


class Coming:
    """Bytes that were admitted and may not be in the backlogs yet.

    :param places: what is coming to each device, and how much of it this is
    """

    def __init__(self, clock: Callable[[], float],
                 places: List[Tuple[_Place, int]]) -> None:
        self._clock = clock
        self._places = places
        now = clock()
        for place, length in places:
            place.open_bytes += length
            if length >= _LARGE_BYTES:
                place.large[self] = (now, length)

    def end(self) -> None:
        """The PUT has its answer."""
        now = self._clock()
        for place, length in self._places:
            place.open_bytes -= length
            place.ended_bytes += length
            place.ended.append((now, length, self))
            place.forget(now - STALE_SECONDS)


class _Place:
    """What is coming to one device: sums, as each write asks for them."""

    def __init__(self) -> None:
        self.open_bytes = 0
        self.ended_bytes = 0
        #: (when the answer was given, bytes, whose), oldest first.
        self.ended: Deque[Tuple[float, int, Coming]] = collections.deque()
        #: Large ones of both: when they were admitted, and bytes.
        self.large: Dict[Coming, Tuple[float, int]] = {}

    def forget(self, until: float) -> None:
        """Drop what ended then or before."""
        while self.ended and self.ended[0][0] <= until:
            _, length, coming = self.ended.popleft()
            self.ended_bytes -= length
            self.large.pop(coming, None)


class _Known(NamedTuple):
    asked_at: float
    answered_at: float
    answer: Answer


class Pressures:
    """Backlogs by server and device. For green threads of one process.

    :param interval: seconds between two questions to one server
    :param clock: monotonic seconds
    """

    def __init__(self, interval: float, logger: Any,
                 ask: Optional[Ask] = None,
                 spawn: Callable[..., Any] = eventlet.spawn_n,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._interval = interval
        self._logger = logger
        self._ask = ask or ask_server
        self._spawn = spawn
        self.clock = clock
        self._known: Dict[NodeKey, _Known] = {}
        self._tally: Dict[NodeKey, Dict[int, Dict[str, int]]] = {}
        #: Which node a server speaks for, and until when we believe that.
        self._node_of: Dict[Server, Tuple[str, float]] = {}
        self._coming: Dict[Tuple[Server, str], _Place] = {}

    def backlog(self, server: Server, device: str
                ) -> Tuple[Optional[Backlog], int]:
        """(the device's backlog, bytes that come on top of it); None if
        it is not known. Has it asked again if it is time.

        What has taken its room there and comes on top is in the room again.
        """
        now = self.clock()
        key = self._key(server, now)
        known = self._known.get(key)
        if known is None or now - known.asked_at >= max(
                self._interval, known.answer.ask_after):
            self._known[key] = _Known(
                now, known.answered_at if known else 0.0,
                known.answer if known else Answer({}))
            self._spawn(self._refresh, server, key)
            # Its answer may be here, and say what node it speaks for.
            known = self._known[self._key(server, now)]
        found = self._told(server, known.answer, device)
        if found is None or now - known.answered_at > STALE_SECONDS:
            return None, 0
        age, pressure = found
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
        return Coming(self.clock, [
            (self._coming.setdefault(where, _Place()), length)
            for where, length in devices])

    def count(self, server: Server, class_id: int, answer: str) -> None:
        """One more verdict, for that server to hear of."""
        counts = self._tally.setdefault(
            self._key(server, self.clock()), {}).setdefault(class_id, {})
        counts[answer] = counts.get(answer, 0) + 1

    def _uploads(self, where: Tuple[Server, str],
                 seen_at: float) -> Tuple[int, int]:
        """(bytes that come to a device, those of them whose room had been
        taken when it was looked at)."""
        place = self._coming.get(where)
        if place is None:
            return 0, 0
        # Answers only get newer: what one of them has, all later ones have.
        place.forget(seen_at - _SETTLE_SECONDS)
        return place.open_bytes + place.ended_bytes, sum(
            length for began, length in place.large.values()
            if began <= seen_at - _TAKEN_SECONDS)

    def _told(self, server: Server, answer: Answer, device: str
              ) -> Optional[Tuple[float, wire.Pressure]]:
        try:
            return answer.devices.get(device)
        except DssError as err:
            self._say_unknown(server, err)
            return None

    def _say_unknown(self, server: Server, err: BaseException) -> None:
        self._logger.increment('dss.admission.unknown')
        self._logger.debug('dss: %s:%d does not say how full it is: %s',
                           server[0], server[1], err)

    def _key(self, server: Server, now: float) -> NodeKey:
        node, until = self._node_of.get(server, ('', 0.0))
        return node if node and now < until else server

    def _refresh(self, server: Server, key: NodeKey) -> None:
        tally = self._tally.pop(key, {})
        try:
            answer = self._ask(server, wire.encode_tally(tally))
        except (OSError, DssError, eventlet.Timeout) as err:
            self._say_unknown(server, err)
            return
        now = self.clock()
        if answer.node:
            self._node_of[server] = (answer.node, now + _NODE_SECONDS)
        else:
            self._node_of.pop(server, None)
        before = self._known.get(key)
        if self._key(server, now) != key == server:
            # From now on it goes by what is known of its node.
            self._known.pop(key, None)
        self._known[self._key(server, now)] = _Known(
            before.asked_at if before else now, now, answer)


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
            headers.get(names.BACKEND_ASK_AFTER))))


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


def _get(server: Server, headers: Dict[str, str]) -> Tuple[bytes, Any]:
    """Body and headers; no body of a server without classes."""
    with eventlet.Timeout(_TIMEOUT_SECONDS):
        connection = http_connect_raw(
            server[0], server[1], 'GET', names.PRESSURE_PATH, headers)
        try:
            response = connection.getresponse()
            raw: bytes = response.read(_MAX_BYTES)
            return raw if response.status == 200 else b'', \
                HeaderKeyDict(response.getheaders())
        finally:
            connection.close()
