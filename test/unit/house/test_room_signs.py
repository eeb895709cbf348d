"""Each room says what lives in it, what may enter, and what never leaves."""

from __future__ import annotations

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
ROOMS = sorted(path.parent.relative_to(ROOT).as_posix() for path
               in (ROOT / 'swift_dss').rglob('__init__.py'))


def missing(docstring):
    """The parts of a sign that a docstring lacks."""
    lines = (docstring or '').splitlines()
    parts = {
        'a sentence of one line': len(lines) > 1 and lines[0] != ''
        and lines[1] == '',
        'a line on what lives here': len(lines) > 2
        and not lines[2].startswith(('In:', 'Never:')),
        'a line that begins with "In:"':
            any(line.startswith('In: ') for line in lines),
        'a line that begins with "Never:", after it':
            any(line.startswith('Never: ') for line in lines[
                [line.startswith('In: ') for line in lines].index(True):])
            if any(line.startswith('In: ') for line in lines) else False,
        'twelve lines at most': len(lines) <= 12}
    return [part for part, is_there in parts.items() if not is_there]


def docstring_of(room):
    return ast.get_docstring(ast.parse(
        (ROOT / room / '__init__.py').read_text()))


@pytest.mark.parametrize('room', ROOMS)
def test_a_room_has_its_sign(room):
    assert missing(docstring_of(room)) == []


def test_no_folder_of_code_is_without_one():
    folders = {path.parent.relative_to(ROOT).as_posix() for path
               in (ROOT / 'swift_dss').rglob('*.py')}
    assert folders == set(ROOMS)


@pytest.mark.parametrize('docstring', [
    None, '', 'The cache-tier daemon.',
    'A room.\n\nHolds much.\nIn: bytes.\nOut: bytes.',
    'A room.\n\nHolds much.\nNever: bytes.',
    'A room.\n\nHolds much.\nNever: bytes.\nIn: bytes.',
    'A room.\n\nIn: bytes.\nNever: bytes.',
    'A room.\nHolds much.\nIn: bytes.\nNever: bytes.',
    'A room.\n\nHolds much.\n' + 'x\n' * 9 + 'In: a\nNever: b'])
def test_a_sign_that_lacks_a_part_is_seen(docstring):
    assert missing(docstring)
