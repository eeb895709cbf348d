"""What tests print for the record can be read in CI's log."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

TEST = pathlib.Path(__file__).resolve().parents[2]

SAYS = '''
def test_says():
    print('noise')
    print('R99: 12 cases, 0 wrong')
    print('figure: 7 of them')
def test_fails():
    print('R98: not a result')
    assert False
'''


@pytest.mark.parametrize('workers', [[], ['-n', '2']], ids=['one', 'two'])
def test_figures_of_passing_tests_are_repeated(tmp_path, workers):
    (tmp_path / 'test_says.py').write_text(SAYS)
    done = subprocess.run(
        [sys.executable, '-m', 'pytest', '-q', '-p', 'conftest', '-p',
         'no:cacheprovider', '--rootdir', str(tmp_path), str(tmp_path),
         *workers], cwd=str(tmp_path), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=120,
        env=dict(os.environ, PYTHONPATH=str(TEST)))
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search('(?m)^=+ figures =+\nR99: 12 cases, 0 wrong\n'
                     'figure: 7 of them\n=', done.stdout), done.stdout
