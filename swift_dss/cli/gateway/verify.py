"""``swift-dss gateway verify``: the edge against the bucket."""

from __future__ import annotations

import argparse
import sys
from typing import Any, Dict, List

from swift_dss.cli.ask import ask, json_text, result
from swift_dss.cli.table import Progress, size
from swift_dss.core.config import NodeConf

#: Lines about problems that could not be repaired.
_SHOWN = 1000
#: How a repair ended, as people read it.
_ENDS = (('healed', 'brought back from quarantine'),
         ('sent', 'sent to S3 again'),
         ('found', 'found under their own keys'),
         ('aside', 'put into quarantine; other nodes send copies'),
         ('fetched', 'fetched from S3 again'),
         ('renewed', 'records to be renewed'),
         ('right', 'right by now'),
         ('obsolete', 'overwritten or deleted by now'),
         ('failed', 'NOT repaired'))


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('--read', action='store_true',
                        help='read everything back from S3 and prove it')
    parser.add_argument('--local', action='store_true',
                        help='read the bytes on the devices and prove them')
    parser.add_argument('--records', action='store_true',
                        help="also compare metadata with the bucket's "
                        'records')
    parser.add_argument('--stock', action='store_true',
                        help='fail if stock Swift could not read something '
                        'here')
    parser.add_argument('--repair', action='store_true',
                        help='have the tier daemon repair what was found; '
                        'without it nothing is changed')
    parser.add_argument('--old', action='store_true',
                        help='also bring back what is in quarantine for '
                        'longer than a tombstone is kept')


def run(args: argparse.Namespace, conf: NodeConf) -> int:
    """Compare; 1 if something is not as it must be, and was not repaired."""
    from swift_dss.gateway.restore.catalog import open_client
    from swift_dss.tier.index.noted import WrongList
    from swift_dss.tier.walk.compare import Comparison, plain
    with WrongList() as wrong:
        work = Comparison(conf, open_client(conf.gateway), wrong, args.read,
                          args.records, args.local)
        with Progress('verify', quiet=args.json) as progress:
            state = work.run(lambda now: progress.show(
                now.versions, None, '%d keys' % now.keys))
        if args.stock and state.stubs:
            state.problem('%d versions lack bytes here: drain first'
                          % state.stubs)
        for text in state.said:
            print('swift-dss gateway verify: ' + text, file=sys.stderr)
        repaired = repair(wrong, conf, args.json,
                          args.old) if args.repair else None
    if args.json:
        shown = dict(plain(state))
        if repaired is not None:
            shown['repair'] = repaired
        print(json_text(shown))
    else:
        _show(state, args)
        if repaired is not None:
            show_ends(repaired)
    if repaired is None:
        return 1 if state.problems else 0
    # Problems that name no version cannot be repaired.
    return 1 if repaired['done'].get('failed') or \
        state.problems > wrong.problems else 0


def _show(state: Any, args: argparse.Namespace) -> None:
    print('%d versions here: %d in S3, %d not; %d lack bytes here' % (
        state.versions, state.remote, state.dirty, state.stubs))
    if state.quarantined:
        print('%d are in quarantine: --repair brings back what can be; %d '
              'keys are named by them alone, and are kept' % (
                  state.quarantined, state.quarantined_keys))
    print('%d keys there: %d that nothing here names; %d records are '
          'older than those here' % (
              state.keys, state.unknown, state.stale))
    if args.read:
        print('%s read back and proven' % size(state.read_bytes))
    if args.local:
        print('%s on the devices read and proven' % size(state.here_bytes))
    hint = ''
    if state.problems and not args.repair:
        hint = ', of which --repair has the right bytes for %d' % (
            state.repairable)
    print('%d problems%s' % (state.problems, hint))


def show_ends(repaired: Dict[str, Any]) -> None:
    """How many versions ended how."""
    for name, text in _ENDS:
        if repaired['done'].get(name):
            print('%d %s' % (repaired['done'][name], text))


def repair(wrong: Any, conf: NodeConf, quiet: bool,
           old: bool) -> Dict[str, Any]:
    """Ask the daemon, page by page; what it did."""
    total = len(wrong)
    done: Dict[str, int] = {}
    failed: List[str] = []
    before = 0
    with Progress('repair', quiet=quiet) as progress:
        for kind, versions in wrong.pages():
            said = result(
                ask(conf, {'verb': 'repair', 'kind': kind,
                           'versions': versions, 'old': old}),
                lambda now, before=before:  # type: ignore[misc]
                progress.show(before + now['done'], total))
            before += len(versions)
            for name, count in said['done'].items():
                done[name] = done.get(name, 0) + count
            for text in said['failed']:
                if len(failed) < _SHOWN:
                    failed.append(text)
    for text in failed:
        print('swift-dss gateway verify: not repaired: ' + text,
              file=sys.stderr)
    return {'versions': total, 'done': done, 'failed': failed}
