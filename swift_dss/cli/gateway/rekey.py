"""``swift-dss gateway rekey``: retire an encryption key."""

from __future__ import annotations

import argparse
import sys

from swift_dss.cli.ask import ask, json_text, result
from swift_dss.cli.gateway.planned import add_dry_run
from swift_dss.cli.table import Progress
from swift_dss.core.config import NodeConf


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('--seconds', type=float, default=600.0,
                        help='how long to wait for bundles (%(default)s)')
    add_dry_run(parser)


def run(args: argparse.Namespace, conf: NodeConf) -> int:
    """Ask the daemon; 1 if something is still under another key."""
    with Progress('rekey', quiet=args.json) as progress:
        answer = result(
            ask(conf, {'verb': 'rekey', 'seconds': args.seconds,
                       'dry_run': args.dry_run}),
            lambda said: progress.show(said['done'], said['of']))
    for text in answer['failed']:
        print('swift-dss gateway rekey: ' + text, file=sys.stderr)
    if args.json:
        print(json_text(answer))
    else:
        print('%d versions; %d %s, %d could not be' % (
            answer['versions'], answer['changed'],
            'would change' if args.dry_run else 'changed',
            answer['failures']))
    return 1 if answer['failures'] else 0
