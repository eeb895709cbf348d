"""Our modules on the kernels that Debian ships, in an emulated machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import Any, Callable, TypeVar

import pytest

from swift_dss.block.lab import build, cache, stock
from swift_dss.block.lab.machine import GuestDied
from swift_dss.core.errors import BadConfig

_Made = TypeVar('_Made')
#: The newest series that the modules were tried on. What a later one of
#: Debian's asks for is no fault of a change here.
_TRIED = (7, 3)


@pytest.fixture(autouse=True, scope='module')
def _can_emulate() -> None:
    packages = cache.missing(stock.COMMANDS)
    if packages:
        pytest.skip('no machine can be emulated here: apt-get install %s'
                    % ' '.join(packages))


def _or_skip(kernel: str, job: Callable[..., _Made], *details: Any) -> _Made:
    """Only Debian 12 has 6.1; wherever we test there are the others."""
    try:
        return job(kernel, *details)
    except BadConfig as err:
        if kernel != '6.1':
            raise
        pytest.skip(str(err))


def _is_of(release: str, kernel: str) -> bool:
    """The newest kernel is one that is newer than any that we name."""
    if kernel != 'newest':
        return release.startswith(kernel + '.')
    return _series(release) > (6, 12)


def _series(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split('.')[:2]))


@pytest.fixture
def kernel(request: pytest.FixtureRequest) -> str:
    """One of ``stock.KERNELS``; a test of one that nobody has tried may
    fail."""
    name: str = request.param
    if name == 'newest':
        release = stock.prepare(name, print).release
        if _series(release) > _TRIED:
            request.applymarker(pytest.mark.xfail(
                reason='nobody has tried %s yet' % release))
    return name


@pytest.mark.parametrize('kernel', stock.KERNELS, indirect=True)
def test_modules_build_without_a_warning(kernel):
    made = _or_skip(kernel, stock.prepare, print)
    assert _is_of(made.release, kernel)
    for name, _folder in build.MODULES:
        told = subprocess.run(
            ['modinfo', '-F', 'vermagic', stock.module(made, name, print)],
            capture_output=True, text=True, check=True,
            env=cache.environment()).stdout
        assert told.split()[0] == made.release


def test_a_kernel_is_found_that_the_lists_of_apt_lack(tmp_path, monkeypatch):
    """A Debian 12 with its main archive alone has 6.12 in backports."""
    (tmp_path / 'lists' / 'partial').mkdir(parents=True)
    (tmp_path / 'apt.conf').write_text(
        'Dir::State::Lists "%s/lists";\nAPT::Sandbox::User "root";\n'
        % tmp_path)
    monkeypatch.setenv('APT_CONFIG', str(tmp_path / 'apt.conf'))
    assert stock.prepare('6.12', print).release.startswith('6.12.')


@pytest.mark.parametrize('kernel', [
    pytest.param(name, marks=pytest.mark.slow) if name == '6.1' else name
    for name in stock.KERNELS], indirect=True)
def test_modules_build_load_and_work(kernel):
    text = _or_skip(kernel, stock.run, 1200.0, print, print)
    booted = re.findall(r'stock-lab: (\d\S+)', text)
    assert [_is_of(release, kernel) for release in booted] == [True], booted
    for name, _folder in build.MODULES:
        assert 'stock-lab: /smoke/%s.sh' % name in text


@pytest.mark.slow
def test_smoke_test_that_fails_is_told(tmp_path, monkeypatch):
    """The same C, and a smoke test that fails."""
    kmod = shutil.copytree(build.kmod(), str(tmp_path / 'kmod'))
    name = build.MODULES[0][0]
    with open(os.path.join(kmod, 'lab', 'smoke', name + '.sh'), 'w') as out:
        out.write('echo as the test asked for\nfalse\n')
    monkeypatch.setattr(build, 'kmod', lambda: kmod)
    with pytest.raises(GuestDied, match='status 2') as caught:
        stock.run('6.12', 600.0, print, print)
    assert 'as the test asked for' in str(caught.value)
