"""``swift-dss gateway restore``: a lost edge from its bucket alone."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time

from swift_dss.cli.ask import ask, json_text, result
from swift_dss.cli.gateway.planned import add_dry_run
from swift_dss.cli.table import Progress, size
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import DssError


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('--container', metavar='ACCOUNT[/CONTAINER]',
                        default='', help='only this account or container')
    parser.add_argument('--from-start', action='store_true',
                        help='do not go on where an earlier run ended')
    parser.add_argument('--allow-unsealed', action='store_true',
                        help='with a key file: also take what is not sealed '
                        'under it, or sealed for another cluster')
    add_dry_run(parser)
    parser.add_argument('--no-index', action='store_true',
                        help='do not have the tier daemon read the devices '
                        'at the end')


def run(args: argparse.Namespace, conf: NodeConf) -> int:
    """Restore; 1 if something could not be."""
    # long: it puts the parts together, after Swift has its configuration.
    become_owner(conf)
    # Swift reads its configuration when it is imported.
    from swift.common.utils import set_swift_dir
    set_swift_dir(conf.swift_dir)
    from swift_dss.gateway.collect.keys import restore_state
    from swift_dss.gateway.form.encrypt import KeyFile, open_envelope
    from swift_dss.gateway.form.owner import owner_of
    from swift_dss.gateway.peers.primaries import RingPrimaries
    from swift_dss.gateway.peers.ranks import Ranks
    from swift_dss.gateway.restore import planned
    from swift_dss.gateway.restore.adopt import Adoption
    from swift_dss.gateway.restore.catalog import Catalog, open_client
    from swift_dss.gateway.restore.places import Servers
    from swift_dss.gateway.restore.run import Cluster, Restore, plain
    from swift_dss.gateway.restore.trust import Trust
    from swift_dss.gateway.restore.write import PlaceWriter, Writer
    from swift_dss.tier import space
    from swift_dss.tier.shards.child import Books
    logging.getLogger().addHandler(logging.NullHandler())
    client = open_client(conf.gateway)
    owner_of(conf, client).require_not_foreign()
    keys = KeyFile(conf.gateway.key_file)
    keys.check()
    servers = Servers(conf.swift_dir)
    logger = logging.getLogger('swift-dss-restore')
    state = restore_state(conf)
    dry_run, books = args.dry_run, None
    if not dry_run:
        space.prepare(conf, logger)
        books = Books(conf)
        if args.from_start and os.path.exists(state):
            os.unlink(state)
    writer = (planned.PlannedWriter if dry_run else Writer)(
        conf, servers, logger)
    ranks = Ranks(conf.swift_dir)
    work = (planned.PlannedRestore if dry_run else Restore)(
        conf.gateway, client, writer,
        (planned.PlannedPlaces if dry_run else PlaceWriter)(servers),
        Trust(conf.gateway.prefix, servers.cluster,
              bool(keys) and not args.allow_unsealed, time.time()),
        Cluster(ranks.belongs_here, RingPrimaries(ranks, writer.look)),
        '' if dry_run and args.from_start else state,
        '/' + args.container.strip('/') if args.container else '',
        # A keeper needs all members of a bundle, not one container's.
        None if args.container else planned.PlannedAdoption()
        if books is None else Adoption(books.of_device, time.time()),
        lambda key, data: open_envelope(keys, data))
    with Progress('restore', quiet=args.json) as progress:
        totals = work.run(Catalog(conf.gateway, client),
                          lambda now: progress.show(
                             now.keys, None, '%d versions, %d written' % (
                                 now.versions, now.written)))
    if books is not None:
        books.close()
    for text in work.problems:
        print('swift-dss gateway restore: ' + text, file=sys.stderr)
    if not (args.no_index or dry_run):
        _index(conf)
    if args.json:
        print(json_text(dict(plain(totals), problems=work.problems,
                             dry_run=dry_run)))
    else:
        print('%d accounts and containers; %d versions of %s belong here, '
              '%d %s written; %d are replaced or deleted; %d failed, %d of '
              'them refused' % (
                  totals.places, totals.versions, size(totals.length),
                  totals.written, 'would be' if dry_run else 'were',
                  totals.obsolete, totals.failed, totals.refused))
    return 1 if totals.failed else 0


def _index(conf: NodeConf) -> None:
    """Tell a running daemon of the new versions; one that does not will read
    the devices when it is told to.
    """
    try:
        result(ask(conf, {'verb': 'rebuild', 'orphans': False}))
    except DssError as err:
        print('swift-dss gateway restore: the index was not rebuilt (%s); '
              'run: swift-dss tier rebuild' % err, file=sys.stderr)


def become_owner(conf: NodeConf) -> None:
    """As root, act as the owner of the devices: Swift's servers MUST be able
    to read and replace the files.
    """
    if os.geteuid():
        return
    for name in sorted(os.listdir(conf.devices)):
        info = os.stat(os.path.join(conf.devices, name))
        if info.st_uid:
            os.setegid(info.st_gid)
            os.seteuid(info.st_uid)
        return
