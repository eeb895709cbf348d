"""The laboratory's cache of slow builds.

Everything lies under ``$XDG_CACHE_HOME/swift-dss``. An entry is named by the
hash of all its sources, is made in place under a lock, and counts only with
its stamp. The stamp is written last, so the remains of a killed build are
built again.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import time
from typing import (
    IO, Callable, Iterable, Iterator, List, Mapping, Sequence)

from swift_dss.core.errors import BadConfig, DssError

Say = Callable[[str], None]

#: Command to the Debian package that has it.
PACKAGES = {
    'apt-get': 'apt', 'bc': 'bc', 'bison': 'bison',
    'busybox': 'busybox-static', 'cpio': 'cpio', 'dmsetup': 'dmsetup',
    'dpkg-deb': 'dpkg', 'flex': 'flex', 'gcc': 'gcc', 'gzip': 'gzip',
    'make': 'make', 'patch': 'patch', 'tar': 'tar', 'xz': 'xz-utils',
    'qemu-system-x86_64': 'qemu-system-x86', 'mkfs.xfs': 'xfsprogs',
    'depmod': 'kmod', 'mmdebstrap': 'mmdebstrap', 'mke2fs': 'e2fsprogs',
    'debugfs': 'e2fsprogs', 'chroot': 'coreutils',
}

_STAMP = 'complete'
_PR_SET_PDEATHSIG = 1
_SYSTEM_PATHS = ('/usr/local/sbin', '/usr/sbin', '/sbin')


class BuildFailed(DssError):
    """Something could not be built; the message holds the output."""

    exit_code = 70


def root() -> str:
    """The folder of all of it; made if it is not there."""
    base = os.environ.get('XDG_CACHE_HOME') or os.path.join(
        os.path.expanduser('~'), '.cache')
    folder = os.path.join(os.path.abspath(base), 'swift-dss')
    os.makedirs(folder, exist_ok=True)
    return folder


def digest(parts: Iterable[bytes]) -> str:
    """A short name for all of ``parts``, in their order."""
    made = hashlib.sha256()
    for part in parts:
        made.update(b'%d:' % len(part))
        made.update(part)
    return made.hexdigest()[:16]


def contents(paths: Iterable[str], base: str) -> Iterator[bytes]:
    """Names (relative to ``base``) and contents, for :func:`digest`."""
    for path in sorted(paths):
        yield os.path.relpath(path, base).encode()
        with open(path, 'rb') as source:
            yield source.read()


def is_complete(folder: str) -> bool:
    """Was the thing in that folder made to its end?"""
    return os.path.exists(os.path.join(folder, _STAMP))


@contextlib.contextmanager
def making(folder: str, say: Say) -> Iterator[bool]:
    """Make a folder once, however many ask for it at once.

    Yields whether it is the caller's to make; then it is there, empty, and
    is stamped when the caller leaves without an error, removed otherwise.
    """
    if is_complete(folder):
        yield False
        return
    with open(folder + '.lock', 'a') as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say('another process makes %s: waiting for it'
                % os.path.basename(folder))
            fcntl.flock(lock, fcntl.LOCK_EX)
        if is_complete(folder):
            yield False
            return
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        try:
            yield True
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        with open(os.path.join(folder, _STAMP), 'w'):
            pass


def environment() -> Mapping[str, str]:
    """Ours, with the folders of administrators' commands and plain
    English messages."""
    env = dict(os.environ)
    have = env.get('PATH', os.defpath).split(os.pathsep)
    env['PATH'] = os.pathsep.join(
        have + [path for path in _SYSTEM_PATHS if path not in have])
    env['LC_ALL'] = 'C.UTF-8'
    # A jobserver of a make above us is not there for the kernel's.
    env.pop('MAKEFLAGS', None)
    return env


def missing(commands: Sequence[str]) -> List[str]:
    """Debian packages of those commands that this machine has not."""
    path = environment()['PATH']
    return sorted({PACKAGES[name] for name in commands
                   if not shutil.which(name, path=path)})


def need(commands: Sequence[str], purpose: str) -> None:
    """Refuse early if the build could not be done later.

    :raises BadConfig: names the packages to install
    """
    packages = missing(commands)
    if packages:
        raise BadConfig('%s needs packages that are not installed: '
                        'apt-get install %s' % (purpose, ' '.join(packages)))


def call(command: Sequence[str], cwd: str, job: str,
         stdin: str = os.devnull) -> str:
    """Run a command that should not fail.

    :returns: its output, errors included
    :raises BuildFailed: it did; with the end of its output
    """
    with open(stdin, 'rb') as source, _family(
            command, cwd, source) as process:
        said = process.communicate()[0]
    text = said.decode('utf-8', 'replace')
    if process.returncode:
        raise BuildFailed('%s failed with %d:\n%s' % (
            job, process.returncode, last_lines(text)))
    return text


def call_long(command: Sequence[str], cwd: str, job: str, log: str,
              say: Say, every_seconds: float = 20.0) -> None:
    """As :func:`call`, for minutes: says how many steps were done.

    :param log: the file that gets all of the output
    :raises BuildFailed: with the lines that name an error
    """
    said = time.monotonic()
    steps = 0
    with open(os.devnull, 'rb') as nothing, open(log, 'wb') as out, \
            _family(command, cwd, nothing) as process:
        for line in process.stdout:  # type: ignore[union-attr]
            out.write(line)
            steps += line.startswith(b'  ')
            if time.monotonic() - said >= every_seconds:
                said = time.monotonic()
                say('%s: %d steps done' % (job, steps))
        process.wait()
    if process.returncode:
        with open(log, errors='replace') as source:
            lines = source.read().splitlines()
        wrong = [line for line in lines
                 if 'rror' in line or 'warning:' in line] or lines
        raise BuildFailed('%s failed with %d:\n%s' % (
            job, process.returncode, '\n'.join(wrong[-20:])))


@contextlib.contextmanager
def _family(command: Sequence[str], cwd: str,
            source: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command. An interrupt kills all its processes, so that none writes
    into a folder that is being removed.
    """
    libc = ctypes.CDLL(None)

    def prepare() -> None:
        # Make ends its children when it is told to end.
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])

    # Block interrupts between the start and the "try".
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        process = subprocess.Popen(
            command, cwd=cwd, stdin=source, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env=environment(),
            start_new_session=True, preexec_fn=prepare)
    except BaseException:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        raise
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        yield process
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def last_lines(text: str, count: int = 30) -> str:
    """The end of a command's output."""
    return '\n'.join(text.splitlines()[-count:])
