"""Advice by rule, and by a table of measurements."""

from __future__ import annotations

import pytest

from swift_dss.core.errors import BadConfig
from swift_dss.strategy.advise import (
    INDEX_ROW_BYTES, Workload, advise)
from swift_dss.strategy.advise_learn import Table

MIB = 1 << 20
LOAD = Workload(10 * MIB, 5.0, 3600.0, 1024 * MIB, 2, 100000, 0)


def test_data_hold_the_outage_the_largest_objects_and_headroom():
    data = advise(LOAD, 0.2, {})[0]
    assert data.wants_bytes == int((10 * 3600 + 2048) * MIB / 0.8)
    assert data.verdict == ''


def test_metadata_grow_with_the_population_and_the_log_with_the_outage():
    _, metadata, log = advise(LOAD, 0.2, {})
    more = advise(Workload(10 * MIB, 5.0, 7200.0, 1, 1, 200000), 0.2, {})
    assert more[1].wants_bytes - metadata.wants_bytes == \
        100000 * INDEX_ROW_BYTES
    assert more[2].wants_bytes > log.wants_bytes


@pytest.mark.parametrize('share, verdict', [
    (0.99, 'too small'), (1.0, 'fits'), (3.9, 'fits'), (4.1, 'too large')])
def test_what_there_is_is_judged(share, verdict):
    wants = advise(LOAD, 0.05, {})[0].wants_bytes
    advice = advise(LOAD, 0.05, {'data': int(wants * share)})[0]
    assert advice.verdict == verdict


def test_the_failed_cases_of_the_paper_are_called_too_small():
    """Table IV: 200 x 1 GB written at once, nothing leaves in time."""
    load = Workload(200 * 1e9 / 3600, 0.1, 3600.0, int(1e9), 1, 200)
    verdicts = {gigabytes: advise(load, 0.05, {
        'data': int(gigabytes * 1e9)})[0].verdict
        for gigabytes in (50, 99, 197, 497)}
    assert verdicts == {50: 'too small', 99: 'too small',
                        197: 'too small', 497: 'fits'}



ROWS = [{'cache': float(cache), 'load': float(load),
         'rate': min(100.0, cache * 10.0 / load)}
        for cache in (1, 2, 4, 8, 16) for load in (1, 2, 4)]


def test_a_row_that_was_measured_is_predicted_as_it_was():
    table = Table(ROWS, ['cache', 'load'], 'rate')
    for row in ROWS:
        assert table.predict(row).value == pytest.approx(row['rate'],
                                                         rel=1e-6)


def test_the_error_is_of_rows_left_out_and_not_of_rows_known():
    table = Table(ROWS, ['cache', 'load'], 'rate')
    assert 0.05 < table.error() < 0.6
    assert Table([dict(row, rate=5.0) for row in ROWS],
                 ['cache', 'load'], 'rate').error() < 1e-9


def test_backward_the_cheapest_that_promises_enough_is_chosen():
    table = Table(ROWS, ['cache', 'load'], 'rate')
    choice = table.choose({'load': 2.0}, ['cache'], 35.0, {'cache': 3.0})
    assert choice.allocation == {'cache': 8.0}
    assert choice.cost == 24.0
    assert table.choose({'load': 4.0}, ['cache'], 1000.0, {}) is None


def test_it_says_which_rows_it_speaks_from():
    table = Table(ROWS, ['cache', 'load'], 'rate')
    assert ROWS[table.predict({'cache': 4.0, 'load': 2.0}).rows[0]] == {
        'cache': 4.0, 'load': 2.0, 'rate': 20.0}


@pytest.mark.parametrize('rows, text', [
    (ROWS[:2], 'too few'),
    ([*ROWS, {'cache': 1.0}], 'row 16: no column load')])
def test_tables_that_cannot_be_learnt_from_are_refused(rows, text):
    with pytest.raises(BadConfig, match=text):
        Table(rows, ['cache', 'load'], 'rate')
