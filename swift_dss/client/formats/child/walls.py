"""What a process may still do before it reads a stranger's file.

Two walls, both of the kernel. Resource limits bound memory, CPU time, the
answer's length and the number of open files. A filter of system calls leaves
those that read open files, allocate memory, and run threads; every other one
gives EPERM: no file is opened, no socket, no process is made or killed. It is
a list of what is allowed, so calls of future kernels are refused.

The filter is made by libseccomp, by the C library's own loader: it knows the
numbers of calls on every architecture, and is there wherever systemd is.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from typing import Any, Optional

from swift_dss.core.errors import DssError

#: A child reads, computes and answers; threads are its libraries' own.
_ALLOWED = (
    'read', 'pread64', 'readv', 'preadv', 'preadv2', 'lseek', '_llseek',
    'fstat', 'fstat64', 'fcntl', 'fcntl64', 'fadvise64', 'close',
    'write', 'writev',
    'mmap', 'mmap2', 'munmap', 'mprotect', 'mremap', 'madvise', 'brk',
    'membarrier', 'futex', 'futex_time64', 'set_robust_list', 'rseq',
    'sched_yield', 'sched_getaffinity', 'gettid', 'getpid',
    'clock_gettime', 'clock_gettime64', 'clock_getres', 'clock_nanosleep',
    'clock_nanosleep_time64', 'nanosleep', 'gettimeofday', 'getrandom',
    'getrusage', 'rt_sigaction', 'rt_sigprocmask', 'rt_sigreturn',
    'sigreturn', 'sigaltstack', 'restart_syscall', 'exit', 'exit_group')
_ALLOW = 0x7fff0000
_EPERM, _ENOSYS = 0x00050001, 0x00050026
_TSYNC = 4
_MASKED_EQUAL = 7
_CLONE_THREAD = 0x10000
_SET_PDEATHSIG, _SET_DUMPABLE, _SET_NO_NEW_PRIVS = 1, 4, 38


class NoWalls(DssError):
    """The kernel or its library cannot confine a child here."""

    exit_code = 69
    counter = 'no_walls'


class _Compare(ctypes.Structure):
    """``struct scmp_arg_cmp``."""

    _fields_ = [('arg', ctypes.c_uint), ('op', ctypes.c_int),
                ('mask', ctypes.c_uint64), ('value', ctypes.c_uint64)]


def die_with(parent: int) -> None:
    """End when the parent ends.

    :param parent: its process id
    :raises NoWalls: the kernel refuses, or the parent is gone
    """
    _prctl(_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise NoWalls('the parent is gone')


def limit(memory_bytes: int, cpu_seconds: int, answer_bytes: int) -> None:
    """Put up the wall of resources.

    :param memory_bytes: that may be allocated from now on
    :raises NoWalls: the kernel refuses
    """
    memory = _size_now() + memory_bytes
    files = max(map(int, os.listdir('/proc/self/fd'))) + 1
    try:
        for kind, most in ((resource.RLIMIT_AS, memory),
                           (resource.RLIMIT_CPU, cpu_seconds),
                           (resource.RLIMIT_FSIZE, answer_bytes),
                           (resource.RLIMIT_CORE, 0),
                           (resource.RLIMIT_NOFILE, files)):
            hard = resource.getrlimit(kind)[1]
            if hard != resource.RLIM_INFINITY:
                most = min(most, hard)
            resource.setrlimit(kind, (most, most))
    except (OSError, ValueError) as err:
        raise NoWalls('a limit of resources: %s' % err) from err


def close_in() -> None:
    """Put up the wall of system calls, for all threads there are and will
    be.

    :raises NoWalls: there is no libseccomp, or the kernel has no filters
    """
    _prctl(_SET_DUMPABLE, 0)
    _prctl(_SET_NO_NEW_PRIVS, 1)
    library = _library()
    made: Optional[int] = library.seccomp_init(_EPERM)
    if not made:
        raise NoWalls('libseccomp makes no filter')
    context = ctypes.c_void_p(made)
    _check(library.seccomp_attr_set(context, _TSYNC, 1), 'threads')
    for name in _ALLOWED:
        _add(library, context, name, _ALLOW)
    # A thread, and no process. What a filter cannot look into is said not
    # to exist, and the C library takes clone() then.
    _add(library, context, 'clone', _ALLOW, _Compare(
        0, _MASKED_EQUAL, _CLONE_THREAD, _CLONE_THREAD))
    _add(library, context, 'clone3', _ENOSYS)
    _check(library.seccomp_load(context), 'the filter')
    library.seccomp_release(context)


def _library() -> Any:
    try:
        library = ctypes.CDLL('libseccomp.so.2', use_errno=True)
    except OSError as err:
        raise NoWalls('libseccomp 2 is not installed: %s' % err) from err
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_init.argtypes = [ctypes.c_uint32]
    library.seccomp_rule_add_array.argtypes = [
        ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint,
        ctypes.POINTER(_Compare)]
    library.seccomp_release.restype = None
    return library


def _add(library: Any, context: Any, name: str, action: int,
         compare: Optional[_Compare] = None) -> None:
    number = library.seccomp_syscall_resolve_name(name.encode('ascii'))
    if number < 0:
        return  # not a call of this architecture
    _check(library.seccomp_rule_add_array(
        context, action, number, 0 if compare is None else 1,
        None if compare is None else ctypes.byref(compare)), name)


def _check(status: int, part: str) -> None:
    if status:
        raise NoWalls('libseccomp: %s: %s' % (part, os.strerror(-status)))


def _prctl(option: int, value: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(0),
                     ctypes.c_ulong(0), ctypes.c_ulong(0)):
        raise NoWalls('prctl %d: %s' % (
            option, os.strerror(ctypes.get_errno())))


def _size_now() -> int:
    """Bytes of address space that the process has."""
    with open('/proc/self/statm', encoding='ascii') as source:
        return int(source.read().split()[0]) * resource.getpagesize()
