"""Boot the laboratory's kernel for one command and take it down again.

:func:`run` is the laboratory's programming interface. A run leaves nothing:
its files lie in a folder of its own in memory, the guest's writes go to the
guest's memory (but for shared folders), and its processes die with ours.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import (
    Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple)

from swift_dss.block.lab import build, cache, guest, processes
from swift_dss.block.lab.devices import Device, parse_device
from swift_dss.core.errors import BadConfig, DssError

#: A guest's clock when it boots: midnight of 2026-01-01 UTC.
EPOCH_SECONDS = 1767225600

#: The seed of the random numbers of a guest in virtual time.
SEED = 1

#: Exit status of a run that was ended by its time limit, as timeout(1).
TIMED_OUT = 124

#: Exit status of a run that succeeded while the kernel complained.
COMPLAINED = 70

_POLL_SECONDS = 0.02

#: The kernel's words for its own faults.
_COMPLAINT = re.compile(
    r'\bBUG:|WARNING:|KASAN|kernel BUG|Oops|general protection|INFO: task|'
    r'INFO: rcu|UBSAN|possible recursive locking|circular locking|'
    r'suspicious RCU|Memory leak|slab .* corrupt|list_(add|del) corruption',
    re.I)

Sink = Callable[[str, bytes], None]


class GuestDied(DssError):
    """The guest ended without saying how its command ended."""

    exit_code = 70


@dataclass(frozen=True)
class Result:
    """How one command in a guest ended.

    :param status: its exit status; :data:`TIMED_OUT` if it was killed
    :param killed: the time limit ended it
    :param stdout: all that it wrote there; ``stderr`` likewise
    :param virtual_seconds: by the guest's clock, of the command alone
    :param real_seconds: by ours, with boot and power off
    :param kernel_log: everything that the guest's kernel said
    :param complaints: those of its lines that should not be there
    """

    status: int
    stdout: bytes
    stderr: bytes
    virtual_seconds: float
    real_seconds: float
    kernel_log: str
    complaints: Tuple[str, ...]
    killed: bool = False

    @property
    def output(self) -> str:
        """The standard output as text."""
        return self.stdout.decode('utf-8', 'replace')


def run(script: str, args: Sequence[str] = (), *,
        devices: Sequence[Any] = (),
        modules: Optional[Sequence[str]] = None,
        variant: str = 'plain', virtual_time: bool = True,
        memory: str = '1G', timeout: float = 600.0,
        shares: Sequence[str] = (),
        env: Optional[Mapping[str, str]] = None,
        kernel_options: Sequence[str] = (),
        sink: Optional[Sink] = None,
        say: Callable[[str], None] = lambda line: None) -> Result:
    """Run a program in a guest of its own.

    :param script: a program of this machine; ``*.py`` runs with this
        Python
    :param devices: :class:`Device` or ``NAME=PRESET:SIZE``
    :param modules: names of our modules or paths of ``*.ko``, in order of
        loading; None is all of ours
    :param variant: one of :data:`build.VARIANTS`; built if it must be
    :param virtual_time: computing costs no time, only devices and timers
        do; else the guest's clock is the machine's
    :param memory: of the guest, with what its devices hold
    :param timeout: seconds of real time, from its boot
    :param shares: folders where the guest writes to the machine
    :param sink: called with ``stdout`` or ``stderr`` and new bytes
    :returns: how it ended, also if it was killed
    :raises GuestDied: the kernel panicked, or a device or module could
        not be had
    """
    made = [device if isinstance(device, Device) else parse_device(device)
            for device in devices]
    kernel = build.kernel(variant, say)
    paths = build.module_paths(kernel, modules, bool(
        [device for device in made if device.model]), say)
    folder = tempfile.mkdtemp(
        prefix='dss-lab-', dir='/dev/shm'
        if os.access('/dev/shm', os.W_OK) else None)
    try:
        job = {
            'command': _command(script, args), 'modules': paths,
            'cwd': os.getcwd(), 'env': _environment(env),
            'devices': [device.job() for device in made],
            'shares': [os.path.realpath(share) for share in shares]}
        _write_job(folder, job)
        tails = _Tails(folder, sink)
        begin = time.monotonic()
        ended = _boot(kernel.binary, folder, virtual_time, memory,
                      (*build.BOOT_OPTIONS.get(variant, ()),
                       *kernel_options), begin + timeout, tails)
        return _result(folder, ended, tails, time.monotonic() - begin)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _command(script: str, args: Sequence[str]) -> List[str]:
    if os.sep not in script and not os.path.exists(script):
        path = shutil.which(script)
        if not path:
            raise BadConfig('no program or file %s' % script)
        return [path] + list(args)
    path = os.path.abspath(script)
    if not os.path.isfile(path):
        raise BadConfig('no file %s' % path)
    if path.endswith('.py'):
        return [sys.executable, path] + list(args)
    if not os.access(path, os.X_OK):
        raise BadConfig('%s is not executable' % path)
    return [path] + list(args)


def _environment(extra: Optional[Mapping[str, str]]) -> Dict[str, str]:
    path = os.environ.get('PATH', os.defpath).split(os.pathsep)
    path += [folder for folder in ('/usr/sbin', '/sbin')
             if folder not in path]
    env = {'PATH': os.pathsep.join(path), 'LANG': 'C.UTF-8',
           'HOME': os.path.expanduser('~'), 'TMPDIR': '/tmp',
           'PYTHONUNBUFFERED': '1', 'PYTHONDONTWRITEBYTECODE': '1',
           # Two runs have to be the same run.
           'PYTHONHASHSEED': '0', 'SWIFT_DSS_LAB': '1',
           # There is no udev: dmsetup makes its device files itself.
           'DM_DISABLE_UDEV': '1'}
    for name in ('PYTHONPATH', 'VIRTUAL_ENV'):
        if name in os.environ:
            env[name] = os.environ[name]
    env.update(extra or {})
    return env


def _write_job(folder: str, job: Dict[str, Any]) -> None:
    with open(os.path.join(folder, 'job.json'), 'w') as out:
        json.dump(job, out)
    init = os.path.join(folder, 'init')
    python = getattr(sys, '_base_executable', None) or sys.executable
    program = os.path.join(folder, 'guest.py')
    shutil.copy(guest.__file__, program)
    with open(init, 'w') as out:
        out.write('#!/bin/sh\nexec %s -I -S %s %s\n' % tuple(
            map(shlex.quote, (python, program,
                              os.path.join(folder, 'job.json')))))
    os.chmod(init, 0o755)


class _Tails:
    """The guest's output so far, passed on as it comes."""

    def __init__(self, folder: str, sink: Optional[Sink]) -> None:
        self._paths = {name: os.path.join(folder, name)
                       for name in ('stdout', 'stderr')}
        self._sink = sink
        self.taken: Dict[str, bytearray] = {
            name: bytearray() for name in self._paths}

    def take(self) -> None:
        """Read the new output."""
        for name, path in self._paths.items():
            taken = self.taken[name]
            try:
                if os.stat(path).st_size == len(taken):
                    continue
                with open(path, 'rb') as source:
                    source.seek(len(taken))
                    new = source.read()
            except FileNotFoundError:
                continue
            taken += new
            if self._sink and new:
                self._sink(name, new)


def _boot(binary: str, folder: str, virtual_time: bool, memory: str,
          kernel_options: Sequence[str], deadline: float,
          tails: _Tails) -> Optional[int]:
    """Run the kernel to its end.

    :returns: its exit status, None if it had to be killed
    """
    try:
        with processes.running(_command_line(
                binary, virtual_time, memory, kernel_options),
                folder) as process:
            while True:
                try:
                    process.wait(_POLL_SECONDS)
                    return process.returncode
                except subprocess.TimeoutExpired:
                    tails.take()
                if time.monotonic() > deadline:
                    return None
    finally:
        tails.take()


def _command_line(binary: str, virtual_time: bool, memory: str,
                  kernel_options: Sequence[str]) -> List[str]:
    command = [
        binary, 'mem=%s' % memory, 'rootfstype=hostfs', 'rootflags=/', 'ro',
        # The folder's name is random, and the command line goes into the
        # guest's random numbers: it is where the kernel was started.
        'init=/proc/self/cwd/init',
        # The kernel prints to its standard output.
        'con=null', 'con0=null,fd:1',
        'umid=lab', 'uml_dir=./', 'panic=-1', 'loglevel=4',
        # No disk of its own; kernel_options can add one.
        'scsi_debug.add_host=0', 'null_blk.nr_devices=0']
    if virtual_time:
        # The host's chance reaches the clock: the kernel draws when to look
        # after its tables, and waking up for that costs time.
        command += ['time-travel=inf-cpu', 'time-travel-start=%d' % (
            EPOCH_SECONDS * 10**9), 'random-seed=%d' % SEED]
    return command + list(kernel_options)


def _result(folder: str, ended: Optional[int], tails: _Tails,
            real_seconds: float) -> Result:
    def read(name: str) -> str:
        try:
            with open(os.path.join(folder, name),
                      errors='replace') as source:
                return source.read()
        except FileNotFoundError:
            return ''
    console = read('console')
    report = json.loads(read('report') or '{}')
    log = report.get('kernel_log', console)
    complaints = tuple(line for line in log.splitlines()
                       if _COMPLAINT.search(line))
    if 'failure' in report:
        raise GuestDied('the guest could not be set up:\n%s%s' % (
            report['failure'], cache.last_lines(log)))
    if ended is not None and 'status' not in report:
        raise GuestDied('the guest ended with %d before its command did:\n'
                        '%s' % (ended, cache.last_lines(console)))
    return Result(
        status=TIMED_OUT if ended is None else report['status'],
        stdout=bytes(tails.taken['stdout']),
        stderr=bytes(tails.taken['stderr']),
        virtual_seconds=(report.get('ended_ns', 0)
                         - report.get('began_ns', 0)) / 1e9,
        real_seconds=real_seconds, kernel_log=log, complaints=complaints,
        killed=ended is None)
