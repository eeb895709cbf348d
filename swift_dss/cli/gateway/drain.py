"""``swift-dss gateway drain``: everything local, or everything remote."""

from __future__ import annotations

import argparse
import sys

from swift_dss.cli.ask import ask, json_text, result
from swift_dss.cli.gateway import planned
from swift_dss.cli.table import Progress
from swift_dss.core.config import NodeConf


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('--to', choices=('local', 'remote'), required=True,
                        help='local: every byte on the SSD and pinned there, '
                        'as stock Swift wants it; remote: every byte in S3 '
                        'and none here')
    parser.add_argument('--seconds', type=float, default=600.0,
                        help='how long S3 may take for some versions '
                        '(%(default)s)')
    planned.add_dry_run(parser)


def run(args: argparse.Namespace, conf: NodeConf) -> int:
    """Ask the daemon; 1 if some could not be moved."""
    with Progress('drain', quiet=args.json) as progress:
        answer = result(
            ask(conf, {'verb': 'drain', 'to': args.to,
                       'seconds': args.seconds,
                       'dry_run': args.dry_run}),
            lambda said: progress.show(said['done'], said['of']))
    for text in answer['failed']:
        print('swift-dss gateway drain: ' + text, file=sys.stderr)
    if args.json:
        print(json_text(answer))
    elif args.dry_run:
        print(planned.text('drain', answer))
    else:
        print('%d versions; %d were moved, %d could not be' % (
            answer['versions'], answer['moved'], answer['failures']))
    return 1 if answer['failures'] else 0
