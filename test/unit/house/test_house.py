"""The house: what is packaged, named, documented and importable."""

import ast
import configparser
import dataclasses
import fnmatch
import os
import pathlib
import re
import subprocess
import sys

import pytest

from swift_dss.core.config import (
    GatewayConf, IoConf, NodeConf, PrefetchConf, TierConf)

ROOT = pathlib.Path(__file__).resolve().parents[3]
SECTIONS = {'dss': NodeConf, 'io': IoConf, 'tier': TierConf,
            'gateway': GatewayConf, 'prefetch': PrefetchConf}
SOURCES = sorted((ROOT / 'swift_dss').rglob('*.py'))
PYTHON_37 = (3, 7)

#: Top level of design section 11, and what packaging and tools need.
TOP_LEVEL = {
    'swift_dss', 'etc', 'doc', 'test', 'devstack', 'packaging', 'setup.py',
    'tox.ini', 'README.md', 'LICENSE', 'MANIFEST.in', 'constraints.txt',
    'pyproject.toml', 'setup.cfg'}


def committed():
    """Paths that git has; without git, all that it would not ignore."""
    try:
        listed = subprocess.run(
            ['git', 'ls-files', '-z'], cwd=str(ROOT), check=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        names = listed.decode('utf-8').split('\0')
        return [ROOT / name for name in names if name]
    except (OSError, subprocess.CalledProcessError):
        ignored = [line.strip('/').rpartition('/')[2] for line
                   in (ROOT / '.gitignore').read_text().split()]
        return [path for path in ROOT.rglob('*') if path.is_file()
                and not any(fnmatch.fnmatch(part, pattern)
                            for part in path.relative_to(ROOT).parts
                            for pattern in ignored)]


def options(kind):
    """Names and defaults of the plain options of one section."""
    defaults = kind()
    for field in dataclasses.fields(kind):
        if not field.metadata.get('option', True):
            continue
        default = getattr(defaults, field.name)
        if not isinstance(default, (dict, *SECTIONS.values())):
            yield field.name, default


ALL_OPTIONS = [(section, name, default)
               for section, kind in SECTIONS.items()
               for name, default in options(kind)]


#: Packages of extras, by the entry points that need them.
EXTRAS = {'fsspec.specs': ('fsspec', 'aiohttp', 'tenacity')}


def entry_points():
    setup = configparser.ConfigParser()
    setup.read(str(ROOT / 'setup.cfg'))
    for group, lines in setup['options.entry_points'].items():
        for line in lines.strip().splitlines():
            name, target = (part.strip() for part in line.split('='))
            yield group, name, target


@pytest.mark.parametrize('group, name, target', list(entry_points()))
def test_entry_point_imports(group, name, target):
    module, attribute = target.split(':')
    for needed in EXTRAS.get(group, ()):
        pytest.importorskip(needed)
    # A process of its own, as some of these must not meet in one.
    subprocess.run(
        [sys.executable, '-c', 'import %s as m; m.%s' % (module, attribute)],
        check=True, cwd=str(ROOT))


@pytest.mark.parametrize('path', SOURCES, ids=str)
def test_source_is_python_37(path):
    ast.parse(path.read_text(), str(path), feature_version=PYTHON_37)


def pythons():
    """Other interpreters on this machine, oldest supported first."""
    roots = [pathlib.Path(folder) for folder in
             os.environ.get('PATH', '').split(os.pathsep) if folder]
    roots += sorted(pathlib.Path(os.environ.get(
        'PYENV_ROOT', os.path.expanduser('~/.pyenv'))).glob(
            'versions/*/bin'))
    for minor in range(7, 15):
        for root in roots:
            python = root / ('python3.%d' % minor)
            if python.exists() and 'shims' not in root.parts:
                yield minor, python
                break


@pytest.mark.parametrize('minor, python', list(pythons()))
def test_pure_rooms_import_on_every_python_here(minor, python):
    """Not only the syntax: names of the library that came later too."""
    modules = [
        '.'.join(path.relative_to(ROOT).with_suffix('').parts)
        for path in SOURCES
        if path.parts[len(ROOT.parts) + 1] in ('core', 'wire', 'strategy')
        and path.name != '__init__.py']
    subprocess.run(
        [str(python), '-B', '-c', 'import ' + ', '.join(modules)],
        check=True, cwd=str(ROOT))


@pytest.mark.parametrize('section, name, default', ALL_OPTIONS)
def test_sample_shows_the_option_at_its_default(section, name, default):
    text = (ROOT / 'etc' / 'dss.conf-sample').read_text()
    block = re.search(
        r'^\[%s\]$(.*?)(?=^\[|\Z)' % section, text, re.M | re.S)
    assert block, 'no section [%s]' % section
    line = re.search(r'^#? ?%s *=(.*)$' % name, block.group(1), re.M)
    assert line, 'no option %s in [%s]' % (name, section)
    assert same(line.group(1).strip(), default)


def same(text, default):
    if isinstance(default, bool):
        return text.lower() == str(default).lower()
    if isinstance(default, (int, float)):
        units = {'k': 1 << 10, 'm': 1 << 20, 'g': 1 << 30}
        unit = units.get(text[-1:].lower())
        number = float(text[:-1]) * unit if unit else float(text)
        return number == default
    return text == str('' if default is None else default)


def test_sample_has_no_option_that_is_not_one():
    known = {name for _section, name, _default in ALL_OPTIONS}
    section = ''
    for line in (ROOT / 'etc' / 'dss.conf-sample').read_text().splitlines():
        if line.startswith('['):
            section = line.strip('[]')
        match = re.match(r'#? ?([a-z][a-z0-9_]*) *=', line)
        if match and section != 'capacity':
            assert match.group(1) in known, line


def test_top_level_is_that_of_the_design():
    top = {path.relative_to(ROOT).parts[0] for path in committed()}
    assert {name for name in top if not name.startswith('.')} <= TOP_LEVEL


def test_modules_of_the_tests_have_names_of_their_own():
    """They are imported by their bare names: the first one found wins."""
    names = [path.name for path in committed()
             if path.suffix == '.py' and 'test' in path.parts
             and path.name not in ('conftest.py', '__init__.py')]
    assert names and not [name for name in sorted(set(names))
                          if names.count(name) > 1]


def test_no_path_of_a_machine_is_committed():
    # Spelt in pieces, so that this file does not find itself.
    forbidden = re.compile('|'.join((
        '/wo' 'rk/(main|shared|\\.)', '/op' 't/dss', '/tm' 'p/v/',
        '/ro' 'ot/', 'ANTHR' 'OPIC', 'clau' 'de'), ), re.I)
    for path in committed():
        if not path.is_file() or path.suffix in ('.png', '.gz', '.dss'):
            continue
        text = path.read_bytes().decode('utf-8', 'replace')
        match = forbidden.search(text)
        assert not match, '%s: %s' % (path, match and match.group(0))


@pytest.mark.parametrize('path', SOURCES, ids=str)
def test_module_says_what_it_is(path):
    assert ast.get_docstring(ast.parse(path.read_text())), path


@pytest.mark.parametrize('path', SOURCES, ids=str)
def test_long_function_says_why(path):
    """Over 40 lines a function (its docstring apart), a comment that begins
    with ``long:`` says why. Long files stand in ``test_size.py``."""
    text = path.read_text()
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        end = max((getattr(n, 'end_lineno', 0) or 0)
                  for n in ast.walk(node))
        count = end - node.lineno + 1
        if ast.get_docstring(node, clean=False):
            count -= 1 + ast.get_docstring(node, clean=False).count('\n')
        if count > 40:
            assert '# long: ' in '\n'.join(lines[node.lineno - 2:end]), \
                '%s has %d lines' % (node.name, count)


def test_errors_are_never_swallowed_whole():
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ExceptHandler) and \
                    [type(line) for line in node.body] == [ast.Pass] and (
                        node.type is None or getattr(
                            node.type, 'id', '') in (
                                'Exception', 'BaseException')):
                raise AssertionError('%s:%d' % (path, node.lineno))


def test_every_direct_dependency_is_pinned_and_explained():
    setup = configparser.ConfigParser()
    setup.read(str(ROOT / 'setup.cfg'))
    wanted = setup['options']['install_requires'].splitlines()
    for lines in setup['options.extras_require'].values():
        wanted += lines.splitlines()
    normal = lambda name: re.split(  # noqa: E731
        '[<>=!~; ]', name)[0].lower().replace('_', '-')
    pinned = {normal(line) for line in
              (ROOT / 'constraints.txt').read_text().splitlines()
              if line and not line.startswith('#')}
    page = (ROOT / 'doc' / 'source' / 'reference'
            / 'dependencies.rst').read_text()
    for name in filter(None, map(normal, wanted)):
        assert name in pinned, name
        assert re.search(r'^%s\b' % re.escape(name), page, re.M), name


def test_release_notes_are_well_formed():
    pytest.importorskip('reno')
    if not (ROOT / '.git').exists():
        pytest.skip('reno needs git')
    subprocess.run(
        [sys.executable, '-m', 'reno.main', '--rel-notes-dir',
         'doc/releasenotes', 'lint', '.'], check=True, cwd=str(ROOT),
        stdout=subprocess.DEVNULL)
