"""The page for newcomers names functions that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / 'doc' / 'source' / 'explanation'
        / 'find-your-way.rst').read_text('utf-8')
#: ``file: name``; a line may end between the two.
STEPS = re.findall(r'``([\w/]+\.(?:py|c))(?::\s+([\w.]+))?``', PAGE)


def names_in(source):
    """Functions and classes; those in a class after its name and a dot."""
    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield '%s.%s' % (node.name, inner.name)


def is_there(path, name):
    source = (ROOT / 'swift_dss' / path).read_text('utf-8')
    if path.endswith('.c'):
        return re.search(r'^\w[\w \*]*\b%s\([^;]*?\)\n\{' % name, source,
                         re.MULTILINE) is not None
    return name in names_in(source)


@pytest.mark.parametrize('path, name', sorted(set(STEPS)))
def test_each_step_names_what_is_there(path, name):
    assert is_there(path, name) if name else \
        (ROOT / 'swift_dss' / path).is_file()


def test_each_way_has_its_steps():
    ways = [part for part in re.split(r'\n-{5,}\n', PAGE)[1:]
            if part.lstrip().startswith('#.')]
    assert len(ways) == 5
    for way in ways:
        assert way.count('\n#. ') >= 5


@pytest.mark.parametrize('path, name', [
    ('proxy/objects.py', 'Objects.puts'), ('proxy/objects.py', 'put'),
    ('block/kmod/dss_map.c', 'dss_maps'),
    # Declared there, and defined further down in another file.
    ('block/kmod/dss_map.c', 'dss_fill')])
def test_what_is_not_there_is_seen(path, name):
    assert not is_there(path, name)
