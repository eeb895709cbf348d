"""The parent of a node's shards: starts them, watches them, answers for all.

It touches no object. A shard that ends by itself is started again, later
each time; a parent that dies takes its shards with it, and the next one
waits for them to end.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any, Dict, Iterable, List, Mapping, Optional, Set

from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadConfig, DssError, TierUnavailable
from swift_dss.strategy import sharding
from swift_dss.tier import report
from swift_dss.tier.devices import device_names
from swift_dss.tier.doors.asking import answers, ask
from swift_dss.tier.doors.history import History
from swift_dss.tier.doors.html import node_page
from swift_dss.tier.doors.page import Page
from swift_dss.tier.inforce import Source
from swift_dss.tier.local.locks import lock_node
from swift_dss.tier.metrics import Metrics
from swift_dss.tier.shards import files, sums
from swift_dss.tier.shards.board import Board, Shards
from swift_dss.tier.shards.child import admin_socket

#: A shard that ends by itself is started again after this, twice as long
#: each time it ends early.
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0
#: A shard that ran for so long did not end early.
_STEADY_SECONDS = 60.0
#: A shard that does not end when it is told to is killed after this.
_STOP_SECONDS = 90.0
#: The first start of all shards may take so long: an index is opened.
_START_SECONDS = 300.0
_LOOK_SECONDS = 0.05
#: How often devices and figures are looked at.
_CHORES_SECONDS = 10.0


def divided(conf: NodeConf) -> int:
    """How many shards the node is to have."""
    return sharding.count(
        conf.tier.shards, len(device_names(conf.devices)),
        len(os.sched_getaffinity(0)))


class Shard:
    """One process, started again whenever it ends by itself. Thread-safe.

    :param number: of the shard
    """

    def __init__(self, number: int, conf_path: str,
                 logger: logging.Logger) -> None:
        self.number = number
        self._command = [
            sys.executable, '-m', 'swift_dss.tier.main', '--config',
            conf_path, '--shard', str(number), '--parent', str(os.getpid())]
        self._logger = logger
        self._stopping = threading.Event()
        self._process: Optional[subprocess.Popen[bytes]] = None
        self.restarts = 0
        #: Status of the last process that ended by itself.
        self.ended: Optional[int] = None
        # The system tells a child that its parent is gone when the thread
        # that made it ends: this one lives as long as the child.
        self._thread = threading.Thread(
            target=self._run, name='dss-shard-%d' % number, daemon=True)
        self._thread.start()

    @property
    def pid(self) -> Optional[int]:
        """Of the process; None between two."""
        process = self._process
        return None if process is None or process.poll() is not None \
            else process.pid

    def tell(self, number: int) -> None:
        """Send a signal, if there is a process."""
        with contextlib.suppress(ProcessLookupError):
            process = self._process
            if process is not None:
                process.send_signal(number)

    def stop(self) -> None:
        """Have it end, and do not wait for it."""
        self._stopping.set()
        self.tell(signal.SIGTERM)

    def join(self) -> None:
        """Wait for the end; what hangs is killed. State is on disk."""
        self._thread.join(_STOP_SECONDS)
        if self._thread.is_alive():
            self._logger.error('shard %d does not end: killed', self.number)
            self.tell(signal.SIGKILL)
            self._thread.join()

    def _run(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while not self._stopping.is_set():
            began = time.monotonic()
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL)
            if self._stopping.is_set():
                # Asked to stop between the question above and the start.
                self.tell(signal.SIGTERM)
            status = self._process.wait()
            if self._stopping.is_set():
                return
            self.ended = status
            self.restarts += 1
            if time.monotonic() - began > _STEADY_SECONDS:
                pause = _FIRST_PAUSE_SECONDS
            self._logger.error(
                'shard %d ended with status %d; it is started again in '
                '%.1f s', self.number, status, pause)
            self._stopping.wait(pause)
            pause = min(_LONGEST_PAUSE_SECONDS, 2 * pause)


class Parent(Shards):
    """See the module.

    :param conf_path: ``dss.conf``
    :raises BadConfig: it or the class table does not parse
    """

    def __init__(self, conf_path: str, logger: logging.Logger) -> None:
        self._source = Source(conf_path)
        self._conf_path = conf_path
        self._logger = logger
        self._conf, self._table = self._source.read()
        self._count = divided(self._conf)
        files.prepare(self._conf, logger)
        self._lock_fd = lock_node(self._conf.run_dir)
        self._guard = threading.Lock()
        self._shards: Dict[int, Shard] = {}
        self._layout = files.read(self._conf)
        self._metrics = Metrics(self._conf, logger)
        self._history = History()
        self._board = Board(
            os.path.join(self._conf.run_dir, 'admin.sock'), self, logger)
        self._page: Optional[Page] = None
        self._stopping = threading.Event()
        self._chores = threading.Thread(
            target=self._do_chores, name='dss-chores', daemon=True)

    # -- life ------------------------------------------------------------

    def start(self) -> None:
        """Bring the layout into force and start the shards; returns once
        each of them answers.

        :raises DssError: one cannot be started; none runs then
        """
        try:
            self._await(self._rearrange())
            self._page = node_page(self._conf, self.status, self._history,
                                   self._metrics.text, self._logger)
        except BaseException:
            self._stop_some(list(self._shards))
            os.close(self._lock_fd)
            raise
        self._board.start()
        self._chores.start()
        self._logger.info('%d shards for %d devices', len(self._shards),
                          len(self._layout.devices))

    def stop(self) -> None:
        """End the shards, side by side, and all that answers."""
        self._stopping.set()
        self._board.stop()
        with self._guard:
            self._stop_some(list(self._shards))
        self._chores.join()
        if self._page is not None:
            self._page.stop()
        os.close(self._lock_fd)

    def reload(self) -> None:
        """See :meth:`Shards.reload`."""
        conf, table = self._source.read()
        count = divided(conf)
        if count == 1:
            self._logger.warning('[tier] shards: one process is for the '
                                 'next start of the daemon')
            count = self._count
        self._conf, self._table, self._count = conf, table, count
        started = self._rearrange()
        self._await(started)
        for number, path in self.sockets().items():
            if number not in started:
                for _ in ask(path, {'verb': 'reload'}):
                    pass

    # -- what others ask -------------------------------------------------

    def status(self) -> Dict[str, Any]:
        """See :meth:`Shards.status`."""
        statuses: Dict[int, Dict[str, Any]] = {}
        for number, path in self.sockets().items():
            with contextlib.suppress(DssError):
                for message in ask(path, {'verb': 'status'}):
                    statuses[number] = message.get('result', {})
        if not statuses:
            raise TierUnavailable('no shard of this node answers')
        return sums.status(statuses, self._told(statuses), os.getpid())

    def _told(self, statuses: Dict[int, Dict[str, Any]]
              ) -> List[Dict[str, Any]]:
        return [{
            'number': number, 'pid': shard.pid, 'restarts': shard.restarts,
            'answers': number in statuses,
            'up_seconds': statuses.get(number, {}).get('up_seconds'),
            'devices': sorted(name for name, owner
                              in self._layout.devices.items()
                              if owner == number)}
                for number, shard in sorted(self._shards.items())]

    def sockets(self) -> Dict[int, str]:
        """See :meth:`Shards.sockets`."""
        return {number: admin_socket(self._conf, number)
                for number in sorted(self._shards)}

    # -- inside ----------------------------------------------------------

    def _rearrange(self) -> List[int]:
        """Give every device its shard; shards that were started for it."""
        with self._guard:
            if self._stopping.is_set():
                return []
            before = self._layout
            layout = files.wanted(self._conf, self._count, before)
            if layout == before and self._shards:
                return []
            changed = _changed(before.devices, layout.devices) | {
                number for numbers in layout.moving.values()
                for number in numbers}
            self._stop_some(changed)
            files.carry_out(self._conf, layout, self._logger)
            self._layout = files.read(self._conf)
            started = sorted(set(layout.devices.values())
                             - set(self._shards))
            for number in started:
                self._shards[number] = Shard(number, self._conf_path,
                                             self._logger)
            return started

    def _stop_some(self, numbers: Iterable[int]) -> None:
        ending = [self._shards.pop(number) for number in numbers
                  if number in self._shards]
        for shard in ending:
            shard.stop()
        for shard in ending:
            shard.join()

    def _await(self, numbers: Iterable[int]) -> None:
        """Wait until shards answer that were started just now. Not one
        that refuses: it would again. One that was killed is started again.
        """
        until = time.monotonic() + _START_SECONDS
        for number in numbers:
            shard = self._shards[number]
            path = admin_socket(self._conf, number)
            while not answers(path):
                if shard.ended is not None and shard.ended > 0:
                    raise BadConfig('shard %d ended with status %d while it '
                                    'was started' % (number, shard.ended))
                if time.monotonic() > until:
                    raise TierUnavailable('shard %d does not answer'
                                          % number)
                time.sleep(_LOOK_SECONDS)

    def _do_chores(self) -> None:
        while not self._stopping.wait(_CHORES_SECONDS):
            try:
                self._rearrange()
                status = self.status()
                self._metrics.replace(status['metrics'], status['gauges'])
                report.publish(status, report.Sinks(
                    self._conf, self._table, self._metrics, self._history))
            except (DssError, OSError) as err:
                self._logger.error('chores: %s', err)


def _changed(before: Mapping[str, int],
             after: Mapping[str, int]) -> Set[int]:
    """Shards that have other devices than before."""
    differing = {name for name in set(before) | set(after)
                 if before.get(name) != after.get(name)}
    return {number for layout in (before, after)
            for name, number in layout.items() if name in differing}
