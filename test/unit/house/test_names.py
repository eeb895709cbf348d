"""A local says what it holds: none is called found, one, some or what."""

import ast
import os

import pytest

ROOT = os.path.join(os.path.dirname(__file__), *[os.pardir] * 3)
ROOM = os.path.join(ROOT, 'swift_dss')
VAGUE = {'found', 'one', 'some', 'what'}


def vague(source):
    """Lines and names of the locals and arguments of a source that are
    vague; fields of classes are names in their class, not locals."""
    tree = ast.parse(source)
    fields = {node.target for kind in ast.walk(tree)
              if isinstance(kind, ast.ClassDef) for node in kind.body
              if isinstance(node, ast.AnnAssign)}
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.ExceptHandler):
            name = node.name
        elif isinstance(node, ast.Name) and isinstance(
                node.ctx, ast.Store) and node not in fields:
            name = node.id
        else:
            continue
        if name in VAGUE:
            yield node.lineno, name


def sources():
    for place, _folders, names in os.walk(ROOM):
        for name in sorted(names):
            if name.endswith('.py'):
                yield os.path.join(place, name)


def test_no_local_of_the_product_is_vague():
    wrong = []
    for path in sources():
        with open(path, encoding='utf-8') as source:
            wrong += ['%s:%d: %s' % (os.path.relpath(path, ROOT), line, name)
                      for line, name in vague(source.read())]
    assert not wrong, \
        'name the thing (row, answer, version):\n' + '\n'.join(wrong)


@pytest.mark.parametrize('source', [
    'found = 1', 'for one in (): pass', 'lambda what: 1',
    'def f(*some): pass', '[one for one in ()]',
    'with f() as found: pass', 'try: f()\nexcept E as found: pass',
    'class A:\n    def f(self, one): pass'])
def test_a_vague_name_is_seen(source):
    assert list(vague(source))


@pytest.mark.parametrize('source', [
    'f(what=1)', 'a.found = 1', 'class A:\n    what: str', 'found'])
def test_what_is_no_local_passes(source):
    assert not list(vague(source))
