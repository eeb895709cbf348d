"""``swift-dss aio``: run the all-in-one cluster."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any, Dict

from swift_dss.aio import layout, processes, storage
from swift_dss.aio.bed import plan
from swift_dss.aio.cluster import Cluster, printer
from swift_dss.aio.layout import AioConf
from swift_dss.bench.cluster import demo
from swift_dss.cli.aio import bed, changes
from swift_dss.core.errors import BadConfig

HELP = 'run the all-in-one cluster'

#: Verbs that a bed has too.
_BED = {'stop': bed.stop, 'status': bed.status,
        'logs': bed.logs}

_BED_ONLY = {'exec': bed.execute, 'node': changes.node,
             's3': changes.s3, 'rebalance': changes.rebalance}

_UNITS = {'k': 1 << 10, 'm': 1 << 20, 'g': 1 << 30}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(dest='verb', metavar='VERB', required=True)
    start = verbs.add_parser('start', help='bring a cluster up')
    _add_start_options(start)
    for name, line in (
            ('stop', 'stop it and remove its data'),
            ('status', 'show its servers and their addresses'),
            ('env', 'print exports for the swift and aws clients'),
            ('demo', 'send classified objects all the way and back'),
            ('logs', 'print the ends of the logs')):
        verb = verbs.add_parser(name, help=line)
        verb.add_argument('--root', help='the cluster\'s folder')
        if name == 'status':
            verb.add_argument('--json', action='store_true')
        elif name == 'stop':
            verb.add_argument('--keep', action='store_true',
                              help='leave the data for "start --keep"')
        elif name == 'logs':
            verb.add_argument('server', nargs='*',
                              help='which servers (default: all)')
            verb.add_argument('-n', '--lines', type=int, default=20)
    changes.configure(verbs)
    execute = verbs.add_parser(
        'exec', help='run a command inside a bed')
    execute.add_argument('--root', help='the bed\'s folder')
    execute.add_argument('--member', default='p1',
                         help='in whose network namespace (p1)')
    execute.add_argument('words', nargs=argparse.REMAINDER, metavar='-- CMD')


def _add_start_options(start: argparse.ArgumentParser) -> None:
    start.add_argument('--root', help='folder of the cluster '
                       '(default: %s)' % layout.default_root())
    start.add_argument('--base-port', type=int, default=0, metavar='N',
                       help='first of %d ports (default: free ones from '
                       '8080 on)' % layout.PORTS)
    start.add_argument('--devices', type=int, metavar='N',
                       help='SSDs (4; of each of many nodes 1), each with '
                            'its HDD')
    bed.add_start_options(start)
    kinds = start.add_mutually_exclusive_group()
    for kind in ('loops', 'folders', 'auto'):
        kinds.add_argument('--' + kind, dest='storage', const=kind,
                           action='store_const')
    start.add_argument('--ssd-size', type=size, metavar='BYTES',
                       help='of each SSD image (512M; of a bed 320M)')
    start.add_argument('--hdd-size', type=size, metavar='BYTES',
                       help='of each HDD image (1G; of a bed 512M)')
    start.add_argument('--ssd-budget', type=size, default=64 << 20,
                       metavar='BYTES', help='for objects on an SSD (64M)')
    start.add_argument('--hdd-iops', type=int, default=120, metavar='N',
                       help='of a throttled HDD; 0: no limit (120)')
    start.add_argument('--workers', type=int, default=0, metavar='N',
                       help='of the proxy and the object server')
    start.add_argument('--no-demo', action='store_true',
                       help='only bring it up')
    start.add_argument('--keep', action='store_true',
                       help='go on with the data of an earlier run')
    start.add_argument('--no-background', action='store_true',
                       help='no replicator, auditors, updaters, expirer')
    start.add_argument('--plain', action='store_true',
                       help='stock Swift, to compare with')
    start.add_argument('--default-policy', default='dss',
                       choices=layout.POLICIES)
    start.add_argument('--replicas', type=int, default=3, metavar='N',
                       help='of objects (3); an edge whose second copy is '
                            'in S3 needs 1')
    start.add_argument('--chunk-kib', type=int, default=64, metavar='N',
                       help='what proxy and object server move at a time '
                            '(64)')


def run(args: argparse.Namespace) -> int:
    """Do what the verb says."""
    root = os.path.abspath(args.root) if args.root else \
        layout.default_root()
    if args.verb in _BED_ONLY:
        return _BED_ONLY[args.verb](root, args)
    if args.verb == 'start' and args.nodes is not None:
        return bed.start(root, args)
    if args.verb in _BED and plan.exists(root):
        return _BED[args.verb](root, args)
    return {'start': _start, 'stop': _stop, 'status': _status,
            'env': _env, 'demo': _demo, 'logs': _logs}[args.verb](root, args)


def size(text: str) -> int:
    """``64M`` to bytes."""
    unit = _UNITS.get(text[-1:].lower())
    number = text[:-1] if unit else text
    if not number.isdigit():
        raise argparse.ArgumentTypeError('%r is not a size' % text)
    return int(number) * (unit or 1)


def _start(root: str, args: argparse.Namespace) -> int:
    if plan.exists(root):
        raise BadConfig('a bed is in %s already; "swift-dss aio stop --root '
                        '%s" ends it' % (root, root))
    say = printer()
    kind = args.storage or 'auto'
    why_not = storage.why_no_loops()
    if kind == 'loops' and why_not:
        raise BadConfig('no loop devices here: %s' % why_not)
    if kind == 'auto':
        kind = 'folders' if why_not else 'loops'
        if why_not:
            say('plain folders, as this is %s' % why_not
                if why_not == 'not root'
                else 'plain folders: %s' % why_not)
    if args.keep and os.path.exists(os.path.join(root, 'cluster.json')):
        conf = layout.load(root)
    else:
        conf = AioConf(
            root=root, devices=4 if args.devices is None
            else args.devices, storage=kind,
            base_port=args.base_port or processes.free_base_port(
                layout.PORTS),
            ssd_bytes=args.ssd_size or 512 << 20,
            hdd_bytes=args.hdd_size or 1 << 30,
            ssd_budget_bytes=args.ssd_budget, hdd_iops=args.hdd_iops,
            workers=args.workers, background=not args.no_background,
            plain=args.plain, default_policy=args.default_policy,
            replicas=args.replicas, chunk_bytes=args.chunk_kib * 1024)
    cluster = Cluster(conf, say)
    cluster.start(keep=args.keep)
    say('the cluster is up: %s (%s)' % (conf.s3_url, root))
    if not (args.no_demo or args.keep or conf.plain):
        demo.Demo(cluster, say).run()
        say('the cluster stays up')
    print('  swift:   eval "$(swift-dss aio env --root %s)"' % root)
    print('  status:  swift-dss aio status --root %s' % root)
    print('  end:     swift-dss aio stop --root %s' % root, flush=True)
    return 0


def _stop(root: str, args: argparse.Namespace) -> int:
    say = printer()
    if not os.path.exists(os.path.join(root, 'cluster.json')) \
            and not processes.find(root):
        say('no cluster in %s' % root)
        return 0
    cluster = Cluster(_conf_or_blank(root), say)
    cluster.stop(keep=args.keep)
    say('stopped')
    return 0


def _conf_or_blank(root: str) -> AioConf:
    try:
        return layout.load(root)
    except BadConfig:
        # Enough to clean up after a start that was cut short.
        return AioConf(root=root, base_port=0)


def _status(root: str, args: argparse.Namespace) -> int:
    conf = layout.load(root)
    running = processes.find(root)
    expected = Cluster(conf).expected()
    report: Dict[str, Any] = {
        'root': root, 'storage': conf.storage, 'auth': conf.auth_url,
        's3': conf.s3_url, 'cloud': conf.cloud_url,
        'processes': {name: running.get(name, []) for name in expected},
        'running': all(name in running for name in expected)}
    if args.json:
        print(json.dumps(report, indent=2, sort_keys=True))
    else:
        print('root     %s (%s)' % (root, conf.storage))
        print('auth     %s' % conf.auth_url)
        print('s3       %s' % conf.s3_url)
        print('cloud    %s' % conf.cloud_url)
        for name in expected:
            pids = running.get(name)
            print('%-24s %s' % (name, ' '.join(map(str, pids))
                                if pids else 'NOT RUNNING'))
    return 0 if report['running'] else 1


def _env(root: str, args: argparse.Namespace) -> int:
    if plan.exists(root):
        for name, value in bed.environment(root).items():
            print('export %s=%s' % (name, value))
        return 0
    conf = layout.load(root)
    for name, value in (
            ('ST_AUTH', conf.auth_url), ('ST_USER', 'test:tester'),
            ('ST_KEY', 'testing'), ('AWS_ACCESS_KEY_ID', 'test:tester'),
            ('AWS_SECRET_ACCESS_KEY', 'testing'),
            ('AWS_ENDPOINT_URL', conf.s3_url),
            ('AWS_DEFAULT_REGION', 'us-east-1'),
            ('SWIFT_DSS_AIO_ROOT', root),
            ('SWIFT_DSS_CONF', conf.path('etc', 'dss.conf'))):
        print('export %s=%s' % (name, value))
    return 0


def _demo(root: str, args: argparse.Namespace) -> int:
    conf = layout.load(root)
    if 'proxy-server' not in processes.find(root):
        raise BadConfig('the cluster in %s does not run' % root)
    if conf.plain:
        raise BadConfig('a plain cluster has no classes to show')
    say = printer()
    demo.Demo(Cluster(conf, say), say).run()
    return 0


def _logs(root: str, args: argparse.Namespace) -> int:
    conf = layout.load(root)
    names = args.server or sorted(
        name[:-len('.log')] for name in os.listdir(conf.log)
        if name.endswith('.log'))
    for name in names:
        path = os.path.join(conf.log, name + '.log')
        if not os.path.exists(path):
            print('no log %s' % path, file=sys.stderr)
            return 1
        print('== %s' % path)
        print(processes.tail(path, args.lines))
    return 0
