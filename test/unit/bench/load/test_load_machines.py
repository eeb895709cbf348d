"""Several machines: one list of requests, one clock, and what goes wrong."""

from __future__ import annotations

import datetime
import time

import pytest
from support.edges.far_hosts import at, of

from swift_dss.bench.load import warpcsv

pytest.importorskip('hdrh')
pytest.importorskip('execnet')

AHEAD = '''import time
real = time.monotonic
time.monotonic = lambda: real() + 1000.0
whole = time.time_ns
time.time_ns = lambda: whole() - 500 * 10 ** 9
'''


def lines_of(path):
    header, *lines = path.read_text().splitlines()
    assert header == '\t'.join(warpcsv.HEADER)
    return [line.split('\t') for line in lines]


def test_the_csv_has_the_requests_of_all_machines_by_one_clock(
        load_reads, server, far_hosts, tmp_path):
    far_hosts.customize('ahead', AHEAD)
    before = time.time()
    code, report = load_reads(
        '--rate', '60', '--processes', '1', '--csv',
        str(tmp_path / 'all.csv'), *at('load1', 'ahead'))
    after = time.time()
    assert code == 0
    lines = lines_of(tmp_path / 'all.csv')
    assert [line[0] for line in lines] == [str(n) for n in range(120)]
    clients = [line[3] for line in lines]
    assert {name: clients.count(name) for name in clients} == {
        'dss0': 40, 'dss1': 40, 'dss2': 40}
    assert len({line[1] for line in lines}) == 6
    # The n-th turn is due n/60 s after the first, whoever has it.
    starts = sorted(datetime.datetime.strptime(
        line[9][:26] + '+0000', '%Y-%m-%dT%H:%M:%S.%f%z').timestamp()
        for line in lines)
    assert before < starts[0] and starts[-1] < after
    clocks = report['setup']['machines']
    wrong = max(clock['clock_error_ms'] for clock in clocks.values()) / 1e3
    for number, start in enumerate(starts):
        assert start - starts[0] == pytest.approx(
            number / 60, abs=2 * wrong + 0.001)
    for clock in clocks.values():
        assert 0 < clock['clock_error_ms'] < 500
        assert abs(clock['clock_drift_ms']) <= 2 * clock['clock_error_ms']


def test_the_csv_has_the_lines_of_a_lost_machine_until_then(
        load_reads, server, far_hosts, tmp_path):
    server.delay = lambda method, path: \
        (far_hosts.signal('load1') or 0) if method == 'GET' and \
        len(server.asked) == 80 else 0
    code, report = load_reads('--rate', '30', '--csv', str(
        tmp_path / 'all.csv'), '--processes', '1', *at('load1'))
    assert code == 69
    clients = [line[3] for line in lines_of(tmp_path / 'all.csv')]
    lost, = of(report, 'load1')
    assert clients.count('dss0') == 60
    assert clients.count('dss1') >= lost['operations'] > 0


def test_a_full_disk_of_the_csv_leaves_the_figures(load_reads, capsys):
    """And is no loss of the process whose lines they were."""
    code, report = load_reads('--csv', '/dev/full', '--processes', '1')
    assert code == 74
    assert report['operations'] == 120 and report['lost'] == 0
    assert report['unlisted'] == 120
    said = capsys.readouterr().out
    assert '120 requests are not in the CSV: [Errno 28] No space left' in said


def test_requests_that_are_not_in_the_csv_are_told(
        load_reads, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(warpcsv, 'MAX_WAITING', 2000)
    code, report = load_reads('--csv', str(tmp_path / 'all.csv'),
                              '--processes', '2')
    assert code == 0 and report['operations'] == 120
    lines = lines_of(tmp_path / 'all.csv')
    assert len(lines) + report['unlisted'] == 120
    assert report['unlisted'] > 0
    assert '%d requests are not in the CSV' % report['unlisted'] in \
        capsys.readouterr().out


def test_a_machine_that_nobody_reaches_is_named(
        load_reads, server, far_hosts, capfd):
    assert load_reads(*at('load1', 'unreachable2')) == (78, None)
    said = capfd.readouterr().err
    assert '--at ssh=unreachable2' in said and 'No route to host' in said
    assert 'it is not reached, or its Python does not start' in said
    assert server.asked == []
    # A host that drops packets is no wait of minutes.
    assert 'ConnectTimeout=10' in far_hosts.asked('load1')[0]


@pytest.mark.parametrize('code, words', [
    ('import importlib.metadata as m\nm.version = lambda name: "0.1"\n'
     'import sys\nsys.modules["swift_dss.bench.load.workers"] = None\n',
     'has swift-dss 0.1, and this is '),
    ('import sys\nsys.modules["hdrh"] = None\n', 'hdrh'),
    ('import sys\nsys.modules["swift_dss"] = None\n', 'swift_dss')])
def test_a_machine_with_other_software_is_named(
        load_reads, server, far_hosts, capsys, code, words):
    far_hosts.customize('other', code)
    assert load_reads(*at('load1', 'other')) == (78, None)
    said = capsys.readouterr().err
    assert '--at ssh=other' in said and words in said, said
    assert server.asked == []


def test_a_machine_without_the_python_is_named(
        load_reads, server, far_hosts, capsys):
    assert load_reads('--at', 'ssh=load1//python=/nowhere/python') == (
        78, None)
    said = capsys.readouterr().err
    assert '--at ssh=load1//python=/nowhere/python: it is not rea' in said


def test_failures_are_told_by_machine(load_reads, server, far_hosts, capsys):
    """A machine that does not reach the cluster, with nothing to write."""
    far_hosts.customize('lonely', '''import socket
def refuse(*_arguments, **_words):
    raise OSError('no route')
socket.create_connection = refuse
''')
    code, report = load_reads('-u', '2', *at('load1', 'lonely'),
                              crud_profile=[1, 0, 0, 0],
                              initial_files={'tiny': 1})
    assert code == 0
    lonely, = of(report, 'lonely')
    assert (lonely['failures'], of(report, 'load1')[0]['failures']) == (60, 0)
    row, = (line.split() for line in capsys.readouterr().out.splitlines()
            if line.startswith('lonely'))
    assert '60' in row[-2:]


def test_users_for_fewer_processes_than_are_asked_for(
        load_reads, server, far_hosts, capsys):
    assert load_reads('-u', '2', '--processes', '1',
                      *at('load1', 'load2')) == (2, None)
    assert '3 processes for 2 users' in capsys.readouterr().err


def test_a_machine_that_is_too_slow_for_its_share_is_named(
        load_reads, server, far_hosts, capsys):
    far_hosts.customize('slow', '''import time
real = time.sleep
time.sleep = lambda seconds: real(seconds + 0.2)
''')
    code, report = load_reads('--rate', '60', *at('load1', 'slow'))
    assert code == 0
    slow, = of(report, 'slow')
    quick, = of(report, 'load1')
    assert slow['late_ms'] > 1000 > quick['late_ms']
    assert quick['sent_per_second'] == pytest.approx(30, rel=0.02)
    said = capsys.readouterr().out
    named, = (line for line in said.splitlines() if 'give it less' in line)
    assert named.startswith('slow, process 1') and 'LOST' not in said
    assert not report['open_loop']['kept'] and 'rate was not kept' in said
