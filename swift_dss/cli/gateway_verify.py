"""``swift-dss gateway verify``: the edge against the bucket."""

from __future__ import annotations

import argparse
import sys

from swift_dss.cli.ask import json_text
from swift_dss.cli.table import Progress, size
from swift_dss.core.config import NodeConf


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('--read', action='store_true',
                        help='read everything back from S3 and prove it')
    parser.add_argument('--records', action='store_true',
                        help="also compare metadata with the bucket's "
                        'records')
    parser.add_argument('--stock', action='store_true',
                        help='fail if stock Swift could not read something '
                        'here')


def run(args: argparse.Namespace, conf: NodeConf) -> int:
    """Compare; 1 if something is not as it must be."""
    from swift_dss.gateway.restore_catalog import open_client
    from swift_dss.tier.compare import Comparison, plain
    work = Comparison(conf, open_client(conf.gateway), args.read,
                      args.records)
    with Progress('verify', quiet=args.json) as progress:
        found = work.run(lambda now: progress.show(
            now.versions, None, '%d keys' % now.keys))
    if args.stock and found.stubs:
        found.problem('%d versions lack bytes here: drain first'
                      % found.stubs)
    for text in found.said:
        print('swift-dss gateway verify: ' + text, file=sys.stderr)
    if args.json:
        print(json_text(plain(found)))
    else:
        print('%d versions here: %d in S3, %d not; %d lack bytes here' % (
            found.versions, found.remote, found.dirty, found.stubs))
        print('%d keys there: %d that nothing here names; %d records are '
              'older than what is here' % (
                  found.keys, found.unknown, found.stale))
        if args.read:
            print('%s read back and proven' % size(found.read_bytes))
        print('%d problems' % found.problems)
    return 1 if found.problems else 0
