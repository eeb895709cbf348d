"""Guests with dm-dss, for the tests of the target."""

from __future__ import annotations

import os
from typing import Any, Sequence, Tuple

import guests

from swift_dss.block.lab import build, machine

HERE = os.path.dirname(os.path.abspath(__file__))
#: The kernel of the guests: ``debug`` has KASAN and lockdep watch dm-dss.
VARIANT = os.environ.get('DSS_TEST_KERNEL', 'plain')


def result(script: str, args: Sequence[Any] = (), module: str = 'dm-dss',
           variant: str = VARIANT, timeout: float = 900.0) -> machine.Result:
    """Run a program of this folder in a guest."""
    return machine.run(
        os.path.join(HERE, script), [str(arg) for arg in args],
        modules=(module,), variant=variant, timeout=timeout)


def found(script: str, args: Sequence[Any] = (), module: str = 'dm-dss',
          variant: str = VARIANT, timeout: float = 900.0) -> Any:
    """The JSON in the last line that it prints.

    Fails if the program does, or if the kernel complains.
    """
    return guests.found(script, args, modules=(module,), variant=variant,
                        timeout=timeout)


def wrong_twin(folder: str, changes: Sequence[Tuple[str, str, str]]) -> str:
    """dm-dss with lines replaced, built for the kernel of the guests.

    :param changes: file, text that occurs in it once, its replacement
    :returns: the module
    """
    kernel = build.kernel(VARIANT, print)
    build.copy_sources('dm-dss', folder)
    for name, before, after in changes:
        path = os.path.join(folder, name)
        with open(path) as file:
            text = file.read()
        assert text.count(before) == 1, (name, before)
        with open(path, 'w') as file:
            file.write(text.replace(before, after))
    # What a twin leaves out may be all that used a function.
    build.make_module(['ARCH=um', 'KCFLAGS='], kernel.tree, 'dm-dss',
                      folder)
    return os.path.join(folder, 'dm-dss.ko')
