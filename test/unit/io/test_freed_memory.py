"""Windows reuse memory instead of faulting it in again."""

from __future__ import annotations

import subprocess
import sys

CHURN = '''
import resource, sys
from swift_dss.io import native
if sys.argv[1] == 'keep':
    assert native.keep_freed_memory()
def window():
    return [b'x' * 65536 for _ in range(64)]
window()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    window()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
'''


def faults(mode):
    """Page faults of fifty windows of 4 MiB."""
    return int(subprocess.run(
        [sys.executable, '-c', CHURN, mode], check=True, text=True,
        capture_output=True).stdout)


def test_a_window_after_the_first_costs_no_page_faults():
    assert faults('keep') < 1024
    # The wrong twin: without it, the harness does see the faults.
    assert faults('leave') > 10 * 1024
