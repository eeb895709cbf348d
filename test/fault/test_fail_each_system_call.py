"""R12 in CI: some of the system calls of one operation fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys

CAMPAIGN = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        'fail_each_system_call.py')


def test_a_failing_call_loses_nothing_and_the_careless_are_caught():
    done = subprocess.run(
        [sys.executable, CAMPAIGN, '--only', 'demote', '--per-scenario',
         '12'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=600)
    assert done.returncode == 0, done.stdout
    match = re.search(r'^R12: .* (\d+) faults fired, 0 wrong$',
                      done.stdout, re.MULTILINE)
    assert match and int(match.group(1)) > 5, done.stdout
    print(match.group())
