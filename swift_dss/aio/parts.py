"""Which of our parts this installation has.

A cluster can start before all parts exist: stock Swift replaces missing parts,
and the start says so.
"""

from __future__ import annotations

import importlib.util
from typing import List

PARTS = {
    'proxy': 'swift_dss.proxy.filter',
    'objserver': 'swift_dss.objserver.server',
    'diskfile': 'swift_dss.objserver.diskfile',
    'ec': 'swift_dss.objserver.ec',
    'tier': 'swift_dss.tier.main',
}


def missing() -> List[str]:
    """Names of the parts that are not installed."""
    return [name for name, module in PARTS.items()
            if importlib.util.find_spec(module) is None]
