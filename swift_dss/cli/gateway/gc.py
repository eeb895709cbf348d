"""``swift-dss gateway gc``: keys in S3 that nothing needs any more."""

from __future__ import annotations

import argparse
import sys

from swift_dss.cli.ask import ask, json_text, result
from swift_dss.cli.gateway import gc_versions
from swift_dss.cli.table import Progress, size
from swift_dss.core.config import NodeConf


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('--dry-run', action='store_true',
                        help='list keys to be removed; change nothing')
    parser.add_argument('--all', action='store_true',
                        help="look through all of the bucket, not only "
                        "this node's part of it")
    parser.add_argument('--versions', action='store_true',
                        help='of a bucket with versioning: old versions and '
                        'delete markers under the prefix, and nothing else')
    parser.add_argument('--absent', action='store_true',
                        help='remove also what no node has a trace of, once '
                        'it is older than reclaim_age_seconds. NEVER before '
                        'a lost cluster was restored')


def run(args: argparse.Namespace, conf: NodeConf) -> int:
    """Have the tier daemon look; 1 if something could not be."""
    if args.versions:
        return gc_versions.run(args, conf)
    with Progress('gc', quiet=args.json) as progress:
        answer = result(
            ask(conf, {'verb': 'gc', 'dry_run': args.dry_run,
                       'everything': args.all, 'absent': args.absent}),
            lambda now: progress.show(
                now['versions'], None, '%d dead, %d removed' % (
                    now['dead'], now['removed'])))
    if args.json:
        print(json_text(answer))
        return 1 if answer['failed'] else 0
    for text in answer['said']:
        print('swift-dss gateway gc: ' + text, file=sys.stderr)
    print('%d versions: %d live, %d that nothing needs, %d waiting for a '
          'primary, %d of silent nodes' % (
              answer['versions'], answer['live'], answer['dead'],
              answer['held'], answer['silent']))
    print('%d bundles without a keeper: %d that nothing needs, %d kept here '
          'from now on; %d dead members' % (
              answer['bundles'], answer['bundles_dead'], answer['adopted'],
              answer['members']))
    absent = answer['absent'] + answer['members_absent']
    if absent:
        print('%d versions of %s that no node has%s' % (
            absent, size(answer['absent_bytes']),
            '' if args.absent else ': see --absent'))
    hidden = answer['quarantined'] + answer['members_quarantined']
    if hidden:
        print('%d versions of %s that only files in quarantine name: see '
              '"swift-dss tier verify"; nothing of them is removed' % (
                  hidden, size(answer['quarantined_bytes'])))
    if answer['foreign']:
        print('%d keys under the prefix are none of ours' % answer['foreign'])
    print('%s: %s; %d keys removed, %d deletes noted again, %d problems' % (
        'would be freed' if args.dry_run else 'found dead',
        size(answer['dead_bytes']), answer['removed'], answer['requeued'],
        answer['failed']))
    return 1 if answer['failed'] else 0
