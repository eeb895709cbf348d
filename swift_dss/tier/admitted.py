"""The proxies' answers to writes: counts that object servers keep.

Each object server writes its own file (``objserver.figures.pressures``); the
file of a server that is gone is removed with its counts, as counts also end
when a process restarts.
"""

from __future__ import annotations

import os
from typing import Dict

from swift_dss.core.errors import DamagedRecord
from swift_dss.wire.node import pressure as wire

#: A file of counts has at most this many bytes: 32 classes of 4 answers.
_MAX_BYTES = 65536


def tally(run_dir: str) -> Dict[int, Dict[str, int]]:
    """Answers by class id."""
    folder = os.path.join(run_dir, 'state', 'admitted')
    totals: Dict[int, Dict[str, int]] = {}
    try:
        names = os.listdir(folder)
    except OSError:
        return totals  # no proxy has asked yet
    for name in names:
        pid, _, ending = name.partition('.')
        if ending != 'json' or not pid.isdigit():
            continue
        path = os.path.join(folder, name)
        try:
            if not os.path.exists('/proc/' + pid):
                os.unlink(path)
                continue
            with open(path, encoding='ascii') as source:
                said = wire.decode_tally(source.read(_MAX_BYTES))
        except (OSError, UnicodeDecodeError, DamagedRecord):
            continue  # it is replaced within a second
        for class_id, counts in said.items():
            into = totals.setdefault(class_id, {})
            for answer, number in counts.items():
                into[answer] = into.get(answer, 0) + number
    return totals
