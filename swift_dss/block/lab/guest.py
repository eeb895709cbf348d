"""The first process of a laboratory guest: sets it up, runs one command.

Started by the kernel with the path of a job description, it needs nothing
but Python's standard library. Its steps: lay a file system in memory over the
machine's own (so that nothing the guest writes stays), load the modules, make
the devices, run the command, report the result, power off. Every write to a
file of the host is synced at once: that is how output is seen while the guest
runs.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time
import traceback
from typing import Any, Dict, List, Optional

_LIBC = ctypes.CDLL(None, use_errno=True)
_POWER_OFF = 0x4321fedc
_MS_MOVE = 8192
_FINIT_MODULE = 313
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_PR_SET_TIMERSLACK = 29
_SETTLED_SECONDS = 0.1
_BASE = '/mnt'
_CONFIG = '/sys/kernel/config/nullb'

#: Mounted in the new root, in this order: type, place, options.
_MOUNTS = (
    ('proc', '/proc', ''), ('sysfs', '/sys', ''),
    ('devtmpfs', '/dev', ''), ('devpts', '/dev/pts', ''),
    ('tmpfs', '/dev/shm', ''), ('tmpfs', '/run', 'mode=755'),
    ('debugfs', '/sys/kernel/debug', ''),
    ('tracefs', '/sys/kernel/tracing', ''),
    ('configfs', '/sys/kernel/config', ''),
)


def mount(source: str, target: str, kind: str, options: str = '',
          flags: int = 0) -> None:
    """mount(2).

    :raises OSError: with the target's name
    """
    if _LIBC.mount(source.encode(), target.encode(), kind.encode(), flags,
                   options.encode()):
        number = ctypes.get_errno()
        raise OSError(number, 'mount %s: %s' % (
            kind, os.strerror(number)), target)


def enter(shares: List[str]) -> None:
    """Make the root that the command sees, and go there.

    :param shares: folders of the host that the guest may write to
    """
    mount('lab', _BASE, 'tmpfs', 'size=90%')
    for name in ('up', 'work', 'root'):
        os.mkdir(os.path.join(_BASE, name))
    root = os.path.join(_BASE, 'root')
    mount('lab', root, 'overlay', 'lowerdir=/,upperdir=%s/up,'
          'workdir=%s/work' % (_BASE, _BASE))
    for kind, place, options in _MOUNTS:
        if place in ('/dev/pts', '/dev/shm'):
            os.makedirs(root + place, exist_ok=True)
        mount('lab', root + place, kind, options)
    for share in shares:
        os.makedirs(root + share, exist_ok=True)
        mount('lab', root + share, 'hostfs', share)
    os.chdir(root)
    mount('.', '/', '', flags=_MS_MOVE)
    os.chroot('.')
    os.chdir('/')


def loopback_up() -> None:
    """Give the guest its 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack('16sh', b'lo', 0) + bytes(22)
        answer = fcntl.ioctl(control, _SIOCGIFFLAGS, request)
        flags = struct.unpack('16sh', answer[:18])[1] | _IFF_UP
        fcntl.ioctl(control, _SIOCSIFFLAGS,
                    struct.pack('16sh', b'lo', flags) + bytes(22))


def load_module(path: str) -> None:
    """Load one kernel module.

    :raises OSError: the kernel's refusal, with the path
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _LIBC.syscall(_FINIT_MODULE, fd, b'', 0):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
    finally:
        os.close(fd)


def put(path: str, text: str) -> None:
    """Write one attribute file."""
    with open(path, 'w') as out:
        out.write(text)


def make_device(device: Dict[str, Any]) -> None:
    """Make one modelled disk: memory, and the model on top of it.

    The memory is a null_blk that answers at once; the model, if it has
    one, is the device-mapper target ``dss-disk``. It appears as
    ``/dev/mapper/NAME``.
    """
    name, store = device['name'], device['name'] + '-store'
    folder = os.path.join(_CONFIG, store)
    os.mkdir(folder)
    for key, value in (
            ('size', device['bytes'] >> 20), ('blocksize', 512),
            ('memory_backed', 1), ('queue_mode', 2), ('irqmode', 0),
            ('hw_queue_depth', 1024), ('submit_queues', 1),
            ('max_sectors', 8192), ('discard', 1), ('power', 1)):
        put(os.path.join(folder, key), '%d' % value)
    if not device['model']:
        table = '0 %d linear /dev/%s 0' % (device['bytes'] >> 9, store)
    else:
        table = '0 %d dss-disk /dev/%s %s' % (
            device['bytes'] >> 9, store, device['model'])
    done = subprocess.run(
        ['dmsetup', 'create', name, '--table', table],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT)
    if done.returncode:
        raise RuntimeError('%s: dmsetup create with "%s": %s' % (
            name, table, done.stdout.decode('utf-8', 'replace')))


def run(job: Dict[str, Any], sinks: Dict[str, int]) -> int:
    """Run the command, copying its output to the host as it comes.

    As the first process this one also buries every orphan.

    :returns: its exit status, 128 + n for signal n
    """
    woken, waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.signal(signal.SIGCHLD, lambda *_args: None)
    signal.set_wakeup_fd(waker)
    child = subprocess.Popen(
        job['command'], env=job['env'], cwd=job['cwd'],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True)
    status = None
    with selectors.DefaultSelector() as selector:
        for name, stream in (('stdout', child.stdout),
                             ('stderr', child.stderr)):
            os.set_blocking(stream.fileno(), False)  # type: ignore
            selector.register(
                stream.fileno(), selectors.EVENT_READ, name)  # type: ignore
        selector.register(woken, selectors.EVENT_READ, '')
        # A daemon that the command left behind may hold the pipes: after the
        # command's end only existing output is taken.
        while status is None or any(
                key.data for key, _events in selector.select(0)):
            for key, _events in selector.select():
                if not key.data:
                    os.read(woken, 4096)
                    status = bury(child.pid, status)
                elif not copy(key.fd, sinks[key.data]):
                    selector.unregister(key.fd)
    child.returncode = status
    return status


def bury(command_pid: int, status: Optional[int]) -> Optional[int]:
    """Wait for all that ended.

    :returns: ``status``, or the command's if it is among them
    """
    while True:
        try:
            pid, waited = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if not pid:
            return status
        if pid == command_pid:
            status = 128 + os.WTERMSIG(waited) if os.WIFSIGNALED(waited) \
                else os.WEXITSTATUS(waited)


def copy(source: int, sink: int) -> bool:
    """Copy the bytes that are there; False at the end of the stream."""
    try:
        data = os.read(source, 1 << 16)
    except BlockingIOError:
        return True
    if data:
        os.write(sink, data)
        os.fsync(sink)
    return bool(data)


def kernel_log() -> str:
    """All that the kernel has said so far."""
    fd = os.open('/dev/kmsg', os.O_RDONLY | os.O_NONBLOCK)
    lines: List[str] = []
    try:
        while True:
            try:
                record = os.read(fd, 8192).decode('utf-8', 'replace')
            except BrokenPipeError:
                continue
            except BlockingIOError:
                return '\n'.join(lines)
            head, _, text = record.partition(';')
            seconds = int(head.split(',')[2]) / 1e6
            lines.append('[%12.6f] %s' % (seconds, text.split('\n')[0]))
    finally:
        os.close(fd)


def work(job: Dict[str, Any], sinks: Dict[str, int]) -> Dict[str, Any]:
    """Everything between boot and power off."""
    os.environ.update(job['env'])
    enter(job['shares'])
    socket.sethostname('lab')
    loopback_up()
    for path in job['modules']:
        load_module(path)
    for device in job['devices']:
        make_device(device)
    # A kernel that has just booted keeps time by its tick: some ticks later
    # its timers are exact. And those of the command fire when they say,
    # not up to 50 us later.
    time.sleep(_SETTLED_SECONDS)
    _LIBC.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    begin = time.monotonic_ns()
    status = run(job, sinks)
    return {'status': status, 'began_ns': begin,
            'ended_ns': time.monotonic_ns()}


def main(job_path: str) -> None:
    """Do the job and power off; nothing returns from here."""
    with open(job_path) as source:
        job = json.load(source)
    folder = os.path.dirname(job_path)
    # The folder again, as a file system of its own: the root is read-only.
    mount('lab', '/proc', 'hostfs', folder)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    sinks = {name: os.open('/proc/' + name, flags, 0o644)
             for name in ('stdout', 'stderr', 'report')}
    try:
        report = work(job, sinks)
    except BaseException:
        report = {'failure': traceback.format_exc()}
    try:
        report['kernel_log'] = kernel_log()
    except OSError as err:
        report['kernel_log'] = 'no kernel log: %s' % err
    os.write(sinks['report'], json.dumps(report).encode())
    os.sync()
    _LIBC.reboot(_POWER_OFF)


if __name__ == '__main__':
    main(sys.argv[1])
