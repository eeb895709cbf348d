"""Machines that ``ssh`` reaches: processes of this one, each with a name."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import sys

_SSH = '''#!/bin/sh
# Options, a host and a command, as of OpenSSH.
for word; do host=$command; command=$word; done
case $host in unreachable*)
    echo "ssh: connect to host $host port 22: No route to host" >&2
    exit 255;;
esac
echo "$@" > {folder}/$host.$$
[ ! -d {folder}/$host ] || export PYTHONPATH={folder}/$host
exec sh -c "exec $command"
'''


def at(*names):
    """Options for users on hosts: one process there for each name."""
    return [word for name in names for word in (
        '--at', 'ssh=%s//python=%s' % (name, sys.executable))]


def of(report, name):
    """The processes of a host in a report."""
    return [row for row in report['processes']
            if row['machine'].startswith('ssh=%s//' % name)]


class FarHosts:
    """Makes an ``ssh`` whose hosts are all here; nobody reaches those whose
    names begin with ``unreachable``."""

    def __init__(self, folder, monkeypatch):
        self._folder = folder / 'hosts'
        self._folder.mkdir()
        ssh = folder / 'bin' / 'ssh'
        ssh.parent.mkdir()
        ssh.write_text(_SSH.format(folder=self._folder))
        ssh.chmod(ssh.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv('PATH', '%s:%s' % (ssh.parent,
                                              os.environ['PATH']))

    def customize(self, name, code):
        """Python of a host runs this first."""
        (self._folder / name).mkdir()
        (self._folder / name / 'sitecustomize.py').write_text(code)

    def pids(self, name='*'):
        """Of the processes that were started on a host."""
        return [int(path.suffix[1:])
                for path in self._folder.glob(name + '.*')]

    def asked(self, name):
        """The words that ``ssh`` was given for a host, each time."""
        return [path.read_text() for path in self._folder.glob(name + '.*')]

    def signal(self, name, number=signal.SIGKILL):
        """A signal to all that is there."""
        for pid in self.pids(name):
            os.kill(pid, number)

    def close(self):
        """End those that stand still; the others have ended."""
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGCONT)
