"""Receive events: datagrams, and the spool of the time without a daemon."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import threading
from collections import deque
from typing import Callable, Deque, Dict, List, Optional, Union

from swift_dss.core.errors import DamagedRecord
from swift_dss.core.limits import MAX_EVENT_BYTES
from swift_dss.io import spool
from swift_dss.tier.devices import Devices
from swift_dss.tier.hear.ledger import Ledger
from swift_dss.tier.index.due import Due
from swift_dss.tier.metrics import Metrics
from swift_dss.wire.control import (
    decode_event, is_urgent, split_events)

#: Events that wait for the index, at most: about 30 MB of memory. Beyond
#: it the socket fills up, and object servers spool.
MAX_WAITING = 100000
#: Events of one index transaction.
BATCH = 500
#: Seconds that events gather before they are applied together, unless there
#: are enough for a batch or a caller waits for them.
GATHER_SECONDS = 1.0
#: The same where one of them is urgent.
URGENT_SECONDS = 0.2
#: The kernel's queue of datagrams, asked for; it may give less.
_RECEIVE_BYTES = 4 * 1024 * 1024
#: Longest wait for room in that queue of a call that must run in order.
MARK_SECONDS = 0.1
#: The first byte of our own datagrams; no event begins with it.
_MARK = b'\0'

Call = Callable[[], None]


class Intake:
    """Receives in one thread, hands over batches in another.

    The receiver only puts datagrams aside: the kernel may hold as few as ten,
    and an object server that finds no room spools. The other lets some gather
    first, because a batch costs little more than an event.

    :param devices: those whose spool is read
    """

    def __init__(self, path: str, devices: Devices, due: Due,
                 metrics: Metrics) -> None:
        self._path = path
        self._devices = devices
        self._due = due
        self._metrics = metrics
        self._logger = metrics.logger
        self._ledger: Optional[Ledger] = None
        #: Lines as they came, in order, and calls to run between them.
        self._waiting: Deque[Union[bytes, Call]] = deque()
        self._marks: Dict[bytes, Call] = {}
        self._numbers = itertools.count()
        self._marked = 0
        self._more = threading.Condition()
        #: Whether the batch thread or the receiver waits under ``_more``.
        self._idle = self._held_back = False
        self._hurried = 0
        self._urgent = False
        self._busy = False
        #: No more is to be received; no more was.
        self._stopping = self._received = False
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._threads = [
            threading.Thread(target=target, name='dss-' + name, daemon=True)
            for name, target in (('receive', self._receive),
                                 ('apply', self._work))]

    def start(self, ledger: Ledger) -> None:
        """Bind the socket and begin.

        :param ledger: hears the batches
        """
        self._ledger = ledger
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF,
                                _RECEIVE_BYTES)
        self._socket.bind(self._path)
        os.chmod(self._path, 0o660)
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop receiving; apply all that was received, then return."""
        with self._more:
            self._stopping = True
            self._more.notify_all()
        # Wakes the receiver: a datagram that is no event. It comes after
        # all that was sent before.
        with contextlib.suppress(OSError), socket.socket(
                socket.AF_UNIX, socket.SOCK_DGRAM) as waker:
            waker.sendto(b'', self._path)
        receiver, applier = self._threads
        receiver.join()
        with self._more:
            self._received = True
            self._more.notify_all()
        applier.join()
        self._socket.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)

    def read_spools(self, limit_bytes: int = 0) -> int:
        """Take in the events that object servers spooled; how many.

        :param limit_bytes: of one spool: one that nearly reached it has
            probably lost events
        """
        taken = 0
        for device in self._devices.discover():
            try:
                lines = spool.take(device.path)
            except OSError as err:
                self._logger.warning('spool of %s: %s', device.name, err)
                continue
            if limit_bytes and sum(map(len, lines)) > limit_bytes * 0.95:
                self._due.missed = True
                self._logger.warning('spool of %s was full: events were '
                                     'lost, a sweep follows', device.name)
            self._accept(lines)
            taken += len(lines)
        return taken

    @property
    def backlog(self) -> int:
        """Events that wait for the index."""
        return len(self._waiting)

    def wait_until_idle(self, seconds: float) -> bool:
        """True once everything received so far is in the index."""
        with self._more:
            # Do not gather while a caller waits.
            self._hurried += 1
            self._more.notify_all()
            try:
                return self._more.wait_for(
                    lambda: not self._waiting and not self._busy, seconds)
            finally:
                self._hurried -= 1

    def in_order(self, call: Call) -> None:
        """Run ``call`` once all that was sent before has been applied, and
        before anything that is sent from now on. Events do not gather during
        the wait.

        :param call: runs in the thread that applies, or here if the queue
            stays full or is at its end; MUST NOT raise
        """
        mark = _MARK + str(next(self._numbers)).encode('ascii')
        self._marks[mark] = call
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.settimeout(MARK_SECONDS)
                sender.sendto(mark, self._path)
        except OSError:
            if self._marks.pop(mark, None) is not None:
                call()

    def _receive(self) -> None:
        while True:
            try:
                raw = self._socket.recv(MAX_EVENT_BYTES * 2)
            except OSError as err:
                self._logger.error('events: %s', err)
                return
            if raw.startswith(_MARK):
                self._accept_mark(raw)
            elif raw:
                self._accept(split_events(raw), is_urgent(raw))
            elif self._stopping:
                return
            if len(self._waiting) >= MAX_WAITING:
                self._wait_for_room()

    def _wait_for_room(self) -> None:
        """A full queue holds the receiver back, not the memory."""
        with self._more:
            self._held_back = True
            self._more.wait_for(lambda: len(self._waiting) < MAX_WAITING
                                or self._stopping)
            self._held_back = False

    def _accept(self, lines: List[bytes], urgent: bool = False) -> None:
        if not lines:
            # Else _idle would be cleared while the batch thread goes on
            # waiting.
            return
        with self._more:
            self._waiting.extend(lines)
            # Wake the batch thread only if it is idle, at the first urgent
            # event, or when the batch is full: waking a thread costs more than
            # taking an event.
            if self._idle or (urgent and not self._urgent) or \
                    BATCH <= len(self._waiting) < BATCH + len(lines):
                self._idle = False
                self._urgent = self._urgent or urgent
                self._more.notify_all()

    def _accept_mark(self, mark: bytes) -> None:
        call = self._marks.pop(mark, None)
        if call is None:
            return
        with self._more:
            self._waiting.append(call)
            self._marked += 1
            self._idle = False
            self._more.notify_all()

    def _work(self) -> None:
        while True:
            batch = self._gather()
            if batch is None:
                return
            lines: List[bytes] = []
            for work in batch:
                if callable(work):
                    self._hand_over(lines)
                    lines = []
                    work()
                else:
                    lines.append(work)
            self._hand_over(lines)

    def _hand_over(self, lines: List[bytes]) -> None:
        events = []
        for line in lines:
            try:
                events.append(decode_event(line))
            except DamagedRecord as err:
                self._metrics.count('tier.events_damaged')
                self._logger.warning('%s', err)
        if events and self._ledger is not None:
            self._ledger.hear(events)

    def _must_go(self) -> bool:
        return bool(self._hurried or self._stopping or self._marked
                    or len(self._waiting) >= BATCH)

    def _gather(self) -> Optional[List[Union[bytes, Call]]]:
        """The next batch; None once the queue is empty and no more will come.
        """
        with self._more:
            self._busy = False
            if self._hurried:
                self._more.notify_all()
            self._idle = not self._waiting
            self._more.wait_for(lambda: self._waiting or self._received)
            self._idle = False
            if not self._more.wait_for(self._must_go, URGENT_SECONDS):
                self._more.wait_for(
                    lambda: self._urgent or self._must_go(),
                    GATHER_SECONDS - URGENT_SECONDS)
            self._urgent = False
            if not self._waiting:
                return None
            self._busy = True
            batch = [self._waiting.popleft() for _ in range(
                min(BATCH, len(self._waiting)))]
            self._marked -= sum(map(callable, batch))
            if self._held_back:
                self._more.notify_all()
            return batch
