"""Fixtures of the tests that boot a kernel.

They need what building a kernel needs; where that is missing they are
skipped, and say which packages it takes.
"""

from __future__ import annotations

from typing import Any, Callable

import guests
import pytest

from swift_dss.block import lab
from swift_dss.block.lab import build, cache


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
        return guests.ended_well(program, args, **options)
    return run
