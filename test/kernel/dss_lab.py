"""Guests with dm-dss, for the tests of the target."""

from __future__ import annotations

import json
import os
import shutil
from typing import Any, Sequence, Tuple

from swift_dss.block.lab import build, cache, machine

HERE = os.path.dirname(os.path.abspath(__file__))


def result(script: str, args: Sequence[Any] = (), module: str = 'dm-dss',
           variant: str = 'plain', timeout: float = 900.0) -> machine.Result:
    """Run a program of this folder in a guest."""
    return machine.run(
        os.path.join(HERE, script), [str(arg) for arg in args],
        modules=(module,), variant=variant, timeout=timeout)


def found(script: str, args: Sequence[Any] = (), module: str = 'dm-dss',
          variant: str = 'plain', timeout: float = 900.0) -> Any:
    """The JSON in the last line that it prints.

    Fails if the program does, or if the kernel complains.
    """
    ended = result(script, args, module, variant, timeout)
    assert not ended.complaints, '\n'.join(ended.complaints)
    assert ended.status == 0, '%s\n%s\n%s' % (
        ended.output, ended.stderr.decode('utf-8', 'replace'),
        ended.kernel_log[-4000:])
    return json.loads(ended.output.splitlines()[-1])


def wrong_twin(folder: str, changes: Sequence[Tuple[str, str, str]]) -> str:
    """dm-dss with lines replaced, built for the plain kernel.

    :param changes: file, text that occurs in it once, its replacement
    :returns: the module
    """
    kernel = build.kernel('plain', print)
    origin, files = build.module_sources('dm-dss')
    for path in files:
        target = os.path.join(folder, os.path.relpath(path, origin))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(path, target)
    for name, before, after in changes:
        path = os.path.join(folder, name)
        with open(path) as file:
            text = file.read()
        assert text.count(before) == 1, (name, before)
        with open(path, 'w') as file:
            file.write(text.replace(before, after))
    cache.call(['make', '-C', kernel.tree, 'M=' + folder, 'ARCH=um',
                'modules'], folder, 'building a wrong twin')
    return os.path.join(folder, 'dm-dss.ko')
