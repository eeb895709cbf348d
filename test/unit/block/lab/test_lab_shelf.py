"""Cleaning takes what is out of date, and with all of it everything."""

import os

import pytest

from swift_dss.block.lab import build, cache, shelf
from swift_dss.block.lab.source import PACKAGE, Source


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch, tmp_path):
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path))
    monkeypatch.delenv('SWIFT_DSS_KERNEL_SOURCE', raising=False)


@pytest.fixture
def full():
    """Paths of what is up to date, and of what is not."""
    root = cache.root()
    sources = [os.path.join(root, '%s_%d_all.deb' % (PACKAGE, version))
               for version in (1, 2)]
    for age, path in enumerate(sources):
        with open(path, 'w'):
            os.utime(path, (age, age))
    now = build.place('plain', Source('2', sources[1]))
    old = build.place('plain', Source('1', sources[0]))
    stock = os.path.join(root, 'stock-6.1.0-1-cloud-amd64')
    for folder in (now, old, stock):
        with cache.making(folder, print):
            pass
    modules = [build.module_folder(now, name)
               for name, _place in build.MODULES]
    stale = [path[:-4] + '0000' for path in modules]
    for path in modules + stale:
        with cache.making(path, print):
            pass
    other = os.path.join(root, 'swift-2.0')
    os.mkdir(other)
    return [sources[1], now, stock, other] + modules, \
        [sources[0], old] + stale


def test_clean_keeps_what_is_up_to_date(full):
    current, stale = full
    assert sorted(shelf.clean(False)) == sorted(stale)
    assert all(map(os.path.exists, current))
    assert not any(map(os.path.exists, stale))
    assert shelf.clean(False) == []


def test_clean_all_leaves_what_is_not_the_laboratorys(full):
    shelf.clean(True)
    assert os.listdir(cache.root()) == ['swift-2.0']


def test_listing_names_kernels_modules_and_presets(full):
    current, _stale = full
    lines = '\n'.join(shelf.listing())
    assert current[0] in lines and current[1] in lines
    assert 'preset hdd' in lines
