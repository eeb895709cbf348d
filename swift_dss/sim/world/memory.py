"""Remember the contents of a node's disks until something changes.

A judge looks at all disks after each step, and most steps change few of
them. Reading them again was a tenth of a run. The disks of a node that was
at work have changed only if the process has changed a file meanwhile
(:mod:`swift_dss.sim.world.changes`).
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Callable, Dict, Hashable, Optional, Type, TypeVar

from swift_dss.sim.world import changes
from swift_dss.sim.world.clock import Clock
from swift_dss.sim.world.power import Power

_Read = TypeVar('_Read')


class Memory:
    """The remembered contents of one node's disks.

    :param beside: counts changes that are not on its disks, but decide how
        they are read
    """

    def __init__(self, beside: Callable[[], Hashable]) -> None:
        self._beside = beside
        #: How many of the node's processes are inside a call. Nothing is
        #: remembered meanwhile.
        self.working = 0
        self._names: Dict[Hashable, Any] = {}
        self._replicas: Dict[Hashable, Any] = {}
        self._as_of: Hashable = None

    def forget(self) -> None:
        """Call when anything on a disk of the node may have changed."""
        self._names.clear()
        self._replicas.clear()

    def of_names(self, read: Callable[..., _Read], *key: Hashable) -> _Read:
        """The result of ``read(*key)``, which looks at names alone."""
        if self.working:
            return read(*key)
        return self._of(self._names, read, key)

    def of_replicas(self, read: Callable[..., _Read],
                    *key: Hashable) -> _Read:
        """The same of what looks at bytes."""
        if self.working:
            return read(*key)
        now = self._beside()
        if now != self._as_of:
            self._replicas.clear()
            self._as_of = now
        return self._of(self._replicas, read, key)

    @staticmethod
    def _of(kept: Dict[Hashable, Any], read: Callable[..., _Read],
            key: Hashable) -> _Read:
        asked = read, key
        if asked not in kept:
            kept[asked] = read(*key)  # type: ignore[misc]
        value: _Read = kept[asked]
        return value


class AtWork:
    """The context in which a node works: its clock, and disks that a power
    cut is ahead of.

    :param seconds: so far ahead is its clock
    """

    __slots__ = ('_memory', '_clock', '_seconds', '_power', '_before',
                 '_was_on', '_changes')

    def __init__(self, memory: Memory, clock: Clock, seconds: float,
                 power: Optional[Power]) -> None:
        self._memory = memory
        self._clock = clock
        self._seconds = seconds
        self._power = power
        self._before = 0.0
        self._was_on = False
        self._changes = 0

    def __enter__(self) -> None:
        self._memory.working += 1
        self._changes = changes.so_far()
        self._before = self._clock.set_ahead(self._seconds)
        if self._power is not None:
            self._was_on, self._power.is_on = self._power.is_on, True

    def __exit__(self, kind: Optional[Type[BaseException]],
                 error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self._memory.working -= 1
        if changes.so_far() != self._changes:
            self._memory.forget()
        self._clock.set_ahead(self._before)
        if self._power is not None:
            self._power.is_on = self._was_on
