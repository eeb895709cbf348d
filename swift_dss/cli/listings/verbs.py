"""``swift-dss listings``: classes in the rows of this node's containers."""

from __future__ import annotations

import argparse
import os

from swift_dss.cli.ask import json_text
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadConfig
from swift_dss.objserver.listed import cleaning

HELP = 'classes in container databases: count them, take them out'
_EPILOG = '''Object servers put the class of an object behind the content type
of its row. Before stock Swift serves the listings, run "clean" on every
node with container databases, as Swift's user, after the last object
server of ours has stopped; see "Uninstall" in the manual. It may run twice.
'''


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    actions = parser.add_subparsers(dest='action', metavar='ACTION',
                                    required=True)
    count = actions.add_parser('count', help='count rows that have a class')
    clean = actions.add_parser('clean', help='take the classes out')
    for sub in (count, clean):
        sub.add_argument('--devices', metavar='DIR',
                         default=NodeConf().devices,
                         help='folder of the devices (%(default)s)')
        sub.add_argument('--json', action='store_true', help='for programs')


def run(args: argparse.Namespace) -> int:
    """Do it.

    :returns: 1 if a database was left out, else 0
    :raises BadConfig: there is no such folder
    """
    if not os.path.isdir(args.devices):
        raise BadConfig('--devices %s: there is no such folder'
                        % args.devices)
    writes = args.action == 'clean'
    counts = cleaning.clean(args.devices, writes)
    if args.json:
        print(json_text({
            'databases': counts.databases, 'rows': counts.rows,
            'kept': counts.kept, 'skipped': counts.skipped}))
    else:
        print('%d databases: %d rows %s a class, %d keep a content type that '
              'looks so' % (counts.databases, counts.rows,
                            'had' if writes else 'have', counts.kept))
        for path in counts.skipped:
            print('left out: %s (being sharded, busy or damaged; run it again '
                  'later)' % path)
    return 1 if counts.skipped else 0
