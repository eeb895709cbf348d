"""``swift-dss gateway relocate``: send versions to S3 now, and drop them
here. Local bytes go once their copy was verified."""

from __future__ import annotations

import argparse
import sys
from typing import Any, Dict

from swift_dss.cli.ask import ask, json_text, result
from swift_dss.cli.gateway import planned
from swift_dss.cli.table import Progress
from swift_dss.core.config import NodeConf


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('object', nargs='?', metavar='OBJECT',
                        help='/account/container/object, or its hash')
    parser.add_argument('--container', metavar='ACCOUNT/CONTAINER')
    parser.add_argument('--class', dest='class_', metavar='CLASS',
                        help='name or id')
    parser.add_argument('--device')
    parser.add_argument('--seconds', type=float, default=600.0,
                        help='how long to wait for S3 (%(default)s)')
    planned.add_dry_run(parser)


def run(args: argparse.Namespace, conf: NodeConf) -> int:
    """Ask the daemon; 1 if some could not go."""
    request: Dict[str, Any] = {'verb': 'relocate', 'seconds': args.seconds,
                               'dry_run': args.dry_run}
    for name, value in (('object', args.object), ('class', args.class_),
                        ('container', args.container),
                        ('device', args.device)):
        if value is not None:
            request[name] = value
    with Progress('relocate', quiet=args.json) as progress:
        answer = result(ask(conf, request), lambda said: progress.show(
            said['done'], said['of']))
    print(json_text(answer) if args.json else
          planned.text('relocate', answer) if args.dry_run else
          '%d of %d versions are in S3 alone' % (
              answer['relocated'], answer['versions']))
    if not args.json:
        for text in answer['failed']:
            print('swift-dss gateway relocate: ' + text, file=sys.stderr)
    return 1 if answer['failed'] else 0
