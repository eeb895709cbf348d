"""The S05 campaign: malicious ``.dss`` and fuzzed parsers, with figures.

    python test/fuzz/fuzz_campaign.py [--seed N] [--executions N]

Ends with one line, ``S05: N evils refused, M executions, peak memory X
KiB``, and exit code 0 if every evil was refused at its position, no parser
let a foreign error out, and memory stayed bounded.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import tracemalloc
from typing import Any, Callable, Iterable, List, Tuple

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(1, os.path.join(sys.path[0], os.pardir))

import evil_dss
import parser_fuzz

from swift_dss.core.errors import BadClassInput
from swift_dss.wire.dssfile import Decoder

#: A decoder may hold this much for any stream: the runs and spans of the
#: largest legal map, and a chunk in hand.
MAX_PEAK_BYTES = 1024 * 1024


def peak_of(work: Callable[[], Any]) -> Tuple[Any, int]:
    """(result, bytes at the worst moment) of ``work``."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        result = work()
        return result, tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def judge_evils(evils: Iterable[evil_dss.Evil],
                decoder: Callable[..., Any] = Decoder
                ) -> Tuple[int, List[str], int]:
    """(evils refused, what went wrong, peak bytes).

    An evil counts once, if it is refused at its position however the
    stream is cut.
    """
    refused, wrong, peak = 0, [], 0
    for evil in evils:
        good = True
        for chunk_bytes in evil_dss.CHUNKINGS:
            (outcome, position), used = peak_of(
                lambda evil=evil, cut=chunk_bytes:
                evil_dss.refusal(evil, cut, decoder))
            peak = max(peak, used)
            if outcome != 'refused' or position != evil.position:
                good = False
                wrong.append('%s in chunks of %d: %s at %s, not refused '
                             'at %d' % (evil.name, chunk_bytes, outcome,
                                        position, evil.position))
        refused += good
    return refused, wrong, peak


def judge_floods() -> Tuple[int, List[str], int]:
    """Streams within limits that aim at memory: (refused, wrong, peak)."""
    def feed(chunks: Iterable[bytes]) -> str:
        decoder = Decoder()
        try:
            for chunk in chunks:
                decoder.feed(chunk)
        except BadClassInput as err:
            return 'refused at %s' % err.position
        return 'taken'

    wrong = []
    outcome, peak = peak_of(lambda: feed(evil_dss.alternating()))
    # Run 2,050 is the first that cannot be part of a legal map.
    if outcome != 'refused at %d' % (16 + 2049):
        wrong.append('a class change a block: %s' % outcome)
    outcome, other = peak_of(lambda: feed(evil_dss.monotone()))
    if outcome != 'taken':
        wrong.append('four million blocks of one class: %s' % outcome)
    return 1, wrong, max(peak, other)


def main() -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--seed', type=int,
                        default=int(time.time()) % 1000000)
    parser.add_argument('--executions', type=int, default=20000,
                        help='of each parser (default: %(default)s)')
    args = parser.parse_args()
    print('seed %d' % args.seed)
    refused, wrong, peak = judge_evils(evil_dss.EVILS)
    print('  %d named evils, %d refused' % (len(evil_dss.EVILS), refused))
    cut = list(evil_dss.truncations())
    more, cut_wrong, cut_peak = judge_evils(cut)
    print('  %d truncations, %d refused' % (len(cut), more))
    floods, flood_wrong, flood_peak = judge_floods()
    print('  floods of 4 MiB: peak %d KiB' % (flood_peak // 1024))
    wrong += cut_wrong + flood_wrong
    executions = 0
    for target in parser_fuzz.targets():
        try:
            score = parser_fuzz.fuzz(target, args.seed, args.executions)
        except parser_fuzz.Crash as err:
            wrong.append(str(err))
            continue
        executions += score.executions
        print('  %-14s %7d executions, %6d accepted, slowest %.1f ms' % (
            target.name, score.executions, score.accepted,
            score.slowest_seconds * 1000))
    peak = max(peak, cut_peak, flood_peak)
    if peak > MAX_PEAK_BYTES:
        wrong.append('peak memory %d KiB' % (peak // 1024))
    for line in wrong:
        print('WRONG: %s' % line)
    print('S05: %d evils refused, %d executions, peak memory %d KiB' % (
        refused + more + floods, executions, peak // 1024))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
