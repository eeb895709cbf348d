"""``swift-dss load`` from its command line, against a small real server."""

from __future__ import annotations

import collections
import io
import itertools
import json
import os
import signal
import threading

import pytest

from swift_dss.cli import main

pytest.importorskip('hdrh')

CONTAINERS = 3


@pytest.fixture
def load(server, tmp_path, monkeypatch):
    """Runs a scenario; the exit code and the report."""
    monkeypatch.delenv('ST_AUTH', raising=False)

    def run(*words, access=(), **fields):
        data = dict({
            'name': 'mixed', 'operation_count': 60, 'user_count': 4,
            'crud_profile': [1, 3, 1, 1], 'container_count': CONTAINERS,
            'sizes': [{'name': 'tiny', 'size_min': 0, 'size_max': 900,
                       'class': 'gold', 'ranges': ['0-10-silver']},
                      {'name': 'big', 'size_min': 300000,
                       'size_max': 400000}],
            'initial_files': {'tiny': 9, 'big': 3}}, **fields)
        scenario = tmp_path / 'scenario.json'
        scenario.write_text(json.dumps(data))
        out = tmp_path / 'out.json'
        code = main.main([
            'load', str(scenario), *(access or (
                '--auth', server.url + '/auth/v1.0', '--user', 'a:b',
                '--key', 'c')),
            '--processes', '2', '--json', str(out), *words])
        return code, json.loads(out.read_text()) if out.exists() else None

    return run


def failures(report):
    counts = collections.Counter()
    for row in report['rows']:
        for error, count in row['failures'].items():
            counts[row['operation'], error] += count
    return counts


def test_a_scenario_is_run_whole_and_leaves_nothing(load, server, capsys):
    code, report = load()
    assert code == 0
    assert report['operations'] == 60
    assert (report['failures'], report['wrong'], report['stale'],
            report['left']) == (0, 0, 0, 0)
    assert sum(row['count'] for row in report['rows']) \
        == 60 - report['skipped'] - report['gone']
    assert server.objects == server.containers == {}
    puts = [path for method, path, _ in server.asked
            if method == 'PUT' and '/' not in path]
    assert sorted(puts) == ['ssbench_%06d_default_policy' % number
                            for number in range(CONTAINERS)]
    tiers = {(row['class'], row['tier']) for row in report['rows']
             if row['operation'] == 'read'}
    assert tiers == {('gold+ranges', 'ssd'), ('-', 'ssd')}
    said = capsys.readouterr().out
    assert 'gold+ranges' in said and '60 operations' in said


def test_classes_and_ranges_go_with_each_put(load, server):
    load('--keep', crud_profile=[1, 0, 0, 0], delete_after=77, policy='ec')
    assert len(server.containers) == CONTAINERS
    assert len(server.objects) == 72
    for path, body in server.objects.items():
        headers, = server.puts(path)
        assert headers['X-Delete-After'] == '77'
        if '/tiny_' in path:
            assert headers['X-DSS-Object-Class'] == '25'
            assert headers.get('X-DSS-Range-Class') == (
                '0-%d-20' % min(10, len(body)) if body else None)
        else:
            assert 'X-DSS-Object-Class' not in headers
    assert server.puts('ssbench_000000_ec')[0]['X-Storage-Policy'] == 'ec'


@pytest.mark.parametrize('change', [
    lambda body: body[:-1] + bytes([body[-1] ^ 1]) if body else b'x',
    lambda body: body[:-1] if body else b'x', lambda body: body + b'x',
    lambda body: bytes(len(body) + 1)])
def test_wrong_bytes_are_seen(load, server, change, capsys):
    server.change = lambda path, body: change(body) if '/' in path else body
    code, report = load(crud_profile=[0, 1, 0, 0])
    assert code == 65
    assert report['wrong'] == 60
    assert 'WRONG BYTES in 60 reads' in capsys.readouterr().out


def test_an_old_version_is_stale_and_not_wrong(load, server):
    first = {}
    server.change = lambda path, body: \
        first.setdefault(path, body) if body else body
    code, report = load('-u', '1', crud_profile=[0, 1, 1, 0],
                        initial_files={'big': 1})
    assert code == 0
    assert report['wrong'] == 0
    assert report['stale'] > 5


def test_refused_requests_are_counted_by_their_status(load, server):
    numbers = itertools.count()

    def status(method, path):
        return 503 if method == 'GET' and next(numbers) % 2 else None

    server.status = status
    code, report = load(crud_profile=[0, 1, 0, 0])
    assert code == 0
    assert failures(report) == {('read', 'status 503'): 30}
    assert report['failures'] == 30
    assert report['operations'] == 60


def test_a_first_object_that_is_refused_ends_it(load, server, capsys):
    server.status = lambda method, path: \
        507 if method == 'PUT' and '/' in path else None
    assert load()[0] == 70
    assert 'status 507' in capsys.readouterr().err


def test_a_container_with_another_policy_ends_it(load, server, capsys):
    server.status = lambda method, path: 409 if method == 'PUT' else None
    assert load()[0] == 70
    assert 'status 409' in capsys.readouterr().err


def test_open_loop_counts_from_the_intended_time(load, server):
    """The server stands still for a while: closed loop hardly sees it, as
    its users wait; open loop has the wait of each request that was due."""
    lock, stood = threading.Lock(), []

    def delay(method, path):
        if method == 'GET' and '/' in path:
            with lock:
                if not stood:
                    stood.append(threading.Event().wait(0.5))
        return 0

    words = {'crud_profile': [0, 1, 0, 0], 'initial_files': {'tiny': 9},
             'operation_count': 100, 'user_count': 2}
    server.delay = delay
    closed = load(**words)[1]
    stood.clear()
    opened = load('--rate', '200', **words)[1]
    # Half of what is due in these 0.5 s waits for over 0.2 s.
    row, = opened['rows']
    assert row['p50_ms'] > 100
    row, = closed['rows']
    assert row['p50_ms'] < 100
    assert opened['open_loop']['late_ms'] > 200
    assert opened['setup']['rate'] == 200


def test_requests_are_written_one_by_one(load, tmp_path):
    _, report = load('--csv', str(tmp_path / 'all.csv'))
    lines = (tmp_path / 'all.csv').read_text().splitlines()[1:]
    assert len(lines) == 60 - report['skipped']
    cells = [line.split('\t') for line in lines]
    assert {cell[2] for cell in cells} == {'PUT', 'GET', 'DELETE'}
    assert {int(cell[1]) for cell in cells} <= set(range(4))
    assert sum(int(cell[5]) for cell in cells) == sum(
        row.get('bytes', 0) for row in report['rows'])


def test_a_second_run_is_shown_beside(load, tmp_path, capsys):
    _, report = load(crud_profile=[0, 1, 0, 0])
    for row in report['rows']:
        row['p50_ms'] *= 2
    before = tmp_path / 'before.json'
    before.write_text(json.dumps(report))
    capsys.readouterr()
    assert load('--compare', str(before))[0] == 0
    assert 'beside %s' % before in capsys.readouterr().out


@pytest.mark.parametrize('text', [
    '', '[]', '{}', '{"rows": [{}]}', '{"rows": [], "format": "x"}',
    '{"rows": [], "format": "swift-dss-load", "version": 2}'])
def test_what_is_no_report_is_refused_before_the_run(
        load, server, tmp_path, text, capsys):
    (tmp_path / 'b').write_text(text)
    assert load('--compare', str(tmp_path / 'b'))[0] == 65
    assert server.asked == []
    assert 'is no report' in capsys.readouterr().err


@pytest.mark.parametrize('fields, words', [
    ({'user_count': 0}, 'line 1, column'), ({'name': 3}, 'name: '),
    ({'sizes': [{'name': 'tiny', 'size_min': 1, 'size_max': 1,
                 'class': 'lead'}], 'initial_files': {}},
     'sizes[0].class'),
    ({'sizes': [{'name': 'tiny', 'size_min': 1, 'size_max': 1,
                 'ranges': ['0-1-gold', '5-gold']}], 'initial_files': {}},
     'sizes[0].ranges at 2')])
def test_bad_scenarios_and_classes(load, server, fields, words, capsys):
    assert load(**fields)[0] == 2
    assert words in capsys.readouterr().err
    assert server.asked == []


def test_s3_requests_are_signed(load, server, monkeypatch):
    monkeypatch.setenv('AWS_ACCESS_KEY_ID', 'test:tester')
    monkeypatch.setenv('AWS_SECRET_ACCESS_KEY', 'testing')
    sizes = [{'name': 'tiny', 'size_min': 0, 'size_max': 900,
              'class': 'gold'}]
    code, report = load(access=('--s3', server.url), sizes=sizes,
                        initial_files={'tiny': 5})
    assert (code, report['failures'], report['left']) == (0, 0, 0)
    assert server.objects == server.containers == {}
    for method, path, headers in server.asked:
        assert headers['Authorization'].startswith('AWS4-HMAC-SHA256 ')
        assert headers['X-Amz-Content-SHA256'] == 'UNSIGNED-PAYLOAD'
        if method == 'PUT' and '/' in path:
            assert headers['x-amz-meta-dss-class'] == 'gold'
        assert path.split('/')[0].startswith('ssbench-00000')


def test_s3_has_no_ranges(load, server, capsys):
    assert load(access=('--s3', server.url, '--user', 'a', '--key',
                        'b'))[0] == 2
    assert 'sizes[0].ranges' in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_the_figures_so_far(load, server, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr('sys.stderr', terminal)
    assert load(crud_profile=[0, 1, 0, 0])[0] == 0
    text = terminal.getvalue()
    assert 'gold+ranges  read       ssd' in text
    # It is taken away before the result.
    assert text.endswith('A\x1b[J')


def test_an_interrupt_keeps_the_figures_and_cleans_up(load, server):
    def delay(method, path):
        if method == 'GET' and not sent:
            sent.append(os.kill(os.getpid(), signal.SIGINT))
        return 0

    sent = []
    server.delay = delay
    before = signal.getsignal(signal.SIGINT)
    code, report = load('-r', '60', '--rate', '20',
                        crud_profile=[0, 1, 0, 0])
    assert code == 0
    assert report['interrupted'] and 0 < report['operations'] < 1200
    assert report['seconds'] < 30
    assert server.objects == server.containers == {}
    assert signal.getsignal(signal.SIGINT) == before
