"""Start a process of a bed: ``CLOCK MODULE ARGUMENTS...``.

With the clock of its node, and with eyes for a new ring at once: Swift
looks for one every fifteen seconds.
"""

from __future__ import annotations

import runpy
import sys

from swift_dss.aio.bed import clock

_RING_SECONDS = 1.0


def main() -> None:
    """Replace this process by the program in the arguments."""
    clock_path, module = sys.argv[1], sys.argv[2]
    clock.follow(clock_path)
    from swift.common.ring import ring
    ring.DEFAULT_RELOAD_TIME = _RING_SECONDS
    del sys.argv[:2]
    runpy.run_module(module, run_name='__main__', alter_sys=True)


if __name__ == '__main__':
    main()
