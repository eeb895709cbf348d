#!/usr/bin/env python
"""R01: kill -9 at every named step of every move; nothing may be lost.

Each operation first runs untouched, to learn which steps it has and how
often each is reached. Then, on a fresh node each time, a child runs it and
dies by SIGKILL at the first, second or last hit of one step. Every
acknowledged version is read before any recovery, and again after it; then
the operation is repeated and must end where the untouched run ended.

    python test/fault/kill_at_each_step.py [--on DIR] [--xfs]
                                           [--per-scenario N]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(sys.path[0], os.pardir))

from scenarios import (
    SCENARIOS, Bench, Scenario, populate, remote_of)
from support.nodes.sample_node import SampleNode

from swift_dss.core.residency import Residency, Tier
from swift_dss.io import steps
from swift_dss.io.switch import LiveVersion, Place
from swift_dss.wire import layout

OBJECT_BYTES = 60000


class Outcome(NamedTuple):
    """What a campaign did."""

    kills: int
    step_count: int
    lost: List[str]
    worst_recovery_seconds: float


def campaign(folder: str, scenarios: List[Scenario],
             per_scenario: int = 0,
             say: Callable[[str], None] = lambda text: None) -> Outcome:
    """Run all kills under ``folder``.

    :param per_scenario: at most so many kills of each; 0 is all
    """
    kills, lost, worst, named = 0, [], 0.0, set()
    for scenario in scenarios:
        goal, hits = _untouched(folder, scenario)
        named.update(hits)
        points = ['%s:%d' % (name, nth) for name in hits
                  for nth in sorted({1, min(2, hits[name]), hits[name]})]
        if per_scenario:
            stride = max(1, -(-len(points) // per_scenario))
            points = points[::stride]
        for point in points:
            failures, seconds = _kill(folder, scenario, point, goal)
            kills += 1
            lost += ['%s at %s: %s' % (scenario.name, point, failure)
                     for failure in failures]
            worst = max(worst, seconds)
        say('%-16s %3d kills at %2d steps' % (
            scenario.name, len(points), len(hits)))
    return Outcome(kills, len(named), lost, worst)


def _untouched(folder: str, scenario: Scenario) -> object:
    """Where the operation ends, and how often it reaches each step."""
    hits: Dict[str, int] = {}

    def count(name: str) -> None:
        hits[name] = hits.get(name, 0) + 1

    with fresh(folder, scenario) as root:
        bench = Bench(root, scenario.with_hdd)
        steps.listen(count)
        try:
            scenario.run(bench)
        finally:
            steps.listen(None)
        goal = where(bench)
        bench.close()
    assert hits, '%s reaches no step' % scenario.name
    return goal, hits


def _kill(folder: str, scenario: Scenario, point: str,
          goal: Dict[str, Residency]) -> object:
    """One kill: what was lost by it, and how long recovery took."""
    with fresh(folder, scenario) as root:
        status = _in_child(root, scenario, point)
        assert os.WIFSIGNALED(status) and \
            os.WTERMSIG(status) == signal.SIGKILL, \
            '%s did not fire in %s: status %#x' % (
                point, scenario.name, status)
        failures = ['before recovery: ' + failure
                    for failure in judge(root, scenario)]
        started = time.monotonic()
        bench = Bench(root, scenario.with_hdd)
        bench.recover()
        seconds = time.monotonic() - started
        failures += ['after recovery: ' + failure
                     for failure in judge(root, scenario)]
        scenario.run(bench)
        failures += ['repeated: ' + failure
                     for failure in judge(root, scenario)]
        if where(bench) != goal:
            failures.append('ends elsewhere than the untouched run')
        left = os.listdir(layout.stub_tmp_dir(bench.node.device_path)) \
            if os.path.isdir(layout.stub_tmp_dir(bench.node.device_path)) \
            else []
        if left:
            failures.append('left behind: %s' % left)
        bench.close()
    return failures, seconds


def judge(root: str, scenario: Scenario) -> List[str]:
    """What cannot be read any more, by the reader outside the system."""
    node = SampleNode(root, scenario.with_hdd)
    bench_like = _Only(node)
    return node.lost(remote_of(bench_like, OBJECT_BYTES))  # type: ignore


class _Only(NamedTuple):
    node: SampleNode


def _in_child(root: str, scenario: Scenario, point: str) -> int:
    pid = os.fork()
    if not pid:
        code = 70
        try:
            bench = Bench(root, scenario.with_hdd)
            steps.arm(point)
            scenario.run(bench)
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1]


def where(bench: Bench) -> Dict[str, Residency]:
    """Residency of every version: what a move changes."""
    residencies = {}
    for place in bench.node.places():
        with LiveVersion(place) as live:
            residencies[place.version.key] = live.residency
            _check_invariant(place, live)
    return residencies


def _check_invariant(place: Place, live: LiveVersion) -> None:
    size = os.fstat(live.fd).st_size
    whole = not live.residency.is_stub
    assert whole == (size == place.content_length), place.version.key


@contextlib.contextmanager
def fresh(folder: str, scenario: Scenario) -> Iterator[str]:
    """A node on which the operation is ready to run."""
    root = os.path.join(folder, 'node')
    os.makedirs(root, exist_ok=True)
    for name in ('devices', 'hdd', 'run'):
        path = os.path.join(root, name)
        os.makedirs(path, exist_ok=True)
        for entry in os.listdir(path):
            shutil.rmtree(os.path.join(path, entry)) \
                if os.path.isdir(os.path.join(path, entry)) \
                else os.unlink(os.path.join(path, entry))
    bench = Bench(root, scenario.with_hdd)
    populate(bench, OBJECT_BYTES)
    scenario.prepare(bench)
    bench.close()
    yield root


def naive_demote(place: Place) -> None:
    """The wrong twin: the SSD's bytes go before the HDD's are there."""
    with LiveVersion(place) as live:
        if live.residency.is_stub:
            return
        data = os.pread(live.fd, place.content_length, 0)
        live.mark(Residency.whole(place.content_length, Tier.HDD))
        steps.reached('naive.marked')
        with open(live.path, 'r+b') as target:
            target.truncate(0)
            target.truncate(place.content_length + 1)
        steps.reached('naive.dropped')
        fd = place.capacity.create()
        os.write(fd, data)
        steps.reached('naive.copied')
        os.fsync(fd)
        place.capacity.publish(fd, place.version)
        os.close(fd)
        steps.reached('naive.published')


def _naive(bench: Bench) -> None:
    for place in bench.node.places():
        naive_demote(place)


WRONG_TWIN = Scenario('wrong twin', True, lambda bench: None, _naive)


@contextlib.contextmanager
def on_xfs(folder: str) -> Iterator[Optional[str]]:
    """Two XFS file systems on loop devices under ``folder/node``."""
    mounts = []
    try:
        for name in ('devices', 'hdd'):
            image = os.path.join(folder, name + '.img')
            with open(image, 'wb') as target:
                target.truncate(320 * 1024 * 1024)
            subprocess.run(['mkfs.xfs', '-q', image], check=True)
            mount = os.path.join(folder, 'node', name)
            os.makedirs(mount, exist_ok=True)
            subprocess.run(['mount', '-o', 'loop', image, mount], check=True)
            mounts.append(mount)
        yield folder
    finally:
        for mount in mounts:
            subprocess.run(['umount', mount], check=True)


def main() -> int:
    """Run everything and print the figures; 1 if anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--on', help='folder to work in (default: a new '
                        'one in /dev/shm if there is one)')
    parser.add_argument('--xfs', action='store_true',
                        help='on XFS on loop devices; needs root')
    parser.add_argument('--per-scenario', type=int, default=0)
    args = parser.parse_args()
    shm = '/dev/shm' if os.path.isdir('/dev/shm') and not args.xfs else None
    folder = tempfile.mkdtemp(prefix='r01-', dir=args.on or shm)
    try:
        with on_xfs(folder) if args.xfs else contextlib.nullcontext():
            outcome = campaign(folder, SCENARIOS, args.per_scenario, print)
            twin = campaign(folder, [WRONG_TWIN])
    finally:
        shutil.rmtree(folder)
    for text in outcome.lost:
        print('LOST: ' + text)
    print('R01: %d kills at %d steps, %d lost, worst recovery %.3f s' % (
        outcome.kills, outcome.step_count, len(outcome.lost),
        outcome.worst_recovery_seconds))
    print('R01 wrong twin: %d kills, %d lost (must be more than 0)' % (
        twin.kills, len(twin.lost)))
    return 1 if outcome.lost or not twin.lost else 0


if __name__ == '__main__':
    sys.exit(main())
