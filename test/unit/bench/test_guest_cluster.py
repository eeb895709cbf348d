"""A cluster in a guest is stopped always, and its logs are told first."""

from __future__ import annotations

import os

import pytest

from swift_dss.bench.lab import guest_cluster


class Recorded:
    """Stands where a cluster stands; notes what is done with it."""

    class _Conf:
        def __init__(self, folder):
            self.log = os.path.join(folder, 'log')

        def path(self, *parts):
            return os.path.join(self.log, *parts[1:])

    def __init__(self, folder, fails=False):
        self.conf = self._Conf(str(folder))
        self.done = []
        self._fails = fails
        os.mkdir(self.conf.log)
        with open(self.conf.path('log', 'proxy'), 'w') as out:
            out.write('the last word\n')

    def start(self):
        self.done.append('start')
        if self._fails:
            raise OSError('no port')

    def stop(self):
        self.done.append('stop')


def test_it_is_stopped_and_says_nothing_if_all_went_well(tmp_path, capsys):
    cluster = Recorded(tmp_path)
    with guest_cluster.running(cluster) as same:
        assert same is cluster
    assert cluster.done == ['start', 'stop']
    assert capsys.readouterr().err == ''


def test_logs_are_told_before_it_is_stopped_when_something_failed(
        tmp_path, capsys):
    cluster = Recorded(tmp_path)
    with pytest.raises(ZeroDivisionError):
        with guest_cluster.running(cluster):
            raise ZeroDivisionError
    assert cluster.done == ['start', 'stop']
    said = capsys.readouterr().err
    assert said.startswith('== proxy\n')
    assert 'the last word' in said


def test_a_cluster_that_did_not_start_tells_why_too(tmp_path, capsys):
    cluster = Recorded(tmp_path, fails=True)
    with pytest.raises(OSError, match='no port'):
        with guest_cluster.running(cluster):
            raise AssertionError('it did not start')
    assert 'the last word' in capsys.readouterr().err
    assert cluster.done == ['start', 'stop']
