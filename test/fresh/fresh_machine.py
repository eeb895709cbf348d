"""A fresh Debian with its main archive alone runs what the README says.

    python test/fresh/fresh_machine.py [--release 12] [--do all]

Unpacks a minimal Debian without even a Python, copies the checkout into it,
and runs there ``bash devstack/aio.sh``, a plot, and a few tests; ``--do all``
runs ``bash test/run`` in place of these. Prints seconds, and what it takes on
disk. As root; an hour and more for all of it.
"""

from __future__ import annotations

import argparse
import pathlib
import shutil
import subprocess
import sys
import time

import roots
from roots import say

_TESTS = ('test/unit/wire', 'test/unit/io/test_capacity_folder.py',
          'test/unit/block/lab', 'test/unit/replay/test_trace_readers.py')
_STEPS = {
    'aio': 'cd /srv/swift-dss; bash devstack/aio.sh; '
           '.venv/bin/swift-dss aio stop',
    'plot': 'cd /srv/swift-dss; .venv/bin/swift-dss replay gen:cacs '
            '--strategy all --plot /srv/cacs.png; ls -l /srv/cacs.png',
    # As test/run does, as far as the tests.
    'tests': 'cd /srv/swift-dss; source devstack/setup.sh; '
             'need_system zstd=zstd procps=pgrep; need_venv aio,bench,test; '
             '.venv/bin/python -m pytest -q -p no:cacheprovider '
             + ' '.join(_TESTS),
    'run': 'cd /srv/swift-dss; bash test/run'}
_CHOICES = {'aio': ('aio', 'plot'), 'quick': ('aio', 'plot', 'tests'),
            'all': ('aio', 'plot', 'run')}


def megabytes(root: pathlib.Path) -> int:
    """What lies on its disk."""
    said = subprocess.run(['du', '-sxm', str(root)], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    return int(said.split()[0])


def show(release: str, names: tuple[str, ...], logs: pathlib.Path) -> bool:
    """True if all of it went well on a release."""
    with roots.Machine(roots.minimal(release)) as machine:
        machine.copy_repository('/srv/swift-dss')
        sources = machine.root / 'etc' / 'apt' / 'sources.list'
        before, text = megabytes(machine.root), sources.read_text()
        say('Debian %s: %d MB; apt has: %s' % (release, before,
                                               text.strip()))
        well = True
        for name in names:
            began = time.monotonic()
            status = machine.chroot(
                _STEPS[name], logs / ('fresh-%s-%s.log' % (release, name)))
            say('Debian %s: %s: %s after %.1f minutes, %d MB more' % (
                release, name, 'ok' if not status else 'FAILED (%d)' % status,
                (time.monotonic() - began) / 60,
                megabytes(machine.root) - before))
            well = well and not status
        if sources.read_text() != text:
            say("the machine's apt was changed")
            well = False
        return well


def main() -> None:
    """Parse, and show each release."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--release', action='append',
                        choices=sorted(roots.RELEASES))
    parser.add_argument('--do', choices=sorted(_CHOICES), default='quick')
    parser.add_argument('--logs', type=pathlib.Path,
                        default=pathlib.Path('/tmp'))
    args = parser.parse_args()
    roots.need()
    args.logs.mkdir(parents=True, exist_ok=True)
    if not shutil.which('unshare'):
        sys.exit('apt-get install util-linux')
    well = [show(release, _CHOICES[args.do], args.logs)
            for release in args.release or sorted(roots.RELEASES)]
    sys.exit(0 if all(well) else 1)


if __name__ == '__main__':
    main()
