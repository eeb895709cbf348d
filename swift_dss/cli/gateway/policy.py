"""``swift-dss gateway policy``: the least rights the gateway's key needs."""

from __future__ import annotations

import argparse
import json

from swift_dss.core.config import NodeConf
from swift_dss.gateway.link.rights import policy


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('--restore', action='store_true',
                        help='for restore and ls: reading only')
    parser.add_argument('--versions', action='store_true',
                        help='also for gc --versions, in a bucket with '
                        'versioning')


def run(args: argparse.Namespace, conf: NodeConf) -> int:
    """Print the document."""
    print(json.dumps(policy(conf.gateway, args.restore, args.versions),
                     indent=2))
    return 0
