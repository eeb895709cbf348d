"""Exercisers of file systems over dm-dss, in small: nothing differs from
the plain disk, and a cache that forgets is seen. What is not installed is
left out (``exercise.py`` says how to get it)."""

from __future__ import annotations

import exercise
import pytest

#: One of the stressors spins until another has done something: where only
#: disks move the clock it ends because it rests (``resting.c``).
SMALL = {'fsx_operations': 300, 'stressors': ('hdd', 'rename', 'dir'),
         'stress_operations': 10, 'cuts': 1, 'fio_bytes': 128 << 10}
#: Without a crash: fio takes seconds to start where the clock stands.
QUICK = ('fsx', 'stress-ng')


def parts(wanted=QUICK):
    there = [part for part in wanted if not exercise.missing([part])]
    if not there:
        pytest.skip('; '.join(exercise.missing(wanted)))
    return there


def test_nothing_differs_from_the_plain_disk(capsys):
    assert exercise.compared(parts(), ('ext4',), ('writeback', 'staged'), 1,
                             **SMALL) == 0, capsys.readouterr().out
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 3
    for line in said[1:]:
        # It passed because the cache worked, not because it stood aside.
        assert '"write_hits": 0' not in line
        assert '"promotions": 0' not in line
        assert '"ssd_errors": 0, "hdd_errors": 0' in line
    assert '"stage_waits": 0' in said[1]
    assert '"stage_waits": 0' not in said[2]


@pytest.mark.parametrize('mode', ['writeback', 'staged'])
def test_what_fio_wrote_is_there_after_a_power_cut(mode):
    report = exercise.exercised(exercise.job(
        'xfs', mode, parts(['fio']), 1, **SMALL))['outcome']
    assert exercise.faults(report, report) == []
    assert report['fio']['verified'] > 100


def test_a_cache_that_forgets_what_was_written_is_seen():
    assert exercise.twin_is_caught(parts(['fsx']), 1, **SMALL)


def test_no_stressor_of_file_systems_is_left_out_in_silence():
    if exercise.missing(['stress-ng']):
        pytest.skip('; '.join(exercise.missing(['stress-ng'])))
    known = exercise.known_stressors()
    assert set(exercise.stressors()) == set(known) - set(exercise.LEFT_OUT)
    # 0.15 has all of these; a later one has more.
    assert set(exercise.STRESSORS) <= set(known)


def test_differences_are_found_in_outcomes():
    good = {'fsx': {'status': [0, 0], 'files': ['a', 'b'],
                    'checked': [0, 0]},
            'stress-ng': {'hdd': 0, 'chown': 4, 'checked': [0, 0]},
            'fio': {'right': True, 'repair': [0, 0], 'verified': 3,
                    'checked': [0, 0]}}
    assert exercise.faults(good, good) == []
    for part, name, value in (
            ('fsx', 'files', ['a', 'c']), ('fsx', 'status', [0, 1]),
            ('fsx', 'checked', [0, 1]), ('stress-ng', 'hdd', 2),
            ('stress-ng', 'chown', 0), ('fio', 'right', False),
            ('fio', 'repair', [0, 4]), ('fio', 'verified', 0)):
        bad = dict(good, **{part: dict(good[part], **{name: value})})
        assert exercise.faults(bad, good), (part, name)
        # What is wrong on both is wrong; what only differs is not there.
        assert bool(exercise.faults(bad, bad)) == (
            name not in ('files', 'chown')), (part, name)
