"""``swift-dss gateway pins``: list the versions that stay on the SSD, and why.
"""

from __future__ import annotations

import argparse
from typing import Any, Dict, List

from swift_dss.cli.ask import ask, json_text
from swift_dss.cli.table import size, table
from swift_dss.core.config import NodeConf


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('--objects', action='store_true',
                        help='also each version, with why')
    parser.add_argument('--all', action='store_true',
                        help='with --objects: also those that the rule '
                        'fits and that are not pinned')
    parser.add_argument('--limit', type=int, default=0,
                        help='show no more than so many versions')


def run(args: argparse.Namespace, conf: NodeConf) -> int:
    """Ask the daemon and print."""
    rows: List[Dict[str, Any]] = []
    devices: List[Dict[str, Any]] = []
    for message in ask(conf, {'verb': 'pins', 'objects': args.objects,
                              'all': args.all, 'limit': args.limit}):
        rows += message.get('progress', {}).get('rows', [])
        devices = message.get('result', {}).get('devices', devices)
    if args.json:
        print(json_text({'devices': devices, 'versions': rows}))
        return 0
    print(table(('device', 'cap>', 'cut-off>', 'pinned by rule>'), [
        (device['device'], size(device['cap_bytes']), size(device['cut_off']),
         size(device['pinned_bytes'])) for device in devices]))
    print()
    print(table(('device', 'up to>', 'versions', 'bytes>', ''), [
        (device['device'], size(bucket['up_to']), bucket['versions'],
         size(bucket['bytes']), 'pinned' if bucket['pinned'] else '')
        for device in devices for bucket in device['sizes']]))
    if rows:
        print()
        print(table(('device', 'object', 'size>', 'why'), [
            (row['device'], row['name'], size(row['size']), row['why'])
            for row in rows]))
    return 0
