"""A process that has imported what servers and tier daemons import, and
forks them: ``SOCKET_FD [CLOCK]``. :mod:`support.nursery` starts it and asks.

A fork has its own environment, session, log, clock, cgroups and namespaces,
as a process that is started has.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import pickle
import runpy
import signal
import socket
import sys
import threading
import warnings
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple
from unittest import mock

#: Bytes of environment that a fork can show in ``/proc``, where processes of
#: a cluster are found.
ROOM_ENV = 'ROOM_FOR_THE_ENVIRONMENT'
ROOM_BYTES = 32 * 1024
_MESSAGE_BYTES = 128 * 1024
_NEWNS, _NEWNET = 0x20000, 0x40000000
_MS_BIND, _MS_REC, _MS_SLAVE = 4096, 16384, 1 << 19

#: None is a module that runs as ``__main__``, or needs its policies first.
_PRELOADED = (
    'swift.proxy.server', 'swift.obj.server', 'swift.container.server',
    'swift.account.server',
    'swift.common.middleware.s3api.s3api', 'swift.common.middleware.slo',
    'swift.common.middleware.dlo', 'swift.common.middleware.tempauth',
    'swift.common.middleware.catch_errors', 'swift_dss.tier.daemon',
    'swift_dss.tier.shards.parent', 'swift_dss.io.start.versions')


class Wanted(NamedTuple):
    """A process to start.

    :ivar words: what follows ``python -m``
    :ivar environ: all of its environment
    :ivar log: the file that has its standard output
    :ivar cgroup: ``cgroup.procs`` files that it joins
    :ivar namespace: of the network; '' is the nursery's
    :ivar hosts: what it has as ``/etc/hosts``; '' is the machine's
    """

    words: Tuple[str, ...]
    environ: Dict[str, str]
    log: str
    cgroup: Tuple[str, ...] = ()
    namespace: str = ''
    hosts: str = ''


def _preload(clocks: List[str]) -> None:
    for path in clocks:
        # Before anything takes functions of the clock by name.
        from swift_dss.aio.bed import clock
        clock.follow(path)
    from swift.common import constraints, storage_policy, utils
    set_alone = utils.set_swift_dir

    def set_swift_dir(swift_dir: Optional[str]) -> bool:
        # What was read at the import is read of this cluster.
        changed = set_alone(swift_dir)
        if changed:
            constraints.reload_constraints()
            storage_policy.reload_storage_policies()
        return bool(changed)
    utils.set_swift_dir = set_swift_dir
    for module in _PRELOADED:
        importlib.import_module(module)
    gc.collect()
    _find_locks()
    gc.freeze()


def _find_locks() -> None:
    """Let eventlet, which replaces the locks of a process that it patches,
    know where they are: it would look at all objects in each fork.

    It counts what is left, and logs an error if there is any.
    """
    from eventlet import patcher
    kind = type(threading.RLock())
    places: List[Tuple[Any, Any, Any]] = []
    for lock in [each for each in gc.get_objects() if type(each) is kind]:
        for holder in gc.get_referrers(lock):
            if isinstance(holder, dict):
                places += [(holder, key, lock) for key, held
                           in holder.items() if held is lock]

    def upgrade_instances(_container: Any, _kind: Any,
                          upgrade: Callable[[Any], Any]) -> None:
        upgraded = {}
        for holder, key, lock in places:
            if lock not in upgraded:
                upgraded[lock] = upgrade(lock)
            holder[key] = upgraded[lock]
        places.clear()
    mock.patch.object(patcher, '_upgrade_instances',
                      upgrade_instances).start()


class Hatch:
    """Forks on request, and keeps how the forks ended."""

    def __init__(self, asked: socket.socket) -> None:
        self._asked = asked
        self._ended: Dict[int, int] = {}

    def serve(self) -> Optional[Wanted]:
        """Answer until the nursery goes.

        :returns: what to be, in a fork; None in the process itself
        """
        signal.signal(signal.SIGCHLD, self._reap)
        while True:
            message = self._asked.recv(_MESSAGE_BYTES)
            if not message:
                return None
            request = pickle.loads(message)
            if isinstance(request, int):
                self._reply(self._ended.get(request))
                continue
            wanted = Wanted(*request)
            # Whoever had this number before has ended, and it may end at once.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
            pid = os.fork()
            self._ended.pop(pid, None)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            if not pid:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                self._asked.close()
                return wanted
            self._reply(pid)

    def _reply(self, value: Optional[int]) -> None:
        self._asked.send(pickle.dumps(value))

    def _reap(self, _signum: int, _frame: Any) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            self._ended[pid] = os.waitstatus_to_exitcode(status)


def become(wanted: Wanted) -> None:
    """Be that process; returns as its module does."""
    os.setsid()
    os.chdir('/')
    for procs in wanted.cgroup:
        with open(procs, 'w') as out:
            out.write('%d\n' % os.getpid())
    _standard_files(wanted.log)
    _show_environment(wanted.environ)
    _enter(wanted.namespace, wanted.hosts)
    warnings.filterwarnings('ignore', category=RuntimeWarning,
                            module='runpy')
    sys.argv = ['-m', *wanted.words[1:]]
    runpy.run_module(wanted.words[0], run_name='__main__', alter_sys=True)


def _standard_files(log: str) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    log_fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    for standard_fd in (1, 2):
        os.dup2(log_fd, standard_fd)
    os.close(log_fd)


def _show_environment(environ: Dict[str, str]) -> None:
    """Have that environment, and show it in ``/proc``, in the memory where
    the kernel put that of the process at its start."""
    with open('/proc/self/stat', 'rb') as source:
        # Start and end of the environment: 50 and 51 of proc(5).
        start, end = map(int, source.read().rpartition(b')')[2]
                         .split()[47:49])
    shown = b''.join(os.fsencode('%s=%s' % pair) + b'\0'
                     for pair in environ.items())
    if len(shown) > end - start:
        raise SystemExit('an environment of %d bytes; there is room for %d'
                         % (len(shown), end - start))
    # Copies of the strings first: they lie in that memory.
    os.environ.clear()
    os.environ.update(environ)
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, shown, len(shown))


def _enter(namespace: str, hosts: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)

    def judged(result: int, action: str) -> None:
        if result:
            raise OSError(ctypes.get_errno(), action)
    if namespace:
        target = os.open(namespace, os.O_RDONLY)
        judged(libc.setns(target, _NEWNET), 'setns to ' + namespace)
        os.close(target)
    if hosts:
        judged(libc.unshare(_NEWNS), 'unshare')
        judged(libc.mount(b'none', b'/', None, _MS_REC | _MS_SLAVE, None),
               'make mounts slaves')
        judged(libc.mount(os.fsencode(hosts), b'/etc/hosts', None, _MS_BIND,
                          None), 'mount ' + hosts)


def main(arguments: List[str]) -> None:
    """Fork servers until the nursery goes; in each, be it."""
    # As of "python -m" in the root folder.
    sys.path[0] = '/'
    asked = socket.socket(fileno=int(arguments[0]))
    _preload(arguments[1:])
    wanted = Hatch(asked).serve()
    if wanted is not None:
        become(wanted)


if __name__ == '__main__':
    main(sys.argv[1:])
