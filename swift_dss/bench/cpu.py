"""CPU time of the cluster's processes, as the kernel counts it."""

from __future__ import annotations

import os
from typing import Dict, Iterable, Mapping, Sequence

_TICKS = os.sysconf('SC_CLK_TCK')

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
    return ticks / _TICKS


def by_name(pids: Mapping[str, Sequence[int]]) -> Dict[str, float]:
    """Seconds of each server of :data:`FRONT` and :data:`BEHIND`."""
    return {name: seconds(pids.get(name, ())) for name in FRONT + BEHIND}
