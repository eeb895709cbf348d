"""Some mutants are made each day; ``unit/house`` looks if all of them fit."""

from __future__ import annotations

import time

import mutants

#: So many are made in each run: another handful every day.
A_DAY = 3
#: Those whose tests start a server take longer.
QUICK = [mutant for mutant in mutants.mutants() if all(
    test.startswith('unit/') for test in mutant.tests)]


def test_some_of_them_are_noticed(capsys):
    today = int(time.time() // 86400) * A_DAY
    chosen = [QUICK[(today + number) % len(QUICK)]
              for number in range(A_DAY)]
    outcomes = mutants.campaign(chosen, 1, listed=True)
    print('figure: mutants: ' + mutants.summary(outcomes))
    assert len(outcomes) == A_DAY, capsys.readouterr().out
    for outcome in outcomes:
        assert not outcome.problem, outcome.problem
        assert outcome.killed_by != mutants.SURVIVED, outcome.mutant.name


def test_a_change_that_no_test_notices_survives(tmp_path):
    """The wrong twin: nothing is taken out."""
    mutant = next(mutant for mutant in QUICK
                  if mutant.file == 'wire/registers.py')
    mutants.copy_of_tree(str(tmp_path))
    outcome = mutants.judge(mutant._replace(new=mutant.old + '  # the same'),
                            str(tmp_path), listed=True)
    assert (outcome.killed_by, outcome.problem) == (mutants.SURVIVED, '')
    assert mutants.summary([outcome]) == '0 of 1 killed (0.0 %)'
    gone = mutant._replace(tests=('unit/wire/test_registers.py::test_none',))
    assert mutants.judge(gone, str(tmp_path), listed=True).problem
