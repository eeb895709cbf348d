"""``swift-dss COMMAND``: one entry point, one module a command.

A command module has ``HELP`` (one line), ``configure(parser)`` and
``run(args) -> int`` (the exit code). It is imported only when it is asked
for, so that ``swift-dss pack`` does not pay for the cluster's imports.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import Collection, List, Optional

from swift_dss.io.start.versions import add_version
from swift_dss.core.errors import DssError

#: Command to (module, the line that ``--help`` shows).
COMMANDS = {
    'pack': ('swift_dss.cli.pack', 'build a .dss from a file and classes'),
    'unpack': ('swift_dss.cli.unpack', 'take a .dss apart'),
    'inspect': ('swift_dss.cli.inspect', 'print the contents of a .dss'),
    'classify': ('swift_dss.cli.classify',
                 'find the bytes that open a file, and class them'),
    'check': ('swift_dss.cli.check.verbs',
              "judge a node's configuration, devices and S3"),
    'classes': ('swift_dss.cli.classes', 'check and show a class table'),
    'lifecycle': ('swift_dss.cli.lifecycle',
                  'show buckets with lifecycle rules, and restored objects'),
    'tier': ('swift_dss.cli.tier.verbs', 'show and move bytes between tiers'),
    'gateway': ('swift_dss.cli.gateway.verbs',
                'the copy in S3: look, check, restore, drain'),
    'listings': ('swift_dss.cli.listings.verbs',
                 'classes in container databases, before an uninstall'),
    'aio': ('swift_dss.cli.aio.verbs', 'run the all-in-one cluster'),
    'block': ('swift_dss.cli.block.verbs',
              'make, watch and mend dm-dss devices'),
    'lab': ('swift_dss.cli.lab', 'a kernel with modelled disks, to try on'),
    'replay': ('swift_dss.cli.replay',
               'compare strategies on a trace, in virtual time'),
    'trace': ('swift_dss.cli.trace', 'record, make and look at traces'),
    'sim': ('swift_dss.cli.sim',
            'a simulated cluster with faults, judged by a model'),
    'load': ('swift_dss.cli.load.verbs',
             'put a load of users on a cluster, and measure it by class'),
    'bench': ('swift_dss.cli.bench', 'measure, with tables and plots'),
    'completion': ('swift_dss.cli.package.completion',
                   'print the completion of a shell'),
    'manual': ('swift_dss.cli.package.manual', 'write the man pages'),
}


def main(argv: Optional[List[str]] = None) -> int:
    """Run one command; errors become one line on stderr.

    :returns: the exit code (an error of ours carries its own)
    """
    arguments = sys.argv[1:] if argv is None else argv
    parser = _parser(arguments[:1])
    args = parser.parse_args(arguments)
    try:
        return int(args.run(args) or 0)
    except DssError as err:
        print('swift-dss %s: %s' % (args.command, err), file=sys.stderr)
        return err.exit_code
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        print('swift-dss %s: interrupted' % args.command, file=sys.stderr)
        return 130


def whole_parser() -> argparse.ArgumentParser:
    """The parser with every command; imports all of them."""
    return _parser(COMMANDS)


def _parser(wanted: Collection[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='swift-dss',
        description='OpenStack Swift with classes of data: SSD, HDD and S3.')
    add_version(parser)
    commands = parser.add_subparsers(
        dest='command', metavar='COMMAND', required=True)
    for name, (module_name, line) in COMMANDS.items():
        sub = commands.add_parser(name, help=line, description=line)
        if name in wanted:
            module = importlib.import_module(module_name)
            module.configure(sub)
            sub.set_defaults(run=module.run)
    return parser


if __name__ == '__main__':
    sys.exit(main())
