"""Machines of users that are lost while they are measured."""

from __future__ import annotations

import os
import signal
import threading

import pytest
from support.edges.far_hosts import at, of

from swift_dss.bench.load.workers import worker

pytest.importorskip('hdrh')
pytest.importorskip('execnet')

LOST = 69


def once(server, count, act, seconds=0.0):
    """Do something when so many reads have come, that take so long each."""
    lock, reads = threading.Lock(), []

    def delay(method, path):
        with lock:
            if method == 'GET':
                reads.append(path)
                if len(reads) == count:
                    act()
        return seconds

    server.delay = delay


def test_a_machine_that_is_killed_leaves_the_figures_of_the_others(
        load_reads, server, far_hosts, capsys):
    once(server, 60, lambda: far_hosts.signal('load2'))
    code, report = load_reads('--rate', '30', *at('load1', 'load2'))
    assert code == LOST
    killed, = of(report, 'load2')
    stayed, = of(report, 'load1')
    assert stayed['lost'] is None
    assert (stayed['operations'], stayed['of']) == (60, 60)
    lost = killed['lost']
    assert 'died' in lost['reason']
    # Its figures come once a second.
    assert 0 < lost['figures_until_seconds'] <= lost['lost_seconds'] < 30
    assert 0 < killed['operations'] < 40 and killed['of'] == 60
    assert report['operations'] == 60 + killed['operations']
    assert sum(row['count'] for row in report['rows']) == \
        report['operations']
    assert report['open_loop']['kept'] is False
    said = capsys.readouterr().out
    assert 'LOST' in said and 'load2' in said
    assert 'the figures have %d of its 60 requests' % \
        killed['operations'] in said
    assert 'the rate was not kept' in said


def test_those_that_stay_take_over_the_rate_of_one_that_is_lost(
        load_reads, server, far_hosts, capsys):
    once(server, 60, lambda: far_hosts.signal('load2'))
    code, report = load_reads('--rate', '30', *at('load1', 'load2'),
                              '--processes', '1', operation_count=450)
    assert code == LOST
    killed, = of(report, 'load2')
    others = [row for row in report['processes'] if row['lost'] is None]
    assert killed['lost']['is_given'] and killed['of'] < 75
    assert len(others) == 2
    assert sum(row['of'] for row in report['processes']) == 450
    assert [row['operations'] for row in others] == [
        row['of'] for row in others]
    assert all(row['of'] > 180 for row in others)
    assert report['operations'] > 450 - 60
    # At their times, not after all others.
    assert report['open_loop']['late_ms'] < 1000
    assert 14 < report['seconds'] < 17
    assert 'others took over its later turns' in capsys.readouterr().out


def test_a_machine_that_falls_silent_is_lost(
        load_reads, server, far_hosts, monkeypatch):
    monkeypatch.setattr(worker, 'SILENCE_SECONDS', 3.0)
    once(server, 40, lambda: far_hosts.signal('load1', signal.SIGSTOP))
    code, report = load_reads('--rate', '20', *at('load1'),
                              '--processes', '1')
    assert code == LOST
    silent, = of(report, 'load1')
    lost = silent['lost']
    assert lost['reason'] == 'said nothing for 3 seconds'
    assert lost['lost_seconds'] - lost['figures_until_seconds'] >= 3.0
    # Its ssh does not outlive the command.
    pid, = far_hosts.pids('load1')
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert report['operations'] == 60 + silent['operations']


def test_figures_stay_when_all_machines_are_lost(
        load_reads, server, far_hosts, capsys):
    once(server, 60, lambda: far_hosts.signal('load*'))
    code, report = load_reads('--rate', '30', *at('load1', 'load2'))
    assert code == LOST
    assert report['lost'] == 2
    assert 0 < report['operations'] < 70
    assert sum(row['operations'] for row in report['processes']) == \
        report['operations']
    assert capsys.readouterr().out.count('LOST') == 2


def test_nothing_is_measured_without_a_machine_that_is_lost_before(
        load_reads, server, far_hosts, capsys):
    def kill(method, path):
        if method == 'PUT' and '/' in path:
            far_hosts.signal('load2')
        return 0

    server.delay = kill
    assert load_reads(*at('load1', 'load2')) == (70, None)
    said = capsys.readouterr().err
    assert 'ssh=load2' in said and 'process 1 of users: died' in said


def test_a_machine_that_falls_silent_before_is_named(
        load_reads, server, far_hosts, monkeypatch, capsys):
    monkeypatch.setattr(worker, 'SILENCE_SECONDS', 3.0)

    def halt(method, path):
        if method == 'PUT' and '/' in path:
            far_hosts.signal('load1', signal.SIGSTOP)
        return 0

    server.delay = halt
    assert load_reads(*at('load1')) == (70, None)
    said = capsys.readouterr().err
    assert 'process 0 of users: said nothing for 3 seconds' in said


def test_first_objects_may_take_longer_than_a_silence(
        load_reads, server, far_hosts, monkeypatch):
    monkeypatch.setattr(worker, 'SILENCE_SECONDS', 1.8)
    server.delay = lambda method, path: 1.3 * (
        method in ('PUT', 'DELETE') and '/' in path)
    code, report = load_reads('-u', '2', *at('load1'), initial_files={
        'tiny': 4})
    assert (code, report['lost'], report['left']) == (0, 0, 0)


def test_figures_are_whole_of_a_machine_that_is_lost_as_it_cleans_up(
        load_reads, server, far_hosts, capsys):
    def kill(method, path):
        if method == 'DELETE':
            far_hosts.signal('load2')
        return 0

    server.delay = kill
    code, report = load_reads('--rate', '60', *at('load1', 'load2'))
    assert code == LOST
    assert report['operations'] == 120 and report['open_loop']['kept']
    lost, = of(report, 'load2')
    assert lost['lost']['is_measured']
    said = capsys.readouterr().out
    assert 'its figures are whole' in said and 'stay there' in said


def test_a_process_here_is_lost_as_one_elsewhere(load_reads, server):
    """Without --rate and for a time, nobody knows how much it had to do."""
    children = []

    def kill():
        with open('/proc/self/task/%d/children' % os.getpid()) as source:
            children.extend(int(pid) for pid in source.read().split())
        os.kill(children[-1], signal.SIGKILL)

    once(server, 100, kill, 0.02)
    code, report = load_reads('--processes', '2', '-r', '4')
    assert code == LOST
    lost = [row for row in report['processes'] if row['lost']]
    assert [(row['machine'], row['of'], row['lost']['reason'])
            for row in lost] == [('here', None, 'died with exit code -9')]
    assert report['seconds'] > 3.5


def test_an_error_of_the_program_is_told_with_its_machine(
        load_reads, far_hosts, server, capsys):
    far_hosts.customize('bare', 'import sys\nsys.modules["botocore"] = None')
    assert load_reads(*at('bare'), '--s3', server.url, '--user', 'a',
                      '--key', 'b') == (70, None)
    said = capsys.readouterr().err
    assert 'ssh=bare' in said and 'ModuleNotFoundError' in said
    assert 'botocore' in said
