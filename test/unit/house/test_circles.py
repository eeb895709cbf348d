"""No two files of the product import each other in a circle."""

from __future__ import annotations

import ast
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[3]


def modules(root=ROOT / 'swift_dss'):
    """Name of each module, and its syntax tree."""
    for path in sorted(root.rglob('*.py')):
        parts = path.relative_to(root.parent).with_suffix('').parts
        yield '.'.join(parts[:-1] if parts[-1] == '__init__' else parts), \
            ast.parse(path.read_text())


def imports(trees):
    """Module to the modules that it names, anywhere in it: also those
    that only a function, or a type checker, imports."""
    graph = {}
    for name, tree in trees.items():
        named = graph[name] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                named.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert not node.level, '%s: say the whole name' % name
                for alias in node.names:
                    whole = '%s.%s' % (node.module, alias.name)
                    named.add(whole if whole in trees else node.module)
        named &= set(trees) - {name}
    return graph


def circles(graph):
    """Sets of modules of which each leads to each other one."""
    reach = {}
    for start in graph:
        seen, left = set(), [start]
        while left:
            for module in graph[left.pop()] - seen:
                seen.add(module)
                left.append(module)
        reach[start] = seen
    return {frozenset(module for module in graph
                      if module in reach[start] and start in reach[module])
            for start in graph if start in reach[start]}


def test_there_is_no_circle():
    assert circles(imports(dict(modules()))) == set()


def test_a_circle_is_seen_that_only_types_and_functions_make():
    trees = {name: ast.parse(text) for name, text in (
        ('p', ''),
        ('p.a', 'from typing import TYPE_CHECKING\n'
                'if TYPE_CHECKING:\n    from p.b import B\n'),
        ('p.b', 'def f():\n    from p import c\n'),
        ('p.c', 'import p.a\n'), ('p.d', 'from p.a import A\n'))}
    assert circles(imports(trees)) == {frozenset(('p.a', 'p.b', 'p.c'))}
