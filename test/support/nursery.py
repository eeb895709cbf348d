"""Servers and tier daemons of test clusters are forks of a process that has
imported what they import: the import is most of the cost of a start.

Programs of another version, of another Python path or from within another
network namespace are started as they are anywhere. ``SWIFT_DSS_NO_NURSERY=1``
starts all so.
"""

from __future__ import annotations

import atexit
import math
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from support import hatch

from swift_dss.aio import processes
from swift_dss.aio.bed import clock

_MODULES = frozenset(('swift_dss.aio.run', 'swift_dss.aio.bed.run',
                      'swift_dss.tier.main'))


class Forked:
    """What :class:`subprocess.Popen` is of a process that it started."""

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self.pid = pid
        self.returncode: Optional[int] = None
        self._nursery = nursery

    def poll(self) -> Optional[int]:
        """How it ended; None while it runs."""
        if self.returncode is None:
            self.returncode = self._nursery.ask(self.pid)
        return self.returncode

    def wait(self, timeout: Optional[float] = None) -> int:
        """How it ended, once it has.

        :raises TimeoutExpired: it did not in so many seconds
        """
        seconds = math.inf if timeout is None else timeout
        if not processes.wait(lambda: self.poll() is not None, seconds):
            raise subprocess.TimeoutExpired(str(self.pid), seconds)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, signum: int) -> None:
        """Send it a signal, if it runs."""
        if self.poll() is None:
            os.kill(self.pid, signum)

    def terminate(self) -> None:
        """End it politely."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it without asking."""
        self.send_signal(signal.SIGKILL)


class Nursery:
    """One process that forks.

    :param moved: can its forks follow a clock of their node's?
    """

    def __init__(self, moved: bool) -> None:
        self._lock = threading.Lock()
        self._asks, theirs = socket.socketpair(socket.AF_UNIX,
                                               socket.SOCK_SEQPACKET)
        words: List[str] = []
        with tempfile.NamedTemporaryFile() as offset:
            if moved:
                clock.set_offset(offset.name, 0.0)
                words.append(offset.name)
            environ = dict(os.environ, EVENTLET_NO_GREENDNS='yes',
                           PYTHONUNBUFFERED='1')
            environ[hatch.ROOM_ENV] = '-' * hatch.ROOM_BYTES
            self._process = subprocess.Popen(
                [sys.executable, hatch.__file__, str(theirs.fileno()),
                 *words], env=environ, cwd='/', stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),), start_new_session=True)
            theirs.close()
            # It has read its files once it answers.
            self.ask(0)

    def ask(self, request: Any) -> Any:
        """Its answer to a :class:`support.hatch.Wanted` or to a pid."""
        with self._lock:
            self._asks.send(pickle.dumps(request))
            answer = self._asks.recv(hatch.ROOM_BYTES)
        if not answer:
            raise processes.StartFailed('the nursery of processes has ended')
        return pickle.loads(answer)

    def close(self) -> None:
        """Let it end; its forks go on."""
        self._asks.close()
        self._process.wait()


class Nurseries:
    """Those of this process, each made when it is first needed."""

    def __init__(self) -> None:
        self._made: Dict[bool, Nursery] = {}
        self._lock = threading.Lock()
        self._spawn = processes.spawn
        self._imported_by = _imported_by()

    def spawn(self, root: str, name: str, log: str,
              arguments: Sequence[str], cgroup: Sequence[str] = (),
              extra_env: Optional[Mapping[str, str]] = None,
              prefix: Sequence[str] = (),
              program: str = sys.executable) -> Any:
        """As :func:`swift_dss.aio.processes.spawn`."""
        entrance = _entrance(prefix)
        if (entrance is None or program != sys.executable or extra_env
                or arguments[0] != '-m' or arguments[1] not in _MODULES
                or not _at_home() or _imported_by() != self._imported_by):
            return self._spawn(root, name, log, arguments, cgroup, extra_env,
                               prefix, program)
        environ = processes.environment(root, name, log)
        nursery = self._nursery(arguments[1] == 'swift_dss.aio.bed.run')
        return Forked(nursery, nursery.ask(tuple(hatch.Wanted(
            tuple(arguments[1:]), environ, os.path.abspath(log),
            tuple(cgroup), *entrance))))

    def _nursery(self, moved: bool) -> Nursery:
        with self._lock:
            if moved not in self._made:
                self._made[moved] = Nursery(moved)
                atexit.register(self._made[moved].close)
            return self._made[moved]


def _imported_by() -> Dict[str, str]:
    """The variables that say what an import finds."""
    return {name: value for name, value in os.environ.items()
            if name.startswith(('PYTHON', 'LD_'))}


def _at_home() -> bool:
    # A thread may be in another network namespace than its process.
    return os.readlink('/proc/thread-self/ns/net') == \
        os.readlink('/proc/%d/ns/net' % os.getpid())


def _entrance(prefix: Sequence[str]) -> Optional[Tuple[str, str]]:
    """Network namespace and file of hosts that a prefix enters, as
    :meth:`swift_dss.aio.bed.network.Network.entrance` says them; None if it
    is another prefix."""
    if not prefix:
        return '', ''
    option = '--net='
    if prefix[0] != 'nsenter' or not prefix[1].startswith(option):
        return None
    return prefix[1][len(option):], prefix[-1] if len(prefix) > 2 else ''


def install() -> None:
    """Have clusters that this process starts use nurseries."""
    if not os.environ.get('SWIFT_DSS_NO_NURSERY'):
        processes.spawn = Nurseries().spawn
