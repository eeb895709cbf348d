"""Each mutant of a guard fits the tree as it is: ``test/fault/mutants.toml``.
"""

from __future__ import annotations

import ast
import os
from collections import Counter

import pytest
from fault import mutants

LIST = mutants.mutants()
TEST = os.path.join(os.path.dirname(mutants.__file__), os.pardir)
PAGE = os.path.join(
    TEST, os.pardir, 'doc', 'source', 'evidence', 'mutants.rst')


def test_each_is_one_change_of_a_text_that_is_there_once():
    stale = []
    for mutant in LIST:
        with open(mutants.source_of(mutant), encoding='utf-8') as source:
            try:
                mutants.changed(mutant, source.read())
            except mutants.Stale as err:
                stale.append(str(err))
    assert not stale, '\n'.join(stale)


def test_the_tests_that_notice_them_are_there():
    missing = []
    for mutant in LIST:
        for test in mutant.tests or ('none',):
            path, _, name = test.partition('::')
            if name not in _functions(path):
                missing.append('%s: %s' % (mutant.name, test))
    assert not missing, '\n'.join(missing)


def test_there_are_many_and_each_has_a_name():
    assert len(LIST) >= 60
    assert max(Counter(mutant.name for mutant in LIST).values()) == 1
    assert {mutant.file.partition('/')[0] for mutant in LIST} >= {
        'gateway', 'io', 'objserver', 'tier'}


def test_the_manuals_page_is_that_of_the_list():
    with open(PAGE, encoding='utf-8') as source:
        assert source.read() == mutants.page(LIST), \
            ('python test/fault/mutants.py --page > '
             'doc/source/evidence/mutants.rst')


def test_a_stale_one_is_named():
    mutant = LIST[0]
    for text in ('', 'x = 1\n' + 2 * mutant.old):
        with pytest.raises(mutants.Stale, match=mutant.name):
            mutants.changed(mutant, text)
    with pytest.raises(mutants.Stale, match=mutant.name):
        mutants.changed(mutant._replace(old='x', new='x ='), 'x')


def _functions(path):
    try:
        with open(os.path.join(TEST, path), encoding='utf-8') as source:
            return {item.name for item in ast.parse(source.read()).body
                    if isinstance(item, ast.FunctionDef)}
    except FileNotFoundError:
        return set()
