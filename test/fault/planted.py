#!/usr/bin/env python
"""N0 to N6, the defects of a cluster, and B1, of bundles, each planted again:
at which seed does the simulation find it?

Each takes the guard out that mended the defect (``sim_twins.py``) and runs
seed after seed until one breaks a promise that it keeps without the defect.

    python test/fault/planted.py [--seeds 10000] [--only N2,N4] [--jobs 2]
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import os
import sys
import time
from typing import Any, Iterator, List, NamedTuple

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir))

from fault import sim_twins

from swift_dss.cli.table import Progress
from swift_dss.sim import runs

NODES, STEPS = 5, 80
#: A defect to the twin that plants it again, and what readers saw of it.
DEFECTS = {
    'N0': (sim_twins.every_policy_is_ours,
           'stubs in a policy that is not ours'),
    'N1': (sim_twins.one_replica_decides,
           'one replica deletes the key that others need'),
    'N2': (sim_twins.one_object_ends_its_session,
           'one unreadable object ends the session of its partition'),
    'N3': (sim_twins.old_proof,
           'the last local bytes leave on an old proof'),
    'N4': (sim_twins.deletes_are_in_the_queue_alone,
           'deletes that a lost queue had are forgotten'),
    'N5': (sim_twins.stubs_fetch_their_bytes,
           'a stub that moves fetches its bytes'),
    'N6': (sim_twins.posts_replace_all,
           'a POST takes what another one has set'),
    'B1': (sim_twins.who_died_before_its_bundle_is_its_first_member,
           'a delete while a bundle is packed kills its first member')}


class Planted(NamedTuple):
    """What became of a defect.

    :param seed: the first that finds it; -1: none did
    """

    name: str
    what: str
    seed: int
    seconds: float
    violation: str


def plant(name: str) -> None:
    """Have this process live with a defect, to its end."""
    DEFECTS[name][0](setattr)


def broken(seed: int) -> str:
    """The promise that a seed breaks; '' if it breaks none."""
    return runs.run(runs.plan(seed, NODES, STEPS), NODES, seed).violation


def look(name: str, seeds: int, jobs: int, progress: Any) -> Planted:
    """Seeds from 1 on, until one finds the defect."""
    began = time.monotonic()
    with multiprocessing.Pool(jobs, plant, (name,)) as planted:
        for seed, violation in enumerate(planted.imap(
                broken, range(1, seeds + 1)), 1):
            progress(seed)
            # A seed that fails without it has found something else.
            if violation and not broken(seed):
                return Planted(name, DEFECTS[name][1], seed,
                               time.monotonic() - began, violation)
    return Planted(name, DEFECTS[name][1], -1, time.monotonic() - began, '')


def look_for_all(names: List[str], seeds: int, jobs: int
                 ) -> Iterator[Planted]:
    """One after the other."""
    for name in names:
        with Progress('planted: %s: seeds' % name,
                      lines_seconds=60.0) as shown:
            outcome = look(name, seeds, jobs, functools.partial(
                shown.show, total=seeds))
        yield outcome


def _line(outcome: Planted) -> str:
    return '%s  %-8s %5.0f s  %s%s' % (
        outcome.name,
        'seed %d' % outcome.seed if outcome.seed >= 0 else 'none',
        outcome.seconds, outcome.what, outcome.violation and ': '
        + outcome.violation[:90])


def main() -> int:
    """The command; 1 if a defect was not found."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--seeds', type=int, default=10000)
    parser.add_argument('--only', default=','.join(DEFECTS))
    parser.add_argument('--jobs', type=int, default=os.cpu_count() or 1)
    parser.add_argument('--json', action='store_true')
    args = parser.parse_args()
    if os.environ.get('PYTHONHASHSEED') != '0':
        # The order of a set is part of what a seed decides.
        os.environ['PYTHONHASHSEED'] = '0'
        os.execv(sys.executable, [sys.executable] + sys.argv)
    outcomes = []
    for outcome in look_for_all(args.only.split(','), args.seeds, args.jobs):
        outcomes.append(outcome)
        print(json.dumps(outcome._asdict()) if args.json else _line(outcome),
              flush=True)
    return int(any(outcome.seed < 0 for outcome in outcomes))


if __name__ == '__main__':
    sys.exit(main())
