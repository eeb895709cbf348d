"""The simulated cluster keeps its promises, and can see a broken one."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from fault.sim_twins import TWINS

from swift_dss.sim import runs

NODES, STEPS = 5, 80
#: Seeds that a short campaign tries; ``swift-dss sim --campaign`` goes on.
SEEDS = 150
#: A twin that is not found in so many is not found.
TWIN_SEEDS = 200


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
                     '--jobs', str(os.cpu_count() or 1))
    said = json.loads(done.stdout)
    assert said['failed'] == []
    assert said['seeds'] == SEEDS
    assert done.returncode == 0


def test_the_same_seed_gives_the_same_run_to_the_byte():
    first, again = (swift_dss('--seed', '7', '--json', '--trace')
                    for _ in range(2))
    assert first.stdout == again.stdout
    said = json.loads(first.stdout)
    # Something happened that could have gone wrong.
    assert said['s3']['PUT'] and said['s3']['HEAD']
    assert len(said['trace']) > STEPS / 2


def test_another_seed_gives_another_run():
    assert outcome_of(7).trace != outcome_of(8).trace


@pytest.mark.parametrize('name', TWINS)
def test_a_guard_that_is_taken_out_is_missed(name, monkeypatch):
    TWINS[name](monkeypatch.setattr)
    assert any(outcome_of(seed).violation for seed in range(TWIN_SEEDS))


def test_a_failure_is_shrunk_to_the_steps_that_matter(monkeypatch):
    TWINS['every policy is ours'](monkeypatch.setattr)
    steps = runs.plan(1, NODES, STEPS)
    assert runs.run(steps, NODES, 1).violation
    few = runs.shrink(steps, NODES, 1)
    assert len(few) <= 4
    assert runs.run(few, NODES, 1).violation


@pytest.mark.parametrize('arguments, why', (
    (('--nodes', '2'), '--nodes 2: give 4 or more'),
    (('--seeds', '3'), '--seeds and --seconds are for --campaign'),
    (('--campaign', '--jobs', '0'), '--jobs 0: give 1 or more')))
def test_options_that_mean_nothing_are_refused(arguments, why):
    done = swift_dss(*arguments)
    assert done.returncode and why in done.stderr
