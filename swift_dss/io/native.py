"""The operating system's own threads and locks, under eventlet or not.

An object server has eventlet's green versions patched over the standard
modules; a pool thread that met one of those would wait on another
thread's event loop. Everything in ``io`` that is about real threads takes
its primitives from here; how requests wait is in ``io.waiting``.
"""

from __future__ import annotations

import ctypes
import posix
import sys
from _queue import SimpleQueue
from typing import Any


def original(name: str) -> Any:
    """A standard module as it was before any monkey patching."""
    if 'eventlet' in sys.modules:
        from eventlet import patcher
        return patcher.original(name)
    return __import__(name)


_thread = original('_thread')
_threading = original('threading')

Lock = _thread.allocate_lock
local = _threading.local
Thread = _threading.Thread
Condition = _threading.Condition
get_ident = _thread.get_ident

#: ``os.read`` and ``os.write`` that never wait in an event loop.
read, write = posix.read, posix.write

_libc_write = ctypes.PyDLL(None).write
_libc_write.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)
_libc_write.restype = ctypes.c_ssize_t


def poke(fd: int) -> None:
    """Write a byte to a pipe that does not block; a full one has been
    written to already.

    Keeps the interpreter's lock, which takes longer to give up and get
    back than the call does.
    """
    _libc_write(fd, b'\0', 1)


#: The thread that runs the event loop, if this process has one: modules
#: are imported by the main thread, and a fork keeps the identity.
MAIN_IDENT = get_ident()

#: glibc's names for what ``mallopt`` sets, and our figures: windows and
#: blocks below the first come from the heap, and the heap is not given back
#: to the kernel before this much of it is free.
_M_TRIM_THRESHOLD, _TRIM_BYTES = -1, 64 << 20
_M_MMAP_THRESHOLD, _MMAP_BYTES = -3, 4 << 20

__all__ = ['Condition', 'Lock', 'MAIN_IDENT', 'SimpleQueue', 'Thread',
           'get_ident', 'local', 'original', 'poke', 'read', 'write']


def keep_freed_memory() -> bool:
    """Ask glibc to reuse the memory of windows that were sent or written.

    By default it gives a window's memory back to the kernel as soon as the
    window is freed, and the next one pays a page fault for every 4 KiB
    again: about a tenth of a GET of 1 MiB. Bounded by the figures above.

    :returns: False where the C library has no ``mallopt`` (musl)
    """
    mallopt = getattr(ctypes.CDLL(None), 'mallopt', None)
    if mallopt is None:
        return False
    return bool(mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)
                and mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES))
