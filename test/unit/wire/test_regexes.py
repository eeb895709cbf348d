"""Only regular expressions of bounded cost are taken."""

from __future__ import annotations

import time

import pytest

from swift_dss.wire.settings.regexes import compile_bounded


@pytest.mark.parametrize('text, name', [
    (r'IMG_[0-9]+\.(jpg|jpeg|png)', 'IMG_0001.jpeg'),
    (r'.*/[^/]+\.mp4', 'a/b/c.mp4'),
    (r'(?i)backup-\d{4}-\d\d', 'BACKUP-2024-01'),
    (r'(?:a|b)?c', 'c'), (r'x{3}', 'xxx'), ('', ''),
    (r'(?!tmp).*', 'name'), (r'^a.*b$', 'axb'), (r'(ab)+', 'abab')])
def test_what_operators_write_is_taken(text, name):
    assert compile_bounded(text).fullmatch(name)


@pytest.mark.parametrize('text, said', [
    ('(a+)+', 'repeats inside a repetition'),
    ('(a*)*b', 'repeats inside a repetition'),
    ('(a?){40}', 'repeats inside a repetition'),
    ('(a|a)*b', 'repeats alternatives|repeats inside'),
    ('(a|ab)+c', 'repeats alternatives'),
    (r'(a)\1+', 'no bounded cost'),
    ('.*.*.*b', 'could take'),
    ('a*a*a*a*b', 'could take'),
    ('a?' * 60, 'could take'),
    ('(', 'is no regular expression'), ('[', 'is no regular expression'),
    ('a{99999999999}', 'is no regular expression|could take'),
    ('[[a]]', 'is no regular expression'),
    ('a' * 257, '257 characters are more than 256')])
def test_what_could_take_for_ever_is_refused(text, said):
    with pytest.raises(ValueError, match=said):
        compile_bounded(text)


@pytest.mark.parametrize('text', [
    '.*a.*b', '[^/]*/[^/]*x', r'\w+\d+z', '.*?a.*?b'])
def test_the_worst_name_of_an_accepted_pattern_is_quick(text):
    pattern = compile_bounded(text)
    started = time.process_time()
    for name in ('a' * 1024, '/' * 1024, '1' * 1024, 'ab' * 512):
        pattern.fullmatch(name + '!')
    assert time.process_time() - started < 1
