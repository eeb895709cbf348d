"""Wheel and sdist have all that the repository has for them."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
#: Of CI and git alone.
NOT_SENT = {'.gitignore', '.ci'}


@pytest.fixture(scope='module')
def built(tmp_path_factory):
    """(committed files, names in the sdist, names in the wheel)."""
    # Older ones need another package for it.
    pytest.importorskip('setuptools.command.bdist_wheel')
    try:
        listed = subprocess.run(
            ['git', 'ls-files', '-z'], cwd=str(ROOT), check=True,
            capture_output=True, text=True).stdout.split('\0')
    except (OSError, subprocess.CalledProcessError):
        pytest.skip('no git here')
    folder = tmp_path_factory.mktemp('built')
    files = {name for name in listed if name and (ROOT / name).is_file()}
    for name in files:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)
    subprocess.run([sys.executable, 'setup.py', '-q', 'sdist', 'bdist_wheel'],
                   cwd=str(folder), check=True, capture_output=True)
    sdist, = (folder / 'dist').glob('*.tar.gz')
    wheel, = (folder / 'dist').glob('*.whl')
    with tarfile.open(sdist) as opened:
        in_sdist = {name.partition('/')[2] for name in opened.getnames()}
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
    return files, in_sdist, in_wheel


def test_the_sdist_has_all_files(built):
    files, sdist, _wheel = built
    assert sorted(name for name in files - sdist
                  if name.split('/')[0] not in NOT_SENT) == []


def test_the_wheel_has_the_product(built):
    files, _sdist, wheel = built
    lacking = {name for name in files if name.startswith('swift_dss/')
               and name not in wheel}
    # What is compiled goes as the compiler's result, if there is one.
    assert {name for name in lacking if not name.startswith((
        'swift_dss/io/md5_', 'swift_dss/replay/traces/lines.c',
        'swift_dss/strategy/eviction/objects/fast'))} == set()
    assert not [name for name in wheel if name.startswith('test/')]


def test_the_wheel_has_samples_units_and_pages(built):
    files, _sdist, wheel = built
    data = {name.partition('.data/data/')[2] for name in wheel}
    for name in files:
        if name.startswith('etc/'):
            assert 'share/swift-dss/' + name in data, name
        if name.startswith('doc/man/'):
            assert 'share/man/man%s/%s' % (
                name[-1], name.rpartition('/')[2]) in data, name
