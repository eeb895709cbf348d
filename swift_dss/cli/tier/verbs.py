"""``swift-dss tier``: show where objects of this node lie, and move them.

Talks to the tier daemon over its admin socket. ``rebuild`` also works
while no daemon runs.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from typing import Any, Callable, Dict, List

from swift_dss.cli.ask import (
    CONFIG, ask, json_rows, json_text, read_conf, result)
from swift_dss.cli.table import Progress
from swift_dss.cli.tier import cluster, init, place, tables, verify
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import TierUnavailable

HELP = 'show where objects lie, and move them'
_TIERS = ('ssd', 'hdd', 'remote')


# long: one verb after the other.
def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of every verb."""
    verbs = parser.add_subparsers(dest='verb', metavar='VERB', required=True)

    def add(name: str, line: str) -> argparse.ArgumentParser:
        verb = verbs.add_parser(name, help=line, description=line)
        verb.add_argument('--config', default=CONFIG,
                          help='dss.conf of the node (%(default)s)')
        verb.add_argument('--json', action='store_true',
                          help='print JSON instead of tables')
        return verb

    status = add('status', 'tiers, classes, devices and the gateway')
    status.add_argument(
        '--cluster', action='store_true',
        help='of all nodes that the rings name, in short; ends with 1 if '
        'one does not answer or has trouble')
    listing = add('ls', 'object versions, their classes and tiers')
    _add_filters(listing)
    listing.add_argument('--limit', type=int, default=0,
                         help='show no more than this many')
    for name, line in (
            ('promote', 'bring bytes from the HDD to the SSD'),
            ('demote', 'take bytes off the SSD'),
            ('pin', 'keep on the SSD whatever the pressure'),
            ('unpin', 'let pressure move it again')):
        verb = add(name, line)
        verb.add_argument('object', nargs='?', metavar='OBJECT',
                          help='/account/container/object, or its hash')
        _add_filters(verb)
        verb.add_argument('--dry-run', action='store_true',
                          help='say what it would be, and do nothing')
        verb.add_argument('-v', '--verbose', action='store_true',
                          help='list the first thousand versions too')
        if name == 'demote':
            verb.add_argument('--to', choices=('hdd', 'remote'),
                              default='hdd', help='(%(default)s)')
    rebuild = add('rebuild', 'rebuild the index from every device')
    rebuild.add_argument('--orphans', action='store_true',
                         help='also remove HDD files without a version')
    sweep = add('sweep', 'rebuild, and remove HDD files without a version')
    sweep.add_argument('--files-per-second', type=float, default=0,
                       help='pace; 0 is as fast as it goes')
    init.configure(add('init', 'make HDD folders capacity tiers'))
    verify.configure(add(
        'verify', 'files in quarantine, and stubs that are not ours'))
    place.configure(add('place', 'where files lie, and how far arms go'))
    settle = add('settle', 'wait until the daemon has handled all events')
    settle.add_argument('--seconds', type=float, default=30)


def _add_filters(verb: argparse.ArgumentParser) -> None:
    verb.add_argument('--container', metavar='ACCOUNT/CONTAINER')
    verb.add_argument('--class', dest='class_', metavar='CLASS',
                      help='name or id')
    verb.add_argument('--on', metavar='TIER', choices=_TIERS + ('dirty',),
                      help='has bytes there: ssd, hdd, remote; dirty: '
                      'bytes on the SSD alone')
    verb.add_argument('--device')
    verb.add_argument('--pinned', action='store_true')


def run(args: argparse.Namespace) -> int:
    """Do what ``args`` ask; returns the exit code."""
    conf = read_conf(args.config)
    verb: Callable[[argparse.Namespace, NodeConf], int] = {
        'status': _status, 'ls': _ls, 'rebuild': _walk, 'sweep': _walk,
        'settle': _settle, 'init': _init, 'place': _place,
        'verify': verify.run}.get(args.verb, _move)
    return verb(args, conf)


def _status(args: argparse.Namespace, conf: NodeConf) -> int:
    if args.cluster:
        return cluster.run(conf, args.json)
    answer = result(ask(conf, {'verb': 'status'}))
    print(json_text(answer) if args.json else tables.status(answer))
    return 0


def _ls(args: argparse.Namespace, conf: NodeConf) -> int:
    """Print page by page: a node has millions of versions."""
    request = dict(_filters(args), verb='ls', limit=args.limit)
    pages = (message['progress']['rows'] for message in ask(conf, request)
             if 'progress' in message)
    if args.json:
        json_rows(pages)
        return 0
    first = True
    for rows in pages:
        print(tables.listing(rows, with_heads=first))
        first = False
    if first:
        print(tables.listing([]))
    return 0


def _move(args: argparse.Namespace, conf: NodeConf) -> int:
    request = dict(_filters(args), verb=args.verb, dry_run=args.dry_run)
    began = time.monotonic()
    if args.object:
        request['object'] = args.object
    if args.verb == 'demote':
        request['to'] = args.to
    with Progress(args.verb, quiet=args.json) as progress:
        answer = result(ask(conf, request), lambda said: progress.show(
            said['done'], said['of']))
    if args.json:
        print(json_text(answer))
    else:
        # A named object has a few versions at most.
        if answer['rows'] and (args.verbose or args.object):
            print(tables.listing(answer['rows']))
        print(tables.moves(args.verb, answer, time.monotonic() - began))
    for text in answer['failed']:
        print('swift-dss tier %s: %s' % (args.verb, text), file=sys.stderr)
    return 1 if answer['failed'] else 0


def _walk(args: argparse.Namespace, conf: NodeConf) -> int:
    request: Dict[str, Any] = {'verb': args.verb}
    if args.verb == 'sweep':
        request['files_per_second'] = args.files_per_second
    else:
        request['orphans'] = args.orphans
    with Progress(args.verb, quiet=args.json) as progress:
        def show(said: Dict[str, Any]) -> None:
            progress.show(said['versions'], None, '%s: %s' % (
                said['device'], said['stage']))

        try:
            answer = result(ask(conf, request), show)
        except TierUnavailable:
            if args.verb != 'rebuild':
                raise
            answer = _walk_alone(args, show)
    print(json_text(answer) if args.json else tables.walks(answer))
    return 1 if any(walk['unreadable'] for walk in answer) else 0


def _walk_alone(args: argparse.Namespace,
                show: Callable[[Dict[str, Any]], None]
                ) -> List[Dict[str, Any]]:
    """No daemon answers: do it here, under the daemon's own lock."""
    from swift_dss.tier.daemon import Daemon
    from swift_dss.tier.shards.child import sources
    logger = logging.getLogger('swift-dss-tier')
    logger.addHandler(logging.StreamHandler())
    walks: List[Dict[str, Any]] = []
    for source in sources(args.config):
        daemon = Daemon(source, logger)
        try:
            walks += daemon.node.sweeper.survey(0, args.orphans, show)
        finally:
            daemon.release()
    return walks


def _place(args: argparse.Namespace, conf: NodeConf) -> int:
    looks = place.run(args, conf)
    print(json_text(looks) if args.json else place.text(looks))
    return 0


def _init(args: argparse.Namespace, conf: NodeConf) -> int:
    folders = init.run(args, conf)
    print(json_text(folders) if args.json else tables.inits(folders))
    return 0


def _settle(args: argparse.Namespace, conf: NodeConf) -> int:
    answer = result(ask(conf, {'verb': 'settle', 'seconds': args.seconds}))
    if args.json:
        print(json_text(answer))
    return 0 if answer['settled'] else 1


def _filters(args: argparse.Namespace) -> Dict[str, Any]:
    filters = {'container': args.container, 'class': args.class_,
               'tier': args.on, 'device': args.device,
               'pinned': args.pinned or None}
    return {name: value for name, value in filters.items()
            if value is not None}
