"""The simulated cluster keeps its promises, and can see a broken one."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import List, Tuple

import pytest
from fault.sim_twins import TWINS, one_object_ends_its_session

from swift_dss.cli.table import Progress
from swift_dss.sim import runs, subsets
from swift_dss.sim.cluster import Cluster
from swift_dss.sim.world import clock as clocks
from swift_dss.sim.world import databases
from swift_dss.sim.world.s3 import MOODS
from swift_dss.tier.index.index import Index

NODES, STEPS = 5, 80
#: A short campaign ends after so many seeds or seconds, and tries these at
#: least; ``swift-dss sim --campaign`` goes on.
SEEDS, SECONDS, LEAST_SEEDS = 3000, 120, 20
#: A twin that is not found in so many is not found.
TWIN_SEEDS = 200
#: Faults that meet in a campaign.
FAULTS = {'HDD lost', 'HDD not mounted', 'SSD lost', 'state lost', 'clock off',
          'cut off from S3', 'cut off from nodes', 'daemon killed',
          'key forgotten', 'left the ring'} | {
              'S3 ' + mood for mood in MOODS if mood != 'well'}


def swift_dss(*arguments: str) -> subprocess.CompletedProcess:
    """Run the command as an operator does."""
    return subprocess.run(
        [sys.executable, '-m', 'swift_dss.cli.main', 'sim', *arguments],
        capture_output=True, text=True, timeout=600)


def outcome_of(seed: int) -> runs.Outcome:
    """Of one seed's run, in this process."""
    return runs.run(runs.plan(seed, NODES, STEPS), NODES, seed)


def test_a_short_campaign_breaks_no_promise():
    done = swift_dss('--campaign', '--seeds', str(SEEDS), '--json',
                     '--seconds', str(SECONDS))
    said = json.loads(done.stdout)
    assert said['failed'] == [] and said['bytes_lost'] == 0
    assert done.returncode == 0
    seeds = said['seeds']
    assert seeds >= LEAST_SEEDS
    # The histories are as full as they are meant to be.
    assert set(said['faults']) == FAULTS
    assert sum(said['faults'].values()) > 5 * seeds
    assert said['acknowledged'] > 10 * seeds
    assert said['answered'] > 2 * seeds
    assert said['daemon_steps'] > 50 * seeds
    assert said['transitions'] > 150


def test_a_campaign_that_is_interrupted_says_from_where_to_go_on():
    first = subprocess.Popen(
        [sys.executable, '-m', 'swift_dss.cli.main', 'sim', '--campaign',
         '--json', '--from', '5', '--jobs', '2'],
        stdout=subprocess.PIPE, text=True)
    try:
        assert first.stdout is not None
        # It has begun when its processes ignore the signal.
        while not workers_of(first.pid):
            assert first.poll() is None
        first.send_signal(signal.SIGINT)
        said = json.loads(first.communicate(timeout=600)[0])
    finally:
        first.kill()
    assert first.returncode == 0
    assert said['interrupted'] and said['first'] == 5
    # Every seed that was begun was finished.
    assert said['next'] == 5 + said['seeds'] > 5
    whole = json.loads(swift_dss(
        '--campaign', '--json', '--from', '5', '--seeds',
        str(said['seeds']), '--jobs', '1').stdout)
    assert not whole['interrupted']
    for what in ('next', 'faults', 'acknowledged', 'daemon_steps',
                 'transitions', 'written_bytes'):
        assert whole[what] == said[what], what


def workers_of(pid: int) -> List[int]:
    """Processes of a campaign that ignore SIGINT: they run seeds."""
    found = []
    for folder in Path('/proc').glob('[0-9]*'):
        try:
            said = dict(line.split(':', 1) for line in
                        (folder / 'status').read_text().splitlines())
        except (OSError, ValueError):
            continue
        if int(said['PPid']) == pid and int(said['SigIgn'], 16) & 2:
            found.append(int(folder.name))
    return found


def test_progress_is_whole_lines_where_there_is_no_terminal():
    out = io.StringIO()
    with Progress('sim: seeds', stream=out, lines_seconds=1e-9) as shown:
        shown.show(3, None, '1.5 a second')
        shown.show(4, 9, 'more')
    assert out.getvalue() == ('sim: seeds 3 1.5 a second\n'
                              'sim: seeds 4 of 9 more\n')


def test_the_same_seed_gives_the_same_run_to_the_byte():
    first, again = (swift_dss('--seed', '7', '--json', '--trace')
                    for _ in range(2))
    assert first.stdout == again.stdout
    said = json.loads(first.stdout)
    # Something happened that could have gone wrong.
    assert said['s3']['PUT'] and said['s3']['HEAD']
    assert len(said['trace']) > STEPS / 2


def shown(outcome: runs.Outcome) -> Tuple[object, ...]:
    """All that a run may say."""
    return (outcome.trace, outcome.violation, outcome.counts,
            outcome.coverage)


@pytest.mark.parametrize('seed', (17, 48, 59))
def test_nothing_that_ran_before_decides(seed):
    first = shown(outcome_of(seed))
    outcome_of(seed + 1)
    assert shown(outcome_of(seed)) == first


@pytest.mark.parametrize('seed', (3, 17))
def test_databases_in_memory_do_what_files_do(seed, monkeypatch):
    first = shown(outcome_of(seed))
    monkeypatch.setattr(databases, 'installed', contextlib.nullcontext)
    assert shown(outcome_of(seed)) == first


def test_a_database_is_emptied_before_another_run_gets_it(tmp_path):
    path = tmp_path / 'index.db'
    with databases.installed():
        for number in (1, 2):
            path.touch()
            with contextlib.closing(Index(str(path))) as index:
                assert index.get_state('word') == ''
                index.set_state('word', str(number))
            with contextlib.closing(Index(str(path))) as index:
                assert index.get_state('word') == str(number)
            path.unlink()
    path.touch()
    with databases.installed():
        with contextlib.closing(Index(str(path))) as index:
            assert index.get_state('word') == ''


def test_a_simulated_daemon_knows_no_other_clock(tmp_path):
    real = (time.time, time.monotonic, time.sleep)
    clock = clocks.Clock(random.Random(1))
    with clocks.installed(clock), databases.installed():
        cluster = Cluster(str(tmp_path), NODES, random.Random(1), clock)
        cluster.nodes['n1'].work()
        held = {type(owner).__module__ for owner in map(
            owner_of, gc.get_referrers(*real))}
        cluster.close()
    # Whose is asked of the resolver now and then; here they are numbers.
    assert {name for name in held if name.startswith('swift_dss.')
            } <= {'swift_dss.gateway.peers.here'}


def owner_of(referrer: object) -> object:
    """The object whose attributes these are."""
    if isinstance(referrer, dict):
        for owner in gc.get_referrers(referrer):
            if getattr(owner, '__dict__', None) is referrer:
                return owner
    return referrer


def test_another_seed_gives_another_run():
    assert outcome_of(7).trace != outcome_of(8).trace


@pytest.mark.parametrize('name', TWINS)
def test_a_guard_that_is_taken_out_is_missed(name, monkeypatch):
    TWINS[name](monkeypatch.setattr)
    assert any(outcome_of(seed).violation for seed in range(TWIN_SEEDS))


def test_an_unreadable_object_ends_no_session(monkeypatch):
    """A node was away for three writes; of one object the node that brings
    them has its bytes on an HDD that is not mounted."""
    steps = [runs.Step('cut', 'n4', number=2)] + [
        runs.Step('put', name=name, number=1, seed=3)
        for name in ('/a/c2/x', '/a/c0/k', '/a/c0/o')] + [
            runs.Step('unmount', 'n1'), runs.Step('join', 'n4'),
            runs.Step('replicate', 'n1')]
    kept = runs.run(steps, NODES, 1)
    assert not kept.violation and 'n1: pushed 1' in '\n'.join(kept.trace)
    one_object_ends_its_session(monkeypatch.setattr)
    assert 'has not brought' in runs.run(steps, NODES, 1).violation


def test_a_failure_is_shrunk_to_the_steps_that_matter(monkeypatch):
    TWINS['every policy is ours'](monkeypatch.setattr)
    steps = runs.plan(2, NODES, STEPS)
    assert runs.run(steps, NODES, 2).violation
    few = runs.shrink(steps, NODES, 2)
    assert len(few) <= 4
    assert runs.run(few, NODES, 2).violation


def test_subsets_of_primaries_lose_and_restore_nothing():
    done = swift_dss('--subsets', '--every', '61', '--json',
                     '--jobs', str(os.cpu_count() or 1))
    said = json.loads(done.stdout)
    assert said['said'] == []
    assert said['histories'] == 44 * 9
    assert said['unreadable'] == said['restored'] == said['orphans'] == 0
    assert said['leak'] <= 0.01
    assert done.returncode == 0


def test_subsets_see_a_replica_that_decides_alone(monkeypatch):
    TWINS['one replica decides'](monkeypatch.setattr)
    group = subsets.Group('n1', 'after', 40.0, False)
    assert subsets.run(group, every=17).is_broken


@pytest.mark.parametrize('arguments, why', (
    (('--nodes', '2'), '--nodes 2: give 4 or more'),
    (('--seeds', '3'), '--seeds and --seconds are for --campaign'),
    (('--campaign', '--subsets'), 'give --subsets or --campaign'),
    (('--campaign', '--jobs', '0'), '--jobs 0: give 1 or more')))
def test_options_that_mean_nothing_are_refused(arguments, why):
    done = swift_dss(*arguments)
    assert done.returncode and why in done.stderr
