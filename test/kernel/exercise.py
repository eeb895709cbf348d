"""Exercisers of file systems over dm-dss, against the plain disk.

``python test/kernel/exercise.py`` runs, on XFS and on ext4, each over the
plain disk and over dm-dss in two modes and with a stage,

* ``fsx`` (from the Rust registry: ``cargo install fsx``), one for each of
  four classes side by side, with every operation that it knows;
* stress-ng's file-system stressors with ``--verify``;
* ``fio --verify`` of synchronous writes through power cuts;

with the page cache emptied twenty times a second, and the file system's
checker after each. Outcomes have to be good, and the same as those of the
plain disk, contents of files included. Then a wrong twin of the module has
to be caught by ``fsx``; the others read too little again that has left the
cache, so without it the twin is not tried. Exit status 1 if anything differs
or failed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from typing import Any, Dict, List, Sequence

import dss_lab

from swift_dss.block.lab import cache

FILE_SYSTEMS = ('xfs', 'ext4')
#: With blocks that are smaller than a page.
SMALL_BLOCKS = ('xfs-1k', 'ext4-1k')
#: In "staged" nothing is dirty but by the stage.
MODES = ('writeback', 'writethrough', 'staged')
PARTS = ('fsx', 'stress-ng', 'fio')
#: stress-ng's class ``filesystem``.
STRESSORS = (
    'access', 'chattr', 'chdir', 'chmod', 'chown', 'copy-file', 'dentry',
    'dir', 'dirdeep', 'dirmany', 'dnotify', 'dup', 'eventfd', 'fallocate',
    'fanotify', 'fcntl', 'fiemap', 'file-ioctl', 'filename', 'flock',
    'fpunch', 'fsize', 'fstat', 'getdent', 'handle', 'hdd', 'inode-flags',
    'inotify', 'io', 'iomix', 'ioprio', 'lease', 'link', 'locka', 'lockf',
    'lockofd', 'mknod', 'open', 'rename', 'symlink', 'sync-file', 'touch',
    'utime', 'verity', 'xattr')
#: Those of later releases than 0.15.
LATER = ('acl', 'fd-fork', 'filerace', 'lockmix', 'metamix', 'pseek', 'umask',
         'unlink')
#: All of that class but these, and why.
LEFT_OUT = {
    'bind-mount': 'ends with 1 on the plain disk, too',
    'binderfs': 'ends with 1 on the plain disk, too',
    'procfs': 'reads /proc, not the file system',
    'statmount': 'asks for mounts, not the file system'}
#: What makes them fit a device of 400 MiB and a guest's patience. An
#: operation of link is 8192 links; inode-flags counts none.
STRESSOR_OPTIONS = {
    'chdir': ('--chdir-dirs', '64'),
    'dentry': ('--dentries', '64'),
    'dir': ('--dir-dirs', '64'),
    'inode-flags': ('--timeout', '1s'),
    'link': ('--link-ops', '1'),
    'symlink': ('--symlink-ops', '1'),
    'sync-file': ('--sync-file-bytes', '1m')}
#: Real time that a guest may take.
GUEST_SECONDS = 3600
#: Lets those rest that spin until another has done something.
RESTING = os.path.join(dss_lab.HERE, 'resting.c')
#: New bytes are never dirty: they are gone when their chunk leaves.
TWIN = ('dss_end.c',
        'dss_set_dirty(d, io->slot, io->first, io->nr);\n\t/* Again',
        '/* Again')


def fsx_program() -> str:
    """Where fsx is; '' if it is not installed."""
    return os.environ.get('FSX') or shutil.which('fsx') or shutil.which(
        'fsx', path=os.path.expanduser('~/.cargo/bin')) or ''


def known_stressors() -> List[str]:
    """What this machine's stress-ng has of that class; [] without one."""
    if not shutil.which('stress-ng'):
        return []
    said = subprocess.run(['stress-ng', '--class', 'filesystem?'],
                          capture_output=True, text=True, check=False).stdout
    return said.partition(':')[2].split()


def stressors() -> List[str]:
    """Those of them that are tried."""
    known = known_stressors()
    return [name for name in STRESSORS + LATER if name in known]


def missing(parts: Sequence[str]) -> List[str]:
    """What the parts need and this machine has not, and how to get it."""
    lines = []
    if 'fsx' in parts and not fsx_program():
        lines.append('fsx: cargo install fsx, or name it in $FSX')
    for name, program in (('stress-ng', 'stress-ng'), ('fio', 'fio')):
        if name in parts and not shutil.which(program):
            lines.append('%s: apt-get install %s' % (name, program))
    return lines


def resting() -> str:
    """The library of :data:`RESTING`, compiled once."""
    with open(RESTING, 'rb') as source:
        folder = os.path.join(cache.root(), 'resting-' + cache.digest(
            [source.read()]))
    library = os.path.join(folder, 'resting.so')
    with cache.making(folder, print) as ours:
        if ours:
            cache.call(['gcc', '-shared', '-fPIC', '-O2', '-Wall', '-Werror',
                        '-o', library, RESTING, '-ldl'], folder,
                       'compiling %s' % RESTING)
    return library


def job(file_system: str, device: str, parts: Sequence[str], seed: int,
        **changes: Any) -> Dict[str, Any]:
    """What a guest is told."""
    return dict({
        'file_system': file_system, 'device': device, 'parts': list(parts),
        'seed': seed, 'fsx': fsx_program(), 'fsx_operations': 5000,
        'resting': resting(),
        'stressors': stressors(),
        'stressor_options': STRESSOR_OPTIONS,
        'stress_operations': 20, 'cuts': 5,
        'fio_bytes': 3 << 20},
        **changes)


def exercised(told: Dict[str, Any], module: str = 'dm-dss') -> Dict[str, Any]:
    """Run a guest; its outcome."""
    report: Dict[str, Any] = dss_lab.found(
        'dss_exercise.py', [json.dumps(told)], module,
        timeout=GUEST_SECONDS)
    return report


def faults(outcome: Dict[str, Any], plain: Dict[str, Any]) -> List[str]:
    """What is wrong with an outcome: by itself, and beside the plain
    disk's."""
    lines = []
    for part, result in outcome.items():
        if any(result['checked']):
            lines.append('%s: the checker found %s' % (
                part, result['checked']))
        for name, value in result.items():
            if value != plain[part].get(name):
                lines.append('%s: %s is %r, on the plain disk %r' % (
                    part, name, value, plain[part].get(name)))
    if any(outcome.get('fsx', {}).get('status', ())):
        lines.append('fsx: %s' % outcome['fsx'])
    lines += ['stress-ng: %s failed' % name for name, status in
              outcome.get('stress-ng', {}).items() if status == 2]
    fio = outcome.get('fio')
    if fio and not (fio['right'] and fio['verified']
                    and not any(fio['repair'])):
        lines.append('fio: %s' % fio)
    return lines


def compared(parts: Sequence[str], file_systems: Sequence[str],
             modes: Sequence[str], seed: int, **changes: Any) -> int:
    """Everything; how many faults there were."""
    count = 0
    for file_system in file_systems:
        plain = exercised(job(file_system, 'plain', parts, seed, **changes))
        for mode in ('plain',) + tuple(modes):
            report = plain if mode == 'plain' else exercised(
                job(file_system, mode, parts, seed, **changes))
            wrong = faults(report['outcome'], plain['outcome'])
            count += len(wrong)
            passed = sum(status == 0 for name, status in report[
                'outcome'].get('stress-ng', {}).items() if name != 'checked')
            print('%s, %s: %d differences; %d stressors passed, fio '
                  'verified %d blocks; %s' % (
                      file_system, mode, len(wrong), passed,
                      report['outcome'].get('fio', {}).get('verified', 0),
                      json.dumps(report['cache'])))
            for line in wrong:
                print('  ' + line)
            sys.stdout.flush()
    return count


def twin_is_caught(parts: Sequence[str], seed: int, **changes: Any) -> bool:
    """A cache that forgets what was written has to differ."""
    with tempfile.TemporaryDirectory() as folder:
        module = dss_lab.wrong_twin(folder, [TWIN])
        ended = dss_lab.result('dss_exercise.py', [json.dumps(job(
            'ext4', 'writeback', parts, seed, **changes))], module,
            timeout=GUEST_SECONDS)
    if ended.status or ended.complaints:
        # It could not even be mounted again.
        return True
    plain = exercised(job('ext4', 'plain', parts, seed, **changes))
    return bool(faults(json.loads(ended.output.splitlines()[-1])['outcome'],
                       plain['outcome']))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--parts', default=','.join(PARTS))
    parser.add_argument('--file-systems', default=','.join(FILE_SYSTEMS))
    parser.add_argument('--modes', default=','.join(MODES))
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--fsx-operations', type=int, default=5000)
    parser.add_argument('--stress-operations', type=int, default=20)
    parser.add_argument('--stressors', default=','.join(stressors()))
    parser.add_argument('--cuts', type=int, default=5)
    parser.add_argument('--no-twin', action='store_true')
    options = parser.parse_args()
    parts = options.parts.split(',')
    kinds = options.file_systems.split(',')
    unknown = set(kinds) - set(FILE_SYSTEMS + SMALL_BLOCKS)
    if unknown:
        parser.error('no file system %s: there are %s' % (
            ', '.join(sorted(unknown)),
            ', '.join(FILE_SYSTEMS + SMALL_BLOCKS)))
    lines = missing(parts)
    if lines:
        print('\n'.join(lines))
        return 2
    changes = {'fsx_operations': options.fsx_operations,
               'stress_operations': options.stress_operations,
               'stressors': options.stressors.split(','),
               'cuts': options.cuts}
    count = compared(parts, kinds, options.modes.split(','), options.seed,
                     **changes)
    print('%d differences' % count)
    if options.no_twin or 'fsx' not in parts:
        print('wrong twin: not tried')
        return int(count > 0)
    caught = twin_is_caught(['fsx'], options.seed, **changes)
    print('wrong twin: %s' % ('caught' if caught else 'NOT CAUGHT'))
    return int(count > 0 or not caught)


if __name__ == '__main__':
    sys.exit(main())
