"""Runs in a guest: what the tests of the laboratory ask of one.

``lab_guest.py WHAT [ARGUMENT]``: one function of this module.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time


def tell() -> None:
    """Both streams, some of the surroundings, and a status of its own."""
    print('clock %d' % time.time())
    print('loopback', end=' ')
    with socket.socket() as server:
        server.bind(('127.0.0.1', 0))
        server.listen()
        with socket.create_connection(server.getsockname()) as client:
            print(client.getpeername()[0])
    print('devices', ' '.join(sorted(os.listdir('/dev/mapper'))))
    print('to stderr', file=sys.stderr)
    sys.exit(7)


def vandal(folder: str) -> None:
    """Write where the machine's files are, and where it is let."""
    for path in ('/etc/passwd', __file__):
        with open(path, 'a') as out:
            out.write('# written in a guest\n')
    os.unlink('/bin/sh')
    with open(os.path.join(folder, 'kept'), 'w') as out:
        out.write('from the guest')


def sleep() -> None:
    """An hour by its own clock."""
    begin = time.monotonic()
    time.sleep(3600)
    print('slept %.3f' % (time.monotonic() - begin))


def draw() -> None:
    """What the kernel has for chance."""
    print(os.urandom(32).hex())


def orphan() -> None:
    """Leave a process behind that holds the output open."""
    subprocess.Popen(['sleep', '100000'])
    print('gone')


def spin() -> None:
    """Never end; say so first."""
    print('spinning', flush=True)
    while True:
        pass


def signal() -> None:
    """End by a signal."""
    os.kill(os.getpid(), 9)


def panic() -> None:
    """Take the kernel down, as far as it lets a process: end the first."""
    print('now', flush=True)
    os.kill(1, 11)
    with open('/proc/1/mem', 'r+b') as memory, open('/proc/1/maps') as maps:
        for line in maps:
            place, rights = line.split()[:2]
            if 'x' in rights and 'w' not in rights:
                start, end = (int(address, 16) for address in place.split('-'))
                try:
                    memory.seek(start)
                    memory.write(bytes(end - start))
                except OSError:
                    continue
    time.sleep(1)


def complain() -> None:
    """Make the kernel say something that it should not have to."""
    with open('/dev/kmsg', 'w') as out:
        out.write('<4>WARNING: as the test asked for\n')


def binary() -> None:
    """Bytes that are no text, from more than one thread."""
    data = bytes(range(256)) * 4096
    lock = threading.Lock()

    def write() -> None:
        with lock:
            sys.stdout.buffer.write(data)
    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == '__main__':
    globals()[sys.argv[1]](*sys.argv[2:])
