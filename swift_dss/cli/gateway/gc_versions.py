"""``swift-dss gateway gc --versions``: old versions in a versioned bucket."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

from swift_dss.cli.ask import json_text
from swift_dss.cli.table import Progress, size
from swift_dss.core.config import NodeConf
from swift_dss.gateway.collect.old_versions import OldVersions
from swift_dss.gateway.form.owner import owner_of
from swift_dss.gateway.restore.catalog import open_client


def run(args: argparse.Namespace, conf: NodeConf) -> int:
    """Remove them, or count them; 1 if something could not be removed."""
    client = open_client(conf.gateway)
    owner_of(conf, client).require()
    work = OldVersions(client, conf.gateway.prefix, args.dry_run)
    with Progress('gc', quiet=args.json) as progress:
        totals = work.run(lambda now: progress.show(
            now.keys, None, '%d old versions' % now.versions))
    for text in work.problems:
        print('swift-dss gateway gc: ' + text, file=sys.stderr)
    if args.json:
        print(json_text(dict(asdict(totals), problems=work.problems)))
    else:
        print('%d keys: %d old versions of %s and %d delete markers; '
              '%d removed%s, %d failed' % (
                  totals.keys, totals.versions, size(totals.length),
                  totals.markers, totals.removed,
                  ' (dry run)' if args.dry_run else '', totals.failed))
    return 1 if totals.failed else 0
