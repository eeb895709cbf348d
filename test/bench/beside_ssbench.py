"""CPU a request of ``swift-dss load``, beside ssbench's on Python 3.

ssbench is of Python 2 and on no index. This takes a checkout of it, turns it
by lib2to3 and the few changes below, installs what it wants in a virtual
environment, and runs one scenario by either, in turn, on one cluster. CPU is
that of all processes of a driver: a long run less a short one, by the
operations that the long one has more. ssbench does not look at the bytes that
it reads; ours compares them.

    python test/bench/beside_ssbench.py --ssbench FOLDER --rounds 4
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from typing import Any, Callable, Dict, List

sys.path.insert(0, os.path.join(os.path.dirname(
    os.path.abspath(__file__)), os.pardir))

from support.nodes import bench_cluster

from swift_dss.aio.cluster import Cluster

_PACKAGES = ('gevent==26.9.0', 'geventhttpclient==1.5.3', 'pyzmq==27.3.0',
             'msgpack==1.2.4', 'Mako==1.4.3', 'simplejson==4.3.0')
#: What lib2to3 does not see.
_CHANGES = (('worker.py', 'gevent.coros', 'gevent.lock'),
            ('worker.py', 'letter * block_size',
             '(letter * block_size).encode()'),
            ('run_results.py', 'StringIO', 'BytesIO'),
            ('run_results.py', 'getvalue(True)', 'getvalue()'),
            ('swift_client.py', "value = value.encode('utf8')", 'pass'))
_SHORT = 20
_SUBREAPER = 36


def port(checkout: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """ssbench for Python 3; the Python that has what it wants."""
    shutil.copytree(checkout / 'ssbench', folder / 'ssbench')
    for name in ('ssbench-master', 'ssbench-worker'):
        shutil.copy(checkout / 'bin' / name, folder)
    subprocess.run([sys.executable, '-W', 'ignore', '-m', 'lib2to3', '-w',
                    '-n', '--no-diffs', str(folder),
                    str(folder / 'ssbench-master'),
                    str(folder / 'ssbench-worker')], check=True,
                   capture_output=True)
    for name, old, new in _CHANGES:
        path = folder / 'ssbench' / name
        text = path.read_text()
        assert old in text, (name, old)
        path.write_text(text.replace(old, new))
    subprocess.run([sys.executable, '-m', 'venv', str(folder / 'venv')],
                   check=True)
    python = folder / 'venv' / 'bin' / 'python'
    subprocess.run([str(python), '-m', 'pip', 'install', '-q', *_PACKAGES],
                   check=True)
    # The master starts its workers by their name.
    for name in ('ssbench-master', 'ssbench-worker'):
        path = folder / name
        lines = path.read_text().split('\n')
        path.write_text('\n'.join(['#!%s' % python, *lines[1:]]))
        path.chmod(0o755)
    return python


def scenario(folder: pathlib.Path, users: int) -> pathlib.Path:
    """One for both."""
    path = folder / 'both.scenario'
    path.write_text(json.dumps({
        'name': 'both', 'sizes': [{'name': 'small', 'size_min': 1000,
                                   'size_max': 40000}],
        'initial_files': {'small': 50}, 'operation_count': _SHORT,
        'crud_profile': [1, 4, 1, 1], 'user_count': users,
        'container_base': 'both', 'container_count': 2,
        'container_concurrency': 2}))
    return path


def _cpu(command: List[str], env: Dict[str, str]) -> float:
    """Of a driver and all that it started, in seconds."""
    done = subprocess.run(
        [sys.executable, os.path.abspath(__file__), '--watch', *command],
        env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit('%s\n%s%s' % (' '.join(command), done.stdout[-2000:],
                               done.stderr[-2000:]))
    return float(done.stdout.rpartition('CPU ')[2])


def watch(command: List[str]) -> int:
    """Run a command, and wait for all that it started, as workers outlive
    their master for a moment; print their CPU."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    done = subprocess.run(command, check=False)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print('CPU %f' % (used.ru_utime + used.ru_stime))
    return done.returncode


def commands(cluster: Cluster, path: pathlib.Path, folder: pathlib.Path
             ) -> Dict[str, Callable[[int], List[str]]]:
    """A command of either, by how many operations."""
    access = ['-A', cluster.conf.auth_url, '-U', 'test:tester',
              '-K', 'testing']

    def ours(count: int) -> List[str]:
        return [os.path.join(os.path.dirname(sys.executable), 'swift-dss'),
                'load', str(path),
                '--auth', cluster.conf.auth_url, '--user', 'test:tester',
                '--key', 'testing', '--processes', '1', '-o', str(count)]

    def theirs(count: int) -> List[str]:
        return [str(folder / 'ssbench-master'), 'run-scenario', '-f',
                str(path), *access, '--workers', '1', '-o', str(count),
                '-s', str(folder / 'stats.gz'), '--no-default-report']

    return {'ours': ours, 'ssbench': theirs}


def measure(cluster: Cluster, path: pathlib.Path, folder: pathlib.Path,
            rounds: int, operations: int) -> None:
    """In turn; prints each round, medians and their ratio."""
    env = dict(os.environ, PYTHONPATH='%s:%s' % (
        folder, os.environ.get('PYTHONPATH', '')), PATH='%s:%s' % (
            folder, os.environ['PATH']))
    seen: Dict[str, List[float]] = {'ours': [], 'ssbench': []}
    for number in range(rounds):
        for name, command in commands(cluster, path, folder).items():
            short = _cpu(command(_SHORT), env)
            long = _cpu(command(operations), env)
            seen[name].append((long - short) / (operations - _SHORT))
        print('round %d: %s' % (number, ', '.join(
            '%s %.0f us' % (name, 1e6 * values[-1])
            for name, values in seen.items())), flush=True)
    ours, theirs = (statistics.median(seen[name]) for name in
                    ('ours', 'ssbench'))
    print('CPU a request: ours %.0f us, ssbench %.0f us, ratio %.2f' % (
        1e6 * ours, 1e6 * theirs, ours / theirs))


def main() -> int:
    """Run it on a cluster that is made, and removed."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--ssbench', type=pathlib.Path, required=True,
                        metavar='FOLDER', help='a checkout')
    parser.add_argument('--rounds', type=int, default=4)
    parser.add_argument('--operations', type=int, default=2000)
    parser.add_argument('--users', type=int, default=8)
    options: Any = parser.parse_args()
    if not (options.ssbench / 'bin' / 'ssbench-master').exists():
        parser.error('argument --ssbench: %s has no bin/ssbench-master: it '
                     'is no checkout of ssbench' % options.ssbench)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        port(options.ssbench, folder)
        path = scenario(folder, options.users)
        with bench_cluster.started() as cluster:
            measure(cluster, path, folder, options.rounds,
                    options.operations)
    return 0


if __name__ == '__main__':
    sys.exit(watch(sys.argv[2:]) if sys.argv[1:2] == ['--watch'] else main())
