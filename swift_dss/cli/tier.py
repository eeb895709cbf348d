"""``swift-dss tier``: what lies where on this node, and moving it.

Talks to the tier daemon over its admin socket. ``rebuild`` also works
while no daemon runs.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import socket
import sys
from typing import Any, Callable, Dict, Iterator, List, Optional

from swift_dss.cli import tier_init, tier_tables
from swift_dss.cli.table import Progress
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadConfig, DssError, TierUnavailable
from swift_dss.wire import nodeconf
from swift_dss.wire.control import decode_line, encode_line

HELP = 'show and move what lies where'
#: "swift-dss aio env" names the all-in-one cluster's.
_CONFIG = os.environ.get('SWIFT_DSS_CONF', '/etc/swift/dss.conf')
_TIERS = ('ssd', 'hdd', 'remote')


class DaemonSaid(DssError):
    """An error that the daemon answered with."""

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.exit_code = exit_code


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of every verb."""
    verbs = parser.add_subparsers(dest='verb', metavar='VERB', required=True)

    def add(name: str, line: str) -> argparse.ArgumentParser:
        verb = verbs.add_parser(name, help=line, description=line)
        verb.add_argument('--config', default=_CONFIG,
                          help='dss.conf of the node (%(default)s)')
        verb.add_argument('--json', action='store_true',
                          help='print JSON instead of tables')
        return verb

    add('status', 'tiers, classes, devices and the gateway')
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
        if name == 'demote':
            verb.add_argument('--to', choices=('hdd', 'remote'),
                              default='hdd', help='(%(default)s)')
    rebuild = add('rebuild', 'read every device anew into the index')
    rebuild.add_argument('--orphans', action='store_true',
                         help='also remove HDD files nobody refers to')
    sweep = add('sweep', 'rebuild, and remove HDD files nobody refers to')
    sweep.add_argument('--files-per-second', type=float, default=0,
                       help='pace; 0 is as fast as it goes')
    tier_init.configure(add('init', 'make HDD folders capacity tiers'))
    settle = add('settle', 'wait until all that was said has been done')
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
    conf = _conf(args.config)
    verb: Callable[[argparse.Namespace, NodeConf], int] = {
        'status': _status, 'ls': _ls, 'rebuild': _walk, 'sweep': _walk,
        'settle': _settle, 'init': _init}.get(args.verb, _move)
    return verb(args, conf)


def _status(args: argparse.Namespace, conf: NodeConf) -> int:
    found = _result(_ask(conf, {'verb': 'status'}))
    print(_json(found) if args.json else tier_tables.status(found))
    return 0


def _ls(args: argparse.Namespace, conf: NodeConf) -> int:
    rows: List[Dict[str, Any]] = []
    request = dict(_filters(args), verb='ls', limit=args.limit)
    for message in _ask(conf, request):
        rows += message.get('progress', {}).get('rows', [])
    print(_json(rows) if args.json else tier_tables.listing(rows))
    return 0


def _move(args: argparse.Namespace, conf: NodeConf) -> int:
    request = dict(_filters(args), verb=args.verb)
    if args.object:
        request['object'] = args.object
    if args.verb == 'demote':
        request['to'] = args.to
    with Progress(args.verb, quiet=args.json) as progress:
        found = _result(_ask(conf, request), lambda said: progress.show(
            said['done'], said['of']))
    if args.json:
        print(_json(found))
    elif found['rows']:
        print(tier_tables.listing(found['rows']))
    for text in found['failed']:
        print('swift-dss tier %s: %s' % (args.verb, text), file=sys.stderr)
    return 1 if found['failed'] else 0


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
            found = _result(_ask(conf, request), show)
        except TierUnavailable:
            if args.verb != 'rebuild':
                raise
            found = _walk_alone(args, show)
    print(_json(found) if args.json else tier_tables.walks(found))
    return 1 if any(one['unreadable'] for one in found) else 0


def _walk_alone(args: argparse.Namespace,
                show: Callable[[Dict[str, Any]], None]
                ) -> List[Dict[str, Any]]:
    """No daemon answers: do it here, under the daemon's own lock."""
    from swift_dss.tier.daemon import Daemon
    logger = logging.getLogger('swift-dss-tier')
    logger.addHandler(logging.StreamHandler())
    daemon = Daemon(args.config, logger)
    try:
        return daemon.survey(0, args.orphans, show)
    finally:
        daemon.release()


def _init(args: argparse.Namespace, conf: NodeConf) -> int:
    found = tier_init.run(args, conf)
    print(_json(found) if args.json else tier_tables.inits(found))
    return 0


def _settle(args: argparse.Namespace, conf: NodeConf) -> int:
    found = _result(_ask(conf, {'verb': 'settle', 'seconds': args.seconds}))
    if args.json:
        print(_json(found))
    return 0 if found['settled'] else 1


def _filters(args: argparse.Namespace) -> Dict[str, Any]:
    filters = {'container': args.container, 'class': args.class_,
               'tier': args.on, 'device': args.device,
               'pinned': args.pinned or None}
    return {name: value for name, value in filters.items()
            if value is not None}


def _ask(conf: NodeConf,
         request: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
    """The daemon's answers, line by line.

    :raises TierUnavailable: no daemon answers
    :raises DaemonSaid: its error
    """
    path = os.path.join(conf.run_dir, 'admin.sock')
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(path)
    except OSError as err:
        connection.close()
        raise TierUnavailable('no tier daemon answers on %s: %s'
                              % (path, err)) from err
    with connection, connection.makefile('rb') as lines:
        connection.sendall(encode_line(request))
        message: Dict[str, Any] = {}
        for line in lines:
            message = decode_line(line)
            if 'error' in message:
                raise DaemonSaid(message['error'], message['exit_code'])
            yield message
        if 'result' not in message:
            raise TierUnavailable('the tier daemon stopped on the way')


def _result(messages: Iterator[Dict[str, Any]],
            progress: Optional[Callable[[Dict[str, Any]], None]] = None
            ) -> Any:
    found = None
    for message in messages:
        if progress is not None and 'progress' in message:
            progress(message['progress'])
        found = message.get('result', found)
    return found


def _conf(path: str) -> NodeConf:
    try:
        with open(path, encoding='utf-8') as source:
            return nodeconf.parse(source.read(), path)
    except (OSError, UnicodeDecodeError) as err:
        raise BadConfig('%s: %s (say which with --config)'
                        % (path, err)) from err


def _json(found: Any) -> str:
    return json.dumps(found, indent=2, sort_keys=True)
