"""Shell-style patterns: fnmatch's answers, without its worst cases."""

from __future__ import annotations

import fnmatch
import re
import sys
import time

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as some

from swift_dss.core.globs import Glob


@pytest.mark.parametrize('pattern, text', [
    ('*', ''), ('*', 'a/b'), ('*.jpg', 'a.jpg'), ('*.jpg', '.jpg'),
    ('a*b*c', 'abc'), ('a*b*c', 'axxbyyc'), ('?', 'a'), ('[a-c]x', 'bx'),
    ('[!a-c]x', 'dx'), ('[*]', '*'), ('*[0-9]', 'a1'), ('', ''),
    ('[', '['), ('[abc', '[abc'), ('a.b', 'a.b'), ('*a', 'aaa'),
    ('a?*', 'ab'), ('**', 'x'), ('é*', 'éa'), ('*\n', 'a\n'),
    ('[!z-a]', 'm'), ('[]]', ']'), ('[a-]', '-'), ('[\\d]', '\\'),
    ('[^a]', 'a')])
def test_what_matches(pattern, text):
    assert Glob.of(pattern).matches(text)


@pytest.mark.parametrize('pattern, text', [
    ('', 'a'), ('*.jpg', 'a.jpeg'), ('*.jpg', 'a.JPG'), ('?', ''),
    ('?', 'ab'), ('a*a', 'a'), ('[a-c]x', 'dx'), ('[!a-c]x', 'ax'),
    ('a.b', 'axb'), ('ab*ba', 'aba'), ('a', 'a\n'), ('*b', 'ba')])
def test_what_does_not(pattern, text):
    assert not Glob.of(pattern).matches(text)


@settings(max_examples=1000)
@given(some.text('ab*?[]!-', max_size=8), some.text('ab[]!-', max_size=8))
def test_the_answers_are_those_of_fnmatch(pattern, text):
    ours = Glob.of(pattern).matches(text)
    try:
        theirs = fnmatch.fnmatchcase(text, pattern)
    except re.error:
        # Up to Python 3.9 it trips over a class like [?--].
        assert sys.version_info < (3, 10)
        reject()
    assert ours == theirs


def test_many_stars_stay_quick():
    glob = Glob.of('*a' * 120 + '*b')
    started = time.process_time()
    assert not glob.matches('a' * 1024)
    assert time.process_time() - started < 0.5


def test_patterns_compare_by_their_text():
    assert Glob.of('a*') == Glob.of('a*') != Glob.of('a')
