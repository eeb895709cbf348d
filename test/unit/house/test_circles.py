"""No two files of the product import each other in a circle."""

from __future__ import annotations

import ast
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
#: Circles that stand, and why.
KNOWN = {
    frozenset((
        'swift_dss.sim.cluster', 'swift_dss.sim.offers',
        'swift_dss.sim.pieces', 'swift_dss.sim.traffic.coded',
        'swift_dss.sim.traffic.expiry', 'swift_dss.sim.traffic.posts',
        'swift_dss.sim.traffic.reconstructor',
        'swift_dss.sim.traffic.replicator')):
    'traffic changes the cluster that draws and carries it out: its state '
    'has to be taken out of both first'}


def modules(root=ROOT / 'swift_dss'):
    """Name of each module, and its syntax tree."""
    for path in sorted(root.rglob('*.py')):
        parts = path.relative_to(root.parent).with_suffix('').parts
        yield '.'.join(parts[:-1] if parts[-1] == '__init__' else parts), \
            ast.parse(path.read_text())


def imports(trees):
    """Module to the modules that it names, anywhere in it: also those
    that only a function, or a type checker, imports."""
    found = {}
    for name, tree in trees.items():
        named = found[name] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                named.update(one.name for one in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert not node.level, '%s: say the whole name' % name
                for one in node.names:
                    whole = '%s.%s' % (node.module, one.name)
                    named.add(whole if whole in trees else node.module)
        named &= set(trees) - {name}
    return found


def circles(graph):
    """Sets of modules of which each leads to each other one."""
    reach = {}
    for start in graph:
        seen, left = set(), [start]
        while left:
            for one in graph[left.pop()] - seen:
                seen.add(one)
                left.append(one)
        reach[start] = seen
    return {frozenset(one for one in graph
                      if one in reach[start] and start in reach[one])
            for start in graph if start in reach[start]}


def test_no_circle_but_the_known_ones():
    found = circles(imports(dict(modules())))
    assert found - set(KNOWN) == set()
    assert set(KNOWN) - found == set(), 'it is gone: take it off the list'


def test_a_circle_is_seen_that_only_types_and_functions_make():
    trees = {name: ast.parse(text) for name, text in (
        ('p', ''),
        ('p.a', 'from typing import TYPE_CHECKING\n'
                'if TYPE_CHECKING:\n    from p.b import B\n'),
        ('p.b', 'def f():\n    from p import c\n'),
        ('p.c', 'import p.a\n'), ('p.d', 'from p.a import A\n'))}
    assert circles(imports(trees)) == {frozenset(('p.a', 'p.b', 'p.c'))}
