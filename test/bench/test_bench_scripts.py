"""Every script of this folder still runs, with next to nothing to do.

What the figures are is not looked at, nor how long anything took: that
the script comes to them is.
"""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Any, Callable, Dict, List

import pytest

from swift_dss.aio import storage
from swift_dss.bench.load import warpcsv

HERE = pathlib.Path(__file__).parent
LIMIT_SECONDS = 300


def _run(name: str, arguments: List[str]) -> Any:
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', str(HERE / name)] + arguments,
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=LIMIT_SECONDS)
    assert 'Traceback' not in done.stderr, done.stderr
    return done


def _sampled(tmp_path: pathlib.Path) -> None:
    done = _run('sampled.py', [
        'gen:zipf,requests=20000,objects=2000', '50%', '1'])
    assert done.returncode == 0, done.stderr
    assert re.search(r'20000 requests, 24 cells; mean error 0\.0\d+, ',
                     done.stdout)


def _wear(tmp_path: pathlib.Path) -> None:
    done = _run('wear.py', ['gen:cacs,requests=3000,objects=300'])
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r'(?m)^cacs|^gen:cacs', done.stdout)) == 12
    assert re.search(r'(?m)^class +learned +[0-3] +3 +[01] +1$',
                     done.stdout)


def _tuning(tmp_path: pathlib.Path) -> None:
    done = _run('tuning.py', [
        '--configured', 'class', 'gen:zipf,requests=9000,objects=900',
        'gen:zipf,requests=9000,objects=900,alpha=0.6,sigma=1.5'])
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r'(?m)^(tuned-)?class\S* +\d+[.]\d+ +\d+[.]\d+$',
                          done.stdout)) == 6
    assert re.search(r'(?m)^- configured +[-+]\d', done.stdout)
    assert 'us an access' in done.stdout


def _dollars(tmp_path: pathlib.Path) -> None:
    done = _run('dollars.py', ['gen:cacs,requests=3000,objects=300'])
    assert done.returncode == 0, done.stderr
    assert re.search(r'(?m)^our best: within 1 % of the cheapest in [0-3] '
                     'of 3 cells, ', done.stdout)


def _short_folder() -> Any:
    """Not under tmp_path: a worker's is too long for a socket's name."""
    return tempfile.TemporaryDirectory(prefix='dss-', dir='/dev/shm')


def _index_at_scale(tmp_path: pathlib.Path) -> None:
    # 1 is a target that was missed, which so few objects may do.
    with _short_folder() as short:
        done = _run('index_at_scale.py', [
            '--objects', '300', '--devices', '4', '--shards', '2',
            '--on', short])
    assert done.returncode in (0, 1), done.stderr
    assert re.search(r'(?m)^start with 300 objects: [\d.]+ s', done.stdout)
    assert re.search(r'(?m)^ls --class scarce +[\d.]+ ms', done.stdout)
    assert 'memory per tracked object:' in done.stdout


def _rebalance_index(tmp_path: pathlib.Path) -> None:
    with _short_folder() as short:
        done = _run('rebalance_index.py', ['--objects', '2000', '--on',
                                           short])
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r' 0 demoted, 0 copied to the HDD, [1-9]\d* forgotten',
                     done.stdout)


def _daemon_events(tmp_path: pathlib.Path) -> None:
    why_not = storage.why_no_loops()
    if why_not:
        pytest.skip('needs XFS on a loop device: %s' % why_not)
    with _short_folder() as short:
        done = _run('daemon_events.py', [
            '--count', '4', '--devices', '1', '--gateway', '--on', short])
    assert done.returncode == 0, done.stderr
    for kind in ('put', 'overwrite', 'read', 'read again', 'delete', 'all'):
        assert re.search(r' %s -?\d+ us' % kind, done.stdout), done.stdout


def _pressure_questions(_tmp_path: pathlib.Path) -> None:
    done = _run('pressure_questions.py', [
        '--nodes', '2', '--devices', '3', '--workers', '1', '--rounds', '1',
        '--seconds', '1', '--warm', '0.5'])
    assert done.returncode == 0, done.stdout + done.stderr
    for side in ('alone', 'shared', 'far'):
        assert re.search(r'(?m)^%s +[\d.]+ questions/s' % side,
                         done.stdout), done.stdout


def _request_path(tmp_path: pathlib.Path) -> None:
    done = _run('request_path.py', [
        '--devices', str(tmp_path), '--sizes', '4096', '--rounds', '1'])
    assert done.returncode == 0, done.stderr
    for operation in ('HEAD', 'GET', 'GET disk', 'PUT'):
        assert re.search(r'(?m)^%s +4096  vanilla \d+ us' % operation,
                         done.stdout), done.stdout


def _block_checksums(tmp_path: pathlib.Path) -> None:
    done = _run('block_checksums.py', [
        '--devices', str(tmp_path), '--rounds', '2', '--only', '64 KiB'])
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r'(?m)^range of 64 KiB.* us off, x[\d.]+ on, noise '
                          r'x[\d.]+$', done.stdout)) == 2, done.stdout


def _instructions(tmp_path: pathlib.Path) -> None:
    if shutil.which('valgrind') is None:
        pytest.skip('needs valgrind')
    done = _run('instructions.py', ['--devices', str(tmp_path),
                                    '--only', 'GET 4096'])
    assert done.returncode == 0, done.stderr
    assert re.search(r'(?m)^GET 4096 +\d+ thousand without checksums '
                     r'x[\d.]+ with x[\d.]+ classified x[\d.]+$',
                     done.stdout), done.stdout


def _proxy_instructions(_tmp_path: pathlib.Path) -> None:
    if shutil.which('valgrind') is None:
        pytest.skip('needs valgrind')
    done = _run('proxy_instructions.py', ['--only', 'GET 4096',
                                          '--batches', '1'])
    assert done.returncode == 0, done.stderr
    assert re.search(r'(?m)^GET 4096 +\d+ thousand unclassified x[\d.]+ '
                     r'classified x[\d.]+$', done.stdout), done.stdout


def _three_enforcers(_tmp_path: pathlib.Path) -> None:
    done = _run('three_enforcers.py', ['--length', '500'])
    assert done.returncode == 0, done.stdout + done.stderr
    match = re.search(r'(?m)^(\d+) of (\d+) comparisons identical$',
                      done.stdout)
    assert match and int(match.group(1)) == int(match.group(2)) > 0


def _core_speed(_tmp_path: pathlib.Path) -> None:
    done = _run('core_speed.py', ['64'])
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r'(?m)^64 slots, \d+ bytes', done.stdout)
    assert re.search(r'(?m)^verdict, take and commit +\d', done.stdout)


#: Started or imported by the scripts, not called by hand.
STARTED = ('enforcer_guest.py', 'enforcer_lab.py', 'placement_writer.py')
def _shards(tmp_path: pathlib.Path) -> None:
    with _short_folder() as short:
        done = _run('shards.py', [
            '--objects', '80', '--single', '40', '--bundled', '80',
            '--rounds', '1', '--lead', '40', '--on', short])
    assert done.returncode == 0, done.stderr
    for name in ('rebuild', 'sweep', 'events', 'single', 'bundled'):
        assert re.search(r'(?m)^%s +\d+/s +\d+/s +[\d.]+ ' % name,
                         done.stdout), done.stdout
    assert re.search(r'(?m)^single, S3 alone .*: processors [\d.]+ of \d+: '
                     r'us [\d.]+, S3 [\d.]+, others', done.stdout)


def _single_uploads(tmp_path: pathlib.Path) -> None:
    with _short_folder() as short:
        done = _run('single_uploads.py', [
            '--count', '6', '--devices', '2', '--on', short])
    assert done.returncode == 0, done.stderr
    assert re.search(r'(?m)^median this +us a version -?\d.* PUT 1\.00 ',
                     done.stdout), done.stdout


def _placement(tmp_path: pathlib.Path) -> None:
    why_not = storage.why_no_loops()
    if why_not:
        pytest.skip('needs XFS on a loop device: %s' % why_not)
    # 1 is a target that was missed, which so few objects may do.
    told = tmp_path / 'rows.json'
    done = _run('placement.py', [
        '--sizes', '0.5', '--writers', '1,2', '--objects', '12', '--scale',
        '0.1', '--overwrites', '1', '--processes', '2', '--full', '0.5',
        '--on', str(tmp_path), '--json', str(told)])
    assert done.returncode in (0, 1), done.stderr
    assert re.search(r'(?m)^512 GiB +2 +off +[\d.]+ \([\d.-]+\)', done.stdout)
    rows = json.loads(told.read_text())['rows']
    assert [(row['writers'], row['side']) for row in rows] == [
        (1, 'on'), (1, 'off'), (2, 'on'), (2, 'off')]
    # Of few files that is certain: one writer's lie side by side.
    assert rows[0]['fresh'] < 0.2 < rows[1]['fresh']


def _listings(_tmp_path: pathlib.Path) -> None:
    done = _run('listings.py', ['--objects', '9', '--rounds', '2'])
    assert done.returncode == 0, done.stdout + done.stderr
    for side in ('stock', 'not asked', 'classes', 'one class'):
        assert re.search(r'(?m)^%s +9 rows  median +[\d.]+ ms  ratio '
                         r'[\d.]+$' % side, done.stdout), done.stdout


def _large_posts(_tmp_path: pathlib.Path) -> None:
    done = _run('large_posts.py', ['--segments', '9', '--rounds', '1'])
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r'(?m)^round 0: [\d.]+ s; CPU seconds: ', done.stdout)
    assert re.search(r'(?m)^9 segments: median [\d.]+ s', done.stdout)


def _beside_ssbench(tmp_path: pathlib.Path) -> None:
    # Its source is to be had on no index.
    done = _run('beside_ssbench.py', ['--ssbench', str(tmp_path)])
    assert done.returncode == 2
    assert 'it is no checkout of ssbench' in done.stderr


#: In place of warp, which is on no index: the lines of a run without a
#: request, and the analysis of lines.
_NO_WARP = """#!%s
import json, pathlib, subprocess, sys
if sys.argv[1] == 'run':
    name = [line.split()[1] for line in open(sys.argv[2])
            if 'bench-data' in line][0] + '.csv'
    with open(name, 'w') as out:
        print(%r, file=out)
        for at in range(50):
            print('%%d\\t0\\tGET\\tx\\t1\\t9\\thost\\tfile\\t\\t'
                  '2026-01-01T00:00:%%02d.5Z\\t\\t2026-01-01T00:00:'
                  '%%02d.75Z\\t250000000' %% (at, at, at), file=out)
    subprocess.run(['zstd', '-qf', name], check=True)
else:
    lines = subprocess.run(['zstd', '-dqc', sys.argv[3]], check=True,
                           capture_output=True, text=True).stdout
    rows = [line.split('\\t') for line in lines.splitlines()[1:]]
    print(json.dumps({'by_op_type': {'GET': {
        'start_time': min(row[9] for row in rows), 'total_errors': 0,
        'end_time': max(row[11] for row in rows),
        'total_requests': len(rows)}}}))
"""


def _beside_warp(tmp_path: pathlib.Path) -> None:
    done = _run('beside_warp.py', ['--warp', str(tmp_path / 'none')])
    assert done.returncode == 2
    assert 'cannot be run' in done.stderr
    program = tmp_path / 'warp'
    program.write_text(_NO_WARP % (sys.executable, '\t'.join(
        warpcsv.HEADER)))
    program.chmod(0o755)
    done = _run('beside_warp.py', [
        '--warp', str(program), '--rounds', '2', '--seconds', '1',
        '--objects', '5', '--benchmarks', 'get', '--json'])
    assert done.returncode == 0, done.stderr
    row, = json.loads(done.stdout)['rows']
    assert row['rate']['warp'] == pytest.approx(50 / 49.25)
    assert row['p50_ms']['warp'] == 250.0
    assert row['rate']['ours'] > 1
    assert row['rate']['ratio'][0] <= row['rate']['ratio'][1]


def _large_map(_tmp_path: pathlib.Path) -> None:
    done = _run('large_map.py', ['--gib', '0.01', '--segments', '4'])
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r'(?m)^0.01 GiB in 4 segments, 3 ranges: ', done.stdout)


def _fs_throughput(_tmp_path: pathlib.Path) -> None:
    done = _run('fs_throughput.py', [
        '--rounds', '1', '--bytes', str(1 << 20), '--files', '3'])
    assert done.returncode == 0, done.stdout + done.stderr
    for work in ('write', 'read', 'write small', 'read small'):
        assert re.search(r'(?m)^%s +dss [\d.]+ MB/s$' % work, done.stdout)


def _evicted_files(_tmp_path: pathlib.Path) -> None:
    pytest.importorskip('fsspec')
    done = _run('evicted_files.py', ['--mib', '16', '--formats', 'zip', '--on',
                                '/dev/shm'])
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r'(?m)^zip +zip +16.0 +[\d.]+% +0 +0 +\d+ +[\d.]+s',
                     done.stdout), done.stdout


def _all_scenarios(tmp_path: pathlib.Path) -> None:
    said = {'name': 's', 'crud_profile': [1, 2, 1, 1], 'operation_count': 9,
            'user_count': 2, 'container_count': 2, 'initial_files': {'a': 4},
            'sizes': [{'name': 'a', 'size_min': 1, 'size_max': 9000}]}
    (tmp_path / 'in').mkdir()
    (tmp_path / 'in' / 'a.scenario').write_text(json.dumps(said))
    said['initial_files'] = {'a': 10 ** 6}
    (tmp_path / 'b.scenario').write_text(json.dumps(said))
    done = _run('all_scenarios.py', ['--scenarios', str(tmp_path), '-o', '7',
                                 '--gib', '1', '--on', '/dev/shm'])
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r'(?m)^in/a.scenario +4 +0.0 +7 +0 +0 +\d+ s  ok$',
                     done.stdout), done.stdout
    assert re.search(r'(?m)^b.scenario +1000000 +4500.5 .* not begun: its '
                     r'objects may be 8.4 GiB$', done.stdout), done.stdout


SCRIPTS: Dict[str, Callable[[Any], None]] = {
    'all_scenarios.py': _all_scenarios,
    'beside_ssbench.py': _beside_ssbench,
    'beside_warp.py': _beside_warp,
    'block_checksums.py': _block_checksums,
    'core_speed.py': _core_speed,
    'daemon_events.py': _daemon_events,
    'dollars.py': _dollars,
    'evicted_files.py': _evicted_files,
    'fs_throughput.py': _fs_throughput,
    'index_at_scale.py': _index_at_scale,
    'instructions.py': _instructions,
    'large_map.py': _large_map,
    'large_posts.py': _large_posts,
    'listings.py': _listings,
    'placement.py': _placement,
    'pressure_questions.py': _pressure_questions,
    'proxy_instructions.py': _proxy_instructions,
    'rebalance_index.py': _rebalance_index,
    'request_path.py': _request_path,
    'sampled.py': _sampled,
    'shards.py': _shards,
    'single_uploads.py': _single_uploads,
    'three_enforcers.py': _three_enforcers,
    'tuning.py': _tuning,
    'wear.py': _wear,
}


@pytest.mark.parametrize('name', sorted(
    path.name for path in HERE.glob('*.py')
    if not path.name.startswith('test_') and path.name not in STARTED))
def test_a_script_comes_to_its_figures(
        name: str, tmp_path: pathlib.Path) -> None:
    assert name in SCRIPTS, 'no small run of it here'
    SCRIPTS[name](tmp_path)
