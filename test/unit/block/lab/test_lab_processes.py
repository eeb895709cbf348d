"""What the lab does to a guest's processes on the machine."""

import subprocess
import sys

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


def test_the_end_of_a_guest_that_has_ended_is_nothing_to_wait_for():
    process = subprocess.Popen(['true'], start_new_session=True)
    process.wait()
    processes.end(process)
    assert process.returncode == 0
