"""Fixtures of the tests that boot a kernel.

They need what building a kernel needs; where that is missing they are
skipped, and say which packages it takes.
"""

from __future__ import annotations

import os
from typing import Any, Callable

import pytest

from swift_dss.block import lab
from swift_dss.block.lab import build, cache

#: Programs of this folder that run inside a guest.
HERE = os.path.dirname(os.path.abspath(__file__))


@pytest.fixture(autouse=True, scope='session')
def _can_build() -> None:
    packages = cache.missing(tuple(build.COMMANDS) + ('dmsetup',))
    if packages:
        pytest.skip('no kernel can be built here: apt-get install %s'
                    % ' '.join(packages))


@pytest.fixture
def in_lab() -> Callable[..., lab.Result]:
    """Run a program of this folder in a guest; it must end well, and the
    kernel must have nothing to complain of."""
    def run(program: str, *args: str, **options: Any) -> lab.Result:
        result = lab.run(os.path.join(HERE, program), args,
                         say=print, **options)
        assert result.status == 0, '%d: %s%s' % (
            result.status, result.output,
            result.stderr.decode('utf-8', 'replace'))
        assert not result.complaints, result.complaints
        return result
    return run
