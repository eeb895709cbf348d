"""How much memory a module keeps."""

from __future__ import annotations

import contextlib
import gc
import tracemalloc
from types import ModuleType
from typing import Callable, Iterator


@contextlib.contextmanager
def pieces_of(module: ModuleType) -> Iterator[Callable[[], int]]:
    """Count the pieces of memory that lines of a module asked for, from now
    on, and that are still in use."""
    filters = [tracemalloc.Filter(True, str(module.__file__))]

    def count() -> int:
        # It also empties the lists of objects that wait for another use.
        gc.collect()
        taken = tracemalloc.take_snapshot().filter_traces(filters)
        return sum(line.count for line in taken.statistics('filename'))
    tracemalloc.start()
    try:
        yield count
    finally:
        tracemalloc.stop()
