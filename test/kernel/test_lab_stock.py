"""Our modules on the kernels that Debian ships, in an emulated machine."""

from __future__ import annotations

import os
import subprocess

import pytest

from swift_dss.block.lab import build, cache, stock


@pytest.fixture(autouse=True, scope='module')
def _can_emulate() -> None:
    packages = cache.missing(stock.COMMANDS)
    if packages:
        pytest.skip('no machine can be emulated here: apt-get install %s'
                    % ' '.join(packages))


@pytest.mark.parametrize('kernel', [
    name if name == '6.12' else pytest.param(name, marks=pytest.mark.slow)
    for name in stock.KERNELS])
def test_modules_build_load_and_work(kernel):
    text = stock.run(kernel, 1200.0, print, print)
    assert 'stock-lab: %s.' % kernel in text
    for name, _folder in build.MODULES:
        assert 'stock-lab: /smoke/%s.sh' % name in text


@pytest.mark.slow
def test_smoke_test_that_fails_is_told(tmp_path):
    made = stock.prepare('6.12', print)
    text = stock._boot(made, _archive_with(
        made, tmp_path, 'echo as the test asked for\nfalse\n'), 600.0, print)
    assert 'as the test asked for' in text
    assert 'stock-lab: status 2' in text


def _archive_with(made, folder, script):
    """An initramfs whose one smoke test is ``script``."""
    archive = stock._initramfs(made, [], [], str(folder))
    root = os.path.join(str(folder), 'root')
    with open(os.path.join(root, 'smoke', 'own.sh'), 'w') as out:
        out.write(script)
    subprocess.run(
        ['sh', '-c', 'find . | cpio --quiet -o -H newc | gzip -1 > "$0"',
         archive], cwd=root, check=True)
    return archive
