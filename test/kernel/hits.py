"""What a hit costs in dm-dss beside the same read through dm-linear.

``python test/kernel/hits.py [--chunk SECTORS] [--rounds N]`` boots a guest
in real time. The least of many rounds counts: a busy machine only adds.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import guests

READS = 2000


def measure(chunk: int, rounds: int) -> Any:
    """Times of one read in nanoseconds, of each round, by target."""
    report = guests.found('dss_hits.py', [chunk, rounds], virtual_time=False,
                          modules=('dm-dss',), timeout=600)
    assert (report['hits'], report['misses']) == (rounds * READS, 0), report
    return report['ns']


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--chunk', type=int, default=64)
    parser.add_argument('--rounds', type=int, default=100)
    args = parser.parse_args()
    times = measure(args.chunk, args.rounds)
    for name, all_of in times.items():
        print('%-6s %6d ns (middle %d)' % (
            name, all_of[0], all_of[len(all_of) // 2]))
    print('a hit costs %d ns more than dm-linear' % (
        times['dss'][0] - times['linear'][0]))
    return 0


if __name__ == '__main__':
    sys.exit(main())
