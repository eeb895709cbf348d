"""A trace by what a command line says: a file, or a generator of ours."""

from __future__ import annotations

from swift_dss.replay.traces import generators, readers
from swift_dss.replay.traces.model import Trace


def read(name: str, kind: str = 'auto', keep_names: bool = False) -> Trace:
    """All of it.

    :param name: a path, ``-``, or ``gen:NAME,KEY=VALUE,...``
    :param kind: of a file, as :func:`readers.read_file` has it
    :raises BadTrace: of the file
    :raises BadConfig: of the generator, or no such kind
    """
    if name.startswith(generators.PREFIX):
        return generators.generate(name)
    return readers.read_file(name, kind, keep_names)
