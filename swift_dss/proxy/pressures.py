"""What proxies know of the object servers' backlogs.

Each object server is asked about once ``interval`` seconds while writes go
to it, beside the requests and never in their way: a write is judged by
what is known. Who is not known, or did not answer for a while, is taken to
have room: its own file systems still refuse what does not fit.
"""

from __future__ import annotations

import collections
import time
from typing import (
    Any, Callable, Deque, Dict, Iterable, List, NamedTuple, Optional, Tuple)

import eventlet
from swift.common.bufferedhttp import http_connect_raw

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
Server = Tuple[str, int]
#: Device name to (age, pressure); raises OSError or DssError.
Ask = Callable[[Server, str], Dict[str, Tuple[float, wire.Pressure]]]


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
    devices: Dict[str, Tuple[float, wire.Pressure]]


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
        self._known: Dict[Server, _Known] = {}
        self._tally: Dict[Server, Dict[int, Dict[str, int]]] = {}
        self._coming: Dict[Tuple[Server, str], _Place] = {}

    def backlog(self, server: Server, device: str
                ) -> Tuple[Optional[Backlog], int]:
        """(the device's backlog, bytes that come on top of it); None if
        it is not known. Has it asked again if it is time.

        What has taken its room there and comes on top is in the room again.
        """
        now = self.clock()
        known = self._known.get(server)
        if known is None or now - known.asked_at >= self._interval:
            self._known[server] = _Known(
                now, known.answered_at if known else 0.0,
                known.devices if known else {})
            self._spawn(self._refresh, server)
            known = self._known[server]
        found = known.devices.get(device)
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
        old = {server for server in servers if server in self._known and
               now - self._known[server].answered_at > self._interval}
        for server in old:
            self._refresh(server)
        return bool(old)

    def coming(self, devices: List[Tuple[Tuple[Server, str], int]]
               ) -> Coming:
        """Note bytes that were admitted; ``end()`` it when the PUT ends."""
        return Coming(self.clock, [
            (self._coming.setdefault(where, _Place()), length)
            for where, length in devices])

    def count(self, server: Server, class_id: int, answer: str) -> None:
        """One more verdict, for that server to hear of."""
        counts = self._tally.setdefault(server, {}).setdefault(class_id, {})
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

    def _refresh(self, server: Server) -> None:
        tally = self._tally.pop(server, {})
        try:
            devices = self._ask(server, wire.encode_tally(tally))
        except (OSError, DssError, eventlet.Timeout) as err:
            self._logger.increment('dss.admission.unknown')
            self._logger.debug('dss: %s:%d does not say how full it is: %s',
                               server[0], server[1], err)
            return
        known = self._known[server]
        self._known[server] = _Known(known.asked_at, self.clock(), devices)


def ask_server(server: Server, tally: str
               ) -> Dict[str, Tuple[float, wire.Pressure]]:
    """Ask an object server over HTTP for the pressure of its devices.

    :raises OSError: it does not answer
    :raises DamagedRecord: not as one of ours
    """
    raw = _get(server, {names.BACKEND_ADMISSIONS: tally})
    return wire.decode_node(raw) if raw else {}


def ask_rooms(server: Server) -> Dict[str, Tuple[int, int]]:
    """Ask an object server how much room its mounted devices have, as
    (bytes that may still be written, all bytes).

    :raises OSError: it does not answer
    :raises DamagedRecord: not as one of ours
    """
    raw = _get(server, {})
    return wire.decode_rooms(raw) if raw else {}


def _get(server: Server, headers: Dict[str, str]) -> bytes:
    """The answer; nothing of a server without classes."""
    with eventlet.Timeout(_TIMEOUT_SECONDS):
        connection = http_connect_raw(
            server[0], server[1], 'GET', names.PRESSURE_PATH, headers)
        try:
            response = connection.getresponse()
            raw: bytes = response.read(_MAX_BYTES)
            return raw if response.status == 200 else b''
        finally:
            connection.close()
