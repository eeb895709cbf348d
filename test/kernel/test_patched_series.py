"""The patches as a series: order, form, and what the manual says."""

from __future__ import annotations

import glob
import os
import re
import subprocess
from typing import List

import pytest

from swift_dss.block.lab import build

_MANUAL = os.path.join(os.path.dirname(__file__), os.pardir, os.pardir,
                       'doc', 'source', 'explanation', 'patched-kernel.rst')
#: No sign-off, as nobody sends them; MAINTAINERS is not touched.
_NOT_OURS = 'MISSING_SIGN_OFF,FILE_PATH_CHANGES'


def _series() -> List[str]:
    return sorted(glob.glob(os.path.join(build.kmod(), 'patches', '*')))


def _read(path: str) -> str:
    with open(path) as source:
        return source.read()


def test_they_are_numbered_and_say_why() -> None:
    count = len(_series())
    assert count
    for number, path in enumerate(_series(), 1):
        text = _read(path)
        assert os.path.basename(path).startswith('%04d-' % number)
        assert '\nSubject: [PATCH %d/%d] ' % (number, count) in text
        message = text.split('\n---\n')[0].split('\n\n', 1)[1]
        assert len(message.split()) > 40, path


def test_the_manual_has_each_of_them() -> None:
    rows = re.findall(r'^(\d{4}) ', _read(_MANUAL), re.M)
    assert rows == ['%04d' % number
                    for number in range(1, len(_series()) + 1)]


def _checkpatch(patch: str) -> str:
    """Its report."""
    script = os.path.join(build.kernel('patched', print).tree, 'scripts',
                          'checkpatch.pl')
    # By standard input: a name that git knows would be read as source.
    run = subprocess.run(
        ['perl', script, '--no-tree', '--strict', '--ignore',
         _NOT_OURS, '-'], input=patch, capture_output=True, text=True)
    return run.stdout


@pytest.mark.parametrize('path', _series(), ids=os.path.basename)
def test_checkpatch_has_nothing_to_say(path: str) -> None:
    said = _checkpatch(_read(path))
    assert re.search(r'^total: 0 errors, 0 warnings, 0 checks, [1-9]\d* '
                     r'lines checked$', said, re.M), said


def test_checkpatch_sees_what_is_wrong() -> None:
    """The wrong twin."""
    right = _read(_series()[0])
    wrong = right.replace('\n+\tp->ioprio_scope = 0;\n',
                          '\n+    p->ioprio_scope=0 ;\n')
    assert wrong != right
    assert 'total: 1 errors, 2 warnings' in _checkpatch(wrong)
