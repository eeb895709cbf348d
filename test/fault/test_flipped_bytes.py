"""R18 in CI: some bytes change on an SSD and an HDD, and none is sent."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import campaign

SCRIPT = pathlib.Path(__file__).parent / 'flipped_bytes.py'


def test_no_flipped_byte_is_sent():
    # A process of its own: Swift takes its policies when it is imported.
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', str(SCRIPT),
         '--flips', '120', '--seed', '3'],
        capture_output=True, text=True, timeout=600)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ' 0 wrong bytes out' in done.stdout.splitlines()[0]
    assert 'twin caught' in done.stdout
    # The bytes of the wrong twin are none that were lost.
    assert campaign.counted(done.stdout) == (120, 0)
