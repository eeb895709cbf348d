"""What takes long is made once, whole, by one at a time."""

import os
import subprocess
import sys
import time

import pytest

from swift_dss.block.lab import build, cache
from swift_dss.core.errors import BadConfig

MAKER = '''
import sys
from swift_dss.block.lab import cache
with cache.making(sys.argv[1], lambda line: print(line, flush=True)) as ours:
    print('mine' if ours else 'there', flush=True)
    if ours:
        sys.stdin.readline()
        open(sys.argv[1] + '/thing', 'w').close()
'''


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch, tmp_path):
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path))


def maker(folder):
    return subprocess.Popen(
        [sys.executable, '-c', MAKER, folder], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, universal_newlines=True)


def test_folder_is_made_once(tmp_path):
    folder = str(tmp_path / 'one')
    with cache.making(folder, print) as ours:
        assert ours
        assert not cache.is_complete(folder)
    assert cache.is_complete(folder)
    with cache.making(folder, print) as ours:
        assert not ours


def test_failure_leaves_nothing(tmp_path):
    folder = str(tmp_path / 'one')
    with pytest.raises(ValueError):
        with cache.making(folder, print):
            (tmp_path / 'one' / 'half').write_text('')
            raise ValueError
    assert not os.path.exists(folder)
    with cache.making(folder, print) as ours:
        assert ours


def test_what_a_killed_maker_left_is_made_anew(tmp_path):
    folder = str(tmp_path / 'one')
    with maker(folder) as child:
        assert child.stdout.readline() == 'mine\n'
        (tmp_path / 'one' / 'half').write_text('')
        child.kill()
    with cache.making(folder, print) as ours:
        assert ours
        assert os.listdir(folder) == []


def test_second_maker_waits_for_the_first(tmp_path):
    folder = str(tmp_path / 'one')
    with maker(folder) as first:
        assert first.stdout.readline() == 'mine\n'
        with maker(folder) as second:
            assert 'waiting' in second.stdout.readline()
            first.stdin.write('go on\n')
            first.stdin.flush()
            assert second.stdout.readline() == 'there\n'
    assert os.path.exists(os.path.join(folder, 'thing'))


def test_names_and_contents_both_count(tmp_path):
    def key(**files):
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        return cache.digest(cache.contents(
            [str(tmp_path / name) for name in files], str(tmp_path)))
    keys = [key(a='x', b='y'), key(a='y', b='x'), key(a='xy', b=''),
            key(a='x', c='y')]
    assert len(set(keys)) == 4
    assert key(a='x', b='y') == keys[0]


def test_missing_commands_are_named_by_their_packages(monkeypatch):
    monkeypatch.setattr(cache, '_SYSTEM_PATHS', ())
    monkeypatch.setenv('PATH', '/nowhere')
    with pytest.raises(BadConfig, match='apt-get install bc bison .*flex'):
        cache.need(build.COMMANDS, 'a kernel')


def test_failing_command_says_what_it_said(tmp_path):
    with pytest.raises(cache.BuildFailed, match='(?s)failed with 3.*oh no'):
        cache.call(['sh', '-c', 'echo oh no; exit 3'], str(tmp_path), 'it')
    with pytest.raises(cache.BuildFailed, match='an error of it'):
        cache.call_long(
            ['sh', '-c', 'echo an error of it; echo more; exit 1'],
            str(tmp_path), 'it', str(tmp_path / 'log'), print)
    assert (tmp_path / 'log').read_text() == 'an error of it\nmore\n'


def test_interrupted_command_takes_its_children_along(tmp_path):
    started = tmp_path / 'started'
    # Who starts the tests in the background may have them ignore it.
    code = ('import signal\n'
            'from swift_dss.block.lab import cache\n'
            'signal.signal(signal.SIGINT, signal.default_int_handler)\n'
            'cache.call(["sh", "-c", "sleep 1000 & echo $! > %s; wait"], '
            '"/", "it")' % started)
    child = subprocess.Popen([sys.executable, '-c', code],
                             stderr=subprocess.DEVNULL)
    while not (started.exists() and started.read_text()):
        time.sleep(0.01)
    child.send_signal(2)
    assert child.wait() != 0
    deadline = time.monotonic() + 10
    while alive(started.read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def alive(pid):
    try:
        with open('/proc/%s/stat' % pid) as source:
            return source.read().rpartition(')')[2].split()[0] != 'Z'
    except FileNotFoundError:
        return False


def test_kernel_is_named_by_source_configuration_and_patches(monkeypatch):
    from swift_dss.block.lab.source import Source
    plain = build.place('plain', Source('1', ''))
    assert plain == build.place('plain', Source('1', 'elsewhere'))
    assert plain != build.place('plain', Source('2', ''))
    assert plain != build.place('debug', Source('1', ''))


def test_every_module_is_packaged_with_its_build_file():
    for name, _folder in build.MODULES:
        folder, files = build.module_sources(name)
        assert os.path.join(folder, 'Kbuild') in files
        assert any(path.endswith('.c') for path in files)
    assert not any(os.sep + 'lab' + os.sep in path for path in
                   build.module_sources('dm-dss')[1])
