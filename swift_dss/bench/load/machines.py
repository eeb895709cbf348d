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
import queue
import threading
import time
from typing import Any, Callable, Dict, List, Sequence, Tuple

from swift_dss.bench.load import drive
from swift_dss.bench.load.records import Counts
from swift_dss.bench.load.users import LoadFailed
from swift_dss.core.errors import BadClassInput, BadConfig

_ROUNDS = 8
#: A machine that is off is told from one that is slow, and nobody is there to
#: type a password.
_SSH = ('-o BatchMode=yes -o ServerAliveInterval=10 '
        '-o ServerAliveCountMax=3 ')
_SOURCE = ('from swift_dss.bench.load.machines import serve\n'
           'serve(channel)\n')
_END = None


class Machine:
    """The parent's side of one Python on another machine.

    :param spec: of execnet: ``ssh=HOST//python=/opt/swift/bin/python``
    :raises BadConfig: it cannot be started, or has another version
    :ivar offset: seconds that its clock is ahead
    :ivar error_seconds: how wrong that may be
    :ivar drift_seconds: that it was ahead more in the end
    """

    drift_seconds = 0.0

    def __init__(self, spec: str) -> None:
        import execnet
        self.spec = spec
        try:
            self._gateway = execnet.makegateway(
                spec.replace('ssh=', 'ssh=' + _SSH, 1)
                if execnet.XSpec(spec).ssh else spec)
            self.channel = self._gateway.remote_exec(_SOURCE)
            version = self.channel.receive()
        except (OSError, EOFError, execnet.gateway_base.RemoteError,
                execnet.HostNotFound) as err:
            raise BadConfig('--at %s: no swift-dss there: %s' % (
                spec, str(err).strip().rpartition('\n')[2])) from err
        if version != _version():
            self.close()
            raise BadConfig('--at %s: has swift-dss %s, and this is %s' % (
                spec, version, _version()))
        self.offset, self.error_seconds = _compared(self._ask_clock)

    def _ask_clock(self) -> float:
        self.channel.send('clock')
        theirs: float = self.channel.receive()
        return theirs

    def worker(self, plan: drive.Plan, number: int) -> drive.Worker:
        """Start users there."""
        return _Remote(self, plan, number)

    def close(self) -> None:
        """End it."""
        with contextlib.suppress(OSError, EOFError):
            self._gateway.exit()


class _Remote(drive.Worker):
    """What it says and hears goes through a pipe, as with a process here."""

    def __init__(self, machine: Machine, plan: drive.Plan,
                 number: int) -> None:
        mine, self._theirs = multiprocessing.Pipe()
        super().__init__(mine, machine.spec)
        self._machine = machine
        machine.channel.send(pickle.dumps((plan._replace(lines=[]), number,
                                           machine.offset)))
        machine.channel.setcallback(self._heard, endmarker=_END)
        threading.Thread(target=self._forward, daemon=True).start()

    def _heard(self, message: Any) -> None:
        with contextlib.suppress(OSError):
            self._theirs.send(('failed', str(self.died()))
                              if message is _END else _heard(*message))

    def _forward(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                self._machine.channel.send(self._theirs.recv())

    def stop(self) -> None:
        """Begin no more requests."""
        with contextlib.suppress(OSError):
            self._machine.channel.send('stop')

    def end(self) -> None:
        """See that there is no process there any more."""
        if self.is_done:
            with contextlib.suppress(LoadFailed):
                self._machine.drift_seconds = _compared(
                    self._ask_clock)[0] - self._machine.offset
        self.pipe.close()
        self._machine.close()

    def _ask_clock(self) -> float:
        self.tell('clock')
        theirs: float = self.hear('clock')
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


def serve(channel: Any) -> None:
    """The other side: users of one process; ends with their numbers."""
    channel.send(_version())
    message = channel.receive()
    while message == 'clock':
        channel.send(time.monotonic())
        message = channel.receive()
    # It is the one whose code runs here.
    plan, number, offset = pickle.loads(message)  # noqa: S301
    pipe = _Pipe(channel, offset)
    try:
        drive.live(plan, number, pipe, pipe.stopped, None)
        while pipe.recv() == 'clock':
            pipe.send(('clock', time.monotonic()))
    except LoadFailed as err:
        pipe.send(('failed', str(err)))
    except EOFError:
        # The parent has gone: nobody wants the numbers.
        return


def _heard(name: str, said: Any) -> Tuple[str, Any]:
    if name == 'counts':
        said = dict(said, counts=Counts(*said['counts']))
    return name, said


def _version() -> str:
    return importlib.metadata.version('swift-dss')


class _Pipe:
    """The channel as :func:`drive.live` knows a pipe, in its own time."""

    def __init__(self, channel: Any, offset: float) -> None:
        self._channel = channel
        self._offset = offset
        self._messages: queue.Queue[Any] = queue.Queue()
        self.stopped = threading.Event()
        channel.setcallback(self._hear, endmarker=_END)

    def _hear(self, message: Any) -> None:
        if message == 'stop':
            self.stopped.set()
        else:
            self._messages.put(message)

    def recv(self) -> Any:
        """The next word; a time is one of this machine's."""
        word = self._messages.get()
        if word is _END:
            self.stopped.set()
            raise EOFError
        return word + self._offset if isinstance(word, float) else word

    def send(self, message: Tuple[str, Any]) -> None:
        """Say something; times become those of the other machine."""
        name, said = message
        if name == 'counts':
            said = self._shifted(said)
        self._channel.send((name, said))

    def _shifted(self, said: Dict[str, Any]) -> Dict[str, Any]:
        counts = said['counts']
        if counts.last_sent:
            counts = counts._replace(
                last_sent=counts.last_sent - self._offset)
        return dict(said, end=said['end'] - self._offset,
                    counts=tuple(counts))
