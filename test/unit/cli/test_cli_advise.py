"""``swift-dss gateway advise`` without a daemon: figures and tables."""

from __future__ import annotations

import json

import pytest

from swift_dss.cli.main import main

TABLE = 'cache,load,rate\n' + ''.join(
    '%d,%d,%g\n' % (cache, load, min(100.0, cache * 10 / load))
    for cache in (1, 2, 4, 8) for load in (1, 2, 4))


@pytest.fixture
def advise(tmp_path, capsys):
    (tmp_path / 'dss.conf').write_text(
        '[dss]\nrun_dir = %s\n' % tmp_path)
    (tmp_path / 'runs.csv').write_text(TABLE)

    def run(*arguments, as_json=True):
        words = ['gateway', 'advise', '--config',
                 str(tmp_path / 'dss.conf'), *arguments]
        code = main(words + (['--json'] if as_json else []))
        said = capsys.readouterr()
        return code, said.out, said.err
    run.table = str(tmp_path / 'runs.csv')
    return run


def test_all_figures_may_be_given(advise):
    code, out, _ = advise('--ingest', '10m', '--largest', '1g', '--objects',
                          '5', '--outage', '3600', '--population', '1000')
    report = json.loads(out)
    assert code == 0
    assert report['advice'][0]['wants_bytes'] == int(
        (10 * 3600 + 1024) * (1 << 20) / 0.95)
    assert report['advice'][0]['verdict'] == ''


def test_a_person_gets_a_table(advise):
    code, out, _ = advise('--ingest', '10m', '--largest', '1g',
                          as_json=False)
    assert code == 0
    for text in ('AREA', 'metadata', 'longest outage', '8h00m'):
        assert text in out, out


def test_without_figures_it_says_which_are_missing(advise):
    code, _, err = advise()
    assert code == 78 and '--ingest' in err and 'no tier daemon' in err


def test_forward_it_predicts_and_names_its_lines(advise):
    code, out, _ = advise('--learn', advise.table, '--target', 'rate',
                          '--given', 'cache=4', '--given', 'load=2')
    report = json.loads(out)
    assert code == 0 and report['value'] == pytest.approx(20.0)
    assert 0 < report['error'] < 1 and len(report['rows']) == 3
    _, out, _ = advise('--learn', advise.table, '--target', 'rate',
                       '--given', 'cache=4', '--given', 'load=2',
                       as_json=False)
    # Line 9 of the file: a head, and two runs of each cache before it.
    assert 'from lines 9,' in out


def test_backward_it_chooses_the_cheapest(advise):
    code, out, _ = advise('--learn', advise.table, '--target', 'rate',
                          '--given', 'load=2', '--free', 'cache=3',
                          '--at-least', '35')
    assert code == 0
    assert json.loads(out)['allocation'] == {'cache': 8.0}


@pytest.mark.parametrize('arguments, text', [
    (['--target', 'rate', '--given', 'cache'], 'COLUMN=NUMBER'),
    (['--target', 'rate', '--given', 'cache=x'], 'COLUMN=NUMBER'),
    (['--given', 'cache=1'], '--target'),
    (['--target', 'speed', '--given', 'cache=1'], 'no column speed'),
    (['--target', 'rate', '--free', 'cache', '--at-least', '9999'],
     'no row')])
def test_what_cannot_be_learnt_is_said(advise, arguments, text):
    code, _, err = advise('--learn', advise.table, *arguments)
    assert code == 78 and text in err


def test_a_table_with_words_in_it_names_the_line(advise, tmp_path):
    (tmp_path / 'bad.csv').write_text('a,b\n1,2\n1,two\n')
    code, _, err = advise('--learn', str(tmp_path / 'bad.csv'), '--target',
                          'b')
    assert code == 78 and 'line 3' in err


@pytest.mark.parametrize('arguments, said', [
    (['--outage', '-5'], '--outage: -5 is not a number of at least 0'),
    (['--outage', 'nan'], '--outage: nan is not a number'),
    (['--objects', '-1'], '--objects: -1 is not a number of at least 0'),
    (['--population', '-1'], '--population: -1 is not a number'),
    (['--writers', '0'], '--writers: 0 is not a number of at least 1')])
def test_figures_that_cannot_be_meant_are_refused(advise, arguments, said):
    code, _, err = advise('--ingest', '10m', *arguments)
    assert code == 78 and said in err


def test_an_unknown_population_is_said(advise):
    _, out, _ = advise('--ingest', '10m')
    assert ['population' in text for text in
            json.loads(out)['warnings']] == [True]
    _, out, _ = advise('--ingest', '10m', '--population', '0')
    assert json.loads(out)['warnings'] == []


def test_before_there_is_a_node_no_configuration_is_needed(
        tmp_path, monkeypatch, capsys):
    missing = str(tmp_path / 'none.conf')
    monkeypatch.setattr('swift_dss.cli.gateway.verbs.CONFIG', missing)
    assert main(['gateway', 'advise', '--ingest', '10m', '--largest', '1g',
                 '--population', '10']) == 0
    assert 'metadata' in capsys.readouterr().out
    # A file that was asked for by name must be there.
    assert main(['gateway', 'advise', '--config', missing + '2',
                 '--ingest', '10m']) == 78


def test_a_prediction_outside_of_the_table_says_so(advise):
    question = ('--learn', advise.table, '--target', 'rate',
                '--given', 'load=2', '--given')
    _, out, _ = advise(*question, 'cache=100')
    assert json.loads(out)['beyond'] == {'cache': [1.0, 8.0]}
    _, out, _ = advise(*question, 'cache=100', as_json=False)
    assert 'cache = 100 is outside of what was measured, 1 to 8' in out
    _, out, _ = advise(*question, 'cache=8', as_json=False)
    assert 'warning' not in out
