"""``swift-dss lifecycle``: lifecycle rules, restorations, large objects."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any, Dict, List

from swift_dss.cli import dssfiles
from swift_dss.core.errors import BadConfig

HELP = 'show what proxies do behind requests: lifecycle rules and the like'
_CONF = '/etc/swift/internal-client.conf'


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    actions = parser.add_subparsers(dest='action', metavar='ACTION',
                                    required=True)
    status = actions.add_parser(
        'status', help='rounds over buckets with rules, restorations, and '
        'large objects whose segments are given a class')
    status.add_argument('--conf', default=_CONF, metavar='FILE',
                        help="configuration of Swift's internal client "
                        '(%(default)s)')
    status.add_argument('--json', action='store_true', help='for programs')


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    with dssfiles.told_plainly():
        shown = status(proxy_of(args.conf))
    if args.json:
        print(json.dumps(shown, indent=1))
        return 0
    for bucket in shown['buckets']:
        print('%(account)s/%(container)s: %(last)s; next round %(next)s' % {
            'account': bucket['account'], 'container': bucket['container'],
            'last': _last(bucket), 'next': _when(bucket['due'])})
    for work in shown['large']:
        print('%s: its segments are given classes since %s' % (
            work['object'], _when(work['at'])))
    print('%d buckets with rules, %d restored objects, %d large objects that '
          'are given classes' % (len(shown['buckets']), shown['restored'],
                                 len(shown['large'])))
    return 0


def status(app: Any) -> Dict[str, Any]:
    """All rows of the hidden accounts, for programs. ``at`` and ``due`` are
    seconds since the epoch.

    :param app: a proxy server
    """
    from swift.common.swob import wsgi_to_str

    from swift_dss.proxy.large.records import Records
    from swift_dss.proxy.lifecycle.buckets import ACCOUNT
    from swift_dss.proxy.work.rows import Rows, own_env
    env = own_env()
    rows = Rows(app, ACCOUNT, 'buckets')
    buckets: List[Dict[str, Any]] = []
    for listed in rows.every(env):
        row = rows.read(env, listed.name)
        if row is not None:
            account, container = json.loads(row.body)
            buckets.append(dict(
                {'counts': {}, 'at': 0, 'marker': ''},
                **json.loads(row.beside or '{}'), account=account,
                container=container, due=row.until))
    return {'buckets': buckets, 'restored': sum(
        1 for _row in Rows(app, ACCOUNT, 'restores').every(env)), 'large': [
            {'object': wsgi_to_str('/'.join(record.target)),
             'at': float(record.at)}
            for record in Records(app).every(env)]}


def proxy_of(conf: str) -> Any:
    """A proxy server in this process.

    :raises BadConfig: the file cannot be read
    """
    from swift.common.internal_client import InternalClient
    try:
        return InternalClient(conf, 'swift-dss', 3).app
    except OSError as err:
        raise BadConfig('%s: %s' % (conf, err)) from err


def _last(bucket: Dict[str, Any]) -> str:
    if bucket['marker']:
        return 'a round has come to %s' % bucket['marker']
    if not bucket['at']:
        return 'no round yet'
    return 'round of %s: %s' % (_when(bucket['at']), ', '.join(
        '%d %s' % (count, name)
        for name, count in sorted(bucket['counts'].items())))


def _when(seconds: float) -> str:
    return time.strftime('%Y-%m-%d %H:%M:%S UTC', time.gmtime(seconds))
