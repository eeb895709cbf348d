"""What the lab does to a guest's processes on the machine."""

import subprocess
import sys

from swift_dss.block.lab import machine

# A child with much memory takes long to die; its parent has none.
FAMILY = '''
import os, time
reader, writer = os.pipe()
if not os.fork():
    memory = bytearray(b'x') * (600 << 20)
    os.write(writer, b'x')
    time.sleep(600)
os.read(reader, 1)
print(flush=True)
time.sleep(600)
'''


def test_the_end_of_a_guest_is_the_end_of_its_last_process():
    process = subprocess.Popen([sys.executable, '-c', FAMILY],
                               stdout=subprocess.PIPE,
                               start_new_session=True)
    with process.stdout:
        process.stdout.readline()
        assert machine._alive(process.pid)
        machine._end(process)
    assert not machine._alive(process.pid)


def test_the_end_of_a_guest_that_has_ended_is_nothing_to_wait_for():
    process = subprocess.Popen(['true'], start_new_session=True)
    process.wait()
    machine._end(process)
    assert process.returncode == 0
