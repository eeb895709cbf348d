"""``swift-dss gateway ls``: list the bucket, by the bucket alone."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Dict, List

from swift_dss.cli.table import size, table
from swift_dss.core.config import NodeConf
from swift_dss.gateway.form.encrypt import KeyFile, open_envelope
from swift_dss.gateway.form.one_key import KeyFailures
from swift_dss.gateway.restore import places
from swift_dss.gateway.restore.catalog import (
    Catalog, Held, Unreadable, open_client)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('--container', metavar='ACCOUNT/CONTAINER', default='',
                        help='only objects of this account or container')
    parser.add_argument('--places', action='store_true',
                        help='accounts and containers instead')
    parser.add_argument('--limit', type=int, default=0,
                        help='show no more than this many')


def run(args: argparse.Namespace, conf: NodeConf) -> int:
    """Print the versions; 1 if something could not be read."""
    if args.places:
        return _places(args, conf)
    wanted = '/' + args.container.strip('/') + '/' if args.container else '/'
    rows: List[Dict[str, Any]] = []
    damaged = 0
    catalog = Catalog(conf.gateway, open_client(conf.gateway))
    for entry in catalog.walk():
        if isinstance(entry, Unreadable):
            damaged += 1
            _say(entry.key, entry.reason)
        elif isinstance(entry, Held) and entry.name.startswith(wanted):
            rows.append(_row(entry))
            if args.limit and len(rows) >= args.limit:
                break
    if args.json:
        print(json.dumps(rows, indent=2, sort_keys=True))
    else:
        print(table(('object', 'timestamp', 'size>', 'key'), [
            (row['name'], row['timestamp'], size(row['size']), row['key'])
            for row in rows]))
    return 1 if damaged else 0


def _row(held: Held) -> Dict[str, Any]:
    record = held.record
    return {'name': held.name, 'timestamp': record.version.timestamp,
            'policy': record.version.policy,
            'frag': record.version.frag_index,
            'size': record.content_length, 'etag': record.etag,
            'map': record.class_map_text, 'key': held.remote.key,
            'offset': held.remote.offset,
            'metadata': dict(record.metadata)}


def _places(args: argparse.Namespace, conf: NodeConf) -> int:
    client = open_client(conf.gateway)
    keys = KeyFile(conf.gateway.key_file)
    copies: List[places.Place] = []
    skipped: List[str] = []

    def skip(key: str, why: str) -> None:
        skipped.append(key)
        _say(key, why)

    failures = KeyFailures()
    for key in places.listed(client, conf.gateway.prefix):
        with failures.of(key, skip):
            copies.append(places.decode(open_envelope(
                keys, client.get_small(key, places.MAX_BYTES))[0]))
    if args.json:
        print(json.dumps([place._asdict() for place in copies], indent=2,
                         sort_keys=True))
    else:
        print(table(('account or container', 'policy', 'metadata'), [
            (place.path, place.headers.get(places.POLICY_HEADER),
             ', '.join(sorted(name for name in place.headers
                              if not name.startswith('x-backend-'))))
            for place in copies]))
    return 1 if skipped else 0


def _say(key: str, why: str) -> None:
    print('swift-dss gateway ls: %s: %s' % (key, why), file=sys.stderr)
