"""A clock of its own for each node of a bed.

Linux has no time namespace for the wall clock. So each Python process of a
node adds an offset to the time. The offset lies in a file that all processes
of the node have mapped: a change counts at once, without a restart.

The offset does not reach the kernel or C libraries: time stamps of file
systems and of SQLite stay true. Nor does it move the monotonic clock, because
a wrong clock does not make time pass.
"""

from __future__ import annotations

import datetime
import mmap
import os
import struct
import time
from typing import Any, Callable, Dict, List, Optional

_OFFSET = struct.Struct('=d')
_NS = 1000000000
_REAL = datetime.datetime
#: Of this process: the last is that which counts.
_followed: List[mmap.mmap] = []


def set_offset(path: str, seconds: float) -> None:
    """Put the clock ahead, or back, for all processes that follow it."""
    file_fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        # One write of eight bytes: readers never see half of it.
        os.pwrite(file_fd, _OFFSET.pack(seconds), 0)
    finally:
        os.close(file_fd)


def follow(path: str) -> None:
    """From now on this process has the clock of that file.

    Call it before anything that takes functions of ``time`` or classes of
    ``datetime`` by name is imported. A process that follows a clock already
    follows this one from now on.
    """
    with open(path, 'rb') as source:
        mapped = mmap.mmap(source.fileno(), _OFFSET.size,
                           prot=mmap.PROT_READ)
    _followed.append(mapped)
    if len(_followed) > 1:
        return

    def offset() -> float:
        return float(_OFFSET.unpack_from(_followed[-1])[0])
    _move_time(offset)
    _move_datetime(offset)


class _Builtin:
    """A function that stays one as an attribute of a class, as those of
    ``time`` do: ``logging.Formatter.converter`` is such an attribute."""

    __slots__ = ('_call',)

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def __call__(self, *arguments: Any) -> Any:
        return self._call(*arguments)


def _move_time(offset: Callable[[], float]) -> None:
    real, real_ns, real_get = time.time, time.time_ns, time.clock_gettime

    def now() -> float:
        return real() + offset()

    def now_ns() -> int:
        return real_ns() + int(offset() * _NS)

    def get(clock: int) -> float:
        moved = offset() if clock == time.CLOCK_REALTIME else 0.0
        return real_get(clock) + moved

    moved: Dict[str, Callable[..., Any]] = {
        'time': now, 'time_ns': now_ns, 'clock_gettime': get,
        'strftime': _from_here(time.strftime, 1),
        'asctime': _from_here(time.asctime, 0)}
    for name in ('gmtime', 'localtime', 'ctime'):
        moved[name] = _from_now(getattr(time, name), now)
    for name, call in moved.items():
        setattr(time, name, _Builtin(call))


def _from_now(convert: Callable[..., Any],
              now: Callable[[], float]) -> Callable[..., Any]:
    def converted(seconds: Optional[float] = None) -> Any:
        return convert(now() if seconds is None else seconds)
    return converted


def _from_here(convert: Callable[..., Any],
               before: int) -> Callable[..., Any]:
    def converted(*arguments: Any) -> Any:
        if len(arguments) == before:
            arguments += (time.localtime(),)
        return convert(*arguments)
    return converted


def _move_datetime(offset: Callable[[], float]) -> None:
    class Kind(type):
        """Values that C code made are moved ones too."""

        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, _REAL)

    class Moved(_REAL, metaclass=Kind):
        """``datetime`` with the clock of the node."""

        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return _REAL.now(tz) + datetime.timedelta(seconds=offset())

        @classmethod
        def utcnow(cls) -> Any:
            return _REAL.now(datetime.timezone.utc).replace(
                tzinfo=None) + datetime.timedelta(seconds=offset())

        @classmethod
        def today(cls) -> Any:
            return cls.now()
    Moved.__name__ = Moved.__qualname__ = 'datetime'
    datetime.datetime = Moved  # type: ignore[misc]
