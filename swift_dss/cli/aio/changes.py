"""``swift-dss aio node|s3|rebalance``: what happens to a bed."""

from __future__ import annotations

import argparse
import json
from typing import Any, Callable, Dict, List

from swift_dss.aio import run
from swift_dss.aio.bed import changes
from swift_dss.aio.bed.bed import Bed
from swift_dss.aio.bed.s3 import faults
from swift_dss.aio.cluster import printer


def configure(verbs: Any) -> None:
    """Add the verbs.

    :param verbs: where ``aio`` has its own
    """
    moves = verbs.add_parser(
        'rebalance', help='rings, replicators and reconstructors of a bed')
    moves.add_argument('--root', help='the bed\'s folder')
    _configure_nodes(verbs.add_parser(
        'node', help='nodes of a bed come, go, die, are cut off'))
    _configure_s3(verbs.add_parser(
        's3', help='requests of a bed\'s S3, and its faults'))


def _configure_nodes(node: argparse.ArgumentParser) -> None:
    verbs = node.add_subparsers(dest='node_verb', metavar='VERB',
                                required=True)

    def add(name: str, line: str) -> argparse.ArgumentParser:
        verb = verbs.add_parser(name, help=line)
        verb.add_argument('--root', help='the bed\'s folder')
        if name != 'add':
            verb.add_argument('node')
        return verb
    add('add', 'start one more; the rings get it at "rebalance"')
    add('remove', '"rebalance" takes it out of the rings and the bed')
    add('replace', 'another machine with empty disks takes its place')
    add('kill', 'end all of its processes with SIGKILL')
    add('start', 'start those of its servers that do not run')
    once = add('run', 'one pass of daemons of Swift, such as object-updater')
    once.add_argument('daemons', nargs='+', choices=list(run.MODULES),
                      metavar='DAEMON')
    cut = add('partition', 'lose every packet between it and others')
    cut.add_argument('--from', dest='others', default='nodes',
                     metavar='WHOM', help='%s, or names with "," between '
                     '(nodes)' % ', '.join(changes.GROUPS))
    heal = verbs.add_parser('heal', help='lose no packet any more')
    heal.add_argument('--root', help='the bed\'s folder')
    heal.add_argument('node', nargs='*', help='of these only')
    skew = add('skew', 'put its clock ahead, or back')
    skew.add_argument('seconds', type=float, help='such as 300 or -300')
    stock = add('stock', 'run Swift\'s own object server and diskfile')
    stock.add_argument('--off', action='store_true', help='run ours again')
    version = add('version', 'run another version of swift-dss')
    version.add_argument('packages', nargs='?', default='', metavar='FOLDER',
                         help='where "pip install --no-deps --target FOLDER" '
                         'put it (this version again)')
    lose = add('lose-drive', 'replace a drive by an empty one')
    lose.add_argument('device', help='such as d1')
    lose.add_argument('--what', choices=changes.DRIVES, default='ssd')
    lose.add_argument('--unreplaced', action='store_true',
                      help='leave its place empty')


def _configure_s3(s3: argparse.ArgumentParser) -> None:
    verbs = s3.add_subparsers(dest='s3_verb', metavar='VERB', required=True)
    for name, line in (('counts', 'count requests by node and kind'),
                       ('requests', 'print the latest ones as JSON'),
                       ('faults', 'list the faults in force'),
                       ('heal', 'end all faults'),
                       ('fault', 'begin a fault')):
        verb = verbs.add_parser(name, help=line)
        verb.add_argument('--root', help='the bed\'s folder')
        if name == 'counts':
            verb.add_argument('--json', action='store_true')
            verb.add_argument('--reset', action='store_true',
                              help='begin at 0 afterwards')
    verb.add_argument('kind', choices=list(faults.KINDS), metavar='KIND',
                      help='; '.join('%s: %s' % pair for pair
                                     in faults.KINDS.items()))
    verb.add_argument('--node', default='', help='for this one only')
    verb.add_argument('--keys', default='*', metavar='GLOB')
    verb.add_argument('--methods', default='', metavar='LIST',
                      help='such as GET,HEAD (all)')
    verb.add_argument('--rate', type=float, default=1.0,
                      help='share of these requests (1)')
    verb.add_argument('--times', type=int, default=0, metavar='N',
                      help='so many of them (no end)')
    verb.add_argument('--ms', type=float, default=0.0,
                      help='milliseconds, for slow')


def rebalance(root: str, _args: argparse.Namespace) -> int:
    """``aio rebalance``."""
    say = printer()
    passes = Bed.running(root, say).rebalance()
    say('nothing moves any more: %d passes, %d files' % (
        len(passes), sum(sum(done.arrived.values()) for done in passes)))
    return 0


def node(root: str, args: argparse.Namespace) -> int:
    """``aio node VERB``."""
    bed = Bed.running(root, printer())
    name = getattr(args, 'node', '')
    verbs: Dict[str, Callable[[], Any]] = {
        'add': lambda: print(bed.add()),
        'remove': lambda: bed.remove(name),
        'replace': lambda: bed.replace(name),
        'kill': lambda: bed.kill(name),
        'start': lambda: bed.revive(name),
        'run': lambda: bed.node(name).run_once(*args.daemons),
        'partition': lambda: bed.partition(name, args.others.split(',')),
        'heal': lambda: bed.heal(*name),
        'skew': lambda: bed.skew(name, args.seconds),
        'stock': lambda: bed.stock(name, not args.off),
        'version': lambda: bed.version(name, args.packages),
        'lose-drive': lambda: bed.lose_drive(
            name, args.device, args.what, not args.unreplaced)}
    verbs[args.node_verb]()
    return 0


def s3(root: str, args: argparse.Namespace) -> int:
    """``aio s3 VERB``."""
    door = Bed.running(root).s3
    verb = args.s3_verb
    if verb == 'counts':
        counts = door.counts(args.reset)
        print(json.dumps(counts, indent=2, sort_keys=True) if args.json
              else '\n'.join(_table(counts)))
    elif verb == 'requests':
        for asked in door.requests():
            print(json.dumps(asked, sort_keys=True))
    elif verb == 'faults':
        for fault in door.faults():
            print(json.dumps(fault, sort_keys=True))
    elif verb == 'heal':
        print('%d faults gone' % door.heal())
    else:
        door.fault(args.kind, node=args.node, keys=args.keys,
                   methods=args.methods, rate=args.rate, times=args.times,
                   milliseconds=args.ms)
    return 0


def _table(counts: Dict[str, Any]) -> List[str]:
    form = '%-8s %-8s %9s %14s %14s  %s'
    lines = [form % ('node', 'kind', 'requests', 'bytes sent', 'bytes got',
                     'status')]
    for name, by_kind in sorted(counts.items()):
        for kind, count in sorted(by_kind.items()):
            lines.append(form % (
                name, kind, count['requests'], count['sent'], count['got'],
                ', '.join('%s: %d' % pair for pair
                          in sorted(count['status'].items()))))
    return lines
