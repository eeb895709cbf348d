"""``swift-dss tier verify``: list the versions that stock Swift has
quarantined, or would.
"""

from __future__ import annotations

import argparse
import sys

from swift_dss.cli.ask import json_text
from swift_dss.cli.gateway import verify
from swift_dss.core.config import NodeConf


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('--repair', action='store_true',
                        help='have the tier daemon bring back what is in '
                        'quarantine; without it nothing is changed')
    parser.add_argument('--stock', action='store_true',
                        help='fail if stock Swift could not read something '
                        'here')
    parser.add_argument('--old', action='store_true',
                        help='also what is there for longer than a '
                        'tombstone is kept')


def run(args: argparse.Namespace, conf: NodeConf) -> int:
    """Look, and repair if asked; 1 if something is left to do."""
    from swift_dss.tier.devices import Devices
    from swift_dss.tier.index.noted import WrongList
    from swift_dss.tier.walk.left import look, plain
    with WrongList() as wrong:
        outcome = look(Devices(conf), conf.swift_dir, wrong.add,
                       args.stock)
        noted = len(wrong)
        if not args.repair:
            for text in outcome.said:
                print('swift-dss tier verify: ' + text, file=sys.stderr)
        repaired = verify.repair(
            wrong, conf, args.json, args.old) if args.repair else None
    if args.json:
        shown = plain(outcome)
        if repaired is not None:
            shown['repair'] = repaired
        print(json_text(shown))
    else:
        print('%d versions in quarantine, and %d that something newer has '
              'replaced' % (outcome.quarantined, outcome.replaced))
        if outcome.stubs is not None:
            print('%d versions lack bytes on the SSD' % outcome.stubs)
        if repaired is not None:
            verify.show_ends(repaired)
    if repaired is None:
        return 1 if outcome.problems else 0
    return 1 if repaired['done'].get('failed') or \
        outcome.problems > noted else 0
