"""``swift-dss load``: users after a scenario, with classes."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from typing import Any, Dict, Iterator, List, Optional

from swift_dss.bench.cluster.client import authenticate
from swift_dss.bench import figures, plots
from swift_dss.bench.load import drive, plot, report, warpcsv
from swift_dss.bench.load.fronts import S3Front, SwiftFront
from swift_dss.bench.load.forms.reading import parse
from swift_dss.bench.load.scenario import (
    MAX_CONTAINERS, MAX_OPERATIONS, MAX_SECONDS, MAX_USERS, Scenario)
from swift_dss.bench.load.turns import Pace
from swift_dss.bench.load.workers import machines
from swift_dss.bench.load.workers.live import Plan
from swift_dss.cli.load import words
from swift_dss.cli.load.live import Live
from swift_dss.cli.table import table
from swift_dss.core.errors import BadClassInput, BadConfig

HELP = 'put a load of users on a cluster, and measure it by class'
#: Fields of a report that end the command with another code than 0: bytes
#: that nobody wrote, a process of users that was lost, a file with a part,
#: a clean-up that was interrupted.
_CODES = (('wrong', 65), ('lost', 69), ('csv_error', 74), ('uncleaned', 130))
_EPILOG = '''examples:
  swift-dss load very_small.scenario --auth http://swift:8080/auth/v1.0 \\
      --user test:tester --key testing
  swift-dss load mixed.json --rate 200 --json after.json --compare before.json
'''


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument('scenario', metavar='SCENARIO',
                        help='JSON of ssbench, YAML of warp or XML of '
                        'COSBench; - is stdin')
    parser.add_argument('--stage', metavar='NAME', help='of a workload of '
                        'COSBench with several to measure')
    _add_access(parser)
    _add_load(parser)
    out = parser.add_argument_group('results')
    out.add_argument('--json', metavar='FILE', help='all figures; - is '
                     'stdout')
    out.add_argument('--csv', metavar='FILE', help='each request, in the '
                     "columns of warp's csv.zst")
    out.add_argument('--plot', metavar='FILE', help='the tails of the '
                     'latencies, as PNG or SVG, those of --compare too '
                     '(extra bench)')
    out.add_argument('--compare', metavar='FILE', help='the --json of '
                     'another run, to show beside this one')


def _add_load(parser: argparse.ArgumentParser) -> None:
    load = parser.add_argument_group('load')
    load.add_argument('-u', '--user-count', metavar='N', type=_count(
        MAX_USERS), help='users at once (default: the scenario says)')
    load.add_argument('-o', '--op-count', metavar='N', type=_count(
        MAX_OPERATIONS), help='operations')
    load.add_argument('-r', '--run-seconds', metavar='S', type=_count(
        MAX_SECONDS), help='run for so long instead')
    load.add_argument('-c', '--container-count', metavar='N', type=_count(
        MAX_CONTAINERS), help='containers')
    load.add_argument('-P', '--policy', metavar='NAME',
                      help='storage policy of the containers')
    load.add_argument('--rate', metavar='N', type=_rate, help='open loop: '
                      'begin N operations a second, whether the server keeps '
                      'up or not; latency counts from the intended time')
    load.add_argument('--processes', metavar='N', type=_count(512),
                      help='processes of users here (default: one a '
                      'processor; with --at none)')
    load.add_argument('--at', metavar='SPEC', action='append', default=[],
                      help='users on another machine, by execnet: '
                      '2*ssh=HOST//python=/opt/swift/bin/python are two '
                      'processes there; may be repeated')
    load.add_argument('--seed', metavar='TEXT', default='1',
                      help='of choices and contents (default: 1)')
    load.add_argument('-k', '--keep', action='store_true',
                      help='leave objects and containers there')

def _add_access(parser: argparse.ArgumentParser) -> None:
    access = parser.add_argument_group(
        'account', "Swift's v1 auth, or what the environment has for "
        'openstacksdk, or S3')
    access.add_argument('--auth', metavar='URL', default=os.environ.get(
        'ST_AUTH'), help='of v1 (default: $ST_AUTH)')
    access.add_argument('--user', default=os.environ.get('ST_USER'),
                        help='(default: $ST_USER)')
    access.add_argument('--key', default=os.environ.get('ST_KEY'),
                        help='(default: $ST_KEY, which other users of this '
                        'machine cannot see)')
    access.add_argument('--cloud', metavar='NAME',
                        help='an entry of clouds.yaml')
    access.add_argument('--storage-url', metavar='URL',
                        help='the account, with --token instead of --auth')
    access.add_argument('--token', default=os.environ.get('OS_AUTH_TOKEN'),
                        help='(default: $OS_AUTH_TOKEN)')
    access.add_argument('--s3', metavar='URL', help='S3 at this URL, with '
                        '$AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY (or '
                        '--user and --key)')
    access.add_argument('--region', default='us-east-1',
                        help='of S3 (default: us-east-1)')


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    _check_histograms()
    if args.plot is not None:
        # Before an hour of load, not after it.
        plots.pyplot()
    for path in (args.plot, args.json, args.csv):
        if path is not None and path != '-':
            figures.refuse_unwritable(path)
    before = None if args.compare is None else report.read(args.compare)
    scenario = _chosen(args, parse(
        _read(args.scenario), args.scenario, args.stage))
    for field in scenario.ignored:
        print('swift-dss load: %s: %s means nothing here'
              % (args.scenario, field), file=sys.stderr)
    front = _front(args, scenario)
    others = _others(args, scenario)
    processes = len(others) + _processes_here(args, scenario, len(others))
    plan = Plan(
        scenario, front, Pace(args.rate, scenario.operations,
                              scenario.seconds),
        processes, args.seed, args.keep,
        time.time_ns() - time.monotonic_ns() if args.csv else None)
    with _lines(args.csv) as lines:
        outcome = _driven(plan, others, lines)
    made = report.report(outcome, _setup(args, scenario, processes, front,
                                         others), lines)
    _tell(args, made, before)
    return next((code for field, code in _CODES if made[field]), 0)


@contextlib.contextmanager
def _lines(path: Optional[str]) -> Iterator[Optional[warpcsv.Numbered]]:
    if path is None:
        yield None
        return
    out = open(path, 'w', encoding='utf-8')  # noqa: SIM115
    # All is written by then, or the reason is known.
    with contextlib.suppress(OSError), out:
        yield warpcsv.Numbered(out)


def _driven(plan: Plan, others: List[machines.Machine],
            lines: Optional[warpcsv.Numbered]) -> drive.Outcome:
    live = Live(sys.stderr)
    try:
        return drive.run(plan, live.show, others, lines)
    finally:
        live.close()


def _others(args: argparse.Namespace,
            scenario: Scenario) -> List[machines.Machine]:
    if not args.at:
        return []
    specs = machines.listed(args.at)
    processes = len(specs) + (args.processes or 0)
    if processes > scenario.users:
        raise BadClassInput('--at', '%d processes for %d users' % (
            processes, scenario.users))
    return machines.connect(specs)


def _processes_here(args: argparse.Namespace, scenario: Scenario,
                    others: int) -> int:
    wanted = args.processes or (0 if others else os.cpu_count() or 1)
    return min(scenario.users - others, wanted)


def _check_histograms() -> None:
    try:
        import hdrh.histogram  # noqa: F401
    except ImportError as err:
        raise BadConfig("%s: pip install 'swift-dss[load]'" % err) from err


def _read(path: str) -> str:
    try:
        if path == '-':
            return sys.stdin.read()
        with open(path, encoding='utf-8') as source:
            return source.read()
    except (OSError, UnicodeDecodeError) as err:
        raise BadClassInput(path, str(err)) from err


def _chosen(args: argparse.Namespace, scenario: Scenario) -> Scenario:
    """The scenario, with what the command line says instead."""
    import dataclasses
    fields: Dict[str, Any] = {}
    if args.run_seconds is not None:
        fields.update(seconds=args.run_seconds, operations=None)
    elif args.op_count is not None:
        fields.update(seconds=None, operations=args.op_count)
    for name, value in (('users', args.user_count),
                        ('container_count', args.container_count),
                        ('policy', args.policy)):
        if value is not None:
            fields[name] = value
    return dataclasses.replace(scenario, **fields)


def _front(args: argparse.Namespace, scenario: Scenario) -> Any:
    if args.s3 is not None:
        access, secret = (
            os.environ.get(name, given) for name, given in (
                ('AWS_ACCESS_KEY_ID', args.user),
                ('AWS_SECRET_ACCESS_KEY', args.key)))
        if not access or not secret:
            raise BadClassInput('--s3', 'needs $AWS_ACCESS_KEY_ID and '
                                '$AWS_SECRET_ACCESS_KEY')
        return S3Front(scenario, args.s3, access, secret, args.region)
    if args.storage_url is not None:
        return SwiftFront(scenario, args.storage_url, args.token or '')
    if args.auth is not None and args.cloud is None:
        if not args.user or not args.key:
            raise BadClassInput('--auth', 'needs --user and --key')
        target = authenticate(args.auth, args.user, args.key)
        return SwiftFront(scenario, '%s://%s:%d%s' % (
            'https' if target.tls else 'http', target.host, target.port,
            target.prefix), target.token)
    return _by_openstack(args, scenario)


def _by_openstack(args: argparse.Namespace, scenario: Scenario) -> Any:
    from swift_dss.client.fs.login import Login
    try:
        access = Login({'cloud': args.cloud}).access()
    except ImportError as err:
        raise BadConfig("%s: pip install 'swift-dss[fs]', or say --auth"
                        % err) from err
    except (OSError, ValueError) as err:
        raise BadClassInput('--auth', 'no account: %s' % err) from err
    return SwiftFront(scenario, access.storage_url, access.token)


def _setup(args: argparse.Namespace, scenario: Scenario, processes: int,
           front: Any, others: List[machines.Machine]) -> Dict[str, Any]:
    return {'scenario': scenario.name, 'endpoint': front.place.endpoint,
            'front': 's3' if args.s3 is not None else 'swift',
            'users': scenario.users, 'processes': processes,
            'rate': args.rate, 'seed': args.seed,
            'operations': scenario.operations, 'seconds': scenario.seconds,
            'machines': machines.clocks(others)}


def _tell(args: argparse.Namespace, made: Dict[str, Any],
          before: Optional[Dict[str, Any]]) -> None:
    if args.json == '-':
        print(json.dumps(made, indent=1))
        out = sys.stderr
    else:
        out = sys.stdout
        if args.json is not None:
            with open(args.json, 'w', encoding='utf-8') as target:
                json.dump(made, target, indent=1)
    print(table(report.HEADS, report.lines(made['rows'], made['seconds'])),
          file=out)
    if made['setup']['machines'] or made['lost']:
        print('\n' + table(words.HEADS, words.process_lines(made)),
              file=out)
    if args.plot is not None:
        plot.tails(made, before, args.plot)
    if before is not None:
        print('\nbeside %s:' % args.compare, file=out)
        print(table(report.COMPARED,
                    report.compared(made['rows'], before['rows'])), file=out)
    print('\n' + '\n'.join(words.sentences(made)), file=out)


def _count(most: int) -> Any:
    def number(text: str) -> int:
        value = int(text) if text.isascii() and text.isdigit() else 0
        if not 1 <= value <= most:
            raise argparse.ArgumentTypeError(
                '%r is not in 1 to %d' % (text[:48], most))
        return value

    return number


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0.001 <= rate <= 1e6:
        raise argparse.ArgumentTypeError(
            '%r is not in 0.001 to 1000000 a second' % text[:48])
    return rate
