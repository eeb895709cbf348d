#!/usr/bin/env python
"""R02: every state that a power cut may leave of every move; none loses.

Each operation is recorded once (``crashstates.py``). Each state that a cut
could leave is built as real files; every acknowledged version is read from
it, then the daemon's recovery runs and the operation is repeated, and all
is read again. The wrong twin is the same recording without the fsyncs of
files: it must lose.

    python test/fault/cut_the_power.py [--most N] [--seed S]
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from typing import Callable, List, NamedTuple, Tuple

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(sys.path[0], os.pardir))

from crashstates import Change, Disk, Recorder, states
from scenarios import (
    SCENARIOS, Bench, Scenario, populate, remote_of)
from support.nodes.sample_node import SampleNode

OBJECT_BYTES = 6000


class Outcome(NamedTuple):
    """What a campaign did."""

    states: int
    lost: List[str]


def campaign(folder: str, scenarios: List[Scenario], most: int, seed: int,
             with_syncs: bool = True,
             say: Callable[[str], None] = lambda text: None) -> Outcome:
    """Try every state of every scenario under ``folder``."""
    total, lost = 0, []
    for scenario in scenarios:
        tried, before_lost = 0, len(lost)
        root = os.path.join(folder, 'node')
        before, changes = record(root, scenario)
        if not with_syncs:
            changes = [change for change in changes
                       if change.kind != 'sync'
                       or not isinstance(change.where[0], int)]
        for disk in states(before, changes, most, seed):
            tried += 1
            failures = _try(root, scenario, disk)
            lost += ['%s, state %d: %s' % (scenario.name, tried, failure)
                     for failure in failures]
        total += tried
        say('%-16s %3d changes %6d states %3d lost' % (
            scenario.name, len(changes), tried, len(lost) - before_lost))
    return Outcome(total, lost)


def record(root: str, scenario: Scenario) -> Tuple[Disk, List[Change]]:
    """The disk before the operation, and what it did."""
    _empty(root)
    bench = Bench(root, scenario.with_hdd)
    populate(bench, OBJECT_BYTES)
    scenario.prepare(bench)
    before = Disk.read(root)
    recorder = Recorder(root)
    with recorder.recording():
        scenario.run(bench)
    bench.close()
    assert recorder.changes, '%s changes nothing' % scenario.name
    after = before.copy()
    for change in recorder.changes:
        if change.kind != 'sync':
            after.apply(change)
    _same(after, Disk.read(root))
    return before, recorder.changes


def _same(played: Disk, real: Disk) -> None:
    """The recording is complete: played back it gives the real disk."""
    for at, names in real.folders.items():
        assert set(played.folders.get(at, ())) == set(names), at
        for name, number in names.items():
            file = played.files[played.folders[at][name]]
            assert file.data == real.files[number].data, (at, name)
            assert file.xattrs == real.files[number].xattrs, (at, name)


def _try(root: str, scenario: Scenario, disk: Disk) -> List[str]:
    _empty(root)
    disk.build(root)
    failures = ['before recovery: ' + failure
                for failure in _lost(root, scenario)]
    bench = Bench(root, scenario.with_hdd)
    try:
        bench.recover()
        scenario.run(bench)
    except Exception as err:  # a campaign reports whatever went wrong
        failures.append('repeated: %r' % err)
    finally:
        bench.close()
    return failures + ['after recovery: ' + failure
                       for failure in _lost(root, scenario)]


def _lost(root: str, scenario: Scenario) -> List[str]:
    node = SampleNode(root, scenario.with_hdd)
    return node.lost(remote_of(_Only(node), OBJECT_BYTES))  # type: ignore


class _Only(NamedTuple):
    node: SampleNode


def _empty(root: str) -> None:
    if os.path.isdir(root):
        shutil.rmtree(root)
    os.makedirs(root)


def main() -> int:
    """Run everything and print the figures; 1 if anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--most', type=int, default=64,
                        help='states of one prefix (%(default)s)')
    parser.add_argument('--seed', type=int, default=1)
    args = parser.parse_args()
    shm = '/dev/shm' if os.path.isdir('/dev/shm') else None
    folder = tempfile.mkdtemp(prefix='r02-', dir=shm)
    print('seed %d' % args.seed)
    try:
        outcome = campaign(folder, SCENARIOS, args.most, args.seed, say=print)
        twin = campaign(folder, SCENARIOS[1:2], args.most, args.seed,
                        with_syncs=False)
    finally:
        shutil.rmtree(folder)
    for text in outcome.lost[:50]:
        print('LOST: ' + text)
    print('R02: %d states, %d lost' % (outcome.states, len(outcome.lost)))
    print('R02 wrong twin (no fsync of files): %d states, %d lost '
          '(must be more than 0)' % (twin.states, len(twin.lost)))
    return 1 if outcome.lost or not twin.lost else 0


if __name__ == '__main__':
    sys.exit(main())
