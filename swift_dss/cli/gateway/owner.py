"""``swift-dss gateway owner``: show or change the owner of the prefix.

Also says whether the bucket keeps old versions of deleted keys. Exit code 1:
the prefix belongs to another cluster, or to none yet.
"""

from __future__ import annotations

import argparse
import time
from typing import Optional

from swift_dss.cli.ask import json_text
from swift_dss.cli.table import table
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import DssError
from swift_dss.gateway.form.cluster import cluster_id
from swift_dss.gateway.form.owner import Mark, owner_of
from swift_dss.gateway.restore.catalog import open_client


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('--take', action='store_true',
                        help='make this cluster the owner; the daemons of '
                        'the one before must be stopped, or have another '
                        'prefix')


def run(args: argparse.Namespace, conf: NodeConf) -> int:
    """Show, or take over."""
    client = open_client(conf.gateway)
    owner = owner_of(conf, client)
    mark = owner.take() if args.take else owner.read()
    try:
        versioning = client.versioning() or 'off'
    except DssError as err:
        versioning = 'unknown (%s)' % err
    ours = cluster_id(conf.swift_dir)
    state = _state(mark, ours)
    if args.json:
        print(json_text({
            'bucket': conf.gateway.bucket, 'prefix': conf.gateway.prefix,
            'state': state, 'owner': mark._asdict() if mark else None,
            'this_cluster': ours, 'versioning': versioning}))
    else:
        print(table(('', ''), [
            ('bucket', conf.gateway.bucket),
            ('prefix', conf.gateway.prefix), ('state', state),
            ('owner', mark.cluster if mark else ''),
            ('since', time.strftime('%Y-%m-%d %H:%M', time.gmtime(
                mark.since)) if mark else ''),
            ('marked by', mark.by if mark else ''),
            ('this cluster', ours), ('versioning', versioning)]))
    return 0 if state == 'ours' else 1


def _state(mark: Optional[Mark], ours: str) -> str:
    if mark is None:
        return 'no cluster owns it yet'
    return 'ours' if mark.cluster == ours else "another cluster's"
