"""Start, find and end the processes of one cluster.

There are no pid files: every process carries the cluster's root and its
own name in its environment, and ``/proc`` is asked who is there. So a
process that outlived its starter is found, and a reused pid is not.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from typing import (TYPE_CHECKING, Callable, Collection, Dict, List,
                    Mapping, Optional, Sequence, Set)

from swift_dss.aio.run import LOG_ENV
from swift_dss.core.errors import DssError

Say = Callable[[str], None]

ROOT_ENV = 'SWIFT_DSS_AIO_ROOT_OF'
NAME_ENV = 'SWIFT_DSS_AIO_NAME'

#: How often a wait looks again.
POLL_SECONDS = 0.05
#: Seconds that a server may take until it answers.
PORT_DEADLINE_SECONDS = 60.0
#: A process that was just begun has no environment to be found by until
#: it has its program; missing for longer than this, it has ended.
BIRTH_SECONDS = 3.0

if TYPE_CHECKING:
    Child = subprocess.Popen[bytes]


class StartFailed(DssError):
    """A process ended or did not answer in time."""

    exit_code = 70


def spawn(root: str, name: str, log: str, arguments: Sequence[str],
          cgroup: Sequence[str] = (),
          extra_env: Optional[Mapping[str, str]] = None,
          prefix: Sequence[str] = (),
          program: str = sys.executable) -> Child:
    """Start ``PROGRAM ARGUMENTS`` as a session of its own.

    :param log: the file its log and its standard output go to
    :param cgroup: ``cgroup.procs`` files that it joins
    :param prefix: a command that runs the rest of its arguments, such as
        ``nsenter``
    """
    env = environment(root, name, log)
    env.update(extra_env or {})

    def join() -> None:
        for procs in cgroup:
            with open(procs, 'w') as out:
                out.write('%d\n' % os.getpid())

    with open(log, 'ab') as out:
        return subprocess.Popen(
            [*prefix, program, *arguments], env=env, cwd='/',
            stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            start_new_session=True,
            preexec_fn=join if cgroup else None)


def environment(root: str, name: str, log: str) -> Dict[str, str]:
    """The environment of a process of a cluster: ours, and what finds it."""
    return {**os.environ, ROOT_ENV: root, NAME_ENV: name, LOG_ENV: log,
            'PYTHONUNBUFFERED': '1',
            # Its resolver is half of what a server of Swift imports, and
            # here every address is a number or a line of /etc/hosts.
            'EVENTLET_NO_GREENDNS': 'yes'}


def find(root: str) -> Dict[str, List[int]]:
    """Every living process of the cluster: name -> pids, oldest first."""
    return living(lambda marked: marked == root).get(root, {})


def living(wanted: Callable[[str], bool]
           ) -> Dict[str, Dict[str, List[int]]]:
    """The same of several clusters: root -> name -> pids.

    :param wanted: is a root one of them?
    """
    mark = ROOT_ENV.encode('ascii')
    roots: Dict[str, Dict[str, List[int]]] = {}
    for entry in os.listdir('/proc'):
        if not entry.isdigit():
            continue
        try:
            with open('/proc/%s/environ' % entry, 'rb') as source:
                environ = source.read()
        except OSError:
            continue
        if mark not in environ:
            continue
        variables = dict(variable.partition(b'=')[::2]
                         for variable in environ.split(b'\0'))
        root = variables.get(ROOT_ENV.encode(), b'').decode('utf-8')
        name = variables.get(NAME_ENV.encode(), b'').decode('utf-8')
        if name and wanted(root):
            roots.setdefault(root, {}).setdefault(name, []).append(
                int(entry))
    for names in roots.values():
        for pids in names.values():
            pids.sort()
    return roots


def send(root: str, names: Optional[Sequence[str]] = None,
         signum: int = signal.SIGTERM) -> List[int]:
    """Send a signal to processes of the cluster.

    :param names: of which servers; None is all
    :returns: the pids of those that got it
    """
    sent = []
    for name, pids in find(root).items():
        if names is not None and name not in names:
            continue
        for pid in pids:
            try:
                os.kill(pid, signum)
                sent.append(pid)
            except ProcessLookupError:
                pass
    return sent


def kill(root: str, names: Optional[Sequence[str]] = None) -> int:
    """End processes without asking; returns when they are gone, with every
    port and file that they held.

    :param names: of which servers; None is all
    :returns: how many there were
    """
    killed = send(root, names, signal.SIGKILL)
    _await_death(killed)
    return len(killed)


def end(root: str, names: Optional[Sequence[str]] = None,
        grace_seconds: float = 5.0) -> int:
    """End processes politely, then not; returns when they are gone, with
    every port and file that they held.

    :returns: how many had to be killed
    """
    asked = set(send(root, names))

    def gone() -> bool:
        left = find(root)
        asked.update(pid for name in names or left
                     for pid in left.get(name, ()))
        return not any(map(_alive, asked))

    if wait(gone, grace_seconds):
        return 0
    killed = kill(root, names)
    _await_death(asked)
    return killed


def end_all(wanted: Callable[[str], bool],
            grace_seconds: float = 5.0) -> int:
    """:func:`end` for all processes of several clusters at once.

    :param wanted: is a root one of them?
    :returns: how many processes there were
    """
    ended: Set[int] = set()
    for signum in (signal.SIGTERM, signal.SIGKILL):
        for names in living(wanted).values():
            for pid in (pid for pids in names.values() for pid in pids):
                try:
                    os.kill(pid, signum)
                    ended.add(pid)
                except ProcessLookupError:
                    pass
        if wait(lambda: not living(wanted)
                and not any(map(_alive, ended)), grace_seconds):
            break
    _await_death(ended)
    return len(ended)


def _await_death(pids: Collection[int]) -> None:
    if not wait(lambda: not any(map(_alive, pids)), 30.0):
        raise DssError('processes do not end, though killed: %s'
                       % sorted(filter(_alive, pids)))


def _alive(pid: int) -> bool:
    """Does a process still hold anything?

    One that dies loses its environment with its memory, and only then
    closes its files: what :func:`find` misses may still be listening. So
    may one whose first thread is gone while others end.
    """
    try:
        with open('/proc/%d/stat' % pid, 'rb') as source:
            fields = source.read().rpartition(b')')[2].split()
    except OSError:
        return False
    # State, and number of threads: 3 and 20 of proc(5).
    return fields[0] not in (b'Z', b'X') or int(fields[17]) > 1


def wait(predicate: Callable[[], bool], seconds: float) -> bool:
    """True as soon as ``predicate()`` is, False after ``seconds``."""
    deadline = time.monotonic() + seconds
    while True:
        if predicate():
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_SECONDS)


def listening(port: int) -> bool:
    """Does someone accept connections on that local port?"""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(('127.0.0.1', port)) == 0


def port_free(port: int) -> bool:
    """Could a server take that local port now?"""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(('127.0.0.1', port))
        except OSError:
            return False
    return True


def free_base_port(count: int, first: int = 8080) -> int:
    """The first of ``count`` neighbouring free ports.

    They are reserved until this process ends: this function gives them to no
    other process, not even while the server on a port restarts.

    :raises StartFailed: there is no such block below 32768
    """
    for base in range(first, 32768 - count, count):
        if _reserve(range(base, base + count)):
            return base
    raise StartFailed('no block of %d free ports' % count)


#: The sockets that reserve our ports until this process ends.
_reservations: List[socket.socket] = []


def _reserve(ports: Sequence[int]) -> bool:
    # A name in the abstract namespace of Unix sockets belongs to one
    # process, goes with it however it ends, and is seen where the port is
    # seen: in the same network namespace.
    held: List[socket.socket] = []
    for port in ports:
        marker = socket.socket(socket.AF_UNIX)
        held.append(marker)
        try:
            marker.bind('\0swift-dss-port-%d' % port)
        except OSError:
            break
        if not port_free(port):
            break
    else:
        _reservations.extend(held)
        return True
    for marker in held:
        marker.close()
    return False


def tail(path: str, lines: int = 20) -> str:
    """The last lines of a log, indented; '' if there is none."""
    try:
        with open(path, 'rb') as source:
            source.seek(0, os.SEEK_END)
            source.seek(max(0, source.tell() - 64 * 1024))
            text = source.read().decode('utf-8', 'replace')
    except OSError:
        return ''
    return '\n'.join('    ' + line for line in text.splitlines()[-lines:])


def listening_unix(path: str) -> bool:
    """Does someone accept connections on that Unix socket?"""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(path) == 0
