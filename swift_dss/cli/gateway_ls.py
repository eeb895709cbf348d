"""``swift-dss gateway ls``: what the bucket holds, by the bucket alone."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Dict, List

from swift_dss.cli.table import size, table
from swift_dss.core.config import NodeConf
from swift_dss.gateway.restore_catalog import (
    Catalog, Held, Unreadable, open_client)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('--container', metavar='ACCOUNT/CONTAINER', default='',
                        help='only objects of this account or container')
    parser.add_argument('--limit', type=int, default=0,
                        help='show no more than this many')


def run(args: argparse.Namespace, conf: NodeConf) -> int:
    """Print the versions; 1 if something could not be read."""
    wanted = '/' + args.container.strip('/') + '/' if args.container else '/'
    rows: List[Dict[str, Any]] = []
    damaged = 0
    catalog = Catalog(conf.gateway, open_client(conf.gateway))
    for found in catalog.walk():
        if isinstance(found, Unreadable):
            damaged += 1
            print('swift-dss gateway ls: %s: %s' % (
                found.key, found.reason), file=sys.stderr)
        elif isinstance(found, Held) and found.name.startswith(wanted):
            rows.append(_row(found))
            if args.limit and len(rows) >= args.limit:
                break
    if args.json:
        print(json.dumps(rows, indent=2, sort_keys=True))
    else:
        print(table(('object', 'timestamp', 'size>', 'key'), [
            (row['name'], row['timestamp'], size(row['size']), row['key'])
            for row in rows]))
    return 1 if damaged else 0


def _row(found: Held) -> Dict[str, Any]:
    record = found.record
    return {'name': found.name, 'timestamp': record.version.timestamp,
            'policy': record.version.policy,
            'frag': record.version.frag_index,
            'size': record.content_length, 'etag': record.etag,
            'map': record.class_map_text, 'key': found.remote.key}
