"""``swift-dss gateway``: look at the copy in S3, and move data there or back.

One module a verb, imported when the verb is used. A verb's module has
``configure(parser)`` and ``run(args, conf) -> int`` (the exit code).
"""

from __future__ import annotations

import argparse
import importlib
import os

from swift_dss.cli.ask import CONFIG, read_conf
from swift_dss.core.config import NodeConf

HELP = 'the copy in S3: look, check, restore, drain'
#: Verb to (module, the line that ``--help`` shows).
VERBS = {
    'ls': ('swift_dss.cli.gateway.ls',
           'contents of the bucket, by the bucket alone'),
    'restore': ('swift_dss.cli.gateway.restore',
                'a lost edge from its bucket alone'),
    'drain': ('swift_dss.cli.gateway.drain',
              'make everything local, or everything remote'),
    'pins': ('swift_dss.cli.gateway.pins',
             'objects that stay on the SSD, and the reasons'),
    'rekey': ('swift_dss.cli.gateway.rekey',
              'have everything in S3 sealed under the active key'),
    'verify': ('swift_dss.cli.gateway.verify',
               'compare this node with the bucket'),
    'gc': ('swift_dss.cli.gateway.gc',
           'find keys in S3 that nothing needs, and remove them'),
    'advise': ('swift_dss.cli.gateway.advise',
               'how large data, metadata and log should be'),
    'owner': ('swift_dss.cli.gateway.owner',
              'the owner of the prefix; hand it over'),
    'status': ('swift_dss.cli.gateway.owner',
               'the owner of the prefix, and if the bucket keeps versions'),
    'policy': ('swift_dss.cli.gateway.policy',
               "the least rights that the gateway's key needs"),
    'relocate': ('swift_dss.cli.gateway.relocate',
                 'send versions to S3 now and drop them here'),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of every verb."""
    verbs = parser.add_subparsers(dest='verb', metavar='VERB', required=True)
    for name, (module_name, line) in VERBS.items():
        verb = verbs.add_parser(name, help=line, description=line)
        verb.add_argument('--config', default=CONFIG,
                          help='dss.conf of the node (%(default)s)')
        verb.add_argument('--json', action='store_true',
                          help='print JSON instead of tables')
        module = importlib.import_module(module_name)
        module.configure(verb)
        verb.set_defaults(run_verb=module.run)


def run(args: argparse.Namespace) -> int:
    """Do what ``args`` ask; returns the exit code."""
    conf = None
    if args.verb != 'advise' or os.path.exists(args.config) or \
            args.config != CONFIG:
        conf = read_conf(args.config)
    # Advice is also for those who have no node yet.
    return int(args.run_verb(args, conf or NodeConf()) or 0)
