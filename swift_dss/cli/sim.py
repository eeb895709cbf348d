"""``swift-dss sim``: a whole cluster on a simulated clock, network and S3.

One seed is one run: clients on few names, daemons that die in the middle of
a move, networks that part, S3 that is away, slow, forgetful or lying, drives
that are lost, rings that change; and a model that knows what each
acknowledged write allows. The same seed gives the same trace, to the byte.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Dict, List, Sequence

from swift_dss.cli.table import Progress
from swift_dss.core.errors import BadConfig
from swift_dss.sim import campaign, runs
from swift_dss.sim.ring import REPLICAS

HELP = 'a simulated cluster with faults, judged by a model'
#: Exit code where a promise was broken.
_BROKEN = 1
#: What decides the order of Python's sets.
_HASH_SEED = 'PYTHONHASHSEED'


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument('--seed', type=int, default=1, metavar='S',
                        help='decides everything (1)')
    parser.add_argument('--nodes', type=int, default=5, metavar='N',
                        help='storage nodes, at least 4 (5)')
    parser.add_argument('--steps', type=int, default=80, metavar='K',
                        help='things that happen before all is mended (80)')
    parser.add_argument('--trace', action='store_true',
                        help='print every step also if all is well')
    parser.add_argument('--no-shrink', action='store_true',
                        help='do not look for the fewest steps that fail')
    parser.add_argument('--campaign', action='store_true',
                        help='seed after seed, from --seed on')
    parser.add_argument('--seeds', type=int, metavar='N',
                        help='of a campaign (until it is interrupted)')
    parser.add_argument('--seconds', type=float, metavar='T',
                        help='after which a campaign ends')
    parser.add_argument('--jobs', type=int, default=os.cpu_count() or 1,
                        metavar='J',
                        help='processes of a campaign (one a processor)')
    parser.add_argument('--failures', type=int, default=5, metavar='F',
                        help='a campaign ends after so many (5)')
    parser.add_argument('--json', action='store_true',
                        help='one object instead of text')


def run(args: argparse.Namespace) -> int:
    """Run one seed, or a campaign.

    :returns: 0, or 1 if a promise was broken
    :raises BadConfig: options that mean nothing
    """
    _check(args)
    if os.environ.get(_HASH_SEED) != '0':
        # The order of a set is part of what a seed decides.
        os.environ[_HASH_SEED] = '0'
        os.execv(sys.executable, [sys.executable, '-m', 'swift_dss.cli.main']
                 + _arguments(args))
    return _campaign(args) if args.campaign else _one(args)


def _check(args: argparse.Namespace) -> None:
    for name, least in (('nodes', REPLICAS + 1), ('steps', 1), ('jobs', 1),
                        ('failures', 1), ('seed', 0), ('seeds', 1)):
        value = getattr(args, name)
        if value is not None and value < least:
            raise BadConfig('--%s %d: give %d or more'
                            % (name, value, least))
    if (args.seeds or args.seconds) and not args.campaign:
        raise BadConfig('--seeds and --seconds are for --campaign')


def _arguments(args: argparse.Namespace) -> List[str]:
    """The command line that says the same."""
    said = ['sim']
    for name, value in sorted(vars(args).items()):
        option = '--' + name.replace('_', '-')
        if value is True:
            said.append(option)
        elif name not in ('command', 'run') and value not in (None, False):
            said += [option, str(value)]
    return said


def _one(args: argparse.Namespace) -> int:
    steps = runs.plan(args.seed, args.nodes, args.steps)
    outcome = runs.run(steps, args.nodes, args.seed)
    if outcome.violation and not args.no_shrink:
        print('seed %d breaks a promise: looking for the fewest steps that '
              'do' % args.seed, file=sys.stderr)
        steps = runs.shrink(steps, args.nodes, args.seed)
        outcome = runs.run(steps, args.nodes, args.seed)
    if args.json:
        print(json.dumps({
            'seed': args.seed, 'nodes': args.nodes, 'steps': len(steps),
            'violation': outcome.violation, 'trace': outcome.trace,
            's3': outcome.counts}))
    else:
        _tell(args, steps, outcome)
    return _BROKEN if outcome.violation else 0


def _tell(args: argparse.Namespace, steps: Sequence[runs.Step],
          outcome: runs.Outcome) -> None:
    if args.trace or outcome.violation:
        print('\n'.join(outcome.trace))
    if outcome.violation:
        print('BROKEN  %s' % outcome.violation)
    print('seed %d: %d nodes, %d steps, %s; S3: %s' % (
        args.seed, args.nodes, len(steps),
        'a promise is broken' if outcome.violation else 'all promises kept',
        _counted(outcome.counts)))


def _counted(counts: Dict[str, int]) -> str:
    return ', '.join('%d %s' % (number, verb)
                     for verb, number in sorted(counts.items())) or 'unused'


def _campaign(args: argparse.Namespace) -> int:
    with Progress('sim: seeds', args.json) as shown:
        total = campaign.campaign(
            args.seed, args.seeds, args.seconds, args.jobs, args.nodes,
            args.steps, args.failures, lambda now: shown.show(
                now.seeds, args.seeds, '%.1f a second, %d broken' % (
                    now.seeds / max(1e-9, now.seconds), len(now.failed))))
    if args.json:
        print(json.dumps({
            'first': args.seed, 'seeds': total.seeds,
            'seconds': round(total.seconds, 1), 'failed': [
                {'seed': one.seed, 'violation': one.violation}
                for one in total.failed]}))
    else:
        for one in total.failed:
            print('seed %d: %s' % (one.seed, one.violation))
        print('%d seeds from %d on, %d nodes, %d steps each, %.0f s: '
              '%d broken promises' % (
                  total.seeds, args.seed, args.nodes, args.steps,
                  total.seconds, len(total.failed)))
    return _BROKEN if total.failed else 0
