"""Debian packages are built, and hold what a node needs."""

from __future__ import annotations

import configparser
import os
import pathlib
import re
import runpy
import shutil
import subprocess
import sys

import pytest

from swift_dss.cli.main import COMMANDS

ROOT = pathlib.Path(__file__).resolve().parents[3]
PACKAGING = ROOT / 'packaging'
ATTACH = PACKAGING / 'swift-dss-attach'


@pytest.fixture(scope='module')
def packages(tmp_path_factory):
    """Name to path."""
    if not (shutil.which('dh') and shutil.which('dh_dkms')):
        pytest.skip('apt-get install debhelper dh-dkms')
    folder = tmp_path_factory.mktemp('packages')
    done = subprocess.run(
        ['bash', str(PACKAGING / 'build-deb.sh'), str(folder)],
        capture_output=True, text=True, timeout=1200,
        env=dict(os.environ, PYTHON=sys.executable))
    assert done.returncode == 0, done.stdout + done.stderr
    return {path.name.split('_')[0]: path for path in folder.glob('*.deb')}


def names(package):
    """Paths in a package, without /usr and the extension of compression."""
    listed = subprocess.run(['dpkg-deb', '--fsys-tarfile', str(package)],
                            check=True, capture_output=True).stdout
    told = subprocess.run(['tar', '-t'], input=listed, check=True,
                          capture_output=True).stdout.decode()
    return {re.sub(r'^\./(usr/)?|\.gz$', '', name)
            for name in told.splitlines()}


def test_a_node_gets_all_that_it_needs(packages):
    wanted = {'bin/' + name for name in commands()}
    wanted |= {'share/man/man1/swift-dss-%s.1' % name for name in COMMANDS
               if name != 'block'}
    wanted.add('share/man/man8/swift-dss-tierd.8')
    wanted |= {'share/swift-dss/' + path.relative_to(ROOT).as_posix()
               for path in (ROOT / 'etc').rglob('*') if path.is_file()}
    wanted |= {'lib/systemd/system/' + path.name
               for path in (ROOT / 'etc' / 'systemd').iterdir()}
    wanted |= {
        'bin/swift-dss-attach', 'etc/logrotate.d/swift-dss',
        'lib/sysusers.d/swift-dss.conf', 'lib/tmpfiles.d/swift-dss.conf',
        'lib/systemd/systemd-generators/swift-dss-block-generator',
        'lib/swift-dss/python3/boto3/__init__.py',
        'lib/swift-dss/python3/swift_dss/tier/main.py',
        'share/bash-completion/completions/swift-dss',
        'share/fish/vendor_completions.d/swift-dss.fish',
        'share/man/man1/swift-dss.1', 'share/man/man8/swift-dss-attach.8',
        'share/man/man8/swift-dss-block.8',
        'share/zsh/vendor-completions/_swift-dss'}
    there = names(packages['swift-dss'])
    assert wanted - there == set()
    # Swift is the node's own; a configuration is the operator's.
    assert [name for name in there if name.startswith((
        'lib/swift-dss/python3/swift/', 'etc/swift', 'var/'))] == []
    assert {name for name in there
            if name.startswith('etc/') and name[-1] != '/'} == {
                'etc/logrotate.d/swift-dss'}


def test_lintian_has_nothing_to_say(packages):
    if not shutil.which('lintian'):
        pytest.skip('apt-get install lintian')
    said = subprocess.run(
        ['lintian', '--fail-on', 'error,warning', '--allow-root',
         *map(str, packages.values())], capture_output=True, text=True)
    assert (said.returncode, said.stdout) == (0, ''), said.stderr


def test_the_module_comes_as_source(packages):
    there = names(packages['dm-dss-dkms'])
    conf = (ROOT / 'swift_dss' / 'block' / 'kmod' / 'dkms.conf').read_text()
    version = re.search(r'PACKAGE_VERSION="(.*)"', conf).group(1)
    folder = 'src/dm-dss-%s/' % version
    kmod = ROOT / 'swift_dss' / 'block' / 'kmod'
    for path in kmod.rglob('*.[ch]'):
        name = path.relative_to(kmod).as_posix()
        assert (folder + name in there) == (not name.startswith('lab/')), name
    assert {folder + 'dkms.conf', 'share/man/man4/dm-dss.4'} <= there
    told = subprocess.run(
        ['dpkg-deb', '-f', str(packages['dm-dss-dkms']), 'Version'],
        check=True, capture_output=True, text=True).stdout
    assert told.strip() == version + '-1'


def commands():
    """Command to module, as pip makes them."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / 'setup.cfg')
    return dict(
        re.match(r'(\S+) = (\S+):main$', line).groups() for line in setup[
            'options.entry_points']['console_scripts'].strip().splitlines())


def test_the_package_has_the_commands_of_setup_cfg():
    start = runpy.run_path(str(PACKAGING / 'start.py'))
    assert start['MODULES'] == commands()


def environment(folder, swift=None):
    """A virtual environment, with a Swift of that version by its name."""
    subprocess.run([sys.executable, '-m', 'venv', '--without-pip',
                    str(folder)], check=True)
    if swift:
        site, = folder.glob('lib/python3*/site-packages')
        told = site / ('swift-%s.dist-info' % swift)
        told.mkdir()
        (told / 'METADATA').write_text(
            'Metadata-Version: 2.1\nName: swift\nVersion: %s\n' % swift)
    return folder


def refused(*arguments):
    done = subprocess.run(['sh', str(ATTACH), *map(str, arguments)],
                          capture_output=True, text=True,
                          env={'PATH': '/usr/bin:/bin'})
    assert done.returncode and not done.stdout, done.stdout
    assert not list(pathlib.Path('/etc/default').glob('swift-dss'))
    return done.stderr


@pytest.mark.parametrize('swift, words', [
    (None, 'Swift is not installed in it'),
    ('2.37.1', 'Swift 2.37.1 is too old: 2.38 or later'),
    # The code of the package is not on this machine.
    ('2.38.0', 'The package was built for Python')])
def test_a_python_that_cannot_run_it_is_refused(tmp_path, swift, words):
    folder = environment(tmp_path / 'swift', swift)
    assert words in refused(folder)
    # The same by a command of its Swift, as in PATH.
    command = tmp_path / 'swift-object-server'
    command.write_text('#!%s/bin/python3\n' % folder)
    assert words in refused(command)
    assert not list(folder.rglob('swift-dss.pth'))


def test_what_pip_installed_is_not_hidden():
    assert 'pip uninstall swift-dss' in refused(sys.executable)


@pytest.mark.parametrize('argument, words', [
    ('/no/such/folder', '/no/such/folder is not there'),
    ('/etc', 'no Python at /etc/bin/python3'), ('--all', 'no option --all')])
def test_a_wrong_argument_is_named(argument, words):
    assert words in refused(argument)
