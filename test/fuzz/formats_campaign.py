"""A million damaged files for the classifiers of file formats.

    python test/fuzz/formats_campaign.py [--seed N] [--executions N]

Each target runs in a child with limits on memory and CPU, so that a crash or
a loop of a library costs that target, and is told. Ends with one line,
``FORMATS: N executions, M crashes, K wedged``, and exit code 0 if nothing but
errors of ours came out.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(1, os.path.join(sys.path[0], os.pardir))

import formats_fuzz
import parser_fuzz

#: Of a child: what Python and the images take, and a read of 64 MiB twice.
MEMORY_BYTES = 2 << 30
#: Seconds of CPU for an execution, on a slow machine.
SECONDS_EACH = 0.05


def child(name: str, seed: int, executions: int) -> int:
    """Run one target; the exit code."""
    target, = [target for target in formats_fuzz.targets()
               if target.name == name]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    seconds = int(60 + executions * SECONDS_EACH)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    try:
        score = parser_fuzz.fuzz(target, seed, executions)
    except parser_fuzz.Crash as err:
        print(err)
        return 1
    print('%d executions, %d accepted, slowest %.1f ms' % (
        score.executions, score.accepted, score.slowest_seconds * 1000))
    return 0


def main() -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--seed', type=int,
                        default=int(time.time()) % 1000000)
    parser.add_argument('--executions', type=int, default=100000,
                        help='of each parser (default: %(default)s)')
    parser.add_argument('--target', help='one parser alone, in this process')
    args = parser.parse_args()
    if args.target:
        return child(args.target, args.seed, args.executions)
    print('seed %d' % args.seed)
    executions = crashes = wedged = 0
    for target in formats_fuzz.targets():
        done = subprocess.run(
            [sys.executable, __file__, '--seed', str(args.seed),
             '--executions', str(args.executions), '--target', target.name],
            stdout=subprocess.PIPE, text=True)
        print('  %-8s %s' % (target.name, done.stdout.strip()), flush=True)
        if done.returncode == 0:
            executions += args.executions
        # SIGXCPU, or SIGKILL at the hard limit.
        elif done.returncode in (-24, -9):
            wedged += 1
        else:
            crashes += 1
    print('FORMATS: %d executions, %d crashes, %d wedged' % (
        executions, crashes, wedged))
    return 1 if crashes or wedged else 0


if __name__ == '__main__':
    sys.exit(main())
