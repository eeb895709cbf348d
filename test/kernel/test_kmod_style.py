"""What the kernel's own checkers say of our modules' sources."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from concurrent import futures
from typing import List, Sequence

import pytest

from swift_dss.block.lab import build, cache

_TOTAL = re.compile(r'^total: (\d+) errors, (\d+) warnings, [1-9]\d* lines '
                    r'checked$', re.M)
_MODULES = [name for name, _folder in build.MODULES]


def _checkpatch(paths: Sequence[str]) -> List[str]:
    """Its complaints about files."""
    script = os.path.join(build.kernel('plain', print).tree, 'scripts',
                          'checkpatch.pl')
    listing = subprocess.run(
        ['perl', script, '--no-tree', '--file'] + list(paths),
        capture_output=True, text=True).stdout
    # It has read each of them, and its totals are what we make of it.
    totals = _TOTAL.findall(listing)
    complaints = re.findall(r'^(?:ERROR|WARNING): .*$', listing, re.M)
    assert len(totals) == len(paths), listing
    assert sum(map(int, sum(totals, ()))) == len(complaints), listing
    return complaints


def _sparse(name: str, folder: str, target: str) -> List[str]:
    """What it has to say of a module whose sources are in that folder."""
    if not shutil.which('sparse'):
        pytest.skip('sparse is not installed')
    said = cache.call(
        ['make', '-s', '-C', build.kernel('plain', print).tree,
         'M=' + folder, 'ARCH=um', 'C=2', '-j%d' % build.processors(),
         target], folder, 'sparse over %s' % name)
    return [line for line in said.splitlines() if folder in line]


def _c_files(name: str) -> List[str]:
    return [path for path in build.module_sources(name)[1]
            if path.endswith(('.c', '.h'))]


@pytest.mark.parametrize('name', _MODULES)
def test_checkpatch_has_nothing_to_say(name: str) -> None:
    files = sorted(_c_files(name), key=os.path.getsize)
    assert len(files) > 5
    shares = [files[start::build.processors()]
              for start in range(build.processors())]
    with futures.ThreadPoolExecutor() as pool:
        assert sum(pool.map(_checkpatch, filter(None, shares)), []) == []


def test_checkpatch_sees_what_is_wrong(tmp_path) -> None:
    """The wrong twin: it would be built by the kernel's version."""
    wrong = str(tmp_path / 'dss_compat.h')
    with open(os.path.join(build.kmod(), 'env', 'dss_compat.h')) as source:
        right = source.read()
    before = '#ifdef DSS_HAS_BIO_WRITE_HINT'
    assert before in right
    with open(wrong, 'w') as out:
        out.write(right.replace(
            before, '#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)'))
    said = _checkpatch([wrong])
    assert any('LINUX_VERSION_CODE' in line for line in said), said


@pytest.mark.parametrize('name', _MODULES)
def test_sparse_has_nothing_to_say(name: str, tmp_path) -> None:
    folder = str(tmp_path)
    build.copy_sources(name, folder)
    assert _sparse(name, folder, 'modules') == []


def test_sparse_sees_what_is_wrong(tmp_path) -> None:
    """The wrong twin: a number of the format that is not swapped."""
    folder = str(tmp_path)
    build.copy_sources('dm-dss', folder)
    path = os.path.join(folder, 'dss_origin.c')
    with open(path) as source:
        right = source.read()
    before = 'sum == le32_to_cpu(super->origin_sum)'
    assert right.count(before) == 1
    with open(path, 'w') as out:
        out.write(right.replace(before, 'sum == super->origin_sum'))
    assert _sparse('dm-dss', folder, 'dss_origin.o')
