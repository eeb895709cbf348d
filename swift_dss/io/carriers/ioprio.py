"""The class in the hint bits of the thread's I/O priority.

``priority = class(3 bits) << 13 | hint(10 bits) << 3 | level(3 bits)``
(Linux 6.5 and later, and kernels with the hint bits backported). We keep
best effort, level 4, so that no scheduler reorders by it, and use hints
32 + class id: hints 1..7 mean SCSI command duration limits. Class 0 is the
thread's default priority, so that unclassified I/O looks like anyone's.

A page-cache miss takes the priority of the thread that reads; dirty pages
take that of the thread that *syncs* them. Setting it needs no privilege.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
from typing import Dict, Optional, Tuple

from swift_dss.core.limits import CLASS_ID_MAX
from swift_dss.io import native
from swift_dss.io.carriers import Carrier

#: Machine to the numbers of ioprio_set and ioprio_get.
_SYSCALLS: Dict[str, Tuple[int, int]] = {
    'x86_64': (251, 252), 'aarch64': (30, 31), 'riscv64': (30, 31),
    'ppc64le': (273, 274), 's390x': (282, 283)}
_WHO_PROCESS = 1
_BEST_EFFORT = 2
_LEVEL = 4
HINT_BASE = 32


def priority_of(class_id: int) -> int:
    """The I/O priority value of a class."""
    if not class_id:
        return 0
    return _BEST_EFFORT << 13 | (HINT_BASE + class_id) << 3 | _LEVEL


def class_of(priority: int) -> int:
    """The class that an I/O priority value carries; 0 if none of ours."""
    hint = priority >> 3 & 0x3ff
    return hint - HINT_BASE if hint > HINT_BASE else 0


_PRIORITIES = [priority_of(class_id)
               for class_id in range(CLASS_ID_MAX + 1)]


class IoprioCarrier(Carrier):
    """Sets the priority of the calling thread, if it is not set yet."""

    name = 'ioprio'
    carries = True

    def __init__(self) -> None:
        self._numbers = _SYSCALLS.get(platform.machine(), (0, 0))
        # PyDLL keeps the interpreter lock: the call takes a fraction of a
        # microsecond, giving the lock up and getting it back far longer.
        self._call = ctypes.PyDLL(None, use_errno=True).syscall
        self._thread = native.local()

    def probe(self) -> Optional[str]:
        """Set a class, read it back, and put things as they were."""
        if not self._numbers[0]:
            return 'system call unknown on %s' % platform.machine()
        before = self._call(self._numbers[1], _WHO_PROCESS, 0)
        try:
            for class_id in (1, 31):
                self._set(priority_of(class_id))
                got = self.current()
                if got != priority_of(class_id):
                    return ('the kernel keeps priority %#x of %#x: no hint '
                            'bits' % (got, priority_of(class_id)))
        except OSError as err:
            return 'ioprio_set: %s' % err
        finally:
            self._thread.class_id = None
            if before >= 0:
                self._call(self._numbers[0], _WHO_PROCESS, 0, before)
        return None

    def current(self) -> int:
        """This thread's priority, as the kernel has it."""
        return int(self._call(self._numbers[1], _WHO_PROCESS, 0))

    def enter(self, class_id: int) -> None:
        """Give this thread the class's priority."""
        thread = self._thread
        if getattr(thread, 'class_id', None) == class_id:
            return
        # Each GET of a classified object comes here several times.
        if self._call(self._numbers[0], _WHO_PROCESS, 0,
                      _PRIORITIES[class_id]) < 0:
            # It worked when it was probed. The bytes matter more than
            # their class: they go out with the priority of before.
            thread.class_id = None
            return
        thread.class_id = class_id

    def _set(self, priority: int) -> None:
        if self._call(self._numbers[0], _WHO_PROCESS, 0, priority) < 0:
            code = ctypes.get_errno() or errno.EINVAL
            raise OSError(code, os.strerror(code))


def open_carrier() -> Carrier:
    """A carrier for this machine; probe it before use."""
    return IoprioCarrier()
