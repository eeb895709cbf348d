"""What the lab does to a guest's processes on the machine."""

import subprocess
import sys
import time

from swift_dss.block.lab import processes

# A child with much memory takes long to die; its parent has none.
FAMILY = '''
import os, time
reader, writer = os.pipe()
child = os.fork()
if not child:
    memory = bytearray(b'x') * (600 << 20)
    os.write(writer, b'x')
    time.sleep(600)
os.read(reader, 1)
print(child, flush=True)
time.sleep(600)
'''

STARTER = '''
import sys, time
from swift_dss.block.lab import processes
with processes.running([sys.executable, '-c', sys.argv[1]], sys.argv[2]):
    time.sleep(600)
'''


def is_alive(pid):
    """One that only waits to be asked for its status is not."""
    try:
        with open('/proc/%d/stat' % pid) as source:
            return source.read().rpartition(')')[2].split()[0] not in 'ZX'
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_the_end_of_a_guest_is_the_end_of_its_last_process():
    process = subprocess.Popen([sys.executable, '-c', FAMILY],
                               stdout=subprocess.PIPE,
                               start_new_session=True)
    with process.stdout:
        child = int(process.stdout.readline())
        assert is_alive(child)
        processes.end(process)
    assert not is_alive(child)


def test_all_of_a_guest_ends_with_a_starter_that_is_killed(tmp_path):
    """Its kernel alone would end, and not what that began."""
    starter = subprocess.Popen([sys.executable, '-c', STARTER, FAMILY,
                                str(tmp_path)])
    console, deadline = tmp_path / 'console', time.monotonic() + 30
    while not (console.exists() and console.read_text().endswith('\n')):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    child = int(console.read_text())
    assert is_alive(child)
    starter.kill()
    starter.wait()
    while is_alive(child):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_end_of_a_guest_that_has_ended_is_nothing_to_wait_for():
    process = subprocess.Popen(['true'], start_new_session=True)
    process.wait()
    processes.end(process)
    assert process.returncode == 0
