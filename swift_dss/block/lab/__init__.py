"""The laboratory: a kernel for each test, in virtual time.

:func:`swift_dss.block.lab.run` boots a user-mode Linux with the machine's
file system as its root and modelled disks, runs one program in it, and
leaves nothing behind. ``swift-dss lab`` is its command line.

In: a program, and disks by their models.
Never: a change of the machine's own files.
"""

from swift_dss.block.lab.devices import Device, parse_device
from swift_dss.block.lab.machine import GuestDied, Result, run

__all__ = ['Device', 'GuestDied', 'Result', 'parse_device', 'run']
