"""Parts of the tests run beside each other and are all counted."""

import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import time

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / 'side_by_side.py'

#: Says that it is here and waits for the other, ten seconds at most.
MEETS = '''
import os, sys, time
open(sys.argv[1], 'w').close()
for _ in range(500):
    if os.path.exists(sys.argv[2]):
        sys.exit(0)
    time.sleep(0.02)
sys.exit(7)
'''
#: Lines far enough apart to be mixed with another's, if anything mixes.
TALKS = '''
import sys, time
for number in range(5):
    print(sys.argv[1], number, flush=True)
    time.sleep(0.05)
sys.exit(int(sys.argv[2]))
'''
#: Like pytest: SIGINT is an orderly end, after the teardown.
TEARS_DOWN = '''
import pathlib, sys, time
try:
    pathlib.Path(sys.argv[1]).touch()
    time.sleep(600)
finally:
    pathlib.Path(sys.argv[2]).touch()
'''


def _command(tmp_path, *arguments):
    # As in the background of a shell: there SIGINT is ignored.
    return ['bash', '-c', 'trap "" INT; exec "$@"', 'bash', sys.executable,
            str(SCRIPT), '--logs', str(tmp_path / 'logs'), *arguments]


def _run(tmp_path, *arguments):
    done = subprocess.run(_command(tmp_path, *arguments), timeout=60,
                          stdin=subprocess.DEVNULL, capture_output=True,
                          text=True)
    return done.returncode, done.stdout + done.stderr


def _part(name, script, *arguments):
    return ['--part', name, sys.executable, '-c', script, *map(str, arguments)]


def test_parts_run_at_the_same_time(tmp_path):
    meeting = [tmp_path / 'a', tmp_path / 'b']
    code, said = _run(
        tmp_path, '--slots', '2', *_part('one', MEETS, *meeting),
        *_part('two', MEETS, *reversed(meeting)))
    assert code == 0, said


def test_no_more_run_at_once_than_there_are_slots(tmp_path):
    """Each waits for the other: one of them waits in vain."""
    meeting = [tmp_path / 'a', tmp_path / 'b']
    code, said = _run(
        tmp_path, '--slots', '1', *_part('one', MEETS, *meeting),
        *_part('two', MEETS, *reversed(meeting)))
    assert code == 1
    assert 'one: FAILED (7)' in said and 'two: ok' in said


def test_output_is_whole_and_each_verdict_counts(tmp_path):
    code, said = _run(
        tmp_path, '--slots', '3', *_part('good', TALKS, 'good', 0),
        *_part('bad', TALKS, 'bad', 3), *_part('late', TALKS, 'late', 0))
    assert code == 1
    for name in ('good', 'bad', 'late'):
        assert ''.join('%s %d\n' % (name, number)
                       for number in range(5)) in said
    assert 'bad: FAILED (3)' in said
    # The last lines sum it up.
    assert [line.split()[-1] for line in said.splitlines()[-3:]] == [
        'ok', '(3)', 'ok']


#: Like pytest, of which a test may have failed before it is interrupted.
COUNTS = '''
import sys, time
try:
    print('... [ 40%]', flush=True)
    time.sleep(600)
finally:
    print('slowest' * 1000, sys.argv[1], flush=True)
'''


def test_parts_for_which_there_is_no_time_are_torn_down_and_told(tmp_path):
    code, said = _run(
        tmp_path, '--slots', '2', '--until', '4',
        *_part('long', COUNTS, '5 passed, 0 failed'),
        *_part('stuck', TEARS_DOWN, tmp_path / 'begun', tmp_path / 'gone'),
        *_part('third', TALKS, 'third', 0))
    assert code == 0, said
    assert [line.split('s  ')[1] for line in said.splitlines()[-3:]] == [
        'cut off at 40 %: no time', 'cut off at -: no time',
        'left out: no time']
    assert (tmp_path / 'begun').exists() and (tmp_path / 'gone').exists()


def test_a_failure_before_the_cut_counts(tmp_path):
    code, said = _run(tmp_path, '--until', '4',
                      *_part('long', COUNTS, '1 failed, 4 passed'))
    assert code == 1 and 'long: FAILED' in said


#: Ends of itself after a while, and not when it is interrupted.
STAYS = '''
import signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
time.sleep(60)
'''


def test_a_part_that_must_be_killed_has_failed(tmp_path, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location('side_by_side', SCRIPT)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, 'GRACE_SECONDS', 1.0)
    part = module.Part('stays', [sys.executable, '-c', STAYS],
                       str(tmp_path / 'stays.log'))
    assert module.Run([part], 1, 3.0, sys.stdout).run() == 1
    assert 'stays: FAILED (-9)' in capsys.readouterr().out


def test_interrupted_it_tears_its_parts_down(tmp_path):
    running = subprocess.Popen(
        _command(tmp_path, *_part('hangs', TEARS_DOWN, tmp_path / 'begun',
                                  tmp_path / 'gone')),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while not os.path.exists(tmp_path / 'begun'):
            assert time.monotonic() < deadline and running.poll() is None
            time.sleep(0.02)
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 130
    finally:
        running.kill()
        running.wait()
    assert (tmp_path / 'gone').exists()


def test_a_part_without_a_command_is_refused(tmp_path):
    code, said = _run(tmp_path, '--part', 'alone')
    assert code == 2 and '--part alone' in said
    code, said = _run(tmp_path, *_part('a', TALKS, 'x', 0),
                      *_part('a', TALKS, 'y', 0))
    assert code == 2 and 'two parts of one name' in said
