"""Report events to the tier daemon without waiting for it.

Datagrams to a non-blocking Unix socket: a slow or dead daemon never slows a
request. Reads in quick succession share a datagram, because each datagram
wakes the daemon. Events that the daemon must not miss (a version came, went or
changed class) are spooled on the device while it cannot be reached; reads only
steer the order of eviction and are dropped. Both are counted.

Each shard of the daemon hears of its own devices, on a socket of its own.
"""

from __future__ import annotations

import abc
import os
import socket
import time
from typing import Any, Dict, List, Optional

from swift_dss.core.config import NodeConf
from swift_dss.core.residency import Tier
from swift_dss.core.limits import EVENT_BATCH_SECONDS, MAX_EVENT_BYTES
from swift_dss.io import native, spool, waiting
from swift_dss.io.pools import Pool
from swift_dss.wire.control import Event, encode_event, urgent

_SOCKET = 'events.sock'
_RETRY_SECONDS = 0.5
#: Larger uploads are reported at once: a few can fill a device.
_LARGE_BYTES = 262144


class Home(abc.ABC):
    """A node, as senders of events and recorders of requests see it."""

    conf: NodeConf
    logger: Any

    @abc.abstractmethod
    def pool(self, tier: Tier, device: str) -> Pool:
        """The threads that may block on one tier of one device."""

    @abc.abstractmethod
    def device_path(self, device: str) -> str:
        """The SSD of a device."""

    @abc.abstractmethod
    def sockets(self, device: str) -> str:
        """Folder of the sockets of the process of the tier daemon that
        looks after a device."""


class EventSender:
    """Sends events of one process."""

    def __init__(self, node: Home) -> None:
        self._node = node
        #: By the folder of their sockets.
        self._lines: Dict[str, _Line] = {}

    def send(self, event: Event) -> None:
        """Tell the daemon, or keep it for later; never blocks, never
        raises for a daemon that is not there.

        :param event: any but a READ
        """
        if self.tell(event):
            return
        device = event.version.device
        self._node.pool(Tier.SSD, device).background(
            self._keep, device, encode_event(event))

    def tell(self, event: Event) -> bool:
        """Tell the daemon now; False if it cannot be told."""
        line = self._line(event.version.device)
        if not line.is_connected():
            return False
        raw = encode_event(event)
        return line.write(urgent(raw) if event.size >= _LARGE_BYTES
                          else raw)

    def send_read(self, device: str, raw: bytes,
                  at_once: bool = False) -> None:
        """Tell the daemon of a read, at once or within
        ``EVENT_BATCH_SECONDS``; lost if it cannot be told.

        :param raw: from ``encode_read``
        :param at_once: before anything else that happens on this node
        """
        self._line(device).send_read(raw, at_once)

    def send_what_waits(self, device: str) -> None:
        """Tell of every read of a device up to now."""
        self._line(device).send_what_waits()

    def _keep(self, device: str, raw: bytes) -> None:
        logger = self._node.logger
        try:
            kept = spool.append(self._node.device_path(device), raw,
                                self._node.conf.io.spool_bytes)
        except OSError:
            kept = False
        logger.increment('dss.events.spooled' if kept
                         else 'dss.events.dropped')

    def _line(self, device: str) -> _Line:
        folder = self._node.sockets(device)
        line = self._lines.get(folder)
        if line is None:
            line = self._lines[folder] = _Line(
                os.path.join(folder, _SOCKET), self._node.logger)
        return line


class _Line:
    """The way to one process of the daemon.

    :param path: of its socket
    """

    def __init__(self, path: str, logger: Any) -> None:
        self._path = path
        self._logger = logger
        self._socket: Optional[Any] = None
        self._pid = 0
        self._quiet_until = 0.0
        self._reads: List[bytes] = []
        self._read_bytes = 0
        self._reads_due = 0.0
        self._timer_set = False

    def send_read(self, raw: bytes, at_once: bool = False) -> None:
        """See :meth:`EventSender.send_read`."""
        if not self.is_connected():
            self._logger.increment('dss.events.dropped')
            return
        if self._read_bytes + len(raw) > MAX_EVENT_BYTES:
            self._send_reads()
        self._reads.append(raw)
        self._read_bytes += len(raw) + 1
        # Send the first read after a pause immediately. If a forked child lost
        # its timer, the next read flushes the batch.
        if at_once or time.monotonic() >= self._reads_due:
            self._send_reads(at_once)
        elif not self._timer_set:
            self._set_timer()

    def send_what_waits(self) -> None:
        """Tell of every read up to now."""
        if self._reads and self._pid == os.getpid():
            self._send_reads()

    def _set_timer(self) -> None:
        self._timer_set = waiting.later(EVENT_BATCH_SECONDS,
                                        self._timer_rings)
        if not self._timer_set:
            self._send_reads()

    def _timer_rings(self) -> None:
        self._timer_set = False
        self.send_what_waits()

    def _send_reads(self, at_once: bool = False) -> None:
        reads, self._reads, self._read_bytes = self._reads, [], 0
        self._reads_due = time.monotonic() + EVENT_BATCH_SECONDS
        raw = b'\n'.join(reads)
        if at_once:
            raw = urgent(raw)
        if not reads or self._socket is None or not self.write(raw):
            for _ in reads:
                self._logger.increment('dss.events.dropped')

    def is_connected(self) -> bool:
        """True if the daemon can be told; connects now and then."""
        if self._pid == os.getpid():
            if self._socket is not None:
                return True
            if time.monotonic() < self._quiet_until:
                return False
        self._connect()
        if self._socket is None:
            self._quiet_until = time.monotonic() + _RETRY_SECONDS
        return self._socket is not None

    def write(self, raw: bytes) -> bool:
        """Send a datagram, without waiting; False if it was not sent."""
        if self._try_to_write(raw):
            return True
        if self._socket is not None:
            return False
        # A restarted daemon has a new socket of that name.
        self._connect()
        if self._socket is not None and self._try_to_write(raw):
            return True
        if self._socket is None:
            self._quiet_until = time.monotonic() + _RETRY_SECONDS
        return False

    def _try_to_write(self, raw: bytes) -> bool:
        """False if it is not sent; the socket is closed if it is dead."""
        assert self._socket is not None
        try:
            # Not through the green socket: it would turn a full queue into
            # a wait.
            native.write(self._socket.fileno(), raw)
            return True
        except BlockingIOError:
            return False  # the daemon is slow; the socket is fine
        except OSError:
            self._close()
            return False

    def _connect(self) -> None:
        self._close()
        if self._pid != os.getpid():
            # The parent sends the events that the parent gathered.
            self._pid = os.getpid()
            self._reads, self._read_bytes = [], 0
            self._timer_set = False
        fresh = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            fresh.connect(self._path)
            os.set_blocking(fresh.fileno(), False)
        except OSError:
            fresh.close()
            return
        self._socket = fresh

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
