#!/usr/bin/env python
"""All campaigns of the fault room, in short: one command for who doubts.

    python test/fault/campaign.py [--only R12,R18] [--full] [--json]

Each line of the table is a command of its own, which asserts that its faults
fired and that a deliberately wrong twin of the code is caught. The last line
is the sum: faults fired, what was lost, twins caught. ``--full`` runs each
at its own length (hours). With ``--json`` each line is JSON, which has the
campaign's own lines of figures too. As root, for what makes file systems.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

_HERE = os.path.dirname(os.path.abspath(__file__))
_TEST = os.path.dirname(_HERE)
_FIRED = re.compile(
    r'(\d+) (?:kills\b|states\b|faults\b|flips\b|without room'
    r'|drives pulled|evictions\b|outages\b|stubs\b|flipped bits)')
_LOST = re.compile(r'(\d+) (?:lost|wrong|divergences|false quarantines)\b')
_ROW = '%-7s %-38s %6d %5d  %-7s %5.0f  %-6s %s'
_CYCLES = re.compile(r'"cycles_with_fault": (\d+).*"lost": (\d+)')


class Campaign(NamedTuple):
    """One command.

    :param short: arguments for a minute or two; ``full`` for all of it
    :param twin: True if the command runs its wrong twin itself, False if
        it *is* a wrong twin and must fail
    """

    number: str
    what: str
    script: str
    short: Tuple[str, ...] = ()
    full: Tuple[str, ...] = ()
    twin: Optional[bool] = True


CAMPAIGNS = (
    Campaign('R01', 'kill -9 at every step of every move',
             'kill_at_each_step.py', ('--per-scenario', '3')),
    Campaign('R01', 'kill -9 at every step of a bundle', 'bundle_kill.py',
             ('--per-verb', '3')),
    Campaign('R02', 'every state that a power cut may leave',
             'cut_the_power.py', ('--most', '4')),
    Campaign('R12', 'every system call of every move fails',
             'fail_each_system_call.py', ('--per-scenario', '12')),
    Campaign('R14', 'no bytes or inodes: SSD, HDD, index', 'fill_the_disk.py',
             ('--only', 'demote', '--step-kib', '256')),
    Campaign('R17', 'a drive is pulled and returns stale', 'pull_a_drive.py',
             ('--lives', '40')),
    Campaign('R18', 'bits flip in records, books, bundles', 'flip_bits.py',
             ('--flips', '2')),
    Campaign('R18', 'bytes change on SSDs and HDDs', 'flipped_bytes.py',
             ('--flips', '120')),
    Campaign('R22', "Swift's daemons over stubs", '-m',
             ('pytest', '-q', 'probe/test_probe_auditor.py',
              'probe/test_probe_stock.py', '-k', 'auditor'),
             ('pytest', '-q', 'probe/test_probe_auditor.py',
              'probe/test_probe_expirer.py', 'probe/test_probe_rebuild.py',
              'probe/test_probe_relinker.py',
              'probe/test_probe_stock.py')),
    Campaign('R24-28', 'S3 fails at every call of a version', '-m',
             ('pytest', '-q', 'fault/test_gateway_faults.py', '-k',
              'swallow or other_body or trusts or twin'),
             ('pytest', '-q', 'fault/test_gateway_faults.py')),
    Campaign('R24-28', 'S3 fails at every call of a bundle',
             'bundle_faults.py', ('--faults', 'swallow,503,other_body',
                                  '--short')),
    Campaign('R31', 'anything in any order against a dict',
             'do_anything_in_any_order.py',
             ('--examples', '6', '--steps', '30')),
    Campaign('R35', 'S3 goes and comes, the daemon dies', 'outage.py',
             ('--faults', '', '--cycles', '6'),
             ('--faults', '', '--cycles', '100'), None),
    Campaign('R35', 'the same, taking the word of S3', 'outage.py',
             # S3 lies in the last cycle: a daemon that is killed later asks
             # again for what S3 has.
             ('--faults', '', '--cycles', '5', '--trusting'),
             ('--faults', '', '--cycles', '11', '--trusting'), False))


class Result(NamedTuple):
    """What a campaign printed."""

    fired: int
    lost: int
    caught: int
    is_right: bool
    seconds: float
    text: str


def run(campaign: Campaign, full: bool) -> Result:
    """Run it to its end."""
    script = campaign.script if campaign.script == '-m' else os.path.join(
        _HERE, campaign.script)
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, script, *(campaign.full if full else campaign.short)],
        cwd=_TEST, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(
            filter(None, (_TEST, os.environ.get('PYTHONPATH'))))))
    seconds = time.monotonic() - began
    if campaign.twin is False:
        # The wrong twin has to lose something, and to be told so.
        caught = done.returncode == 1 and 'wrong: lost' in done.stdout
        return Result(0, 0, int(caught), caught, seconds, done.stdout)
    fired, lost = counted(done.stdout)
    right = not done.returncode and fired > 0 and not lost
    # A twin that was not seen was not caught.
    seen = 'wrong twin' in done.stdout
    right = right and (seen or campaign.twin is None)
    return Result(fired, lost, int(right and seen), right, seconds,
                  done.stdout)


def counted(text: str) -> Tuple[int, int]:
    """(faults that fired, what was lost) by the lines of figures."""
    fired = lost = 0
    for line in text.splitlines():
        if 'wrong twin' in line:
            continue
        cycles = _CYCLES.search(line)
        if cycles:
            fired += int(cycles.group(1))
            lost += int(cycles.group(2))
        elif re.match(r'R\d\d', line):
            fired += sum(map(int, _FIRED.findall(line)))
            lost += sum(map(int, _LOST.findall(line)))
    return fired, lost


def said(text: str) -> List[str]:
    """The lines of figures, those of wrong twins too."""
    return [line for line in text.splitlines()
            if re.match(r'R\d\d', line) or _CYCLES.search(line)]


def told(campaign: Campaign, result: Result, full: bool) -> Dict[str, Any]:
    """One campaign for ``--json``."""
    return {'id': campaign.number, 'what': campaign.what,
            'command': _command(campaign, full), 'fired': result.fired,
            'lost': result.lost, 'caught': bool(result.caught),
            'is_right': result.is_right, 'seconds': round(result.seconds, 1),
            'printed': said(result.text)}


def _line(campaign: Campaign, result: Result, full: bool) -> str:
    return _ROW % (
        campaign.number, campaign.what, result.fired, result.lost,
        'caught' if result.caught else '', result.seconds,
        'ok' if result.is_right else 'FAILED', _command(campaign, full))


def main() -> int:
    """Run all and print the table; 1 if any of it is not right."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--only', default='')
    parser.add_argument('--full', action='store_true')
    parser.add_argument('--json', action='store_true',
                        help='a line of JSON for each campaign')
    args = parser.parse_args()
    wanted = set(filter(None, args.only.split(',')))
    # The table is for readers; lines of JSON are for programs.
    out = sys.stderr if args.json else sys.stdout
    print(_ROW.replace('d', 's').replace('.0f', 's') % (
        'id', 'what', 'fired', 'lost', 'twin', 's', '', 'command'),
        file=out, flush=True)
    results: List[Result] = []
    for campaign in CAMPAIGNS:
        if wanted and campaign.number not in wanted:
            continue
        result = run(campaign, args.full)
        results.append(result)
        print(_line(campaign, result, args.full), file=out, flush=True)
        if args.json:
            print(json.dumps(told(campaign, result, args.full)), flush=True)
        if not result.is_right:
            print(_end(result.text), file=out)
    lost = sum(each.lost for each in results)
    failed = sum(not each.is_right for each in results)
    print('%d faults fired, %d bytes lost, %d twins caught%s' % (
        sum(each.fired for each in results), lost,
        sum(each.caught for each in results),
        ', %d campaigns FAILED' % failed if failed else ''), file=out)
    return 1 if failed or lost else 0


def _command(campaign: Campaign, full: bool) -> str:
    """As somebody types it in ``test/``."""
    words = [word if ' ' not in word else "'%s'" % word
             for word in (campaign.full if full else campaign.short)]
    return ' '.join(words if campaign.script == '-m'
                    else ['fault/' + campaign.script, *(
                        word or "''" for word in words)])


def _end(text: str) -> str:
    lines: List[str] = text.rstrip().splitlines()[-15:]
    return '\n'.join('    ' + line for line in lines)


if __name__ == '__main__':
    sys.exit(main())
