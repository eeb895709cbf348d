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


UNKNOWN = {'--population': '0', '--working-set': '0', '--link': '1g',
           '--largest': '1g', '--objects': '0'}


@pytest.mark.parametrize('missing', UNKNOWN)
def test_what_is_not_known_is_said(advise, missing):
    known = [word for option, value in UNKNOWN.items() if option != missing
             for word in (option, value)]
    _, out, _ = advise('--ingest', '10m', *known)
    warning, = json.loads(out)['warnings']
    assert 'say ' + missing in warning
    _, out, _ = advise('--ingest', '10m', *known, missing, UNKNOWN[missing])
    assert json.loads(out)['warnings'] == []


def test_the_daemons_link_is_the_link_unless_one_is_given(
        advise, monkeypatch):
    monkeypatch.setattr(
        'swift_dss.cli.gateway.advise.ask', lambda conf, question: [
            {'result': {'devices': [], 'link': {
                'up': {'measured': 12.0 * (1 << 20)}}}}])
    _, out, _ = advise(*FIGURES)
    assert json.loads(out)['link']['bytes_per_second'] == 12 << 20
    _, out, _ = advise(*FIGURES, '--link', '15m')
    assert json.loads(out)['link']['bytes_per_second'] == 15 << 20


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


@pytest.mark.parametrize('arguments, said', [
    (['--at-least', '35'], '--at-least: is for --learn TABLE'),
    (['--target', 'rate'], '--target: is for --learn TABLE'),
    (['--given', 'load=2'], '--given: is for --learn TABLE'),
    (['--free', 'cache'], '--free: is for --learn TABLE')])
def test_what_only_a_table_answers_is_not_passed_over(advise, arguments,
                                                      said):
    code, _, err = advise('--ingest', '10m', *arguments)
    assert code == 78 and said in err


@pytest.mark.parametrize('arguments, said', [
    (['--at-least', '35', '--given', 'cache=4'],
     '--at-least: say which columns are to be chosen with --free'),
    (['--free', 'cache'], '--free: say with --at-least how much has to'),
    (['--at-least', 'nan', '--free', 'cache'],
     '--at-least: nan is not a number'),
    (['--free', 'cache=-1', '--at-least', '35'],
     '--free: cache: a price of -1 is less than 0'),
    (['--given', 'cache=1', '--free', 'cache', '--at-least', '35'],
     '--free: cache is given, too'),
    (['--given', 'cache=nan'], 'is not COLUMN=NUMBER'),
    (['--ingest', '10m', '--given', 'cache=4'],
     '--ingest: is not for --learn')])
def test_a_question_that_a_table_cannot_answer_is_refused(advise, arguments,
                                                          said):
    code, _, err = advise('--learn', advise.table, '--target', 'rate',
                          *arguments)
    assert code == 78 and said in err, err


def test_a_choice_says_what_it_speaks_from_and_how_sure_it_is(advise):
    question = ('--learn', advise.table, '--target', 'rate', '--free',
                'cache=3', '--at-least', '35', '--given')
    _, out, _ = advise(*question, 'load=2')
    report = json.loads(out)
    assert 0 < report['error'] < 1 and len(report['rows']) == 3
    assert report['beyond'] == {}
    # Runs with a load of 1 and 2 were the nearest: it is not measured there.
    _, out, _ = advise(*question, 'load=0.5')
    assert json.loads(out)['beyond'] == {'load': [1.0, 4.0]}
    _, out, _ = advise(*question, 'load=0.5', as_json=False)
    assert 'leaving one out' in out and 'from lines' in out
    assert 'load = 0.5 is outside of what was measured, 1 to 4' in out


def test_a_choice_that_its_error_could_undo_says_so(advise):
    """With cache = 8 and load = 2 the table has 40; its error is more than
    the 12 per cent that this is above 35."""
    question = ('--learn', advise.table, '--target', 'rate', '--free',
                'cache=3', '--given', 'load=2', '--at-least')
    _, out, _ = advise(*question, '35', as_json=False)
    assert 'warning: less its error it is' in out
    _, out, _ = advise(*question, '1', as_json=False)
    assert 'warning' not in out


FIGURES = ('--ingest', '10m', '--largest', '1g', '--objects', '5',
           '--outage', '3600', '--population', '1000')


def test_a_working_set_stays_here(advise):
    _, out, _ = advise(*FIGURES, '--working-set', '100g')
    report = json.loads(out)
    assert report['workload']['local_bytes'] == 100 << 30
    assert report['advice'][0]['wants_bytes'] == int(
        (10 * 3600 + 1024 + 100 * 1024) * (1 << 20) / 0.95)
    _, out, _ = advise(*FIGURES, as_json=False)
    assert 'warning: no working set is known' in out
    _, out, _ = advise(*FIGURES, '--working-set', '0', '--link', '1g',
                       as_json=False)
    assert 'warning' not in out


def test_the_link_says_how_long_a_backlog_lasts(advise):
    _, out, _ = advise(*FIGURES, '--link', '15m')
    link = json.loads(out)['link']
    assert link['bytes_per_second'] == 15 << 20
    # 10 MB/s wait for an hour, and 5 MB/s are left for them.
    assert link['drain_seconds'] == 7200.0
    assert link['keeps_up'] is True
    _, out, _ = advise(*FIGURES, '--link', '15m', as_json=False)
    assert 'link 15.0 MiB/s: what waited is in S3 2h00m after' in out


@pytest.mark.parametrize('rate', ['10m', '4m'])
def test_a_link_that_does_not_keep_up_is_a_warning(advise, rate):
    code, out, _ = advise(*FIGURES, '--working-set', '0', '--link', rate)
    report = json.loads(out)
    assert report['link']['keeps_up'] is False
    assert report['link']['drain_seconds'] is None
    assert ['the link to S3' in text for text in report['warnings']] == [True]
    # The busiest minute does not last: the areas alone are judged.
    assert code == 0


def test_an_unknown_link_is_said(advise):
    _, out, _ = advise(*FIGURES, '--working-set', '0', as_json=False)
    assert 'warning: the rate of the link to S3 is not known' in out
    _, out, _ = advise(*FIGURES)
    assert json.loads(out)['link'] is None


@pytest.mark.parametrize('arguments, said', [
    (['--link', '0'], '--link: must be above 0'),
    (['--link=-3'], '--link: must be above 0, not -3'),
    (['--ingest=-10m'], '--ingest: must be above 0'),
    (['--largest=-1g'], '--largest: must be above 0'),
    (['--working-set=-1'], '--working-set: must be'),
    (['--working-set', 'many'], "--working-set: 'many' is not")])
def test_rates_and_sizes_that_cannot_be_meant_are_refused(
        advise, arguments, said):
    code, _, err = advise(*FIGURES, *arguments)
    assert code == 78 and said in err, err


def test_the_advised_room_has_a_price_a_month(advise):
    _, out, _ = advise(*FIGURES, '--prices', 'aws')
    report = json.loads(out)
    data = report['advice'][0]
    assert data['dollars_a_month'] == pytest.approx(
        data['wants_bytes'] / 1e9 * 0.08)
    assert report['prices']['date'] == '2025-11'
    _, out, _ = advise(*FIGURES, '--prices', 'aws', as_json=False)
    assert '%.2f' % data['dollars_a_month'] in out and '2025-11' in out
    _, out, _ = advise(*FIGURES)
    assert json.loads(out)['advice'][0]['dollars_a_month'] is None
    code, _, err = advise(*FIGURES, '--prices', 'nowhere')
    assert code == 78 and '--prices: nowhere is none of aws' in err


TRACE = 'gen:zipf,requests=4000,objects=400,sigma=1'


def test_a_trace_says_the_least_dollars_of_the_working_set(advise, capsys):
    figures = ('--ingest', '1m', '--largest', '1m', '--working-set', '10m')
    code, out, _ = advise(*figures, '--trace', TRACE)
    row = json.loads(out)['bound']
    assert code == 0 and row['strategy'] == 'class'
    assert 0 < row['dollars_at_least'] <= row['dollars_offline'] \
        <= row['dollars']
    assert row['above_share'] == pytest.approx(
        row['dollars'] / row['dollars_at_least'] - 1)
    # The same as a replay of that size.
    assert main(['replay', TRACE, '--strategy', 'class', '--cache',
                 '10m', '--write', 'through', '--bound', '--json', '-']) == 0
    limit = json.loads(capsys.readouterr().out)['limits'][0]
    for name in ('dollars', 'dollars_at_least', 'dollars_offline'):
        assert row[name] == pytest.approx(limit[name], rel=1e-3)
    _, out, _ = advise(*figures, '--trace', TRACE, as_json=False)
    assert 'no order can have less than $%.4f' % row['dollars_at_least'] \
        in out and '% above the least' in out
    _, out, _ = advise(*figures)
    assert json.loads(out)['bound'] is None


def test_a_trace_needs_a_working_set(advise):
    code, _, err = advise('--ingest', '1m', '--largest', '1m', '--trace',
                          TRACE)
    assert code == 78 and '--working-set' in err
