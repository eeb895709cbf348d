"""Tables of the manual's evidence, as functions of what benches write.

``TABLES`` names each file of ``doc/source/evidence``: the commands that it is
of, the fields of their ``--json`` that it keeps, and what makes a table of
them. :mod:`evidence` runs the commands and writes the file.
"""

from __future__ import annotations

from typing import Dict

from . import (
    block, cacs, cluster, edges, faults, links, openings, replays)
from .cells import GIB, Rows, Table, grouped

__all__ = ['GIB', 'Rows', 'TABLES', 'Table', 'grouped']

TABLES: Dict[str, Table] = {
    **replays.TABLES, **cacs.TABLES, **block.TABLES,
    **cluster.TABLES, **faults.TABLES, **edges.TABLES,
    **links.TABLES, **openings.TABLES}
