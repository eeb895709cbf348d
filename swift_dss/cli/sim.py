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
import time
from dataclasses import asdict
from typing import Any, Dict, List, Sequence

from swift_dss.cli.table import Progress, table
from swift_dss.core.errors import BadConfig
from swift_dss.sim import campaign, runs
from swift_dss.sim.studies import lost_state, moves, subsets
from swift_dss.sim.verbs import Step
from swift_dss.sim.world.ring import REPLICAS

HELP = 'a simulated cluster with faults, judged by a model'
#: Exit code where a promise was broken.
_BROKEN = 1
#: The variable that decides the order of Python's sets.
_HASH_SEED = 'PYTHONHASHSEED'
#: Between two lines of progress where there is no terminal.
_LINES_SECONDS = 60.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument('--seed', '--from', type=int, default=1,
                        metavar='S', help='decides everything; the first '
                        'one of a campaign (1)')
    parser.add_argument('--nodes', type=int, default=5, metavar='N',
                        help='storage nodes, at least 4 (5)')
    parser.add_argument('--steps', type=int, default=80, metavar='K',
                        help='steps before all faults end (80)')
    parser.add_argument('--trace', action='store_true',
                        help='print every step also if all is well')
    parser.add_argument('--no-shrink', action='store_true',
                        help='do not look for the fewest steps that fail')
    parser.add_argument('--campaign', action='store_true',
                        help='seed after seed, until it is interrupted')
    parser.add_argument('--seeds', type=int, metavar='N',
                        help='of a campaign (no end)')
    parser.add_argument('--seconds', type=float, metavar='T',
                        help='after which a campaign ends')
    parser.add_argument('--jobs', type=int, default=os.cpu_count() or 1,
                        metavar='J',
                        help='processes of a campaign (one a processor)')
    parser.add_argument('--failures', type=int, default=5, metavar='F',
                        help='a campaign ends after so many (5)')
    parser.add_argument('--subsets', action='store_true',
                        help='instead of seeds: every subset of primaries '
                        'that a PUT, an overwrite and a DELETE reach, with '
                        'each node lost, with delays and a rebalance')
    parser.add_argument('--every', type=int, default=1, metavar='N',
                        help='of the subsets, each Nth history (1)')
    parser.add_argument('--lost-state', type=int, metavar='N',
                        help='instead of seeds: index, queue or bundle book '
                        'are lost at N points; then a node, and in the end '
                        'all, are wiped and restored from the bucket')
    parser.add_argument('--moves', type=int, metavar='N',
                        help='instead of seeds: N objects that only S3 has, '
                        'of several kinds; a node joins, one leaves, '
                        'fragments move, an SSD is lost')
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
    if args.subsets:
        return _subsets(args)
    if args.lost_state:
        return _lost_state(args)
    if args.moves:
        return _moves(args)
    return _campaign(args) if args.campaign else _one(args)


def _check(args: argparse.Namespace) -> None:
    for name, least in (('nodes', REPLICAS + 1), ('steps', 1), ('jobs', 1),
                        ('failures', 1), ('seed', 0), ('seeds', 1),
                        ('every', 1), ('lost_state', 1), ('moves', 1)):
        value = getattr(args, name)
        if value is not None and value < least:
            raise BadConfig('--%s %d: give %d or more' % (
                name.replace('_', '-'), value, least))
    if args.campaign + args.subsets + (args.lost_state is not None) + (
            args.moves is not None) > 1:
        raise BadConfig('give --subsets, --lost-state, --moves or --campaign')
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


def _subsets(args: argparse.Namespace) -> int:
    began = time.monotonic()
    with Progress('sim: histories', args.json) as shown:
        outcome = subsets.run_all(
            args.jobs, args.every, lambda now: shown.show(
                now.histories, len(subsets.groups()) * len(list(
                    subsets.histories(args.every))),
                '%d broken' % len(now.said)))
    seconds = time.monotonic() - began
    if args.json:
        print(json.dumps(dict(asdict(outcome), leak=outcome.leak,
                              seconds=round(seconds, 1))))
    else:
        for text in outcome.said:
            print(text)
        print('%d histories, %d nodes, %.0f s: %d acknowledged versions '
              'unreadable, %d deleted objects restored; %d bytes written, '
              '%.2f %% leaked, %.2f %% of refused writes that a lost node '
              'had alone; gc leaves %d keys that nothing needs' % (
                  outcome.histories, subsets.NODES, seconds,
                  outcome.unreadable, outcome.restored, outcome.put_bytes,
                  100.0 * outcome.leak,
                  100.0 * outcome.refused_bytes / max(1, outcome.put_bytes),
                  outcome.orphans))
    return _BROKEN if outcome.is_broken else 0


def _lost_state(args: argparse.Namespace) -> int:
    began = time.monotonic()
    with Progress('sim: points', args.json) as shown:
        outcome = lost_state.run_all(
            args.seed, args.lost_state, args.jobs, lambda now: shown.show(
                now.points, args.lost_state, '%d broken' % len(now.said)))
    seconds = time.monotonic() - began
    if args.json:
        print(json.dumps(dict(asdict(outcome), first=args.seed,
                              seconds=round(seconds, 1))))
    else:
        for text in outcome.said:
            print(text)
        print(table(('lost state', 'count>', ''), [
            ('points', outcome.points, '%d nodes; %d in the midst of a '
             'daemon\'s work, %d on all nodes; %.0f s' % (
                 lost_state.NODES, outcome.at_work, outcome.everywhere,
                 seconds)),
            ('parts lost', sum(outcome.lost.values()), ', '.join(
                '%d %s' % (number, part)
                for part, number in sorted(outcome.lost.items()))),
            ('deleted, restored', outcome.restored,
             'of %d deleted objects' % outcome.deleted),
            ('kept, unreadable', outcome.unreadable,
             'of %d acknowledged versions' % outcome.kept),
            ('orphan keys', outcome.orphans, 'after gc')]))
    return _BROKEN if outcome.is_broken else 0


def _moves(args: argparse.Namespace) -> int:
    began = time.monotonic()
    with Progress('sim: objects', args.json,
                  lines_seconds=_LINES_SECONDS) as shown:
        outcome = moves.run_all(
            args.seed, args.moves, args.jobs, lambda now: shown.show(
                now.objects, args.moves, '%d GET, %d PUT, %d broken' % (
                    now.total().asked.get('GET', 0),
                    now.total().asked.get('PUT', 0), len(now.said))))
    seconds = time.monotonic() - began
    if args.json:
        print(json.dumps(dict(
            asdict(outcome), first=args.seed, total=asdict(outcome.total()),
            seconds=round(seconds, 1))))
        return _BROKEN if outcome.is_broken else 0
    for text in outcome.said:
        print(text)
    print(table(('experiment', 'kind', 'stubs came>', 'GET>', 'PUT>',
                 'HEAD>', 'LIST>', 'DELETE>', 'proofs>', 'data bytes>'),
                [(experiment, kind, row.stubs, *(
                    row.asked.get(verb, 0) for verb in (
                        'GET', 'PUT', 'HEAD', 'LIST', 'DELETE')),
                  row.proofs, row.data_bytes)
                 for experiment, kind, row in outcome.each()]))
    print('%d objects, %d stubs before, %d clusters of %d nodes, %.0f s: %d '
          'of %d readable' % (
              outcome.objects, outcome.stubs,
              -(-outcome.objects // moves.MOST),
              moves.NODES, seconds, outcome.readable, outcome.read))
    return _BROKEN if outcome.is_broken else 0


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


def _tell(args: argparse.Namespace, steps: Sequence[Step],
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
    # For hours, and with its output in a file.
    with Progress('sim: seeds', lines_seconds=_LINES_SECONDS) as shown:
        total = campaign.campaign(
            args.seed, args.seeds, args.seconds, args.jobs, args.nodes,
            args.steps, args.failures, lambda now: shown.show(
                now.seeds, args.seeds, '%.1f a second, %d faults, %d broken'
                '%s' % (now.rate, sum(now.coverage.faults.values()),
                        len(now.failed), ''.join(
                            ', seed %d' % failure.seed
                            for failure in now.failed))))
    if args.json:
        print(json.dumps(_plain(args, total)))
    else:
        for failure in total.failed:
            print('seed %d: %s' % (failure.seed, failure.violation))
        print(table(('campaign', 'count>', ''), _rows(args, total)))
    return _BROKEN if total.failed else 0


def _plain(args: argparse.Namespace, total: campaign.Sum) -> Dict[str, Any]:
    seen = total.coverage
    return {
        'first': total.first, 'seeds': total.seeds,
        'next': total.following, 'interrupted': total.interrupted,
        'nodes': args.nodes, 'steps': args.steps, 'jobs': args.jobs,
        'seconds': round(total.seconds, 1),
        'cpu_seconds': round(total.cpu_seconds, 1),
        'seeds_per_second': round(total.rate, 2),
        'seeds_per_cpu_second': round(total.core_rate, 2),
        'faults': dict(sorted(seen.faults.items())),
        'lost': seen.lost(), 'acknowledged': seen.acknowledged,
        'refused': seen.refused, 'answered': seen.answered,
        'written_bytes': seen.written_bytes, 'daemon_steps': seen.steps,
        'transitions': len(seen.transitions),
        'bytes_lost': total.bytes_lost, 'failed': [
            {'seed': failure.seed, 'violation': failure.violation,
             'bytes_lost': failure.bytes_lost} for failure in total.failed]}


def _rows(args: argparse.Namespace,
          total: campaign.Sum) -> List[Sequence[object]]:
    seen = total.coverage
    cpu = max(1e-9, total.cpu_seconds)
    faults = sum(seen.faults.values())
    each = ', '.join('%d %s' % (number, kind)
                     for kind, number in sorted(seen.faults.items()))
    return [
        ('seeds', total.seeds, 'of %d nodes and %d steps; go on with '
         '--from %d' % (args.nodes, args.steps, total.following)),
        ('seconds', round(total.seconds), '%.2f seeds a second, %.2f in a '
         'second of a processor' % (total.rate, total.core_rate)),
        ('faults met', faults, each),
        ('drives and states lost', seen.lost(), 'by nodes'),
        ('writes acknowledged', seen.acknowledged, '%d refused; %.0f '
         'acknowledged in a second of a processor' % (
             seen.refused, seen.acknowledged / cpu)),
        ('GETs answered', seen.answered, ''),
        ('steps of daemons', seen.steps, '%.0f in a second of a processor'
         % (seen.steps / cpu)),
        ('transitions', len(seen.transitions), 'that differ; %.2f in a '
         'second of a processor' % (len(seen.transitions) / cpu)),
        ('bytes lost', total.bytes_lost, 'of %d acknowledged'
         % seen.written_bytes),
        ('promises broken', len(total.failed), '')]
