"""A tier daemon in a process of its own, for campaigns and benchmarks."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from typing import Any, Dict, Iterable, Mapping, Optional, Sequence

from swift_dss.wire.control import encode_line

#: How long any answer may take.
SECONDS = 60.0
#: Two classes, far apart in rank.
CLASSES = '''
[class:0]
name = plain
rank = 0
[class:9]
name = gold
rank = 90
'''
#: Runs the daemon with a profile of CPU time in each of its threads.
PROFILED = '''
import cProfile, pstats, sys, threading, time
found, inner = [], threading.Thread.run
def run(self):
    watch = cProfile.Profile(time.thread_time)
    try:
        watch.runcall(inner, self)
    finally:
        found.append((self.name, watch))
threading.Thread.run = run
try:
    from swift_dss.tier.main import main
except ImportError:  # an older checkout
    from swift_dss.tier.daemon import main
main(sys.argv[1:])
for name, watch in found:
    watch.create_stats()
whole = pstats.Stats(*(watch for _, watch in found if watch.stats))
whole.sort_stats('tottime').print_stats(45)
whole.sort_stats('cumtime').print_stats('swift_dss', 60)
for name, watch in found:
    if watch.stats:
        print(name, pstats.Stats(watch).total_tt)
sys.stdout.flush()
'''
#: CPUCLOCK_SCHED of the kernel.
_CPU_CLOCK = 2
Options = Mapping[str, Mapping[str, object]]


def write_node(root: str, options: Optional[Options] = None,
               classes: str = CLASSES) -> str:
    """Configure a node in ``root``: devices, hdd, run and class table.

    :param options: section and option to value; they come before ours
    :returns: path of its ``dss.conf``
    """
    sections: Dict[str, Dict[str, object]] = {'dss': {
        'devices': os.path.join(root, 'devices'), 'swift_dir': root,
        'mount_check': 'false', 'run_dir': os.path.join(root, 'run'),
        'allow_tmpfs': 'true',
        'class_table': os.path.join(root, 'classes.conf'),
        'recon_cache_path': os.path.join(root, 'recon')}}
    sections['tier'] = {'index_dir': os.path.join(root, 'run')}
    for section, pairs in (options or {}).items():
        sections.setdefault(section, {}).update(pairs)
    path = os.path.join(root, 'dss.conf')
    write(path, ''.join('[%s]\n%s\n' % (section, '\n'.join(
        '%s = %s' % pair for pair in pairs.items()))
        for section, pairs in sections.items()))
    write(os.path.join(root, 'classes.conf'), classes)
    write_policies(root)
    return path


def write_policies(root: str, ours: Sequence[int] = (0, 1),
                   stock: Sequence[int] = (2,)) -> None:
    """Write a ``swift.conf`` with policies that are ours, and others."""
    write(os.path.join(root, 'swift.conf'), ''.join([
        '[swift-hash]\nswift_hash_path_suffix = end\n'] + [
        '[storage-policy:%d]\nname = p%d\ndefault = %s\n'
        'diskfile_module = %s\n' % (
            number, number, number == min(ours, default=0),
            'egg:swift_dss#dss.fs' if number in ours
            else 'egg:swift#replication.fs')
        for number in sorted({*ours, *stock})]))


def write(path: str, text: str) -> None:
    """Make a small file."""
    with open(path, 'w', encoding='ascii') as target:
        target.write(text)


class Died(Exception):
    """The daemon ended before it answered."""


class DaemonProcess:
    """``swift-dss-tierd`` on the node in ``root``; start it first."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.process: Any = None

    def start(self, environment: Optional[Mapping[str, str]] = None,
              tree: Optional[str] = None,
              command: Sequence[str] = ('-m', 'swift_dss.tier.main')
              ) -> float:
        """Start it; the seconds until it answers.

        :param environment: added to ours
        :param tree: a checkout to run it from, instead of this one
        :param command: what Python runs, with the daemon's arguments
        :raises Died: it ended instead
        """
        started = time.monotonic()
        variables = dict(os.environ, **(environment or {}))
        if tree:
            variables['PYTHONPATH'] = tree
        self.process = subprocess.Popen(
            [sys.executable, *command, '--config',
             os.path.join(self.root, 'dss.conf')],
            env=variables, cwd=tree, stderr=subprocess.DEVNULL)
        while True:
            try:
                self.ask({'verb': 'status'})
                return time.monotonic() - started
            except OSError:
                if self.process.poll() is not None:
                    raise Died from None
                if time.monotonic() - started > SECONDS:
                    raise
                time.sleep(0.01)

    def ask(self, request: Dict[str, object]) -> Any:
        """One admin request.

        :raises OSError: nobody answers, or not to the end
        """
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(SECONDS)
            connection.connect(os.path.join(self.root, 'run', 'admin.sock'))
            connection.sendall(encode_line(request))
            with connection.makefile('rb') as lines:
                for line in lines:
                    message = json.loads(line)
                    if 'result' in message:
                        return message['result']
                    if 'error' in message:
                        raise AssertionError(message['error'])
        raise ConnectionError('the daemon stopped')

    def settle(self) -> None:
        """Wait until it has done all that it was told of."""
        assert self.ask({'verb': 'settle', 'seconds': SECONDS})['settled']

    def cpu_seconds(self) -> float:
        """User and system time of all its threads so far."""
        return cpu_seconds_of([self.process.pid])

    def resident_bytes(self) -> int:
        """Its memory."""
        with open('/proc/%d/status' % self.process.pid,
                  encoding='ascii') as source:
            return 1024 * next(int(line.split()[1]) for line in source
                               if line.startswith('VmRSS'))

    def stop(self) -> None:
        """End it, if it lives."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(SECONDS)


def cpu_seconds_of(pids: Iterable[int]) -> float:
    """User and system time of processes so far.

    Linux counts it in nanoseconds, where ``/proc/<pid>/stat`` rounds to
    ticks of 10 ms. The clock's number is made of the process id.
    """
    return sum(time.clock_gettime(~pid << 3 | _CPU_CLOCK) for pid in pids)
