"""Man pages and completion know every command, and --version the versions."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from swift_dss.cli.main import COMMANDS, main
from swift_dss.cli.package import completion, manual

#: As setup.cfg has them, without the function.
PROGRAMS = dict(re.findall(
    r'(?m)^    (swift-dss[a-z-]*) = (\S+):main$',
    (pathlib.Path(__file__).resolve().parents[3] / 'setup.cfg').read_text()))
#: Modules of extras that are no extra of these two commands.
EXTRAS = ['swiftclient', 'matplotlib', 'numpy', 'cryptography', 'av', 'h5py',
          'pyarrow', 'aiohttp', 'fsspec', 'openstack', 'tenacity', 'yaml',
          'hdrh']
GENERATED = [name for name in COMMANDS if name != 'block']
PAGES = ['swift-dss.1', 'swift-dss-tierd.8'] + [
    'swift-dss-%s.1' % name for name in GENERATED]


def test_version_names_all_that_matters(capsys):
    with pytest.raises(SystemExit) as ended:
        main(['--version'])
    assert ended.value.code == 0
    assert re.match(r'swift-dss \S+, Swift 2\.\S+, Python 3\.\S+\n\Z',
                    capsys.readouterr().out)


@pytest.mark.parametrize('name', sorted(PROGRAMS))
def test_each_program_tells_its_version(name, tmp_path):
    done = subprocess.run(
        [sys.executable, '-m', PROGRAMS[name], '--version'],
        capture_output=True, text=True, timeout=60, cwd=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, '')
    assert re.match(r'swift-dss \S+, Swift 2\.\S+, Python 3\.\S+\n\Z',
                    done.stdout)
    # The generator takes its first argument for a folder.
    assert not os.listdir(tmp_path)


def without(modules, arguments, folder):
    """A process of swift-dss in which modules cannot be imported."""
    return subprocess.run(
        [sys.executable, '-c', 'import sys\n'
         'sys.modules.update(dict.fromkeys(%r))\n'
         'from swift_dss.cli.main import main\n'
         'sys.exit(main(%r))' % (modules, arguments)],
        capture_output=True, text=True, timeout=60, cwd=str(folder))


@pytest.mark.parametrize('arguments', [
    ['completion', 'bash'], ['manual', 'pages']])
def test_pages_and_words_need_no_extra_of_the_commands(tmp_path, arguments):
    pytest.importorskip('shtab')
    pytest.importorskip('argparse_manpage')
    done = without(EXTRAS, arguments, tmp_path)
    assert (done.returncode, done.stderr) == (0, '')
    assert done.stdout


def test_the_all_in_one_names_its_extra(tmp_path):
    done = without(['swiftclient'], [
        'aio', 'start', '--root', str(tmp_path / 'root')], tmp_path)
    assert done.returncode == 78
    *_, told = done.stderr.splitlines()
    assert told.startswith('swift-dss aio: ') and 'swift-dss[aio]' in told
    assert 'Traceback' not in done.stderr
    assert not (tmp_path / 'root').exists()
    # What needs no client of Swift does its work.
    done = without(['swiftclient'], [
        'aio', 'stop', '--root', str(tmp_path / 'root')], tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    pytest.importorskip('argparse_manpage')
    made = tmp_path_factory.mktemp('man1')
    assert main(['manual', str(made)]) == 0
    return made


def test_each_command_has_a_page(folder):
    assert {path.name for path in folder.iterdir()} == set(PAGES)
    assert set(re.findall(r'^\\fB([a-z]+)\\fR$', (
        folder / 'swift-dss.1').read_text(), re.M)) >= set(COMMANDS)


@pytest.mark.skipif(not shutil.which('man'), reason='apt-get install man-db')
@pytest.mark.parametrize('name', PAGES)
def test_each_page_is_formatted_without_a_warning(folder, name):
    done = subprocess.run(
        ['man', '--warnings', '--local-file', str(folder / name)],
        capture_output=True, text=True, timeout=60,
        env={'PATH': '/usr/bin:/bin', 'LC_ALL': 'C.UTF-8', 'MANWIDTH': '80'})
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert '\nSYNOPSIS' in done.stdout and '\nSEE ALSO' in done.stdout


def test_verbs_of_commands_have_their_options(folder):
    page = (folder / 'swift-dss-tier.1').read_text().replace('\\-', '-')
    for words in ('demote', '--to', 'rebuild', '--orphans'):
        assert words in page


@pytest.fixture(scope='module')
def scripts():
    pytest.importorskip('shtab')
    return {shell: completion.script(shell) for shell in completion.SHELLS}


@pytest.mark.parametrize('shell', completion.SHELLS)
def test_each_shell_completes_every_command(scripts, shell):
    for name in COMMANDS:
        assert re.search(r'\b%s\b' % name, scripts[shell]), name
    if shutil.which(shell) and shell in ('bash', 'zsh', 'fish'):
        done = subprocess.run([shell, '-n'], input=scripts[shell],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and not done.stderr, done.stderr


@pytest.mark.parametrize('words, wanted', [
    (['swift-dss', 'che'], {'check'}),
    (['swift-dss', 'tier', 'dem'], {'demote'}),
    (['swift-dss', 'check', '--off'], {'--offline'}),
    (['swift-dss', 'check', '--only', 'fol'], {'folders'})])
def test_bash_offers_the_right_words(scripts, words, wanted):
    if not shutil.which('bash'):
        pytest.skip('apt-get install bash')
    function = re.search(r'complete .*-F (\S+) swift-dss',
                         scripts['bash']).group(1)
    asked = 'COMP_WORDS=(%s)\nCOMP_CWORD=%d\n%s swift-dss %s %s\n' \
        'printf "%%s\\n" "${COMPREPLY[@]}"\n' % (
            ' '.join(words), len(words) - 1, function, words[-1], words[-2])
    done = subprocess.run(['bash', '-c', scripts['bash'] + '\n' + asked],
                          capture_output=True, text=True, timeout=60)
    assert {word.strip() for word in done.stdout.split()} == wanted, \
        done.stderr


@pytest.mark.parametrize('module, arguments', [
    ('shtab', ['completion', 'bash']),
    ('argparse_manpage.manpage', ['manual', 'x'])])
def test_a_library_that_is_missing_is_named(
        monkeypatch, capsys, tmp_path, module, arguments):
    monkeypatch.setitem(__import__('sys').modules, module, None)
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 78
    assert 'swift-dss[package]' in capsys.readouterr().err


def test_a_page_of_a_command_says_what_it_does():
    pytest.importorskip('argparse_manpage')
    assert COMMANDS['check'][1] in manual.pages()['swift-dss-check.1']
