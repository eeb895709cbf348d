"""Which files below a folder this process has open."""

from __future__ import annotations

import contextlib
import os
from typing import Dict


def open_below(folder: str) -> Dict[int, str]:
    """Descriptor and path of each open file below a folder.

    All other descriptors are left out: threads that an earlier test of this
    process left open and close files too.
    """
    found = {}
    for number in os.listdir('/proc/self/fd'):
        with contextlib.suppress(FileNotFoundError):
            path = os.readlink('/proc/self/fd/' + number)
            if path.startswith(os.path.join(os.path.realpath(folder), '')):
                found[int(number)] = path
    return found
