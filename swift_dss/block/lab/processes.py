"""A guest's processes on the machine: one group, from start to end."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Iterator, List

_POLL_SECONDS = 0.02
_GRACE_SECONDS = 30.0
_PR_SET_PDEATHSIG = 1
_ADDR_NO_RANDOMIZE = 0x0040000

if TYPE_CHECKING:
    Process = subprocess.Popen[bytes]


@contextlib.contextmanager
def running(command: List[str], folder: str) -> Iterator[Process]:
    """A guest's kernel, which leads a group of its own; all of that ends here,
    or with this process.

    :param folder: where it runs, and writes ``console``
    :raises subprocess.TimeoutExpired: as :func:`end`
    """
    kernel = _start(command, folder)
    try:
        with _guard(kernel.pid) as guard:
            try:
                yield kernel
            finally:
                # Before the group's number may be that of another.
                guard.kill()
    finally:
        end(kernel)


def _start(command: List[str], folder: str) -> Process:
    env = {'PATH': os.defpath, 'TMPDIR': os.path.dirname(folder)}
    parent = os.getpid()
    libc = ctypes.CDLL(None)

    def prepare() -> None:
        # A killed parent must not leave a machine running; the guard of
        # its other processes is not there yet.
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # The same addresses, so the same memory, at every start.
        libc.personality(_ADDR_NO_RANDOMIZE)
        if os.getppid() != parent:
            os._exit(1)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    with open(os.path.join(folder, 'console'), 'wb') as console:
        return subprocess.Popen(
            command, cwd=folder, env=env, stdin=subprocess.DEVNULL,
            stdout=console, stderr=console, start_new_session=True,
            preexec_fn=prepare)


def _guard(group: int) -> Process:
    """A shell that kills a group when this process ends, however it does: a
    kernel older than 6.12.117 leaves processes behind when it is killed."""
    return subprocess.Popen(
        ['sh', '-c', 'read -r line; kill -s KILL -- "-$1"', 'sh', str(group)],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True)


def end(process: Process) -> None:
    """Kill the rest of a guest: each of its processes is a process of the
    machine, all in one group.

    Blocks until the last of them is gone, for a process that was killed
    lives on until its memory is given back.

    :raises subprocess.TimeoutExpired: if one stays
    """
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait(_GRACE_SECONDS)
    deadline = time.monotonic() + _GRACE_SECONDS
    while _alive(process.pid):
        if time.monotonic() > deadline:
            raise subprocess.TimeoutExpired(process.args, _GRACE_SECONDS)
        time.sleep(_POLL_SECONDS)


def _alive(group: int) -> bool:
    """Whether a process of the group runs; one that only waits to be asked
    for its status does not."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    for entry in os.listdir('/proc'):
        try:
            with open('/proc/%d/stat' % int(entry), 'rb') as source:
                # The name before it may hold spaces and parentheses.
                state, _, its_group = source.read().rpartition(
                    b')')[2].split()[:3]
        except (ValueError, FileNotFoundError, ProcessLookupError):
            continue
        if int(its_group) == group and state not in (b'Z', b'X'):
            return True
    return False
