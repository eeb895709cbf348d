"""``swift-dss check``: judge a node before a start, or at any time.

Reads the files that servers and the tier daemon read, asks the kernel, the
devices and S3, and prints a line for each finding: what was looked at, the
file, the option, its value, and what to write instead. Changes nothing, but
for trials that remove themselves. Run it as root or as Swift's user.

Exit codes: 0 all is well; 1 there are warnings, and no error; 78 there are
errors (the code of a daemon that refuses its configuration).
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Callable, Dict, Iterator, List, Tuple

from swift_dss.cli.ask import CONFIG, json_text
from swift_dss.cli.check import (
    clock, config, devices, folders, kernel, objects, policies, proxy, rings,
    s3, secrets, space)
from swift_dss.cli.check.findings import (
    ERROR, OK, WARNING, Finding, error, fine)
from swift_dss.cli.check.node import Node, read
from swift_dss.core.errors import BadConfig, DssError

HELP = "judge a node's configuration, devices and S3"
#: Group to its judge and the line that ``--help`` shows, in the order of the
#: report.
GROUPS: Dict[str, Tuple[Callable[[Node], Iterator[Finding]], str]] = {
    'config': (config.judge, 'dss.conf, class table, rules'),
    'policies': (policies.judge, 'diskfiles in swift.conf'),
    'proxy': (proxy.judge, 'pipeline and filters of the proxy'),
    'object': (objects.judge, 'object server, and ssync'),
    'ring': (rings.judge, "rings against this node's addresses"),
    'devices': (devices.judge, 'mounts, file systems, marks of HDDs'),
    'folders': (folders.judge, 'state and sockets: rights, no tmpfs'),
    'space': (space.judge, 'budgets against disks'),
    'kernel': (kernel.judge, 'carrier of classes, dm-dss'),
    'secrets': (secrets.judge, 'keys: rights and owners'),
    'clock': (clock.judge, 'is it synchronised?'),
    's3': (s3.judge, 'reach, keys, rights, versions, owner, clock'),
}
#: Groups that go over the network.
_ONLINE = frozenset(('s3',))
_EXITS = {OK: 0, WARNING: 1, ERROR: BadConfig.exit_code}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = 'groups:\n%s\n\nexit codes: 0 all is well, 1 there are ' \
        'warnings, 78 there are errors' % '\n'.join(
            '  %-9s %s' % (name, line)
            for name, (_judge, line) in GROUPS.items())
    parser.add_argument('--config', default=CONFIG,
                        help='dss.conf of the node (%(default)s)')
    parser.add_argument('--proxy-conf', metavar='FILE', default='',
                        help='proxy-server.conf or its folder (that of '
                        'swift_dir)')
    parser.add_argument('--only', metavar='GROUP', action='append',
                        choices=tuple(GROUPS),
                        help='look at this group; may be given several times')
    parser.add_argument('--offline', action='store_true',
                        help='send nothing to S3')
    parser.add_argument('--json', action='store_true',
                        help='print JSON, every finding of it')
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument('-v', '--verbose', action='store_true',
                        help='a line also for each thing that is right')
    amount.add_argument('-q', '--quiet', action='store_true',
                        help='warnings and errors alone')


def run(args: argparse.Namespace) -> int:
    """Judge, and print; the exit code."""
    wanted = [group for group in GROUPS
              if group in (args.only or GROUPS)
              and not (args.offline and group in _ONLINE)]
    node = read(args.config, args.proxy_conf)
    if node.conf is None and 'config' in node.wrong:
        # Most groups look at nothing then, which is not "all is well".
        wanted = ['config'] + [each for each in wanted if each != 'config']
    findings = list(judged(node, wanted))
    counts = Counter(finding.level for _, finding in findings)
    if args.json:
        print(json_text({
            'errors': counts[ERROR], 'warnings': counts[WARNING],
            'ok': counts[OK],
            'findings': [finding.plain(group)
                         for group, finding in findings]}))
    else:
        for group, finding in shown(findings, args.verbose, args.quiet):
            print('%-8s %-9s %s' % (finding.level, group, finding))
        if not args.quiet:
            print('%d errors, %d warnings, %d ok' % (
                counts[ERROR], counts[WARNING], counts[OK]))
    return max((_EXITS[level] for level in counts), default=0)


def judged(node: Node, wanted: List[str]) -> Iterator[Tuple[str, Finding]]:
    """The findings of some groups, in their order."""
    for group in wanted:
        for finding in node.wrong.get(group, ()):
            yield group, finding
        try:
            for finding in GROUPS[group][0](node):
                yield group, finding
        except (DssError, OSError, ValueError) as err:
            yield group, error(
                group, 'cannot be looked at: %s' % err, instead='run this as '
                'root' if isinstance(err, PermissionError) else '')


def shown(findings: List[Tuple[str, Finding]], verbose: bool,
          quiet: bool) -> Iterator[Tuple[str, Finding]]:
    """The lines to print: all of a group, or a line for those of it that are
    right."""
    if verbose:
        yield from findings
        return
    groups: Dict[str, List[Finding]] = {}
    for group, finding in findings:
        groups.setdefault(group, []).append(finding)
    for group, members in groups.items():
        bad = [finding for finding in members if finding.level != OK]
        for finding in bad:
            yield group, finding
        if not bad and not quiet:
            yield group, fine('', '%d checks' % len(members))
