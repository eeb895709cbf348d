"""Guests with a SCSI disk in memory, for the tests of the patched kernel."""

from __future__ import annotations

import json
from typing import Any, List, Sequence

import guests

DISK = '/dev/sda'
DISK_OPTIONS = ('scsi_debug.add_host=1', 'scsi_debug.dev_size_mb=352')


def output(script: str, args: Sequence[str] = (), variant: str = 'patched',
           options: Sequence[str] = DISK_OPTIONS) -> str:
    """Run a program of this folder in a guest; what it prints.

    Fails if the program does, or if the kernel complains.
    """
    return guests.ended_well(
        script, args, modules=(), variant=variant, kernel_options=options,
        timeout=1800).output


def rows(script: str, args: Sequence[str] = (), variant: str = 'patched',
         options: Sequence[str] = DISK_OPTIONS) -> List[Any]:
    """The same, for a program that prints JSON in lines."""
    return [json.loads(line) for line in output(
        script, args, variant, options).splitlines()]
