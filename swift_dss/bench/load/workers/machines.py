"""Users on other machines, by execnet: a Python there for each process.

execnet starts it through ssh, so that no port is opened and who may is ssh's
business; ``swift-dss`` of the same version MUST be installed there. Clocks are
compared before the start: all times on the way are of the machine that
measures, right to half of the fastest of some rounds to the other and back.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import multiprocessing
import pickle
import signal
import threading
import time
from typing import (
    Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple)

from swift_dss.bench.load.records import Counts
from swift_dss.bench.load.workers.live import Plan
from swift_dss.bench.load.workers.serving import END
from swift_dss.bench.load.workers.worker import Worker, each_look
from swift_dss.core.errors import BadClassInput, BadConfig

_ROUNDS = 8
#: A machine that is off is told from one that is slow, and nobody is there to
#: type a password.
_SSH = ('-o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=10 '
        '-o ServerAliveCountMax=3 ')
#: For Python to start there and import what users need.
_START_SECONDS = 60.0
#: For it to end, before its ssh is killed.
_END_SECONDS = 1.0
#: The version goes first: another one may lack the rest.
_SOURCE = ('import importlib.metadata\n'
           'channel.send(importlib.metadata.version("swift-dss"))\n'
           'import hdrh.histogram\n'
           'from swift_dss.bench.load.workers.serving import serve\n'
           'serve(channel)\n')


class Machine:
    """The parent's side of one Python on another machine.

    :param spec: of execnet: ``ssh=HOST//python=/opt/swift/bin/python``
    :raises BadConfig: it cannot be started, or has another version
    :ivar offset: seconds that its clock is ahead
    :ivar error_seconds: how wrong that may be
    :ivar drift_seconds: that it was ahead more in the end; None: not known
    """

    def __init__(self, spec: str) -> None:
        import execnet
        self.spec = spec
        self.drift_seconds: Optional[float] = None
        self._group = execnet.Group()
        try:
            with _no_interrupts():
                gateway = self._group.makegateway(
                    spec.replace('ssh=', 'ssh=' + _SSH, 1)
                    if execnet.XSpec(spec).ssh else spec)
            self.channel = gateway.remote_exec(_SOURCE)
            version = self.channel.receive(_START_SECONDS)
            if version != _version():
                raise self._refused('has swift-dss %s, and this is %s' % (
                    version, _version()))
            self.offset, self.error_seconds = _compared(self._ask_clock)
        except execnet.gateway_base.RemoteError as err:
            raise self._refused('no swift-dss there: ' + str(
                err).strip().rpartition('\n')[2]) from err
        except execnet.TimeoutError as err:
            raise self._refused('said nothing for %.0f seconds'
                                % _START_SECONDS) from err
        except (OSError, EOFError, execnet.HostNotFound) as err:
            raise self._refused('it is not reached, or its Python does not '
                                'start (//python= says which)') from err

    def _refused(self, reason: str) -> BadConfig:
        self.close()
        return BadConfig('--at %s: %s' % (self.spec, reason))

    def _ask_clock(self) -> float:
        self.channel.send('clock')
        theirs: float = self.channel.receive(_START_SECONDS)
        return theirs

    def worker(self, plan: Plan, number: int) -> Worker:
        """Start users there."""
        return _Far(self, plan, number)

    def close(self) -> None:
        """End it, and its ssh; blocks for two seconds at most."""
        self._group.terminate(_END_SECONDS)


@contextlib.contextmanager
def _no_interrupts() -> Iterator[None]:
    """Keep SIGINT blocked in programs that start now: a terminal sends it to
    ssh too, which would take the machine away with its figures."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Far(Worker):
    """What it says and hears goes through a pipe, as with a process here."""

    def __init__(self, machine: Machine, plan: Plan, number: int) -> None:
        mine, self._theirs = multiprocessing.Pipe()
        super().__init__(mine, machine.spec, number)
        self._machine = machine
        epoch_ns = plan.epoch_ns
        if epoch_ns is not None:
            plan = plan._replace(
                epoch_ns=epoch_ns - round(machine.offset * 1e9))
        machine.channel.send(pickle.dumps((plan, number, machine.offset)))
        machine.channel.setcallback(self._heard, endmarker=END)
        threading.Thread(target=self._forward, daemon=True).start()

    def _heard(self, message: Any) -> None:
        with contextlib.suppress(OSError):
            if message is END:
                self._theirs.send(('failed', 'died'))
                return
            name, said = message
            if name == 'counts':
                said = dict(said, counts=Counts(*said['counts']))
            self._theirs.send((name, said))

    def _forward(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                self._say(self._theirs.recv())

    def _say(self, message: Any) -> None:
        with contextlib.suppress(OSError):
            self._machine.channel.send(message)

    def reassure(self) -> None:
        """Say that the parent is there."""
        if self.loss is None:
            self._say('alive')

    def stop(self) -> None:
        """Begin no more requests."""
        self._say('stop')

    def end(self) -> None:
        """See that there is no process there any more."""
        self.pipe.close()
        self._machine.close()

    def part(self) -> None:
        """Compare the clocks again."""
        offset, error = _compared(self._ask_clock)
        if self.loss is None:
            machine = self._machine
            machine.drift_seconds = offset - machine.offset
            machine.error_seconds = max(error, machine.error_seconds)

    def _ask_clock(self) -> float:
        self.words.pop('clock', None)
        self._say('clock')
        for _ in each_look([self], 'clock'):
            pass
        theirs: float = self.words.get('clock', 0.0)
        return theirs


def _compared(ask: Callable[[], float]) -> Tuple[float, float]:
    """Seconds that a clock is ahead, and how wrong that may be.

    :param ask: its time
    """
    best = (0.0, float('inf'))
    for _ in range(_ROUNDS):
        sent = time.monotonic()
        theirs = ask()
        error = (time.monotonic() - sent) / 2
        if error < best[1]:
            best = (theirs - sent - error, error)
    return best


def listed(specs: Sequence[str]) -> List[str]:
    """One for each process; ``3*ssh=HOST`` are three there.

    :raises BadClassInput: that is no specification
    :raises BadConfig: execnet is not installed
    """
    try:
        import execnet
    except ImportError as err:
        raise BadConfig("%s: pip install 'swift-dss[load]'" % err) from err
    each: List[str] = []
    for spec in specs:
        count, star, rest = spec.partition('*')
        if star and (not count.isdigit() or not 0 < int(count) <= 512):
            raise BadClassInput('--at', '%r: %r is not in 1 to 512' % (
                spec[:80], count[:20]))
        try:
            parsed = execnet.XSpec(rest if star else spec)
        except (AttributeError, ValueError) as err:
            raise BadClassInput('--at', '%r: %s' % (
                spec[:80], err)) from err
        if parsed.via or not (parsed.ssh or parsed.popen):
            # A socket of execnet runs the code of anyone who reaches it.
            raise BadClassInput('--at', '%r is neither ssh=HOST nor popen'
                                % spec[:80])
        each += [rest] * int(count) if star else [spec]
    return each


def connect(specs: Sequence[str]) -> List[Machine]:
    """All of them, or none.

    :raises BadConfig: one cannot be started
    """
    machines: List[Machine] = []
    try:
        for spec in specs:
            machines.append(Machine(spec))
    except BaseException:
        for machine in machines:
            machine.close()
        raise
    return machines


def clocks(machines: Sequence[Machine]) -> Dict[str, Dict[str, Any]]:
    """How far the clock of each was off, in milliseconds; of several
    processes of one machine, the most.

    ``clock_error_ms`` bounds either comparison of clocks, before the start
    and in the end; None: there was no comparison in the end.
    """
    listed: Dict[str, Dict[str, Any]] = {}
    for machine in machines:
        drift = machine.drift_seconds
        clock = listed.setdefault(machine.spec, {
            'clock_error_ms': 0.0, 'clock_drift_ms': 0.0})
        clock['clock_error_ms'] = max(clock['clock_error_ms'],
                                      1000 * machine.error_seconds)
        before = clock['clock_drift_ms']
        clock['clock_drift_ms'] = None if drift is None or before is None \
            else max(before, 1000 * drift, key=abs)
    return listed


def _version() -> str:
    return importlib.metadata.version('swift-dss')
