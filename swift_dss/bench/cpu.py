"""CPU time of the cluster's processes, as the kernel counts it."""

from __future__ import annotations

import contextlib
import os
from typing import Dict, Iterable, List, Mapping, Sequence, Set

#: Of the kernel's clock, a second.
TICKS = os.sysconf('SC_CLK_TCK')

#: Processes that a request goes through, by the names the all-in-one
#: cluster gives them, and the daemon that works behind it.
FRONT = ('proxy-server', 'object-server', 'container-server')
BEHIND = ('tierd',)


def seconds(pids: Iterable[int]) -> float:
    """User and system time of these processes, threads that have ended
    included. A process that is gone counts 0."""
    ticks = 0
    for pid in pids:
        try:
            with open('/proc/%d/stat' % pid, 'rb') as source:
                # The name may hold spaces and brackets; what follows its
                # last bracket does not. utime and stime are 14 and 15.
                fields = source.read().rsplit(b')', 1)[1].split()
        except FileNotFoundError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / TICKS


def listeners(port: int) -> List[int]:
    """Processes of this machine that listen on a TCP port, those that we
    may look at."""
    sockets: Set[str] = set()
    for path in ('/proc/net/tcp', '/proc/net/tcp6'):
        with contextlib.suppress(FileNotFoundError), open(path) as source:
            for line in source.readlines()[1:]:
                # Local address, remote address, state (0A: listens), and
                # six fields on the number of the socket.
                fields = line.split()
                if fields[3] == '0A' and \
                        int(fields[1].rsplit(':', 1)[1], 16) == port:
                    sockets.add('socket:[%s]' % fields[9])
    return [int(pid) for pid in os.listdir('/proc')
            if pid.isdigit() and sockets & _sockets(pid)]


def _sockets(pid: str) -> Set[str]:
    sockets: Set[str] = set()
    with contextlib.suppress(OSError):
        for name in os.listdir('/proc/%s/fd' % pid):
            with contextlib.suppress(OSError):
                sockets.add(os.readlink('/proc/%s/fd/%s' % (pid, name)))
    return sockets


def by_name(pids: Mapping[str, Sequence[int]]) -> Dict[str, float]:
    """Seconds of each server of :data:`FRONT` and :data:`BEHIND`."""
    return {name: seconds(pids.get(name, ())) for name in FRONT + BEHIND}
