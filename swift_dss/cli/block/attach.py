"""``swift-dss block attach``: the devices of ``/etc/dss-block.tab``."""

from __future__ import annotations

import argparse
import sys

from swift_dss.block import tab
from swift_dss.block.attach import attach
from swift_dss.block.control import NoDevice
from swift_dss.block.control_classes import read_rows
from swift_dss.core.errors import BadConfig

LINE = ('make devices of %s, each with the cache that its SSD has'
        % tab.PATH)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('name', nargs='*', metavar='NAME')
    parser.add_argument('--all', action='store_true',
                        help='all of them but those with noauto')
    parser.add_argument('--tab', default=tab.PATH, metavar='FILE')


def run(args: argparse.Namespace) -> int:
    """Attach what is not there yet; returns the exit code."""
    entries, wrong = tab.read(args.tab)
    for line in wrong:
        print(line, file=sys.stderr)
    for name in args.name:
        if name not in entries:
            raise NoDevice('no device %s in %s' % (name, args.tab))
    names = [name for name, entry in entries.items()
             if name in args.name or (args.all and not entry.noauto)]
    if not names:
        raise BadConfig('name a device of %s, or say --all' % args.tab)
    for name in names:
        table = entries[name].class_table
        made = attach(entries[name], read_rows(table) if table else None)
        print('/dev/mapper/%s: %s' % (
            name, 'attached' if made else 'there already'))
    return BadConfig.exit_code if args.all and wrong else 0
