"""Talking to the kernel about dm-dss, through ``dmsetup``.

One function a question or command; lines are parsed in
:mod:`swift_dss.block.table`. Nothing here decides about an operator's rights:
that is :mod:`swift_dss.block.control_life`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import List, Mapping, Optional, Sequence, Tuple

from swift_dss.block import table
from swift_dss.block.table import (
    TARGET, Counters, Latency, Status, TargetTable)
from swift_dss.core.errors import BadConfig, DssError
from swift_dss.strategy.eviction.chunks import ChunkRow, Flag

_UDEV = '/run/udev/control'
#: The first version of the module that knows classes of cold copies.
_PASSING_SINCE = (1, 3, 0)
#: No single question to the kernel takes longer, but for ``drain``.
_SECONDS = 300.0
_SBIN = ('/usr/sbin', '/sbin')


class ControlFailed(DssError):
    """The kernel or dmsetup said no."""

    exit_code = 71


class NoDevice(DssError):
    """There is no such dm-dss device."""

    exit_code = 69


@dataclass(frozen=True)
class Info:
    """Device-mapper's own state of a device."""

    opens: int
    suspended: bool
    number: str


def command(words: Sequence[str]) -> List[str]:
    """The command line of dmsetup with these words.

    :raises BadConfig: it is not installed
    """
    path = os.pathsep.join(
        [os.environ.get('PATH', os.defpath)] + list(_SBIN))
    program = shutil.which('dmsetup', path=path)
    if program is None:
        raise BadConfig('no dmsetup: apt-get install dmsetup')
    # Without udev, dmsetup would wait for ever for the device nodes.
    quiet = [] if os.path.exists(_UDEV) else [
        '--noudevsync', '--noudevrules']
    return [program] + quiet + list(words)


def run(words: Sequence[str], seconds: float = _SECONDS) -> str:
    """Run dmsetup; returns its output.

    :raises ControlFailed: with its output
    """
    try:
        done = subprocess.run(
            command(words), stdin=subprocess.DEVNULL,
            capture_output=True, timeout=seconds, check=False,
            env=dict(os.environ, LC_ALL='C'))
    except subprocess.TimeoutExpired as err:
        raise ControlFailed('dmsetup %s: no answer in %g s'
                            % (words[0], seconds)) from err
    if done.returncode:
        raise ControlFailed('dmsetup %s: %s (the kernel log may say more)' % (
            ' '.join(words[:2]), ' '.join(
                done.stderr.decode('utf-8', 'replace').split())))
    return done.stdout.decode('utf-8', 'replace')


def is_loaded() -> bool:
    """True if the kernel knows the target."""
    return module_version() is not None


def module_version() -> Optional[Tuple[int, ...]]:
    """Of the module that the kernel has; None: it knows no such target."""
    for line in run(['targets']).splitlines():
        words = line.split()
        if words[:1] == [TARGET]:
            return tuple(int(number) for number in re.findall(
                r'\d+', ' '.join(words[1:])))
    return None


def names() -> List[str]:
    """Every dm-dss device of this machine."""
    listing = run(['ls', '--target', TARGET])
    return sorted(line.split()[0] for line in listing.splitlines()
                  if '(' in line)


def need(name: str) -> None:
    """:raises NoDevice: there is no dm-dss device of that name"""
    if name not in names():
        raise NoDevice('no dm-dss device %s; there are: %s' % (
            name, ', '.join(names()) or 'none'))


def exists(name: str) -> bool:
    """Is there any device-mapper device of that name?"""
    return any(line.split()[:1] == [name]
               for line in run(['ls']).splitlines())


def info(name: str) -> Info:
    """:raises ControlFailed: there is no such device"""
    words = run(['info', '-c', '--noheadings', '--separator', ' ', '-o',
                 'open,suspended,major,minor', name]).split()
    return Info(int(words[0]), words[1] == 'Suspended',
                '%s:%s' % (words[2], words[3]))


def target_table(name: str) -> TargetTable:
    """The table in force."""
    return table.parse_table(run(['table', name]))


def status(name: str) -> Status:
    """The status line."""
    return table.parse_status(run(['status', name]))


def message(name: str, words: Sequence[str]) -> str:
    """Send a message; returns the target's answer."""
    return run(['message', name, '0'] + list(words))


def stats(name: str) -> Counters:
    """Counters by class."""
    return table.parse_stats(message(name, ['stats']))


def latency(name: str) -> List[Latency]:
    """Histograms by class and direction."""
    return table.parse_latency(message(name, ['latency']))


def classes(name: str) -> Mapping[int, ChunkRow]:
    """The class table in force."""
    return table.parse_rows(message(name, ['classes']))


def send_classes(name: str, rows: Mapping[int, ChunkRow]) -> bool:
    """Put exactly this class table in force; False if it already was.

    One message carries the whole table, and the target takes it as a whole or
    not at all; the table in force is then read back. A module that is older
    gets no classes of cold copies: it treats them like class 0.

    :raises ControlFailed: the target refused it and keeps the old table, or
        another table is in force now
    """
    if (module_version() or ()) < _PASSING_SINCE:
        # It would refuse the whole table.
        rows = {class_id: row for class_id, row in rows.items()
                if not row.flags & Flag.PASSING}
    if dict(classes(name)) == dict(rows):
        return False
    message(name, table.classes_message(rows).split())
    in_force = dict(classes(name))
    if in_force != dict(rows):
        different = sorted(
            class_id for class_id in set(in_force) | set(rows)
            if in_force.get(class_id) != rows.get(class_id))
        raise ControlFailed('%s: the class table in force is not the one '
                            'that was sent: classes %s' % (
                                name, ', '.join(map(str, different))))
    return True


def start_message(name: str, words: Sequence[str]
                  ) -> subprocess.Popen[bytes]:
    """Send a message that takes long; the running dmsetup."""
    return subprocess.Popen(
        command(['message', name, '0'] + list(words)),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, env=dict(os.environ, LC_ALL='C'))


def create(name: str, wanted: TargetTable) -> None:
    """Make the device; nothing is left if the kernel refuses it."""
    try:
        run(['create', name, '--table', wanted.line()])
    except ControlFailed:
        if exists(name):
            remove(name)
        raise


def replace(name: str, wanted: TargetTable) -> None:
    """Give a device another table: load, suspend, resume.

    The kernel looks at the new table before anything stops. If it cannot
    start with it, the old one is put back.

    :raises ControlFailed: nothing has changed
    """
    before = target_table(name)
    run(['load', name, '--table', wanted.line()])
    run(['suspend', name])
    try:
        run(['resume', name])
    except ControlFailed:
        run(['load', name, '--table', before.line()])
        run(['resume', name])
        raise


def remove(name: str) -> None:
    """Take the device away; dirty chunks stay on the SSD."""
    run(['remove', name])


def number_of(path: str) -> Optional[str]:
    """``major:minor`` of a block device's node."""
    try:
        device = os.stat(path).st_rdev
    except OSError as err:
        raise BadConfig('%s: %s' % (path, err.strerror)) from err
    return '%d:%d' % (os.major(device), os.minor(device)) if device else None
