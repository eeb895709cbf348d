"""Campaign R09: either device under dm-dss fails, in part or altogether.

``python test/kernel/fail_a_device.py [--faults N] [--seed N] [--stage
PERCENT]`` goes through devices, faults and moments (``dss_failing_device.py``)
until that many faults fired, and then makes sure that a device which lies
about its writes is seen. With a stage all dirty chunks are its own. Exit
status 1 if a reader got wrong bytes, a byte was lost, or the lie was not seen.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
from collections import Counter
from typing import Any, Dict, Iterator, List, Sequence

import dss_lab

DEVICES = ('ssd', 'hdd')
FAULTS = ('reads', 'writes', 'all', 'gone', 'now and then', 'bad blocks')
MOMENTS = ('load', 'flush', 'switch', 'reload', 'start')
#: Cases of one guest.
GUEST_CASES = 20

Case = Sequence[Any]


def cases(seed: int, stage: int) -> Iterator[Case]:
    """All combinations, again and again, each time with other seeds."""
    for number in itertools.count():
        for place, (device, fault, moment) in enumerate(itertools.product(
                DEVICES, FAULTS, MOMENTS)):
            yield (seed + 1000 * number + place, device, fault, moment,
                   stage)


def examined(cases: List[Case]) -> List[Dict[str, Any]]:
    """Run them in one guest."""
    rows: List[Dict[str, Any]] = dss_lab.found(
        'dss_failing_device.py', [json.dumps(cases)], timeout=3600)
    return rows


def lie_is_seen(seed: int, stage: int = 0) -> bool:
    """The HDD drops what it says that it wrote."""
    ended = dss_lab.result(
        'dss_failing_device.py',
        [json.dumps([[seed, 'hdd', 'lies', 'load', stage]])], timeout=3600)
    return ended.status != 0 and b'WrongBytes' in ended.stderr


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--faults', type=int, default=60)
    parser.add_argument('--seed', type=int,
                        default=random.randrange(1 << 20))
    parser.add_argument('--stage', type=int, default=0, metavar='PERCENT')
    options = parser.parse_args()
    fired, waits, ends = 0, 0, Counter()  # type: ignore[var-annotated]
    waiting = cases(options.seed, options.stage)
    try:
        while fired < options.faults:
            rows = examined(list(itertools.islice(waiting, GUEST_CASES)))
            for row in rows:
                fired += row['fired']
                waits += row['stage_waits']
                ends[row['case'][1], row['end']] += 1
                if not row['fired']:
                    print('did not fire: %s' % json.dumps(row))
            print('%d faults' % fired)
            sys.stdout.flush()
    except AssertionError as error:
        print(error)
        return 1
    for (device, end), count in sorted(ends.items()):
        print('%s failed %d times, then: %s' % (device, count, end))
    print('%d faults, 0 wrong bytes; %d writes waited for the stage' % (
        fired, waits))
    seen = lie_is_seen(options.seed, options.stage)
    print('device that lies: %s' % ('seen' if seen else 'NOT SEEN'))
    return int(not seen or (options.stage > 0 and not waits))


if __name__ == '__main__':
    sys.exit(main())
