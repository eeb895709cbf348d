"""How a class reaches the kernel with an I/O: one carrier a file.

A module in this package named like its carrier has ``open_carrier()``,
which returns a :class:`Carrier`. ``auto`` takes the first of ``ORDER``
whose probe succeeds; a carrier without a module is not available.

In: a class id, and an I/O to carry it.
Never: a lost byte. A carrier that cannot carry still writes: the class is
lost on the way to the disk, which is counted.
"""

from __future__ import annotations

import importlib
import os
from typing import Any, List, NamedTuple, Optional, Sequence

#: Best first.
ORDER = ('classified', 'ioprio', 'null')


class Carrier:
    """Contract of a carrier; this one carries nothing.

    All methods but :meth:`probe` are called in pool threads, and MUST be
    safe there: no green primitive, no logger.
    """

    name = 'null'

    #: True if classes reach the kernel.
    carries = False

    #: True if written data keeps its class in the page cache, so that it
    #: need not be synced under that class.
    remembers = False

    def probe(self) -> Optional[str]:
        """Try it for real on this kernel.

        :returns: None if it works, else one sentence that says why not
        """
        return None

    def enter(self, class_id: int) -> None:
        """Give this class to the I/O that this thread submits from now on.

        Idempotent and cheap when the class does not change.
        """

    def leave(self) -> None:
        """Give no class to the I/O that this thread submits from now on."""
        self.enter(0)

    def expect(self, fd: int, length: int, offset: int,
               class_id: int) -> None:
        """Have a range read into the page cache, which will be asked for
        soon; does not wait for it, and may do nothing."""
        self.enter(class_id)
        os.posix_fadvise(fd, offset, length, os.POSIX_FADV_WILLNEED)

    def pread(self, fd: int, length: int, offset: int,
              class_id: int) -> bytes:
        """``os.pread`` with a class; may be short only at end of file."""
        self.enter(class_id)
        return os.pread(fd, length, offset)

    def pwritev(self, fd: int, buffers: Sequence[Any], offset: int,
                class_id: int) -> int:
        """``os.pwritev`` with a class; may write less than all."""
        self.enter(class_id)
        return os.pwritev(fd, buffers, offset)


class Choice(NamedTuple):
    """The carrier in use, and why each better one is not."""

    carrier: Carrier
    refused: List[str]


def choose(wanted: str) -> Choice:
    """Probe carriers and take one; never fails.

    :param wanted: ``auto`` or one name; one that cannot carry here gives
        way to the next of ``ORDER``
    """
    names = ORDER[0 if wanted == 'auto' else ORDER.index(wanted):]
    refused: List[str] = []
    for name in names:
        try:
            module = importlib.import_module('%s.%s' % (__name__, name))
        except ImportError as err:
            refused.append('%s: not installed (%s)' % (name, err))
            continue
        carrier: Carrier = module.open_carrier()
        reason = carrier.probe()
        if reason is None:
            return Choice(carrier, refused)
        refused.append('%s: %s' % (name, reason))
    return Choice(Carrier(), refused)
