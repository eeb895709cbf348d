#!/usr/bin/env python
"""R12: every system call of every move fails; nothing is lost or leaks.

Each operation runs in a child whose calls on the node's files go through
``syscall_faults.c``. The n-th of them fails, n = 1, 2, ... until the
operation passes untouched: with EIO, ENOSPC, EMFILE, EINTR or by moving half
of the bytes, once and, where a program may not just try again, for ever.
The operation may then end as it likes; every acknowledged version must be
readable, no file may be left open, and the operation, repeated without
faults, must end where an untouched one ends.

    python test/fault/fail_each_system_call.py [--per-scenario N] [--only NAME]

The wrong twin copies a version without looking at what calls say.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import errno
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from typing import Callable, Dict, Iterator, List, NamedTuple, Tuple

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from kill_at_each_step import fresh, judge, where
from scenarios import SCENARIOS, Bench, Scenario

from swift_dss.core.errors import DssError
from swift_dss.core.residency import Residency, Tier
from swift_dss.io.switch import LiveVersion
from swift_dss.wire import layout

_HERE = os.path.dirname(os.path.abspath(__file__))
_OPENS, _WRITES, _READS, _SYNCS, _NAMES, _MARKS = (
    1 << bit for bit in range(6))
_SHORT = -1
#: What stays open for as long as a process has an index.
_KEPT = ('index.db', 'index.db-wal', 'index.db-shm')


class Fault(NamedTuple):
    """One way to fail.

    :param calls: kinds of calls that it can come from
    """

    name: str
    number: int
    calls: int
    for_ever: bool


#: Python tries again after EINTR, by itself and for ever.
FAULTS = [Fault(name, number, calls, ever) for name, number, calls, evers in (
    ('EIO', errno.EIO, 63, (False, True)),
    ('ENOSPC', errno.ENOSPC, _OPENS | _WRITES | _SYNCS | _NAMES | _MARKS,
     (False, True)),
    ('EMFILE', errno.EMFILE, _OPENS, (False, True)),
    ('EINTR', errno.EINTR, _OPENS | _WRITES | _READS, (False,)),
    ('short', _SHORT, _WRITES | _READS, (False, True))) for ever in evers]


class Outcome(NamedTuple):
    """What a campaign did."""

    cases: int
    fired: int
    wrong: List[str]


class Shim:
    """The library, in a process that was started with it."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(os.environ['LD_PRELOAD'])
        self._library.faults_seen.restype = ctypes.c_long
        self._library.faults_fired.restype = ctypes.c_long

    def arm(self, root: str, nth: int, fault: Fault) -> None:
        """Let the n-th call fail; 0 is none."""
        self._library.faults_arm(
            root.encode(), ctypes.c_long(nth), fault.number, fault.calls,
            int(fault.for_ever))
        for number in open_files(root):
            self._library.faults_watch(number)

    def disarm(self) -> Tuple[int, int]:
        """(calls that went by, calls that failed)."""
        counts = self._library.faults_seen(), self._library.faults_fired()
        self._library.faults_arm(b'', 0, 0, 0, 0)
        return counts


def open_files(root: str) -> Dict[int, str]:
    """Descriptors of this process on files under ``root``."""
    paths = {}
    for name in os.listdir('/proc/self/fd'):
        with contextlib.suppress(OSError):
            path = os.readlink('/proc/self/fd/' + name)
            if path.startswith(root):
                paths[int(name)] = path
    return paths


def _leaked(root: str) -> List[str]:
    return sorted(path for path in open_files(root).values()
                  if os.path.basename(path) not in _KEPT)


def _child(root: str, scenario: Scenario, nth: int,
           fault: Fault) -> Tuple[int, int, str]:
    """(calls that went by, failed, what is wrong) of one run."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reader)
        said = '0 0 the child broke'
        try:
            bench = Bench(root, scenario.with_hdd)
            shim = Shim()
            wrong = ''
            shim.arm(root, nth, fault)
            try:
                scenario.run(bench)
            except (DssError, OSError):
                pass
            except Exception as err:
                wrong = 'ends with %r' % err
            seen, fired = shim.disarm()
            left = _leaked(root)
            said = '%d %d %s' % (seen, fired, wrong or (
                'left open: %s' % left if left else ''))
        finally:
            os.write(writer, said.encode())
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as source:
        said = source.read()
    status = os.waitpid(pid, 0)[1]
    if status or not said:
        return 0, 0, 'the child ended with %#x' % status
    seen, fired, wrong = said.split(' ', 2)
    return int(seen), int(fired), wrong


def _case(folder: str, scenario: Scenario, nth: int, fault: Fault,
          goal: object) -> Tuple[int, int, List[str]]:
    with fresh(folder, scenario) as root:
        seen, fired, wrong = _child(root, scenario, nth, fault)
        failures = [wrong] if wrong else []
        failures += ['after it: ' + failure
                     for failure in judge(root, scenario)]
        bench = Bench(root, scenario.with_hdd)
        try:
            bench.recover()
            scenario.run(bench)
            failures += ['repeated: ' + failure
                         for failure in judge(root, scenario)]
            if where(bench) != goal:
                failures.append('ends elsewhere than the untouched run')
            for base in (bench.node.device_path, bench.node.capacity_path):
                left = base and _files(layout.stub_tmp_dir(base))
                if left:
                    failures.append('left behind: %s' % left)
        except Exception as err:  # a campaign reports whatever went wrong
            failures.append('repeated: %r' % err)
        finally:
            bench.close()
    return seen, fired, failures


def _files(folder: str) -> List[str]:
    return os.listdir(folder) if os.path.isdir(folder) else []


def _untouched(folder: str, scenario: Scenario) -> object:
    with fresh(folder, scenario) as root:
        bench = Bench(root, scenario.with_hdd)
        scenario.run(bench)
        goal = where(bench)
        bench.close()
    return goal


def campaign(folder: str, scenarios: List[Scenario], per_scenario: int = 0,
             say: Callable[[str], None] = lambda text: None) -> Outcome:
    """Every call, every fault, under ``folder``.

    :param per_scenario: at most about so many cases of each; 0 is all
    """
    cases = fired = 0
    wrong: List[str] = []
    for scenario in scenarios:
        before, lost = fired, len(wrong)
        goal = _untouched(folder, scenario)
        with fresh(folder, scenario) as root:
            calls = _child(root, scenario, 0, FAULTS[0]._replace(calls=0))
            assert not calls[2], calls
            total = _child(root, scenario, 1 << 40, FAULTS[0])[0]
        for number, fault in enumerate(FAULTS):
            stride = 1
            if per_scenario:
                stride = max(1, max(total, 20) * len(FAULTS) // per_scenario)
            for nth in itertools.count(1 + number % stride, stride):
                seen, hit, failures = _case(folder, scenario, nth, fault,
                                            goal)
                if seen < nth:
                    wrong += ['%s, untouched: %s' % (scenario.name, failure)
                              for failure in failures]
                    break
                cases += 1
                fired += hit > 0
                wrong += ['%s, call %d, %s%s: %s' % (
                    scenario.name, nth, fault.name,
                    ' for ever' if fault.for_ever else '', failure)
                    for failure in failures]
        say('%-16s %5d faults fired, %d wrong' % (
            scenario.name, fired - before, len(wrong) - lost))
    return Outcome(cases, fired, wrong)


def _careless(bench: Bench) -> None:
    """A copy to the HDD that believes in every call."""
    for place in bench.node.places():
        with LiveVersion(place) as live:
            if live.residency.is_stub:
                continue
            data = os.pread(live.fd, place.content_length, 0)
            copy_fd = place.capacity.create()
            try:
                with contextlib.suppress(OSError):
                    os.write(copy_fd, data)
                    os.fsync(copy_fd)
                place.capacity.publish(copy_fd, place.version)
            finally:
                os.close(copy_fd)
            live.mark(Residency.whole(place.content_length, Tier.HDD))
            with open(live.path, 'r+b') as target:
                target.truncate(0)
                target.truncate(place.content_length + 1)


WRONG_TWIN = Scenario('wrong twin', True, lambda bench: None, _careless)


@contextlib.contextmanager
def built() -> Iterator[str]:
    """The library, compiled."""
    with tempfile.TemporaryDirectory(prefix='r12-') as folder:
        path = os.path.join(folder, 'syscall_faults.so')
        subprocess.run(
            [os.environ.get('CC', 'cc'), '-shared', '-fPIC', '-O1',
             '-Wall', '-Werror', '-fvisibility=hidden', '-o', path,
             os.path.join(_HERE, 'syscall_faults.c'), '-ldl'], check=True)
        yield path


def main() -> int:
    """Run everything and print the figures; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--per-scenario', type=int, default=0)
    parser.add_argument('--only', help='one scenario')
    args = parser.parse_args()
    if 'syscall_faults' not in os.environ.get('LD_PRELOAD', ''):
        with built() as library:
            return subprocess.run(
                [sys.executable] + sys.argv,
                env=dict(os.environ, LD_PRELOAD=library)).returncode
    folder = tempfile.mkdtemp(prefix='r12-', dir='/dev/shm' if os.path.isdir(
        '/dev/shm') else None)
    try:
        outcome = campaign(folder, [
            scenario for scenario in SCENARIOS
            if args.only in (None, scenario.name)], args.per_scenario, print)
        twin = campaign(folder, [WRONG_TWIN], 40)
    finally:
        shutil.rmtree(folder)
    for text in outcome.wrong[:50]:
        print('WRONG: ' + text)
    print('R12: %d calls, %d faults fired, %d wrong' % (
        outcome.cases, outcome.fired, len(outcome.wrong)))
    print('R12 wrong twin: %d faults fired, %d wrong (must be more than 0)'
          % (twin.fired, len(twin.wrong)))
    return 1 if outcome.wrong or not outcome.fired or not twin.wrong else 0


if __name__ == '__main__':
    sys.exit(main())
