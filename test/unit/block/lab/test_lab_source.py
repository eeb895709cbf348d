"""The kernel's source comes from backports where apt's lists lack it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess

import pytest

from swift_dss.block.lab import source
from swift_dss.core.errors import BadConfig

PACKAGE = 'dss-linux-source'

pytestmark = pytest.mark.skipif(
    not (shutil.which('apt-get') and shutil.which('dpkg-deb')),
    reason='no apt here')


def built(folder, package, version='6.12.1', depends=''):
    """A package without files."""
    tree = folder / ('tree-' + package)
    (tree / 'DEBIAN').mkdir(parents=True)
    (tree / 'DEBIAN' / 'control').write_text(
        'Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: none '
        '<none@localhost>\n%sDescription: none\n' % (
            package, version, depends and 'Depends: %s\n' % depends))
    path = folder / ('%s_%s_all.deb' % (package, version))
    subprocess.run(['dpkg-deb', '--build', str(tree), str(path)],
                   check=True, capture_output=True)
    return path


def publish(mirror, release, packages=()):
    folder = mirror / 'dists' / release / 'main' / 'binary-amd64'
    folder.mkdir(parents=True)
    text = ''
    for path in packages:
        content = path.read_bytes()
        shutil.copy(path, mirror)
        about = subprocess.run(['dpkg-deb', '--field', str(path)], check=True,
                               capture_output=True, text=True).stdout
        text += '%sFilename: %s\nSize: %d\nSHA256: %s\n\n' % (
            about, path.name, len(content),
            hashlib.sha256(content).hexdigest())
    (folder / 'Packages').write_text(text)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine whose apt has the main archive of a mirror alone."""
    mirror = tmp_path / 'mirror'
    publish(mirror, 'oldone')
    publish(mirror, 'oldone-backports', [built(tmp_path, PACKAGE)])
    etc = tmp_path / 'etc'
    etc.mkdir()
    (etc / 'sources.list').write_text(
        'deb [arch=amd64] file:%s oldone main\n' % mirror)
    (tmp_path / 'lists' / 'partial').mkdir(parents=True)
    options = (
        ('Dir::Etc::SourceList', etc / 'sources.list'),
        ('Dir::Etc::SourceParts', '/dev/null'),
        ('Dir::State::Lists', tmp_path / 'lists'), ('Dir::Cache', tmp_path),
        ('APT::Sandbox::User', 'root'), ('APT::Architecture', 'amd64'),
        ('APT::Get::AllowUnauthenticated', 'true'),
        ('Acquire::AllowInsecureRepositories', 'true'))
    (tmp_path / 'apt.conf').write_text(''.join(
        '%s "%s";\n' % pair for pair in options))
    monkeypatch.setenv('APT_CONFIG', str(tmp_path / 'apt.conf'))
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    # The mirror is signed by nobody.
    monkeypatch.setattr(source, 'KEYRING', '/no/keyring')
    subprocess.run(['apt-get', 'update', '-qq'], check=True)
    return tmp_path


def state(machine):
    return {os.path.relpath(path, machine) for folder in ('etc', 'lists')
            for path in (machine / folder).rglob('*')}


def test_a_package_of_backports_is_fetched_and_the_machine_stays(machine):
    before, said = state(machine), []
    path = source.fetch(PACKAGE, said.append)
    assert os.path.basename(path) == PACKAGE + '_6.12.1_all.deb'
    assert state(machine) == before
    assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]
    assert any('backports' in line for line in said)


def test_a_machine_that_never_fetched_lists_needs_none(machine):
    for path in (machine / 'lists').glob('*_*'):
        path.unlink()
    before = state(machine)
    path = source.fetch(PACKAGE, print)
    assert os.path.basename(path) == PACKAGE + '_6.12.1_all.deb'
    assert state(machine) == before


def test_a_package_that_is_nowhere_is_named(machine):
    with pytest.raises(BadConfig, match='no-such-source is neither on this '
                       'machine.*SWIFT_DSS_KERNEL_SOURCE'):
        source.fetch('no-such-source', print)


def test_packages_of_another_release_come_with_all_that_they_need(machine):
    """That what they need is installed here does not make it theirs."""
    assert subprocess.run(['dpkg', '--status', 'dpkg'],
                          capture_output=True).returncode == 0
    publish(machine / 'mirror', 'newone',
            [built(machine, 'dpkg', '99'), built(machine, 'dss-unneeded')])
    publish(machine / 'mirror', 'newone-backports',
            [built(machine, 'dss-tools', '7.1', 'dpkg')])
    before = state(machine)
    (machine / 'fetched').mkdir()
    files = source.fetch_all(['dss-tools'], 'newone',
                             str(machine / 'fetched'), print)
    assert [os.path.basename(path) for path in files] == [
        'dpkg_99_all.deb', 'dss-tools_7.1_all.deb']
    assert all(os.path.isfile(path) for path in files)
    assert state(machine) == before
