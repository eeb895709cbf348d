"""Time, chance, and threads for background work.

The daemon and the gateway ask for pools through :data:`Pool`, so that the
simulation can run the same work in its own thread, in an order that a seed
decides. Its dice, and the clock of a test, come in the same way.
"""

from __future__ import annotations

import random
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Callable, TypeVar

#: Makes a pool of so many workers with such a name.
Pool = Callable[[int, str], Executor]
_Result = TypeVar('_Result')


def threads(workers: int, name: str) -> Executor:
    """A pool of threads."""
    return ThreadPoolExecutor(workers, thread_name_prefix=name)


def inline(workers: int, name: str) -> Executor:
    """A pool that does each piece of work before ``submit`` returns."""
    return _Inline()


class _Inline(Executor):

    def __init__(self) -> None:
        self._is_shut = False

    def shutdown(self, wait: bool = True, *,
                 cancel_futures: bool = False) -> None:
        """See :meth:`Executor.shutdown`. Nothing is left to wait for."""
        self._is_shut = True

    def submit(  # type: ignore[override]
            self, fn: Callable[..., _Result], *args: Any,
            **kwargs: Any) -> Future[_Result]:
        """See :meth:`Executor.submit`.

        A ``BaseException`` that is no ``Exception``, such as a simulated
        crash, is raised here: a process that dies reports nothing.
        """
        if self._is_shut:
            raise RuntimeError('the pool was shut')
        future: Future[_Result] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as err:
            future.set_exception(err)
        return future


class Clock:
    """The time as the machine tells it."""

    def wall(self) -> float:
        """Seconds since the epoch; may be set back."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since some moment; never go back."""
        return time.monotonic()


CLOCK = Clock()


@dataclass(frozen=True)
class World:
    """The surroundings of a part."""

    clock: Clock = CLOCK
    pool: Pool = threads
    dice: random.Random = field(default_factory=random.Random)
