"""Minimal Debians: made once of the main archive alone, and booted.

A root is made by mmdebstrap, kept as an archive in the cache of swift-dss by
what it is made of, and unpacked for each machine. Commands run in it by
systemd-nspawn, with the network of this machine; a booted one has a network of
its own with nothing in it. As root.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Iterator, Sequence

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
RELEASES = {'12': 'bookworm', '13': 'trixie'}
_CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt'
_INSIDE = '/usr/local/share/machine-certificates.crt'
_ENVIRONMENT = (
    'HOME=/root', 'LC_ALL=C.UTF-8', 'DEBIAN_FRONTEND=noninteractive',
    'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    'PIP_CERT=' + _INSIDE, 'SSL_CERT_FILE=' + _INSIDE,
    'PIP_ROOT_USER_ACTION=ignore', 'PIP_DISABLE_PIP_VERSION_CHECK=1')
_START = time.monotonic()
_BOOT_SECONDS = 300


def say(*words: object) -> None:
    """A line with the seconds since the start."""
    print('[%5d s]' % (time.monotonic() - _START), *words, flush=True)


def need() -> None:
    """End with what is missing."""
    if os.geteuid():
        sys.exit('this makes machines: as root')
    missing = [package for package, command in (
        ('mmdebstrap', 'mmdebstrap'), ('systemd-container', 'systemd-nspawn'),
        ('xfsprogs', 'mkfs.xfs')) if not shutil.which(command)]
    if missing:
        sys.exit('apt-get install --no-install-recommends %s'
                 % ' '.join(missing))


def cached(name: str, inputs: Sequence[str]) -> pathlib.Path:
    """Where a root that is made of these is kept."""
    folder = pathlib.Path(os.environ.get('XDG_CACHE_HOME') or
                          os.path.expanduser('~/.cache')) / 'swift-dss'
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256('\0'.join(inputs).encode()).hexdigest()[:16]
    return folder / ('root-%s-%s.tar' % (name, digest))


@contextlib.contextmanager
def making(path: pathlib.Path) -> Iterator[bool]:
    """True for the one that has to make it; others wait until it is there."""
    with open(str(path) + '.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield not path.exists()


def _mirror() -> str:
    """That of this machine, of which a root gets the main archive alone."""
    told = subprocess.run(
        ['apt-get', 'indextargets', '--format', '$(REPO_URI) $(RELEASE)',
         'Created-By: Packages', 'Component: main'],
        check=True, stdout=subprocess.PIPE, text=True).stdout
    for line in told.splitlines():
        address, _, release = line.partition(' ')
        if '-' not in release:
            return address
    sys.exit('apt knows no mirror of Debian here: apt-get update')


def minimal(release: str, packages: Sequence[str] = ()) -> pathlib.Path:
    """An archive of a minbase Debian with packages of its main archive."""
    suite = RELEASES[release]
    path = cached('debian-' + release, [suite, *packages])
    with making(path) as ours:
        if ours:
            say('making a minimal Debian %s%s' % (
                release, ' with ' + ' '.join(packages) if packages else ''))
            subprocess.run(
                ['mmdebstrap', '--quiet', '--variant=minbase']
                + ['--include=' + ','.join(packages)] * bool(packages)
                + [suite, '%s.new.tar' % path, _mirror()], check=True)
            os.rename('%s.new.tar' % path, path)
    return path


class Machine:
    """A root of its own, gone with the block.

    :param archive: from :func:`minimal` or :meth:`keep`
    """

    def __init__(self, archive: pathlib.Path) -> None:
        self._archive = archive
        self._leader = 0
        self._nspawn: subprocess.Popen[bytes] | None = None
        self._binds: list[str] = []

    def __enter__(self) -> Machine:
        self.folder = pathlib.Path(tempfile.mkdtemp(
            prefix='dss-machine-', dir='/var/tmp'))
        self.root = self.folder / 'root'
        self.root.mkdir()
        subprocess.run(['tar', '-xf', str(self._archive), '-C',
                        str(self.root)], check=True)
        certificates = pathlib.Path(os.environ.get('PIP_CERT',
                                                   _CERTIFICATES))
        if certificates.exists():
            shutil.copy(certificates, str(self.root) + _INSIDE)
        return self

    def __exit__(self, *_: object) -> None:
        self.power_off()
        for target in reversed(self._mounts()):
            subprocess.run(['umount', target], check=True)
        # Nothing below is mounted, or it would be removed too.
        shutil.rmtree(self.folder)

    def _mounts(self) -> list[str]:
        with open('/proc/mounts') as mounts:
            return [line.split()[1] for line in mounts
                    if line.split()[1].startswith(str(self.folder) + '/')]

    def disk(self, name: str, target: str, size: str = '600M') -> None:
        """An XFS of its own, mounted there when the machine is booted."""
        image, mounted = self.folder / (name + '.img'), self.folder / name
        subprocess.run(['truncate', '-s', size, str(image)], check=True)
        subprocess.run(['mkfs.xfs', '-q', '-i', 'size=1024', str(image)],
                       check=True)
        mounted.mkdir()
        subprocess.run(['mount', '-o', 'loop', str(image), str(mounted)],
                       check=True)
        self._binds.append('--bind=%s:%s' % (mounted, target))

    def run(self, script: str, check: bool = True
            ) -> subprocess.CompletedProcess[str]:
        """A script of bash in it, booted or not; prints what it says if it
        fails.

        :raises SystemExit: it failed
        """
        if self._leader:
            command = ['nsenter', '--target', str(self._leader), '--mount',
                       '--uts', '--ipc', '--net', '--pid', '--root', '--wd']
        else:
            command = ['systemd-nspawn', '--quiet', '--register=no',
                       '--keep-unit', '--pipe', '--resolv-conf=replace-host',
                       '-D', str(self.root)]
        done = subprocess.run(
            [*command, '/usr/bin/env', '-i', *_ENVIRONMENT, '/bin/bash',
             '-euc', script],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        if check and done.returncode:
            sys.exit('%s\n%s\nended with %d' % (script, done.stdout,
                                                done.returncode))
        return done

    def chroot(self, script: str, log: pathlib.Path) -> int:
        """A script of bash with the devices and the network of this machine,
        and a tmpfs at /tmp as Debian 13 has it; what it says is shown and
        kept.

        :returns: its status
        """
        # Its root is a mount of its own, as that of any machine is: who has
        # mounts of his own says first whether they go further.
        mounts = ('mount --bind "$0" "$0"; cd "$0"; '
                  'mount --rbind /dev "$0/dev"; mount --rbind /sys "$0/sys"; '
                  'mount -t proc proc "$0/proc"; '
                  'mount -t tmpfs run "$0/run"; mount -t tmpfs tmp "$0/tmp"; '
                  'exec chroot "$0" "$@"')
        shutil.copy('/etc/resolv.conf', self.root / 'etc')
        with open(log, 'wb') as kept, subprocess.Popen(
                ['unshare', '--mount', '--pid', '--fork', '--kill-child',
                 'bash', '-euc', mounts, str(self.root), '/usr/bin/env', '-i',
                 *_ENVIRONMENT, '/bin/bash', '-euc', script],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT) as process:
            assert process.stdout is not None
            for line in process.stdout:
                kept.write(line)
                sys.stdout.write(line.decode('utf-8', 'replace'))
                sys.stdout.flush()
        return process.returncode

    def copy_repository(self, target: str) -> None:
        """What git has, and what is new, without its history."""
        listed = subprocess.run(
            ['git', 'ls-files', '-z', '--cached', '--others',
             '--exclude-standard'], cwd=REPOSITORY, check=True,
            stdout=subprocess.PIPE, text=True).stdout
        for name in filter(None, listed.split('\0')):
            if (REPOSITORY / name).is_file():
                path = pathlib.Path(str(self.root) + target) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(REPOSITORY / name, path)

    def keep(self, path: pathlib.Path) -> None:
        """Make an archive of the root as it is."""
        subprocess.run(['tar', '-cf', str(path) + '.new', '-C',
                        str(self.root), '.'], check=True)
        os.rename(str(path) + '.new', path)

    def boot(self) -> None:
        """Start systemd in it, and wait until all that is enabled has
        started."""
        with open(self.folder / 'console', 'ab') as log:
            self._nspawn = subprocess.Popen(
                ['systemd-nspawn', '--quiet', '--register=no', '--keep-unit',
                 '--private-network', '--console=pipe', '--boot',
                 *self._binds, '-D', str(self.root)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=dict(os.environ, SYSTEMD_NSPAWN_UNIFIED_HIERARCHY='1'))
        deadline = time.monotonic() + _BOOT_SECONDS
        children = '/proc/{0}/task/{0}/children'.format(self._nspawn.pid)
        while time.monotonic() < deadline and self._nspawn.poll() is None:
            with open(children) as listed:
                leaders = listed.read().split()
            if leaders:
                self._leader = int(leaders[0])
                state = self.run('systemctl is-system-running --wait',
                                 check=False).stdout.strip()
                if state in ('running', 'degraded'):
                    return
            time.sleep(0.5)
        sys.exit('did not boot:\n' + (self.folder / 'console').read_text(
            errors='replace'))

    def power_off(self) -> None:
        """As by its button; idempotent."""
        if self._nspawn is not None:
            # SIGTERM is systemd-nspawn's word for it.
            self._nspawn.terminate()
            self._nspawn.wait(timeout=_BOOT_SECONDS)
        self._nspawn, self._leader = None, 0
