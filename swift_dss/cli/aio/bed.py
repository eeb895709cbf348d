"""``swift-dss aio`` for a bed: a cluster of many nodes."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Dict, List

from swift_dss.aio import processes
from swift_dss.aio.bed import plan
from swift_dss.aio.bed.bed import Bed
from swift_dss.aio.cluster import printer
from swift_dss.core.errors import BadConfig


def add_start_options(start: argparse.ArgumentParser) -> None:
    """The options that only a bed has."""
    group = start.add_argument_group('many nodes (root)')
    group.add_argument('--nodes', type=int, metavar='N',
                       help='storage nodes, each in a network namespace')
    group.add_argument('--proxies', type=int, default=1, metavar='N',
                       help='proxies, likewise (1)')
    group.add_argument('--zones', type=int, default=0, metavar='N',
                       help='that nodes are dealt to (one a node)')
    group.add_argument('--hostnames', action='store_true',
                       help='names in the rings instead of addresses')
    group.add_argument('--set', action='append', default=[],
                       metavar='SECTION.OPTION=VALUE', dest='options',
                       help='of every node\'s dss.conf')


def start(root: str, args: argparse.Namespace) -> int:
    """``start --nodes``."""
    say = printer()
    for option in ('keep', 'plain', 'storage', 'base_port'):
        if getattr(args, option):
            raise BadConfig('--nodes goes without --keep, --plain, --loops, '
                            '--folders, --auto and --base-port')
    sizes = {}
    if args.ssd_size:
        sizes['ssd_bytes'] = args.ssd_size
    if args.hdd_size:
        sizes['hdd_bytes'] = args.hdd_size
    made = plan.new(
        root, args.nodes, args.proxies, args.devices or 0,
        zones=args.zones, hostnames=args.hostnames,
        ssd_budget_bytes=args.ssd_budget, workers=args.workers,
        options=_options(args.options), **sizes)
    bed = Bed(made, say)
    bed.start()
    say('the bed is up (%s)' % root)
    print('  clients: swift-dss aio exec --root %s -- swift stat' % root)
    print('  status:  swift-dss aio status --root %s' % root)
    print('  end:     swift-dss aio stop --root %s' % root, flush=True)
    return 0


def _options(words: List[str]) -> Dict[str, Dict[str, str]]:
    options: Dict[str, Dict[str, str]] = {}
    for word in words:
        name, equals, value = word.partition('=')
        section, dot, option = name.partition('.')
        if not (equals and dot and section and option):
            raise BadConfig('--set %s: write SECTION.OPTION=VALUE' % word)
        options.setdefault(section, {})[option] = value
    return options


def stop(root: str, _args: argparse.Namespace) -> int:
    """End it, with all that it holds."""
    say = printer()
    made = plan.load(root)
    Bed(made, say).stop()
    say('stopped')
    return 0


def status(root: str, args: argparse.Namespace) -> int:
    """Every member with its processes."""
    bed = Bed.running(root)
    members = bed.status()
    running = all(pids for servers in members.values()
                  for pids in servers.values())
    if args.json:
        print(json.dumps({
            'root': root, 'running': running,
            'members': {name: {
                'address': bed.plan.address(name),
                'namespace': bed.network.namespace(name),
                'notes': _notes(bed, name), 'processes': servers}
                for name, servers in members.items()},
            'cuts': bed.network.cuts()}, indent=2, sort_keys=True))
        return 0 if running else 1
    print('root     %s' % root)
    for name, servers in members.items():
        print('%-8s %s in %s%s' % (
            name, bed.plan.address(name), bed.network.namespace(name),
            ''.join('; ' + note for note in _notes(bed, name))))
        for process, pids in servers.items():
            print('  %-24s %s' % (process, ' '.join(map(str, pids))
                                  if pids else 'NOT RUNNING'))
    for name, lost in bed.network.cuts().items():
        print('%s does not reach %s' % (name, ', '.join(lost)))
    return 0 if running else 1


def _notes(bed: Bed, member: str) -> List[str]:
    """Print how the bed differs from its start."""
    made = bed.plan
    notes = [note for note, names in (
        ('stock Swift', made.stock), ('not in the rings yet', made.waiting),
        ('leaves at "rebalance"', made.leaving)) if member in names]
    if member in made.versions:
        notes.append('version of ' + made.versions[member])
    if made.skew.get(member):
        notes.append('clock %+g s' % made.skew[member])
    return notes


def environment(root: str) -> Dict[str, str]:
    """The environment of clients inside the bed."""
    bed = Bed.running(root)
    conf = bed.member('p1').conf
    return {
        'ST_AUTH': conf.auth_url, 'ST_USER': 'test:tester',
        'ST_KEY': 'testing', 'AWS_ACCESS_KEY_ID': 'test:tester',
        'AWS_SECRET_ACCESS_KEY': 'testing',
        'AWS_ENDPOINT_URL': conf.s3_url,
        'AWS_DEFAULT_REGION': 'us-east-1', 'SWIFT_DSS_AIO_ROOT': root}


def execute(root: str, args: argparse.Namespace) -> int:
    """Run a command in a member's namespace; its exit code is ours."""
    bed = Bed.running(root)
    variables = dict(os.environ, **environment(root))
    if args.member in bed.plan.nodes:
        variables['SWIFT_DSS_CONF'] = bed.node(
            args.member).conf.path('etc', 'dss.conf')
    command = [word for word in args.words if word != '--']
    if not command:
        raise BadConfig('exec: which command?')
    return bed.run(args.member, command, env=variables,
                   stdin=sys.stdin).returncode


def logs(root: str, args: argparse.Namespace) -> int:
    """The ends of the logs, ``MEMBER/SERVER`` each."""
    made = plan.load(root)
    names = args.server or [
        '%s/%s' % (member, name[:-len('.log')])
        for member in made.members
        for name in sorted(os.listdir(made.conf(member).log))]
    for name in names:
        member, _slash, server = name.partition('/')
        path = made.path(member, 'log', server + '.log')
        if not os.path.exists(path):
            print('no log %s' % path, file=sys.stderr)
            return 1
        print('== %s' % path)
        print(processes.tail(path, args.lines))
    return 0
